package contract

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// A receiver takes webhooks over TLS, and answers those of each path in a way of
// their own.
type receiver struct {
	*httptest.Server
	env []string // of a server that is to reach it

	mu   sync.Mutex
	got  map[string][]delivery
	ways map[string]func(attempt int, w http.ResponseWriter, r *http.Request)
}

// A delivery is an attempt as the receiver saw it.
type delivery struct {
	method string
	header http.Header
	body   []byte
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: map[string][]delivery{}, ways: map[string]func(int, http.ResponseWriter, *http.Request){}}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // of those that do not trust it
	r.StartTLS()
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	file := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"SSL_CERT_FILE=" + file, "INLET_WEBHOOK_NETWORKS=127.0.0.0/8"}
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	r.got[request.URL.Path] = append(r.got[request.URL.Path], delivery{request.Method, request.Header, body})
	attempt, way := len(r.got[request.URL.Path]), r.ways[request.URL.Path]
	r.mu.Unlock()
	if way != nil {
		way(attempt, w, request)
	}
}

// on says how deliveries to a path are answered; by itself the receiver takes
// them.
func (r *receiver) on(path string, way func(attempt int, w http.ResponseWriter, r *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ways[path] = way
}

func (r *receiver) deliveries(path string) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.got[path]...)
}

// hooked is a workspace whose companies are told of by one webhook each, and
// then get a note.
func hooked(companies int, urls ...string) string {
	file := doomed(companies)
	for i, u := range urls {
		file += fmt.Sprintf(`
      - {ref: hook%d, name: Hook, entry: {api_call: true, reentry: always}, steps: [{kind: send_webhook, url: %q}, {kind: add_note, text: "told"}]}
`, i, u)
	}
	return file
}

// A sent is an enrollment with a webhook in it.
type sent struct {
	Status, Problem string
	Step, Attempts  int
	Wait            float64 // seconds to the next attempt
	Notes           int
}

func (w seeded) sent(t testing.TB, address, motion, company string) (n sent) {
	t.Helper()
	raw := dbtest.Query[string](t, address, `
		select json_build_object('Status', n.status, 'Problem', coalesce(n.problem, ''), 'Step', n.step, 'Attempts', n.attempts,
			'Wait', coalesce(extract(epoch from n.due_at - inlet_now()), 0), 'Notes', (select count(*) from notes where workspace_id = $1 and company_id = $3))
		from (select 1) one left join enrollments n on n.workspace_id = $1 and n.motion_id = $2 and n.company_id = $3`,
		w.ID, w.Motions[motion], w.Companies[company])
	if err := json.Unmarshal([]byte(raw), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// told waits until the company went through the whole motion.
func (w seeded) told(t testing.TB, address, motion, company string) {
	t.Helper()
	eventually(t, "the company that is told of", sent{Status: "completed", Step: 2, Notes: 1}, func() sent {
		n := w.sent(t, address, motion, company)
		n.Wait, n.Attempts = 0, 0
		return n
	})
}

func (w seeded) starts(t testing.TB, s server, motion, company string) {
	t.Helper()
	if status := w.triggers(s, motion, company, motion+company); status != 202 {
		t.Fatalf("the start of %s answers %d", motion, status)
	}
}

func webhooks(beside func(string, func(*testing.T))) {
	beside("webhooks are signed, tried again with one id, and follow no redirect", func(t *testing.T) {
		_, address := dbtest.Private(t)
		r := receive(t)
		s := start(t, address, r.env...)
		defer s.Stop()
		w := seedOn(t, address, "flaky", hooked(1, r.URL+"/flaky"))
		r.on("/flaky", func(attempt int, w http.ResponseWriter, _ *http.Request) {
			switch attempt {
			case 1:
				w.WriteHeader(http.StatusInternalServerError)
			case 2: // reads, and hangs up
				panic(http.ErrAbortHandler)
			case 3:
				w.Header().Set("Location", r.URL+"/elsewhere")
				w.WriteHeader(http.StatusTemporaryRedirect)
			case 4:
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				w.WriteHeader(http.StatusNoContent)
			}
		})
		began := time.Now()
		if a := w.start(t, s, "hook0", "c0", "k", fmt.Sprintf(`,"contactIds":[%d]`, w.Contacts["p0"])); a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		problems := []string{"answered 500", "no answer", "answered 307", "answered 429"}
		waits := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}
		for i, problem := range problems {
			eventually(t, "the problem of the attempt", true, func() bool {
				return strings.Contains(w.sent(t, address, "hook0", "c0").Problem, problem)
			})
			n := w.sent(t, address, "hook0", "c0")
			if n.Status != "active" || n.Attempts != i+1 || n.Step != 0 || n.Notes != 0 || n.Wait > waits[i].Seconds() || n.Wait < waits[i].Seconds()-4.5 {
				t.Errorf("after attempt %d it is %+v", i+1, n)
			}
			hasten(t, address, w.ID)
		}
		w.told(t, address, "hook0", "c0")
		if n := len(r.deliveries("/elsewhere")); n != 0 {
			t.Errorf("the redirect was followed %d times", n)
		}
		secret, err := servertest.Command(t, address, "", "workspace", "webhook-secret", "flaky")
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := standardwebhooks.NewWebhook(strings.TrimSpace(secret))
		if err != nil {
			t.Fatal(err)
		}
		attempts := r.deliveries("/flaky")
		if len(attempts) != 5 {
			t.Fatalf("%d attempts were made, want 5", len(attempts))
		}
		enrollment := dbtest.Query[int64](t, address, `select enrollment_id from enrollments where workspace_id = $1`, w.ID)
		for i, d := range attempts {
			if err := verifier.Verify(d.body, d.header); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
			if id := d.header.Get("webhook-id"); id == "" || id != attempts[0].header.Get("webhook-id") {
				t.Errorf("attempt %d has the id %q", i+1, id)
			}
			if d.method != http.MethodPost || d.header.Get("Content-Type") != "application/json" || d.header.Get("User-Agent") != "Inlet" {
				t.Errorf("attempt %d is %s with %v", i+1, d.method, d.header)
			}
			var body map[string]any
			if err := json.Unmarshal(d.body, &body); err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse("2006-01-02T15:04:05.000Z", fmt.Sprint(body["timestamp"]))
			if err != nil || at.Before(began.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
				t.Errorf("attempt %d is of %v", i+1, body["timestamp"])
			}
			delete(body, "timestamp")
			want := map[string]any{"type": "motion.webhook", "data": map[string]any{
				"motionId": float64(w.Motions["hook0"]), "enrollmentId": float64(enrollment), "step": 1.0,
				"companyId": float64(w.Companies["c0"]), "contactIds": []any{float64(w.Contacts["p0"])},
			}}
			if !reflect.DeepEqual(body, want) {
				t.Errorf("attempt %d says %v, want %v", i+1, body, want)
			}
		}
		// What it is signed with is the workspace's own.
		other := seedOn(t, address, "other", doomed(1))
		foreign, err := servertest.Command(t, address, "", "workspace", "webhook-secret", other.Slug)
		if err != nil || foreign == secret {
			t.Errorf("another workspace has the secret %s, %v", foreign, err)
		}
	})

	beside("webhooks fail at once where the receiver is gone, and after the last attempt, and show why", func(t *testing.T) {
		_, address := dbtest.Private(t)
		r := receive(t)
		s := start(t, address, r.env...)
		defer s.Stop()
		w := seedOn(t, address, "failing", hooked(1, r.URL+"/gone", r.URL+"/broken"))
		r.on("/gone", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
		r.on("/broken", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		w.starts(t, s, "hook0", "c0")
		w.starts(t, s, "hook1", "c0")
		eventually(t, "what is gone", "failed", func() string { return w.sent(t, address, "hook0", "c0").Status })
		waits := []float64{5, 300, 1800, 7200, 18000, 36000, 36000}
		for i := 1; i <= 8; i++ {
			eventually(t, "attempts", i, func() int { return len(r.deliveries("/broken")) })
			eventually(t, "the outcome of an attempt", true, func() bool { return w.sent(t, address, "hook1", "c0").Problem != "" })
			n := w.sent(t, address, "hook1", "c0")
			if i < 8 && (n.Status != "active" || n.Wait > waits[i-1] || n.Wait < waits[i-1]-4.5) || i == 8 && n.Status != "failed" {
				t.Fatalf("after attempt %d it is %+v", i, n)
			}
			dbtest.Exec(t, address, `update enrollments set due_at = inlet_now(), problem = null where workspace_id = $1 and status = 'active'`, w.ID)
		}
		show := func(motion string) string {
			out, err := servertest.Command(t, address, "", "motion", "show", fmt.Sprint(w.Motions[motion]), "--workspace", w.Slug)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if out := show("hook0"); !strings.Contains(out, "failed") || !strings.Contains(out, "answered 410") {
			t.Errorf("motion show says\n%s", out)
		}
		if out := show("hook1"); !strings.Contains(out, "failed") || !strings.Contains(out, "answered 503") {
			t.Errorf("motion show says\n%s", out)
		}
		if n := w.sent(t, address, "hook0", "c0"); n.Notes != 0 {
			t.Errorf("what failed went on: %+v", n)
		}
		if gone, broken := len(r.deliveries("/gone")), len(r.deliveries("/broken")); gone != 1 || broken != 8 {
			t.Errorf("there were %d and %d attempts, want 1 and 8", gone, broken)
		}
	})

	beside("webhooks never reach private networks but those that are allowed", func(t *testing.T) {
		var dialed atomic.Int32
		trap := func(address string) string {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Skipf("%s: %v", address, err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					dialed.Add(1)
					c.Close()
				}
			}()
			_, port, _ := net.SplitHostPort(l.Addr().String())
			return port
		}
		// The same port, so that whatever a name stands for is listened at.
		port := trap("127.0.0.1:0")
		trap("[::1]:" + port)
		hosts := []string{
			"[::1]", "[::]", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
			"[fd00::1]", "[fe80::1]", "[64:ff9b::a00:1]", "[2002:a00:1::]", "[::ffff:10.0.0.1]",
		}
		own := []string{"127.0.0.1", "127.8.8.8", "localhost", "[::ffff:127.0.0.1]"}
		check := func(address string, s server, slug string, hosts []string) {
			t.Helper()
			var urls []string
			for _, h := range hosts {
				urls = append(urls, "https://"+h+":"+port+"/")
			}
			w := seedOn(t, address, slug, hooked(1, urls...))
			for i := range hosts {
				w.starts(t, s, fmt.Sprint("hook", i), "c0")
			}
			for i, h := range hosts {
				eventually(t, h, sent{Status: "failed", Problem: "The webhook's address leads into a private network."}, func() sent {
					n := w.sent(t, address, fmt.Sprint("hook", i), "c0")
					return sent{Status: n.Status, Problem: n.Problem, Step: n.Step, Notes: n.Notes}
				})
			}
		}
		_, address := dbtest.Private(t)
		closed := start(t, address)
		check(address, closed, "closed", append(own, hosts...))
		if err := closed.Stop(); err != nil {
			t.Error(err)
		}
		if n := dialed.Load(); n != 0 {
			t.Errorf("private addresses were dialed %d times", n)
		}
		allowed := start(t, address, "INLET_WEBHOOK_NETWORKS=127.0.0.0/8")
		defer allowed.Stop()
		check(address, allowed, "allowed", hosts)
		// Nor a receiver whose certificate is nobody's.
		r := receive(t)
		w := seedOn(t, address, "unknown", hooked(1, r.URL+"/unknown"))
		w.starts(t, allowed, "hook0", "c0")
		eventually(t, "a receiver that cannot be told from others", "The webhook could not be delivered: no answer came.", func() string {
			return w.sent(t, address, "hook0", "c0").Problem
		})
		if n := len(r.deliveries("/unknown")); n != 0 {
			t.Errorf("a receiver with a certificate of its own got %d webhooks", n)
		}
		if n := dialed.Load(); n != 0 {
			t.Errorf("private addresses were dialed %d times", n)
		}
	})

	beside("webhooks to slow receivers hold up nobody else", func(t *testing.T) {
		const slow = 300 // more than there is room for
		_, address := dbtest.Private(t)
		r := receive(t)
		s := start(t, address, r.env...)
		w := seedOn(t, address, "slow", hooked(slow, r.URL+"/slow"))
		quick := seedOn(t, address, "quick", hooked(6, r.URL+"/quick"))
		ctx, release := context.WithCancel(t.Context())
		defer release()
		r.on("/slow", func(_ int, _ http.ResponseWriter, r *http.Request) {
			select {
			case <-ctx.Done():
			case <-r.Context().Done():
			}
		})
		dbtest.Exec(t, address, `insert into motion_entries (workspace_id, motion_id, company_id, trigger) select workspace_id, $2, company_id, 'api' from companies where workspace_id = $1`,
			w.ID, w.Motions["hook0"])
		eventually(t, "webhooks at the slow receiver", true, func() bool { return len(r.deliveries("/slow")) >= 10 })
		since := time.Now()
		for i := range 3 {
			began := time.Now()
			quick.starts(t, s, "hook0", fmt.Sprint("c", i))
			quick.starts(t, s, "steps", fmt.Sprint("c", 3+i))
			quick.told(t, address, "hook0", fmt.Sprint("c", i))
			eventually(t, "steps without a webhook", halfWay, func() string { return quick.effects(t, address, fmt.Sprint("c", 3+i)) })
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("a webhook to another receiver took %v", took)
			}
		}
		// What is counted as an attempt arrived: none waits for the others' end.
		eventually(t, "attempts that did not arrive", 0, func() int {
			return dbtest.Query[int](t, address, `select count(*) from enrollments where workspace_id = $1 and attempts > 0`, w.ID) - len(r.deliveries("/slow"))
		})
		// They are given up after 15 seconds.
		for {
			up := dbtest.Query[int](t, address, `select count(*) from enrollments where workspace_id = $1 and problem like '%no answer%'`, w.ID)
			waited := time.Since(since)
			if up > 0 && waited < 12*time.Second || up == 0 && waited > 30*time.Second {
				t.Errorf("%d attempts are given up after %v", up, waited)
			}
			if up > 0 || waited > 30*time.Second {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		// A server that is to end does not wait for them.
		began := time.Now()
		if err := s.Stop(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the server took %v to end", took)
		}
	})

	beside("webhooks are sent again with their id where the server dies, and what follows is done once", func(t *testing.T) {
		_, address := dbtest.Private(t)
		r := receive(t)
		s := start(t, address, r.env...)
		defer func() { s.Stop() }()
		w := seedOn(t, address, "dying", hooked(4, r.URL+"/late", r.URL+"/forgotten", r.URL+"/cut")+fmt.Sprintf(`
      - {ref: slow, name: Slow, entry: {api_call: true}, steps: [{kind: send_webhook, url: %q}, {kind: add_note, text: "told"}, {kind: wait, days: 1}]}
`, r.URL+"/slow"))
		twice := func(path, company string) {
			t.Helper()
			motion := map[string]string{"/late": "hook0", "/forgotten": "hook1", "/cut": "hook2"}[path]
			if path != "/cut" {
				// What has no outcome is left alone for a while, and then tried again.
				if n := w.sent(t, address, motion, company); n.Status != "active" || n.Notes != 0 || n.Wait < 1 {
					t.Errorf("%s: it is %+v", path, n)
				}
				hasten(t, address, w.ID)
			}
			w.told(t, address, motion, company)
			attempts := r.deliveries(path)
			if len(attempts) != 2 || attempts[0].header.Get("webhook-id") != attempts[1].header.Get("webhook-id") {
				t.Errorf("%s was sent %d times: %+v", path, len(attempts), attempts)
			}
		}

		// While the receiver is at it; its answer finds nobody.
		arrived, answer := make(chan bool, 1000), make(chan bool)
		cut := make(chan bool, 1000)
		r.on("/late", func(attempt int, _ http.ResponseWriter, _ *http.Request) {
			if arrived <- true; attempt == 1 {
				<-answer
			}
		})
		w.starts(t, s, "hook0", "c0")
		<-arrived
		s.Kill()
		close(answer)
		s = start(t, address, r.env...)
		time.Sleep(700 * time.Millisecond)
		if n := len(r.deliveries("/late")); n != 1 {
			t.Errorf("another server sent it again at once: %d", n)
		}
		twice("/late", "c0")

		// After the answer, before what came of it is kept.
		var held func()
		r.on("/forgotten", func(attempt int, _ http.ResponseWriter, _ *http.Request) {
			if attempt == 1 {
				held = dbtest.Hold(t, address, `lock table enrollments in share mode`)
			}
		})
		w.starts(t, s, "hook1", "c1")
		stuck(t, address, "update enrollments")
		s.Kill()
		held()
		s = start(t, address, r.env...)
		twice("/forgotten", "c1")

		// A server that ends in order cuts it off, within moments.
		r.on("/cut", func(attempt int, _ http.ResponseWriter, r *http.Request) {
			if cut <- true; attempt == 1 {
				<-r.Context().Done()
			}
		})
		w.starts(t, s, "hook2", "c2")
		<-cut
		began := time.Now()
		if err := s.Stop(); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("the server took %v to end, %v", time.Since(began), err)
		}
		s = start(t, address, r.env...)
		twice("/cut", "c2")

		// An answer that comes after its time, when another attempt has succeeded,
		// takes the company nowhere.
		first, second := make(chan bool), make(chan bool)
		r.on("/slow", func(attempt int, _ http.ResponseWriter, _ *http.Request) {
			if attempt == 1 {
				close(first)
				<-second
			}
		})
		w.starts(t, s, "slow", "c3")
		<-first
		hasten(t, address, w.ID)
		waiting := sent{Status: "active", Step: 3, Notes: 1}
		is := func() sent {
			n := w.sent(t, address, "slow", "c3")
			n.Wait = 0
			return n
		}
		eventually(t, "the second attempt", waiting, is)
		close(second)
		time.Sleep(1200 * time.Millisecond)
		if n := is(); n != waiting {
			t.Errorf("an answer that came late made it %+v", n)
		}
	})
}
