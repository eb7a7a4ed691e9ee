package contract

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// doomed is a workspace with a company for every death, and motions whose every
// effect can be counted.
func doomed(companies int) string {
	var b strings.Builder
	b.WriteString(`
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 100000}
    companies:
`)
	for i := range companies {
		fmt.Fprintf(&b, "      - {ref: c%d, name: C%d, domain: c%d.com}\n", i, i, i)
	}
	b.WriteString("    contacts:\n")
	for i := range companies {
		fmt.Fprintf(&b, "      - {ref: p%d, email: p@c%d.com, company: c%d}\n", i, i, i)
	}
	b.WriteString("    segments:\n      - {ref: to, name: To}\n      - {ref: from, name: From, companies: [c0")
	for i := range companies - 1 {
		fmt.Fprintf(&b, ", c%d", i+1)
	}
	b.WriteString(`]}
    signals:
      - {ref: hot, name: Hot, event: clicked, score: 10}
    motions:
      - {ref: plain, name: Plain, entry: {api_call: true, reentry: always}, steps: [{kind: wait, days: 1}]}
      - {ref: event, name: Event, entry: {events: [{name: trial_started}], reentry: always}, steps: [{kind: wait, days: 1}]}
      - {ref: signal, name: Signal, entry: {signals: [hot], reentry: always}, steps: [{kind: wait, days: 1}]}
      - {ref: lead, name: Lead, entry: {lead_created: true, reentry: always}, steps: [{kind: wait, days: 1}]}
      - ref: steps
        name: Steps
        entry: {api_call: true}
        steps:
          - {kind: add_note, text: "one"}
          - {kind: create_opportunity, name: Deal}
          - {kind: wait, hours: 1}
          - {kind: add_to_segment, segment: to}
          - {kind: remove_from_segment, segment: from}
          - {kind: set_field, field: stage, value: engaged}
          - {kind: add_note, text: "two"}
          - {kind: create_opportunity, name: Renewal}
`)
	return b.String()
}

// sideBySide runs tests at the same time, however few processors there are: they
// wait most of it.
func sideBySide(t *testing.T) (beside func(name string, test func(*testing.T)), wait func()) {
	t.Helper()
	var all sync.WaitGroup
	return func(name string, test func(*testing.T)) { all.Go(func() { t.Run(name, test) }) }, all.Wait
}

// eventually waits until something is as it should be.
func eventually[T comparable](t testing.TB, what string, want T, is func() T) {
	t.Helper()
	within := time.Now().Add(30 * time.Second)
	for {
		got := is()
		if got == want {
			return
		}
		if time.Now().After(within) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// stuck waits until a backend of a server waits for a lock in a statement with
// such text, and gives its process.
func stuck(t testing.TB, address, statement string) (pid int) {
	t.Helper()
	eventually(t, "waiting in "+statement, true, func() bool {
		pid = dbtest.Query[int](t, address, `select coalesce(max(pid), 0) from pg_stat_activity
			where datname = current_database() and application_name = 'inlet' and wait_event_type = 'Lock' and query ilike '%' || $1 || '%'`, statement)
		return pid != 0
	})
	return pid
}

// hasten makes what waits due.
func hasten(t testing.TB, address string, workspace int64) {
	t.Helper()
	dbtest.Exec(t, address, `update enrollments set due_at = inlet_now() where workspace_id = $1 and status = 'active' and due_at > inlet_now()`, workspace)
}

// post sends a request that may have no answer.
func (s server) post(path, body string, headers ...string) (status int) {
	r, err := http.NewRequest(http.MethodPost, s.Base+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// effects tells all that the motion named steps did to a company.
func (w seeded) effects(t testing.TB, address, company string) string {
	t.Helper()
	return dbtest.Query[string](t, address, `
		select concat_ws(' ',
			(select string_agg(status || ' ' || step, ',' order by enrollment_id) from enrollments where workspace_id = $1 and company_id = $2 and motion_id = $3),
			(select string_agg(name, ',' order by name) from segment_companies m join segments g using (workspace_id, segment_id) where m.workspace_id = $1 and m.company_id = $2),
			(select nullif(stage, '') from companies where workspace_id = $1 and company_id = $2),
			(select string_agg(text, ',' order by note_id) from notes where workspace_id = $1 and company_id = $2),
			(select string_agg(name, ',' order by opportunity_id) from opportunities where workspace_id = $1 and company_id = $2))`,
		w.ID, w.Companies[company], w.Motions["steps"])
}

const (
	halfWay = "active 3 From one Deal"
	allDone = "completed 8 To engaged one,two Deal,Renewal"
)

// A death is a point at which whoever does the work is made to wait, by a lock
// on what is written next, and then dies.
type death struct {
	point   string
	trigger string // what makes the company enter the motion of this name; steps and plain are started
	hold    string // what keeps the worker there; $1 the workspace, $2 the company
	at      string // in the text of the statement that waits
	state   string // of the work when the lock is taken: nothing is there yet, its entry is queued, it is half way
}

var deaths = []death{
	{"the enrollment is written", "steps", `lock table enrollments in share mode`, "decide_entries", ""},
	{"the decision is written", "steps", `select from motion_entries where workspace_id = $1 and company_id = $2 for update`, "decide_entries", "queued"},
	{"a note", "steps", `lock table notes in share mode`, "insert into notes", ""},
	{"an opportunity, behind a note", "steps", `lock table opportunities in share mode`, "insert into opportunities", ""},
	{"a segment is entered", "steps", `lock table segment_companies in share mode`, "insert into segment_companies", "half way"},
	{"a segment is left", "steps", `select from segment_companies where workspace_id = $1 and company_id = $2 for update`, "delete from segment_companies", "half way"},
	{"a field", "steps", `select from companies where workspace_id = $1 and company_id = $2 for no key update`, "update companies", "half way"},
	{"the second note", "steps", `lock table notes in share mode`, "insert into notes", "half way"},
	{"the second opportunity", "steps", `lock table opportunities in share mode`, "insert into opportunities", "half way"},
	{"the end", "steps", `lock table enrollments in share mode`, "update enrollments", "half way"},
	{"the start", "plain", `lock table motion_entries in share mode`, "insert into motion_entries", ""},
	{"the entry by an event", "event", `lock table motion_entries in share mode`, "process_events", ""},
	{"the entry by a signal", "signal", `lock table motion_entries in share mode`, "process_events", ""},
	{"the entry by a lead", "lead", `lock table motion_entries in share mode`, "queue_lead", ""},
}

// triggers makes a company enter a motion, and does so again with the same key.
func (w seeded) triggers(s server, motion, company, key string) (status int) {
	switch motion {
	case "event", "signal":
		name := map[string]string{"event": "trial_started", "signal": "clicked"}[motion]
		return s.post("/api/v1/events", fmt.Sprintf(`{"id":%q,"name":%q,"company":{"id":%d}}`, key, name, w.Companies[company]), w.Key("all"))
	case "lead":
		return s.post("/api/v1/leads", fmt.Sprintf(`{"email":"p@%s.com"}`, company), w.Key("all"), "Idempotency-Key: "+key)
	}
	return s.post(fmt.Sprintf("/api/v1/motions/%d/start", w.Motions[motion]), fmt.Sprintf(`{"companyId":%d}`, w.Companies[company]),
		w.Key("all"), "Idempotency-Key: "+key)
}

func deadWorkers(beside func(string, func(*testing.T))) {
	// The server dies everywhere; its backend, which takes the transaction with it
	// and leaves the server there, in every fourth place. Each group has a database
	// of its own, for what is held in one would hold up the others.
	const groups = 4
	for group := range groups {
		beside(fmt.Sprint("lose nothing and double nothing where a worker dies, ", group), func(t *testing.T) {
			var die []death
			var victims []string
			for i, d := range deaths {
				if i%groups == group {
					die, victims = append(die, d), append(victims, "server")
				}
				if i%groups == 0 && i/groups == group {
					die, victims = append(die, d), append(victims, "backend")
				}
			}
			dieAll(t, die, victims)
		})
	}
}

func dieAll(t *testing.T, die []death, victims []string) {
	_, address := dbtest.Private(t)
	w := seedOn(t, address, "doomed", doomed(len(die)))
	s := start(t, address)
	defer func() { s.Stop() }()
	leads := 0
	for i, d := range die {
		where := fmt.Sprintf("%s, death of the %s", d.point, victims[i])
		company, key := fmt.Sprint("c", i), fmt.Sprint("k", i)
		answered := make(chan int, 1)
		hold := func() func() {
			if strings.Contains(d.hold, "$1") {
				return dbtest.Hold(t, address, d.hold, w.ID, w.Companies[company])
			}
			return dbtest.Hold(t, address, d.hold)
		}
		var release func()
		switch d.state {
		case "":
			release = hold()
			go func() { answered <- w.triggers(s, d.trigger, company, key) }()
		case "queued":
			undecided := dbtest.Hold(t, address, `select pg_advisory_xact_lock(30, hashint8($1))`, w.ID)
			answered <- w.triggers(s, d.trigger, company, key)
			release = hold()
			undecided()
		case "half way":
			answered <- w.triggers(s, d.trigger, company, key)
			eventually(t, where, halfWay, func() string { return w.effects(t, address, company) })
			// The lock may be on this as well, and so comes after it.
			dbtest.Exec(t, address, `update enrollments set due_at = inlet_now() + interval '2 seconds' where workspace_id = $1 and company_id = $2`,
				w.ID, w.Companies[company])
			release = hold()
		}
		pid := stuck(t, address, d.at)
		if victims[i] == "server" {
			s.Kill()
			s = start(t, address)
		} else {
			dbtest.Exec(t, address, `select pg_terminate_backend($1)`, pid)
		}
		release()
		// Whoever has no answer asks again, as a client would.
		if status := <-answered; status == 0 || status >= 500 {
			if status := w.triggers(s, d.trigger, company, key); status/100 != 2 && status != 409 {
				t.Errorf("%s: the repeat answers %d", where, status)
			}
		} else if status/100 != 2 {
			t.Errorf("%s: the answer is %d", where, status)
		}
		if d.trigger == "steps" {
			eventually(t, where, allDone, func() string {
				hasten(t, address, w.ID)
				return w.effects(t, address, company)
			})
		}
		if d.trigger == "lead" {
			leads++
		}
		eventually(t, where, d.trigger+" entered", func() string {
			return dbtest.Query[string](t, address, `
				select coalesce(string_agg(lower(m.name) || ' ' || coalesce(e.reason_code, 'queued'), ','), '')
				from motion_entries e join motions m using (workspace_id, motion_id)
				where e.workspace_id = $1 and e.company_id = $2`,
				w.ID, w.Companies[company])
		})
	}
	// And nothing comes later.
	time.Sleep(700 * time.Millisecond)
	if n := dbtest.Query[int](t, address, `select count(*) from enrollments where workspace_id = $1`, w.ID); n != len(die) {
		t.Errorf("there are %d enrollments, want %d", n, len(die))
	}
	if n := dbtest.Query[int](t, address, `select count(*) from leads where workspace_id = $1`, w.ID); n != leads {
		t.Errorf("there are %d leads, want %d", n, leads)
	}
}
