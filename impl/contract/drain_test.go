package contract

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/servertest"
)

func TestADrainingServerIsNotReadyAndServesOnAndASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	w := seedOn(t, address, "drain", standard)
	s := start(t, address, "INLET_DRAIN=1h")
	rested := dialed(t, s)
	if said := rested.event(t, w, 1); !strings.HasPrefix(said, "HTTP/1.1 202") {
		t.Fatal(said)
	}
	if a := s.send(t, "GET", "/readyz", ""); a.status != 200 {
		t.Fatalf("readyz answers %d", a.status)
	}
	s.Process.Signal(syscall.SIGTERM)
	eventually(t, "readiness", 503, func() int { return s.send(t, "GET", "/readyz", "").status })
	if a := s.send(t, "GET", "/livez", ""); a.status != 200 {
		t.Errorf("livez answers %d", a.status)
	}
	// A connection that was at rest is not cut: a request may be on its way.
	for _, c := range []conn{rested, dialed(t, s)} {
		said := c.event(t, w, 2)
		if !strings.HasPrefix(said, "HTTP/1.1 202") || !strings.Contains(said, "Connection: close") {
			t.Errorf("while it drains it answers\n%s", said)
		}
	}
	s.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.Exited():
	case <-time.After(20 * time.Second):
		s.Kill()
		t.Error("it does not end")
	}
}

// net/http alone waits for it for five seconds; what a busy machine adds to ours is
// hardly ever as much.
func TestAConnectionThatIsNeverUsedDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	for try := 1; ; try++ {
		s := start(t, dbtest.URL(t))
		dialed(t, s)
		if a := s.send(t, "GET", "/livez", ""); a.status != 200 { // the connection before it was accepted
			t.Fatalf("livez answers %d", a.status)
		}
		asked := time.Now()
		s.Process.Signal(syscall.SIGTERM)
		ends(t, s)
		took := time.Since(asked)
		if took < 4500*time.Millisecond {
			return
		}
		if try == 3 {
			t.Fatalf("the server ends after %v", took)
		}
	}
}

// ends waits until a server that was told to end has done so, with success.
func ends(t *testing.T, s server) {
	t.Helper()
	select {
	case <-s.Exited():
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
	if err := s.Stop(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// A conn is a connection that stays open between requests.
type conn struct {
	net.Conn
	answers *bufio.Reader
}

func dialed(t *testing.T, s server) conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return conn{c, bufio.NewReader(c)}
}

// event sends an event over the connection, and gives the answer as it came.
func (c conn) event(t *testing.T, w seeded, n int) string {
	t.Helper()
	body := fmt.Sprintf(`{"id":"e%d","name":"n","visitor":{"id":"v"}}`, n)
	fmt.Fprintf(c, "POST /api/v1/events HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: %d\r\n\r\n%s", w.Key("all"), len(body), body)
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := httputil.DumpResponse(answer, true)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// answerable is a request of every operation that succeeds, by the operation.
func answerable(w seeded, op api.Operation) (path, body string, headers []string) {
	path, body, headers = request(op)
	path = strings.ReplaceAll(path, "/1/start", fmt.Sprintf("/%d/start", w.Motions["trial"]))
	switch op.ID {
	case "startMotion":
		body = fmt.Sprintf(`{"companyId": %d}`, w.Companies["kestrel"])
	case "identifyVisitor":
		body = fmt.Sprintf(`{"site": %q, "visitor_id": "v", "token": %q}`, w.Sites["www"].SiteKey, "x.y.z")
	case "getForm", "submitForm":
		path = "/api/v1/forms/" + w.Forms["demo"].PublicKey
	case "getMeetingForm", "bookMeeting", "listMeetingSlots":
		path = strings.ReplaceAll(path, "form_unknown", w.MeetingForms["intro"].PublicKey)
	}
	if op.ID == "createLeadAlias" {
		body = `{"email": "another@globex.com"}`
	}
	return path, body, headers
}

func TestRequestsInFlightOfEveryOperationAreAnsweredOnTheWayOut(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	file, err := os.ReadFile("../../scripts/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := seedOn(t, address, "demo", strings.Replace(string(file), "    companies:",
		"    api_keys:\n      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 10000}\n    companies:", 1))
	s := start(t, address)
	var slot struct{ path, at string }
	slot.path = "/api/v1/meeting-forms/" + w.MeetingForms["intro"].PublicKey + "/slots"
	if found := strings.SplitN(string(s.send(t, "GET", slot.path, "").body), `"starts_at":"`, 2); len(found) == 2 {
		slot.at, _, _ = strings.Cut(found[1], `"`)
	}

	release := dbtest.Hold(t, address, `lock table workspaces, api_keys, sites, forms, meeting_forms in access exclusive mode`)
	var answers sync.WaitGroup
	var answered atomic.Int32
	for _, op := range api.Operations {
		path, body, headers := answerable(w, op)
		if op.ID == "bookMeeting" {
			body = fmt.Sprintf(`{"starts_at": %q, "fields": {"email": "hank@globex.com", "name": "Hank"}}`, slot.at)
		}
		if len(op.Scopes) > 0 {
			headers = append(headers, w.Key("all"))
		}
		answers.Go(func() {
			a := s.send(t, op.Method, path, body, headers...)
			answered.Add(1)
			if a.status/100 != 2 {
				t.Errorf("%s is answered %d %s", op.ID, a.status, a.body)
			}
		})
	}
	// Some wait for the database, and others for a place behind them. What asks is
	// in flight as well.
	eventually(t, "requests in flight", fmt.Sprintf("inlet_http_requests_in_flight %d\n", len(api.Operations)+1), func() string {
		metrics := string(s.send(t, "GET", "/metrics", "").body)
		at := strings.Index(metrics, "\ninlet_http_requests_in_flight ")
		line, _, _ := strings.Cut(metrics[at+1:], "\n")
		return line + "\n"
	})
	s.Process.Signal(syscall.SIGTERM)
	eventually(t, "it listens", false, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Base, "http://"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if n := answered.Load(); n != 0 {
		t.Errorf("%d requests were not in flight", n)
	}
	release()
	answers.Wait()
	ends(t, s)
}

// A balancer passes requests on to the servers that said last that they are
// ready, and repeats none itself.
type balancer struct {
	mu    sync.Mutex
	ready []string
	next  atomic.Int64
	proxy httputil.ReverseProxy
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.proxy.ServeHTTP(w, r) }

// watch asks servers again and again whether they are ready, until stop is closed.
func (b *balancer) watch(stop <-chan struct{}, every time.Duration, servers func() []string) {
	for {
		var ready []string
		for _, base := range servers() {
			response, err := http.Get(base + "/readyz")
			if err != nil {
				continue
			}
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				ready = append(ready, base)
			}
		}
		b.mu.Lock()
		b.ready = ready
		b.mu.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
	}
}

func (b *balancer) readyNow() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

func TestNoRequestFailsWhileTwoServersBehindABalancerAreReplacedInTurn(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	w := seedOn(t, address, "roll", standard)
	dbtest.Exec(t, address, `update api_keys set requests_per_minute = 1000000`)
	dbtest.Exec(t, address, `update workspace_gates set events_per_minute = 1000000, events_per_day = 1000000`)
	const drain = "INLET_DRAIN=4s" // which on a busy machine the balancer needs to notice
	var mu sync.Mutex
	servers := []server{start(t, address, drain), start(t, address, drain)}
	bases := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range servers {
			all = append(all, s.Base)
		}
		return all
	}
	b := &balancer{}
	// Not http.DefaultTransport, which holds the answers to what was asked and does
	// not see bodies that stream: what the balancer's client gets is held to it.
	b.proxy.Transport = &http.Transport{}
	b.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, err.Error())
	}
	b.proxy.Rewrite = func(r *httputil.ProxyRequest) {
		ready := b.readyNow()
		if len(ready) == 0 {
			return
		}
		r.Out.URL.Scheme = "http"
		r.Out.URL.Host = strings.TrimPrefix(ready[int(b.next.Add(1))%len(ready)], "http://")
	}
	listener := httptest.NewServer(b)
	defer listener.Close()
	front := server{&servertest.Server{Base: listener.URL}}
	stop := make(chan struct{})
	var watching, sending sync.WaitGroup
	watching.Go(func() { b.watch(stop, 100*time.Millisecond, bases) })
	eventually(t, "ready servers", 2, func() int { return len(b.readyNow()) })

	var sent, failed atomic.Int64
	for c := range 6 {
		sending.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a := front.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"c%d-%d","name":"n","visitor":{"id":"v"}}`, c, n), w.Key("all"))
				sent.Add(1)
				if a.status != 202 && failed.Add(1) < 5 {
					t.Errorf("an event is answered %d %s", a.status, a.body)
				}
			}
		})
	}
	for i := range servers {
		fresh := start(t, address, drain)
		mu.Lock()
		old := servers[i]
		servers = append(servers, fresh)
		mu.Unlock()
		eventually(t, "ready servers", true, func() bool { return len(b.readyNow()) == len(bases()) })
		if err := old.Stop(); err != nil {
			t.Errorf("it ends with %v", err)
		}
		mu.Lock()
		servers = servers[:len(servers)-1]
		servers[i] = fresh
		mu.Unlock()
	}
	close(stop)
	sending.Wait()
	watching.Wait()
	for _, s := range servers {
		s.Stop()
	}
	if recorded := dbtest.Query[int64](t, address, `select count(*) from events`); recorded != sent.Load() || recorded < 100 {
		t.Errorf("%d events were sent, %d are recorded", sent.Load(), recorded)
	}
	t.Logf("%d requests, none failed", sent.Load())
}

func TestASeedThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	release := dbtest.Hold(t, address, `lock table forms in share mode`)
	defer release()
	file := strings.ReplaceAll(onPages, "SLUG", "half")
	seed := exec.CommandContext(t.Context(), servertest.Binary, "seed", "-")
	seed.Env = append(os.Environ(), "DATABASE_URL="+address)
	seed.Stdin = strings.NewReader(file)
	if err := seed.Start(); err != nil {
		t.Fatal(err)
	}
	stuck(t, address, "insert into forms")
	seed.Process.Signal(os.Interrupt)
	if err := seed.Wait(); err == nil {
		t.Error("it ends with success")
	}
	release()
	if n := dbtest.Query[int](t, address, `select (select count(*) from workspaces) + (select count(*) from companies)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	seedOn(t, address, "half", file)
}
