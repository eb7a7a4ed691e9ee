package chaos

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

const (
	servers   = 2 // processes of a rig
	companies = 24
	capped    = 150 // events a minute of the workspace that has a low limit
)

// A rig is a PostgreSQL, servers on it, a proxy before each of them and between
// each of them and the database, a receiver of webhooks, and what clients of two
// workspaces did and were told. Everything is real but for the distance.
type rig struct {
	pg       *servertest.Postgres
	socket   string   // PostgreSQL's
	lines    []*proxy // from each server to the database
	doors    []*proxy // from clients to each server
	env      []string
	receiver *receiver
	http     *http.Client
	balancer atomic.Pointer[string] // its address, where requests go through one
	books    []*book
	clients  []*client
	together chan struct{} // has one for who waits when many events were answered at once

	mu      sync.Mutex
	servers []*servertest.Server
	ended   []*servertest.Server // those that a fault ended, whose logs are still to be read
}

// newRig starts all of it. make changes the PostgreSQL before servers run on it.
func newRig(t testing.TB, change func(testing.TB, *servertest.Postgres)) *rig {
	t.Helper()
	r := &rig{
		// Small, so that many of them fit beside each other, and few connections, so
		// that they can be used up.
		pg: servertest.StartPostgres(t, "-c shared_buffers=32MB", "-c max_connections=70", "-c max_wal_size=64MB", "-c min_wal_size=32MB"),
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 32, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		}},
		receiver: receive(t),
		together: make(chan struct{}),
		servers:  make([]*servertest.Server, servers),
	}
	if change != nil {
		change(t, r.pg)
	}
	// Servers drain before they end, for a balancer that asks whether they are ready.
	r.env = []string{"SSL_CERT_FILE=" + r.receiver.certificate, "INLET_WEBHOOK_NETWORKS=127.0.0.0/8", "INLET_DRAIN=1s"}
	address, err := url.Parse(r.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	r.socket = filepath.Join(address.Query().Get("host"), ".s.PGSQL.5432")
	// A role that may no more than it needs: connections kept for superusers are
	// not for it.
	dbtest.Exec(t, r.pg.URL(), `create role app login; alter database inlet owner to app; alter schema public owner to app`)
	for i := range servers {
		r.lines = append(r.lines, newProxy(t, r.dialDatabase))
		r.doors = append(r.doors, newProxy(t, func() (net.Conn, error) {
			s := r.server(i)
			if s == nil {
				return nil, errors.New("not started yet")
			}
			return net.Dial("tcp", strings.TrimPrefix(s.Base, "http://"))
		}))
	}
	t.Cleanup(r.stop)
	for i := range servers {
		r.start(t, i)
	}
	r.seed(t)
	r.hire()
	return r
}

func (r *rig) seed(t testing.TB) {
	t.Helper()
	for _, b := range []struct {
		slug      string
		perMinute int
	}{{"main", 1_000_000}, {"capped", capped}} {
		r.books = append(r.books, &book{servertest.Seed(t, r.pg.URL(), b.slug, workspace(r.receiver.URL)), newLedger(), b.perMinute})
		dbtest.Exec(t, r.pg.URL(), `update workspace_gates g set events_per_minute = $2, events_per_day = 10000000
			from workspaces w where w.workspace_id = g.workspace_id and w.slug = $1`, b.slug, b.perMinute)
	}
}

// workspace has companies that can enter a motion whose every effect can be
// counted.
func workspace(receiver string) string {
	var b strings.Builder
	b.WriteString(`
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 1000000}
    sites:
      - {ref: www, origins: ["https://www.SLUG.example"]}
    forms:
      - {ref: demo, name: Request a demo, fields: [email]}
    visitors:
      - {id: v-nobody, site: www}
    companies:
`)
	for i := range companies {
		fmt.Fprintf(&b, "      - {ref: c%d, name: C%d, domain: c%d.com}\n", i, i, i)
	}
	b.WriteString("    contacts:\n")
	for i := range companies {
		fmt.Fprintf(&b, "      - {ref: p%d, email: p@c%d.com, company: c%d}\n", i, i, i)
	}
	fmt.Fprintf(&b, `
    motions:
      - {ref: lead, name: Lead, entry: {lead_created: true, reentry: always}, steps: [{kind: add_note, text: "lead"}]}
      - ref: steps
        name: Steps
        entry: {api_call: true, reentry: always}
        steps:
          - {kind: add_note, text: "one"}
          - {kind: send_webhook, url: %q}
          - {kind: create_opportunity, name: Deal}
          - {kind: add_note, text: "two"}
`, receiver)
	return b.String()
}

// dialDatabase reaches PostgreSQL by its socket: what is between is the proxy's.
func (r *rig) dialDatabase() (net.Conn, error) { return net.Dial("unix", r.socket) }

// start runs a server, of another build and with more in its environment where
// that is given.
func (r *rig) start(t testing.TB, i int, program ...string) {
	t.Helper()
	binary := servertest.Binary
	env := r.env
	if len(program) > 0 {
		binary, env = program[0], append(append([]string(nil), r.env...), program[1:]...)
	}
	s := servertest.StartProgram(t, binary, "postgres://app@"+r.lines[i].address()+"/inlet?sslmode=disable", env...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.servers[i]; old != nil {
		r.ended = append(r.ended, old)
	}
	r.servers[i] = s
}

func (r *rig) server(i int) *servertest.Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers[i]
}

// stop ends the servers as they are.
func (r *rig) stop() {
	for _, s := range r.servers {
		if s != nil {
			s.Stop() //nolint:errcheck // what the test wants to know of its end it asks itself
		}
	}
}

// A load is clients at work.
type load struct {
	end  context.CancelFunc
	work sync.WaitGroup
}

// hire makes the clients of the rig.
func (r *rig) hire() {
	hire := func(b *book, do func(*client, context.Context)) *client {
		n := len(r.clients) + 1
		c := &client{rig: r, book: b, do: do, name: fmt.Sprintf("n%d", n), server: n, rand: rand.New(rand.NewPCG(uint64(n), 7))}
		r.clients = append(r.clients, c)
		return c
	}
	main, limited := r.books[0], r.books[1]
	for range 2 {
		hire(main, (*client).sendEvents)
		hire(main, (*client).sendLeads)
		hire(main, (*client).startMotions)
	}
	hire(main, (*client).sendBatches)
	hire(main, (*client).fillForms)
	hire(limited, (*client).sendEvents)
	hire(limited, (*client).sendBatches)
	// So many at the same moment that they are recorded together, and the disk is
	// left to work behind.
	first := hire(main, (*client).sendTogether)
	for range 11 {
		first.others = append(first.others, hire(main, (*client).sendEvents))
	}
}

// load puts the clients to work.
func (r *rig) load() *load {
	ctx, end := context.WithCancel(context.Background())
	l := &load{end: end}
	var led []*client
	for _, c := range r.clients {
		led = append(led, c.others...)
	}
	for _, c := range r.clients {
		if !slices.Contains(led, c) {
			l.work.Go(func() { c.run(ctx) })
		}
	}
	return l
}

// stop ends the clients once each has its last answer.
func (l *load) stop() {
	l.end()
	l.work.Wait()
}

// requests gives what all clients sent since a time.
func (r *rig) requests(since time.Time) (all []request) {
	for _, b := range r.books {
		b.mu.Lock()
		for _, q := range b.requests {
			if q.start.After(since) {
				all = append(all, q)
			}
		}
		b.mu.Unlock()
	}
	return all
}

// A receiver takes webhooks, and notes which came.
type receiver struct {
	*httptest.Server
	certificate string // a file

	mu  sync.Mutex
	got map[string]int // by webhook-id
}

func receive(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{got: make(map[string]int)}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		io.Copy(io.Discard, q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got[q.Header.Get("Webhook-Id")]++
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // of servers that die meanwhile
	r.StartTLS()
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	r.certificate = filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	if err := os.WriteFile(r.certificate, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}
