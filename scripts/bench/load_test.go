package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// stub answers events as Inlet does, as far as the load generator looks, after a
// pause.
func stub(t *testing.T, pause time.Duration, answer func(id, name string) receipt) *server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(pause)
		var e struct {
			ID, Name   string
			Properties map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		status := http.StatusAccepted
		if e.Name == "blocked_event" || e.Properties["note"] != nil {
			status = http.StatusUnprocessableEntity
		}
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(answer(e.ID, e.Name))
	})
	mux.HandleFunc("POST /api/v1/events/batch", func(w http.ResponseWriter, r *http.Request) {
		var b struct{ Events []struct{ ID, Name string } }
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		var results []receipt
		for _, e := range b.Events {
			results = append(results, answer(e.ID, e.Name))
		}
		w.WriteHeader(http.StatusAccepted)
		raw, _ := json.Marshal(map[string]any{"results": results})
		for _, part := range []string{string(raw[:10]), string(raw[10:])} { // in chunks
			io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 100_000)+r.Header.Get("Authorization"))
	})
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	ids := []int64{11, 12, 13, 14, 15}
	s := &server{address: h.Listener.Addr().String()}
	for i := range 3 {
		s.tenants = append(s.tenants, tenant{key: fmt.Sprint("key", i), people: 5, companies: ids, contacts: ids})
	}
	return s
}

func echo(id, _ string) receipt { return receipt{ID: id, Status: "accepted", EventID: "evt_1"} }

func TestAnswersOfBothKindsAreRead(t *testing.T) {
	s := stub(t, 0, echo)
	for _, kind := range []traffic{{single.path, 1, 1}, {batch.path, 100, 1}} {
		l, err := s.connect(s.tenants, 2, kind)
		if err != nil {
			t.Fatal(err)
		}
		defer l.hangUp()
		took, _, err := l.run(t.Context(), 50*time.Millisecond, 0)
		if err != nil || len(took) < 2 {
			t.Errorf("%d requests of %d events: %v", len(took), kind.events, err)
		}
	}
	c, err := dial(s.address, s.tenants[:1], single)
	if err != nil {
		t.Fatal(err)
	}
	defer c.hangUp()
	for range 2 {
		body, err := c.get("/page", "secret")
		if err != nil || len(body) != 100_000+len("Bearer secret") {
			t.Errorf("%d bytes: %v", len(body), err)
		}
	}
}

func TestWrongAnswersFail(t *testing.T) {
	for name, answer := range map[string]func(id, name string) receipt{
		"another id":  func(id, _ string) receipt { return receipt{ID: id + "x", Status: "accepted", EventID: "evt_1"} },
		"no event_id": func(id, _ string) receipt { return receipt{ID: id, Status: "accepted"} },
	} {
		s := stub(t, 0, answer)
		l, err := s.connect(s.tenants, 1, traffic{single.path, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.run(t.Context(), 50*time.Millisecond, 0); err == nil {
			t.Errorf("%s passes", name)
		}
		l.hangUp()
	}
}

// Requests that wait because all clients are busy count from when they were due.
func TestOpenLoopMeasuresFromWhenRequestsAreDue(t *testing.T) {
	const pause = 20 * time.Millisecond
	s := stub(t, pause, echo)
	l, err := s.connect(s.tenants, 1, single)
	if err != nil {
		t.Fatal(err)
	}
	defer l.hangUp()
	took, gap, err := l.run(t.Context(), 200*time.Millisecond, 100) // twice what one client can do
	if err != nil {
		t.Fatal(err)
	}
	if len(took) != 20 {
		t.Errorf("%d requests, want the 20 that were due", len(took))
	}
	if longest := summary(took).max; longest < 8*pause {
		t.Errorf("the longest took %v, as if the wait did not count", longest)
	}
	if gap < pause {
		t.Errorf("answers came %v apart", gap)
	}
}

func TestTrafficIsOfEveryKind(t *testing.T) {
	s := stub(t, 0, echo)
	c, err := dial(s.address, s.tenants, single)
	if err != nil {
		t.Fatal(err)
	}
	defer c.hangUp()
	const n = 20_000
	var (
		first   = make(map[string]string)
		repeats int
		refused int
		seen    = make(map[string]int)
	)
	for range n {
		c.body = c.body[:0]
		number, no := c.next()
		var e struct {
			ID, Name                  string
			Company, Contact, Visitor map[string]any
			Properties                map[string]any
		}
		if err := json.Unmarshal(c.body, &e); err != nil {
			t.Fatal(err)
		}
		if before, known := first[e.ID]; known {
			repeats++
			if before != string(c.body) {
				t.Fatalf("a repeat differs: %s and %s", before, c.body)
			}
		}
		first[e.ID] = string(c.body)
		if c.tenant(number) >= len(s.tenants) {
			t.Fatal("no such tenant")
		}
		if no {
			refused++
		}
		for kind, reference := range map[string]map[string]any{"company": e.Company, "contact": e.Contact, "visitor": e.Visitor} {
			for key := range reference {
				seen[kind+" "+key]++
			}
		}
		if e.Company != nil && e.Visitor != nil {
			seen["company and visitor"]++
		}
	}
	if share := float64(repeats) / n; share < 0.08 || share > 0.12 {
		t.Errorf("%.3f are repeats", share)
	}
	if share := float64(refused) / n; share < 0.015 || share > 0.025 {
		t.Errorf("%.3f are refused", share)
	}
	for _, kind := range []string{"company id", "company domain", "contact id", "contact email", "visitor id", "company and visitor"} {
		if seen[kind] < n/20 {
			t.Errorf("%d of %d with %s", seen[kind], n, kind)
		}
	}
}

func TestLeadsAreOfEveryKindAndTheirAnswersChecked(t *testing.T) {
	c := &client{traffic: lead, tenants: []tenant{{people: fewContacts}}, prefix: "x-1-", random: rand.New(rand.NewPCG(1, 7))}
	answer := func(status string, a leadAnswer) error {
		if a.Company == added {
			a.Company = fewContacts/perCompany + 1
		}
		if a.Contact == added {
			a.Contact = fewContacts + 1
		}
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		c.answer = fmt.Appendf(nil, "HTTP/1.1 %s -\r\nContent-Length: %d\r\n\r\n%s", status, len(raw), raw)
		return c.checkLead()
	}
	const n = 20_000
	seen := make(map[string]int)
	for id := range int64(n) {
		c.body = c.body[:0]
		c.lead()
		var sent map[string]any
		if err := json.Unmarshal(c.body, &sent); err != nil {
			t.Fatal(err)
		}
		if len(c.header) > 0 {
			seen["idempotency key"]++
		}
		if c.leads.repeat {
			seen["repeat"]++
			first := leadAnswer{LeadID: c.leads.keyed.lead}
			if answer("409", leadAnswer{LeadID: first.LeadID + 1}) == nil || answer("201", first) == nil {
				t.Fatal("a wrong answer to a repeat passes")
			}
			if err := answer("409", first); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, field := range []string{"email", "linkedin_url", "company_domain", "company_name"} {
			if sent[field] != nil {
				seen[field]++
			}
		}
		due := c.leads.due
		seen[fmt.Sprintf("company %t, contact %t", due.Company > 0, due.Contact > 0)]++
		seen[fmt.Sprintf("new company %t, new contact %t", due.Company < 0, due.Contact < 0)]++
		due.LeadID = id + 1
		for _, change := range []func(*leadAnswer){
			func(a *leadAnswer) { a.LeadID = 0 },
			func(a *leadAnswer) { a.Company += 2 },
			func(a *leadAnswer) { a.Contact += 2 },
			func(a *leadAnswer) { a.Reconciled = !a.Reconciled },
			func(a *leadAnswer) { a.IsTest = true },
		} {
			wrong := due
			if change(&wrong); answer("201", wrong) == nil {
				t.Fatalf("%+v passes for %+v", wrong, due)
			}
		}
		if answer("200", due) == nil {
			t.Fatal("another status passes")
		}
		if err := answer("201", due); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"repeat", "idempotency key", "email", "linkedin_url", "company_domain", "company_name",
		"company true, contact true", "company true, contact false", "company false, contact false",
		"new company true, new contact true", "new company false, new contact true", "new company false, new contact false"} {
		if seen[kind] < n/80 {
			t.Errorf("%d of %d with %s", seen[kind], n, kind)
		}
	}
}

func TestAnswersToStartsAreChecked(t *testing.T) {
	c := &client{traffic: start, prefix: "x-1-", random: rand.New(rand.NewPCG(1, 7))}
	answer := func(status, state string, motion, company int64) error {
		body := fmt.Sprintf(`{"status":%q,"motionId":%d,"companyId":%d}`, state, motion, company)
		c.answer = fmt.Appendf(nil, "HTTP/1.1 %s -\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
		return c.checkStart()
	}
	repeats := 0
	for range 1000 {
		c.body = c.body[:0]
		c.start()
		company := c.starts.company
		if err := answer("202", "queued", 2, company); err != nil {
			t.Fatal(err)
		}
		if err := answer("200", "decided", 2, company); (err == nil) != c.starts.repeat {
			t.Fatalf("decided, where a repeat is %t: %v", c.starts.repeat, err)
		}
		if answer("202", "queued", 1, company) == nil || answer("202", "queued", 2, company+1) == nil ||
			answer("500", "queued", 2, company) == nil || answer("202", "decided", 2, company) == nil {
			t.Fatal("a wrong answer passes")
		}
		if c.starts.repeat {
			repeats++
		}
	}
	if repeats == 0 || repeats+c.kept != 1000 {
		t.Errorf("%d starts and %d repeats", c.kept, repeats)
	}
}

// A figure without its measurements would silently be missing from the table.
func TestEveryFigureHasItsMeasurements(t *testing.T) {
	b := &bench{}
	have := names(slices.Concat(b.fresh(), b.withLeads(), b.withMotions(), b.withStored()))
	for _, f := range figures() {
		if !have[f.of] || f.to != "" && !have[f.to] {
			t.Errorf("%s rests on %q and %q", f.title(), f.of, f.to)
		}
	}
}
