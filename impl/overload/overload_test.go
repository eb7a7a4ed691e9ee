// Package overload gives the real server more than it can serve, and clients that
// mean it no good, and looks whether it keeps serving the others, whole and soon.
//
// What a machine can serve depends on who else uses it, so the tests make the
// database slow: then a few hundred requests a second are ten times too many, and
// neither the load nor the server is short of processors.
package overload

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "4") // they wait more than they work
	dbtest.Apart("overload")       // what floods its server floods PostgreSQL with connections
	servertest.Main(m, nil)        // with -race its memory would say nothing
}

// What the server may hold on to, whatever is done to it.
const (
	mostMemory     = 640 << 20 // resident, in bytes; the page "Overload" promises it
	mostGoroutines = 40_000    // two a connection and some
	patience       = 10 * time.Second
)

// A server on a database of its own, which may be slow.
type server struct {
	*servertest.Server
	database string
	slow     *slowdown
}

func start(t *testing.T, env ...string) server {
	t.Helper()
	_, address := dbtest.Private(t)
	slow, through := slowly(t, address)
	s := server{servertest.Start(t, through, env...), address, slow}
	t.Cleanup(func() {
		slow.by(0)
		s.Stop() // how it ends, other tests ask
	})
	return s
}

// A tenant is a workspace whose limits are out of reach.
type tenant struct{ servertest.Workspace }

const file = `
workspaces:
  - slug: SLUG
    api_enabled: true
    people: [{ref: ada, email: ada@SLUG.example, name: Ada, role: admin}]
    api_keys: [{ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 100000000}, {ref: service, kind: service, owner: ada, scopes: [leads.manage], requests_per_minute: 100000000}]
    companies: [{ref: globex, name: Globex, domain: globex.com}]
    motions: [{ref: m, name: M, entry: {api_call: true, reentry: always}}]
    sites: [{ref: www, origins: ["https://www.SLUG.example"]}]
    forms: [{ref: f, name: F, fields: [email, first_name]}]
    meeting_forms: [{ref: c, name: C, minutes: 30}]
`

func (s server) tenant(t *testing.T) tenant {
	t.Helper()
	w := servertest.Seed(t, s.database, "t"+strconv.FormatUint(rand.Uint64(), 36), file)
	dbtest.Exec(t, s.database, `update workspace_gates set events_per_minute = 1000000000, events_per_day = 1000000000, events_backlog = 1000000000`)
	return tenant{w}
}

func (s server) tenants(t *testing.T, n int) (all []tenant) {
	t.Helper()
	for range n {
		all = append(all, s.tenant(t))
	}
	return all
}

// A request is one to be sent.
type request struct {
	method, path, body string
	headers            []string // in pairs
}

func (w tenant) request(method, path, body string) request {
	return request{method, path, body, []string{
		"Authorization", strings.TrimPrefix(w.Key("all"), "Authorization: "), "Content-Type", "application/json",
	}}
}

// unique is a text that no other request has.
func unique() string { return strconv.FormatUint(rand.Uint64(), 36) }

func (w tenant) lead() request {
	return w.request("POST", "/api/v1/leads", `{"email":"`+unique()+`@`+unique()+`.example.org","name":"N"}`)
}

func (w tenant) start() request {
	r := w.request("POST", fmt.Sprintf("/api/v1/motions/%d/start", w.Motions["m"]), fmt.Sprintf(`{"companyId":%d}`, w.Companies["globex"]))
	r.headers = append(r.headers, "Idempotency-Key", unique())
	return r
}

func (w tenant) event() request {
	return w.request("POST", "/api/v1/events", `{"id":"`+unique()+`","name":"n","company":{"domain":"globex.com"}}`)
}

func (w tenant) batch() request {
	events := make([]string, 100)
	for i := range events {
		events[i] = `{"id":"` + unique() + `","name":"n","company":{"domain":"globex.com"},"properties":{"text":"` + strings.Repeat("x", 500) + `"}}`
	}
	return w.request("POST", "/api/v1/events/batch", `{"events":[`+strings.Join(events, ",")+`]}`)
}

func (w tenant) list() request { return w.request("GET", "/api/v1/events", "") }

func (w tenant) types() request { return w.request("GET", "/api/v1/event-types", "") }

// ofAnybody is a request without a credential, from a network of its own.
func ofAnybody(method, path, body string) request {
	return request{method, path, body, []string{
		"Content-Type", "application/json",
		"X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256)),
	}}
}

func (w tenant) form() request {
	return ofAnybody("GET", "/api/v1/forms/"+w.Forms["f"].PublicKey, "")
}

func (w tenant) submission() request {
	return ofAnybody("POST", "/api/v1/forms/"+w.Forms["f"].PublicKey, `{"fields":{"email":"`+unique()+`@gmail.com"}}`)
}

func (w tenant) page() request {
	return ofAnybody("GET", "/api/v1/forms/"+w.Forms["f"].PublicKey+"/page", "")
}

// stranger is a request with a key that looks like one and is none.
func stranger() request {
	r := ofAnybody("GET", "/api/v1/events", "")
	r.headers = append(r.headers, "Authorization", "Bearer "+unknownKey())
	return r
}

// unknownKey gives a key that is well-formed and nobody's.
func unknownKey() string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	key := []byte("amp_")
	for range 30 {
		key = append(key, base62[rand.IntN(62)])
	}
	sum := crc32.ChecksumIEEE(key)
	check := make([]byte, 6)
	for i := range check {
		check[5-i] = base62[sum%62]
		sum /= 62
	}
	return string(append(key, check...))
}

// An answer to a request.
type answer struct {
	status     int
	code       string // of an error
	retryAfter string
	took       time.Duration
	err        error
}

func (s server) send(client *http.Client, r request) (a answer) {
	sent, err := http.NewRequest(r.method, s.Base+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{err: err}
	}
	if r.body == "" {
		sent.Body = http.NoBody
	}
	for i := 0; i < len(r.headers); i += 2 {
		sent.Header.Set(r.headers[i], r.headers[i+1])
	}
	begun := time.Now()
	response, err := client.Do(sent)
	if err != nil {
		return answer{err: err, took: time.Since(begun)}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	a = answer{response.StatusCode, "", response.Header.Get("Retry-After"), time.Since(begun), err}
	if a.status >= 400 {
		a.code = codeOf(raw)
	}
	return a
}

// codeOf reads the code of an error in either shape.
func codeOf(body []byte) (code string) {
	var flat struct{ Error string }
	if json.Unmarshal(body, &flat) == nil {
		return flat.Error
	}
	var nested struct{ Error struct{ Code string } }
	json.Unmarshal(body, &nested)
	return nested.Error.Code
}

// fresh is a client that is new to the server.
func fresh() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}, Timeout: patience}
}

// one sends a request that is to succeed, as a client that is new to the server.
func (s server) one(t *testing.T, r request, want int) {
	t.Helper()
	if a := s.send(fresh(), r); a.status != want {
		t.Errorf("%s %s answers %d %s %v after %v, want %d", r.method, r.path, a.status, a.code, a.err, a.took, want)
	}
}

// A state is what the server holds on to.
type state struct{ memory, peak, goroutines, files int }

var (
	goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)
	filesLine      = regexp.MustCompile(`(?m)^process_open_fds (\S+)$`)
	memoryLine     = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	peakLine       = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
)

func (s server) state(t *testing.T) (now state) {
	t.Helper()
	client := fresh()
	response, err := client.Get(s.Base + "/metrics")
	for begun := time.Now(); err != nil && time.Since(begun) < patience; { // it may have been one connection too many
		time.Sleep(100 * time.Millisecond)
		response, err = client.Get(s.Base + "/metrics")
	}
	if err != nil {
		t.Fatalf("the server does not tell how it is: %v", err)
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Pid)) // on Linux
	number := func(line *regexp.Regexp, in []byte) int {
		if found := line.FindSubmatch(in); found != nil {
			n, _ := strconv.ParseFloat(string(found[1]), 64)
			return int(n)
		}
		return 0
	}
	return state{number(memoryLine, status) << 10, number(peakLine, status) << 10, number(goroutinesLine, raw), number(filesLine, raw)}
}

// givesBack waits until the server holds on to no more than before, but for its
// memory, which the system gets back in its own time.
func (s server) givesBack(t *testing.T, before state) {
	t.Helper()
	var now state
	for begun := time.Now(); time.Since(begun) < 60*time.Second; time.Sleep(100 * time.Millisecond) {
		if now = s.state(t); now.goroutines <= before.goroutines+40 && now.files <= before.files+20 {
			break
		}
	}
	if now.goroutines > before.goroutines+40 || now.files > before.files+20 {
		t.Errorf("before it held %+v, and a minute afterwards still %+v", before, now)
	}
	if now.peak > mostMemory {
		t.Errorf("it took %d MB", now.peak>>20)
	}
}

// watched looks at the server while something goes on, until the function that it
// gives is called: light requests are to be answered throughout.
func (s server) watched(t *testing.T) (done func()) {
	t.Helper()
	end := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		late := 0
		for {
			s.one(t, request{"GET", "/livez", "", nil}, 200)
			s.one(t, request{"GET", "/t/inlet.js", "", nil}, 200)
			// It asks the database, which on a machine that others use may stop for a
			// while.
			if a := s.send(http.DefaultClient, request{"GET", "/readyz", "", nil}); a.status == 200 {
				late = 0
			} else if late++; late == 3 {
				t.Errorf("readyz answers %d %v", a.status, a.err)
			}
			if now := s.state(t); now.goroutines > mostGoroutines {
				t.Errorf("it runs %d goroutines", now.goroutines)
			}
			select {
			case <-end:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() { close(end); watching.Wait() }
}

// limited writes a program that runs the server with so many file descriptors.
func limited(t *testing.T, files int) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "inlet")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec %s \"$@\"\n", files, servertest.Binary)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

func host(t *testing.T, s server) string {
	t.Helper()
	u, err := url.Parse(s.Base)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
