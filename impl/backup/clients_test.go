package backup

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

const workspaceFile = `
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, events.send], requests_per_minute: 1000000}
      - {ref: revoked, owner: ada, scopes: [events.send], requests_per_minute: 1000000}
    companies:
      - {ref: globex, name: Globex, domain: globex.com}
    contacts:
      - {ref: hank, email: hank@globex.com, company: globex}
    signals:
      - {ref: hot, name: Hot, event: clicked, min_count: 2, within_days: 7, score: 10}
    motions:
      - {ref: welcome, name: Welcome, entry: {lead_created: true, reentry: never}, steps: [{kind: add_note, text: one}, {kind: wait, days: 1}]}
`

// clients send events and leads, each until it is answered, as clients should; and
// remember what they were told.
type clients struct {
	w servertest.Workspace

	mu     sync.Mutex
	base   string
	events map[string]string  // event_id, by id
	leads  map[string]float64 // lead_id, by idempotency key
	odd    []string           // answers that a client cannot make sense of
	n      int
}

func newClients(t *testing.T, p *servertest.Postgres, s *servertest.Server) *clients {
	t.Helper()
	l := &clients{w: servertest.Seed(t, p.URL(), "kept", workspaceFile), base: s.Base, events: make(map[string]string), leads: make(map[string]float64)}
	dbtest.Exec(t, p.URL(), `update workspace_gates set events_per_minute = 1000000, events_per_day = 1000000`)
	return l
}

// post gives the status and the fields of an answer; zero where there was none.
func (l *clients) post(path, body, key string) (int, map[string]any) {
	l.mu.Lock()
	base := l.base
	l.mu.Unlock()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	r.Header.Set("Authorization", "Bearer "+l.w.APIKeys["all"].Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	client := http.Client{Timeout: 40 * time.Second}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	fields := make(map[string]any)
	json.Unmarshal(raw, &fields) //nolint:errcheck // then the fields are missing
	return response.StatusCode, fields
}

// event sends an event until it is answered or stop is closed; again tells whether
// it was known.
func (l *clients) event(stop <-chan struct{}, id string) (again, answered bool) {
	status, got := l.until(stop, "/api/v1/events", fmt.Sprintf(`{"id":%q,"name":"clicked","company":{"domain":"globex.com"}}`, id), "", 202)
	if status == 0 {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[id], _ = got["event_id"].(string)
	return got["status"] == "duplicate", true
}

// lead is event for a lead.
func (l *clients) lead(stop <-chan struct{}, key string) (again, answered bool) {
	status, got := l.until(stop, "/api/v1/leads", fmt.Sprintf(`{"email":"%s@globex.com"}`, key), key, 201, 409)
	if status == 0 {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads[key], _ = got["lead_id"].(float64)
	return status == 409, true
}

// until sends a request until it has one of the answers that end it.
func (l *clients) until(stop <-chan struct{}, path, body, key string, ends ...int) (int, map[string]any) {
	for {
		status, got := l.post(path, body, key)
		for _, end := range ends {
			if status == end {
				return status, got
			}
		}
		if status != 0 && status != 503 {
			l.mu.Lock()
			l.odd = append(l.odd, fmt.Sprintf("%s answers %d %v", path, status, got))
			l.mu.Unlock()
			return 0, nil
		}
		select {
		case <-stop:
			return 0, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// send keeps four clients sending until the function it gives back is called.
func (l *clients) send() (stop func()) {
	stopping := make(chan struct{})
	var sending sync.WaitGroup
	for range 4 {
		sending.Go(func() {
			for {
				select {
				case <-stopping:
					return
				default:
				}
				l.mu.Lock()
				l.n++
				n := l.n
				l.mu.Unlock()
				if n%4 == 0 {
					l.lead(stopping, fmt.Sprint("lead", n))
				} else {
					l.event(stopping, fmt.Sprint("event", n))
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(stopping); sending.Wait() })
}

// told is what clients were told so far.
func (l *clients) told() (events map[string]string, leads map[string]float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.events), maps.Clone(l.leads)
}

// more waits until so many more requests were answered.
func (l *clients) more(t *testing.T, n int) {
	t.Helper()
	events, leads := l.told()
	for begun := time.Now(); time.Since(begun) < 90*time.Second; time.Sleep(20 * time.Millisecond) {
		if e, d := l.told(); len(e)+len(d) >= len(events)+len(leads)+n {
			return
		}
	}
	t.Fatal("requests are not answered any more")
}

// kept holds a database that was brought back to what clients were told before:
// it is there, by the same ids. Then clients send all that they ever sent again,
// and everything is there once.
func (l *clients) kept(t *testing.T, p *servertest.Postgres, events map[string]string, leads map[string]float64) {
	t.Helper()
	checked(t, p)
	for id, eventID := range events {
		if again, _ := l.event(nil, id); !again || l.events[id] != eventID {
			t.Errorf("event %s was answered with %s, and its repeat %t %s", id, eventID, again, l.events[id])
		}
	}
	for key, id := range leads {
		if again, _ := l.lead(nil, key); !again || l.leads[key] != id {
			t.Errorf("lead %s was answered with %v, and its repeat %t %v", key, id, again, l.leads[key])
		}
	}
	everEvents, everLeads := l.told()
	for id := range everEvents {
		l.event(nil, id)
	}
	for key := range everLeads {
		l.lead(nil, key)
	}
	if n := dbtest.Query[int](t, p.URL(), `select count(*) from (select id from events group by id having count(*) > 1) twice`); n != 0 {
		t.Errorf("%d events are recorded more than once", n)
	}
	if n := dbtest.Query[int](t, p.URL(), `select count(*) from events`); n < len(everEvents) {
		t.Errorf("%d events were answered, %d are recorded", len(everEvents), n)
	}
	if n := dbtest.Query[int](t, p.URL(), `select count(*) from leads`); n < len(everLeads) {
		t.Errorf("%d leads were answered, %d are there", len(everLeads), n)
	}
	checked(t, p)
	if len(l.odd) > 0 {
		t.Errorf("%d answers were neither 2xx nor 503: %s", len(l.odd), l.odd[0])
	}
}

func checked(t *testing.T, p *servertest.Postgres) {
	t.Helper()
	if out, err := servertest.Command(t, p.URL(), "", "check"); err != nil {
		t.Errorf("%s%v", out, err)
	}
}
