package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// inTurn hands requests to processes in turn, one each, so that a client's next
// request is always with another process. A process that does not answer is asked no
// more, and whoever it owes an answer finds the connection cut.
type inTurn struct {
	mu     sync.Mutex
	behind []server // the next one first
}

// balance gives what tests talk to as to one server.
func balance(t testing.TB, behind ...server) server {
	b := &inTurn{behind: slices.Clone(behind)}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			base, err := url.Parse(b.next())
			if err != nil {
				t.Error(err)
			}
			host := r.In.Host
			r.SetURL(base)
			r.Out.Host = host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		// Not http.DefaultTransport: what it says of answers would be said twice.
		Transport: &http.Transport{},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, _ error) {
			b.leaveOut(r.URL.Host)
			panic(http.ErrAbortHandler)
		},
	})
	t.Cleanup(proxy.Close)
	return server{&servertest.Server{Base: proxy.URL}}
}

func (b *inTurn) next() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.behind[0]
	b.behind = append(b.behind[1:], s)
	return s.Base
}

func (b *inTurn) leaveOut(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.behind) > 1 {
		b.behind = slices.DeleteFunc(b.behind, func(s server) bool { return strings.HasSuffix(s.Base, "//"+host) })
	}
}

func TestAClientWhoseEveryRequestGoesToAnotherOfThreeProcessesSeesOneServer(t *testing.T) {
	t.Parallel()
	var three []server
	for range 3 {
		s := start(t, dbtest.URL(t))
		defer s.Stop()
		three = append(three, s)
	}
	beside, wait := sideBySide(t)

	beside("totals are exact right after each answer", func(t *testing.T) {
		s := balance(t, three...)
		w := workspace(t)
		for i := range 13 {
			event := fmt.Sprintf(`{"id":"e%d","name":"n","company":{"domain":"globex.com"}}`, i)
			first := w.record(t, s, event)
			if first.status != 202 || first.field("status") != "accepted" {
				t.Fatalf("%d %s", first.status, first.body)
			}
			if total := w.list(t, s, nil).Total; total != i+1 {
				t.Errorf("after %d events the total is %d", i+1, total)
			}
			// Three more, so that the next event begins with another process.
			for range 3 {
				if again := w.record(t, s, event); again.field("status") != "duplicate" || again.field("event_id") != first.field("event_id") {
					t.Errorf("sent again it is %s, first %s", again.body, first.body)
				}
			}
		}
		// A cursor of one process goes to another; only its own list takes it.
		rows, totals := w.walk(t, s, url.Values{"limit": {"2"}})
		seen := make(map[string]bool)
		for _, row := range rows {
			seen[row.ID] = true
		}
		if len(rows) != 13 || len(seen) != 13 || len(totals) != 7 || slices.ContainsFunc(totals, func(n int) bool { return n != 13 }) {
			t.Errorf("the pages hold %d rows, %d events, with totals %v", len(rows), len(seen), totals)
		}
		w.factsAgree(t, dbtest.URL(t))
	})

	beside("a repeated key is one lead and one start", func(t *testing.T) {
		s := balance(t, three...)
		w := seed(t, running)
		for i := range 4 {
			body, key := fmt.Sprintf(`{"email":"new%d@fresh%d.com"}`, i, i), fmt.Sprint("Idempotency-Key: k", i)
			first := w.lead(t, s, body, key)
			if first.status != 201 {
				t.Fatalf("%d %s", first.status, first.body)
			}
			for range 3 {
				if again := w.lead(t, s, body, key); again.status != 409 || again.field("lead_id") != first.field("lead_id") {
					t.Errorf("the repeat answers %d %s, first %s", again.status, again.body, first.body)
				}
			}
		}
		if n := w.leads(t); n != 4 {
			t.Errorf("%d leads, want 4", n)
		}
		// Whichever process decides, all of them answer that decision.
		d := w.decided(t, s, "api", "globex", "k", "")
		for range 4 {
			if again := w.decided(t, s, "api", "globex", "k", ""); *again.EnrollmentID != *d.EnrollmentID || again.DecidedAt != d.DecidedAt {
				t.Errorf("the repeat answers %+v, first %+v", again, d)
			}
		}
	})

	beside("a limit is exact", func(t *testing.T) {
		s := balance(t, three...)
		for range 3 {
			w := seed(t, strings.Replace(standard, "requests_per_minute: 2}", "requests_per_minute: 31}", 1))
			var mu sync.Mutex
			count, minutes := make(map[int]int), make(map[string]bool)
			var parallel sync.WaitGroup
			for i := range 45 {
				parallel.Go(func() {
					a := s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"e%d","name":"n","visitor":{"id":"v"}}`, i), w.Key("two"))
					mu.Lock()
					defer mu.Unlock()
					count[a.status]++
					minutes[a.header.Get("Date")[:22]] = true
				})
			}
			parallel.Wait()
			if len(minutes) > 1 {
				continue // the count began anew
			}
			if count[202] != 31 || count[429] != 14 {
				t.Errorf("answers are %v, want 31 times 202 and 14 times 429", count)
			}
			return
		}
		t.Error("no minute was long enough")
	})

	beside("what is switched off is off everywhere", func(t *testing.T) {
		s := balance(t, three...)
		w := workspace(t)
		for range 3 {
			if a := w.record(t, s, `{"id":"warm","name":"n","visitor":{"id":"v"}}`); a.status != 202 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
		key := dbtest.Query[int64](t, dbtest.URL(t), `select key_id from api_keys where workspace_id = $1 and name = 'all'`, w.ID)
		inlet(t, "", "key", "revoke", "--workspace", w.Slug, fmt.Sprint(key))
		for range 3 {
			expect(t, w.record(t, s, `{"id":"late","name":"n","visitor":{"id":"v"}}`), 401, "invalid_api_key", "")
		}
	})

	beside("visitors are one process's what they are another's", func(t *testing.T) {
		s := balance(t, three...)
		w := seed(t, onPages)
		form := "/api/v1/forms/" + w.Forms["demo"].PublicKey
		for i := range 3 { // shown by one process, sent to another
			if a := s.send(t, "GET", form, ""); a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a := s.send(t, "POST", form, fmt.Sprintf(`{"fields":{"email":"ann%d@newco%d.com"},"visitor_id":"f%d"}`, i, i, i)); a.status != 201 {
				t.Errorf("%d %s", a.status, a.body)
			}
			if w.visitor(t, fmt.Sprint("f", i)) == 0 {
				t.Error("who sent the form is not known by it")
			}
		}
		token := w.token("hank@globex.com", nil)
		if got := w.identifies(t, s, "first", token); got != w.Contacts["hank"] {
			t.Errorf("by the token the visitor is %d, want %d", got, w.Contacts["hank"])
		}
		for _, visitor := range []string{"second", "third", "fourth"} {
			if got := w.identifies(t, s, visitor, token); got != 0 {
				t.Errorf("a token that was used at another process makes %s %d", visitor, got)
			}
		}
		link := strings.TrimSpace(inlet(t, "", "link", "create", w.Sites["www"].SiteKey, "--contact", "hank@globex.com",
			"--page", "https://www."+w.Slug+".example/", "--public-url", s.Base))
		for i := range 3 { // clicked at one process, proved to another
			client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			response, err := client.Get(link)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			_, proof, _ := strings.Cut(response.Header.Get("Location"), "_svclink=")
			if got := w.claim(t, s, fmt.Sprint("l", i), map[string]any{"link": proof}); got != w.Contacts["hank"] {
				t.Errorf("by the link the visitor is %d, want %d", got, w.Contacts["hank"])
			}
		}
	})
	wait()
}

func TestWhoeverWasAnsweredBehindABalancerWasToldTheTruthThoughAProcessDies(t *testing.T) {
	t.Parallel()
	var three []server
	for range 3 {
		three = append(three, start(t, dbtest.URL(t)))
	}
	s := balance(t, three...)
	for _, s := range three[1:] {
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	w := workspace(t)
	inlet(t, "", "workspace", "set", w.Slug, "--events-per-minute=100000")
	var mu sync.Mutex
	answered := make(map[string]string) // the number that an event was answered with
	cut := 0
	// A client of its own: to the watched one an answer that breaks off is a deviation.
	client := http.Client{Transport: &http.Transport{}}
	send := func(id string) (eventID string) {
		body := fmt.Sprintf(`{"id":%q,"name":"n","company":{"domain":"globex.com"}}`, id)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+"/api/v1/events", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		r.Header.Set("Authorization", strings.TrimPrefix(w.Key("all"), "Authorization: "))
		response, err := client.Do(r)
		if err != nil {
			return ""
		}
		defer response.Body.Close()
		var receipt struct {
			EventID string `json:"event_id"`
		}
		if json.NewDecoder(response.Body).Decode(&receipt) != nil || response.StatusCode != http.StatusAccepted {
			return ""
		}
		return receipt.EventID
	}
	stop := make(chan struct{})
	var sending sync.WaitGroup
	for client := range 8 {
		sending.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("c%d-%d", client, n)
				// As a client would: the same event again, until it is answered.
				for try := 0; ; try++ {
					eventID := send(id)
					mu.Lock()
					if eventID != "" {
						answered[id] = eventID
						mu.Unlock()
						break
					}
					cut++
					mu.Unlock()
					if try == 50 {
						t.Errorf("%s is never answered", id)
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	reached := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(answered) >= n }
	}
	eventually(t, "events before the death", true, reached(100))
	three[0].Kill()
	mu.Lock()
	before := len(answered)
	mu.Unlock()
	eventually(t, "events after the death", true, reached(before+100))
	close(stop)
	sending.Wait()

	if total := w.list(t, s, nil).Total; total != len(answered) {
		t.Errorf("the total is %d, %d were answered", total, len(answered))
	}
	rows, _ := w.walk(t, s, url.Values{"limit": {"100"}})
	listed := make(map[string]string)
	for _, row := range rows {
		if listed[row.ID] != "" {
			t.Errorf("%s is recorded twice", row.ID)
		}
		listed[row.ID] = row.EventID
	}
	for id, got := range answered {
		if listed[id] != got {
			t.Errorf("%s was answered with %s and is listed as %q", id, got, listed[id])
		}
	}
	w.factsAgree(t, dbtest.URL(t))
	t.Logf("%d answered, %d of them after the death; %d requests had no answer", len(answered), len(answered)-before, cut)
}
