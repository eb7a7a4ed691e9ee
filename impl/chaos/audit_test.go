package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// recoverWithin bounds what is waited for after a fault: it is for what hangs,
// and no measure of speed.
const recoverWithin = 90 * time.Second

// A count is what an audit found wrong with what was answered.
type count struct{ lost, doubled int }

// wait waits until something is so.
func wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(recoverWithin); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to an end by itself: %s", what)
		}
	}
}

// audit holds what is recorded against the ledgers, by what the API says and by
// what is in the database. There are no clients meanwhile.
func (r *rig) audit(t *testing.T) count {
	t.Helper()
	for i := range r.doors {
		wait(t, "a server is not ready", func() bool { return r.send(i, "GET", "/readyz", "", "", "").status == 200 })
	}
	var all count
	for _, b := range r.books {
		r.finished(t, b)
		c := r.auditEvents(t, b)
		all.lost, all.doubled = all.lost+c.lost, all.doubled+c.doubled
		for _, check := range []func(testing.TB, *book) count{r.auditLeads, r.auditMotions} {
			c := check(t, b)
			all.lost, all.doubled = all.lost+c.lost, all.doubled+c.doubled
		}
		b.mu.Lock()
		for i, lie := range b.lies {
			if i == 10 {
				t.Errorf("%s: and %d more", b.Slug, len(b.lies)-i)
				break
			}
			t.Errorf("%s: %s", b.Slug, lie)
		}
		b.lies = nil
		b.mu.Unlock()
	}
	// Counters, facts, ids, gates and motions, as whoever runs a server checks them.
	if said, err := servertest.Command(t, r.pg.URL(), "", "check"); err != nil {
		t.Errorf("inlet check says %s%v", said, err)
	}
	r.auditLogs(t)
	return all
}

// ask sends a request of the audit's own, as a client would: again, until it is
// answered for good. It begins at one of the servers.
func (r *rig) ask(t testing.TB, server int, method, path, body, token, key string) (a answer) {
	t.Helper()
	wait(t, method+" "+path+" is not answered", func() bool {
		a = r.send(server, method, path, body, token, key)
		server++
		return a.final()
	})
	return a
}

// finished waits until the background work is done: no backlog, nothing queued,
// every enrollment at its end. Attempts at webhooks that died with their server
// wait for longer than a test does; they are made due.
func (r *rig) finished(t testing.TB, b *book) {
	t.Helper()
	begun := time.Now()
	wait(t, "background work of "+b.Slug, func() bool {
		if time.Since(begun) > 2*time.Second {
			dbtest.Exec(t, r.pg.URL(), `update enrollments set due_at = inlet_now() where workspace_id = $1 and status = 'active' and due_at > inlet_now()`, b.ID)
		}
		return dbtest.Query[bool](t, r.pg.URL(), `
			select g.last_event_no <= p.processed_no and g.accepted_events = p.processed_events
				and not exists (select from motion_entries where workspace_id = $1 and decided_at is null)
				and not exists (select from enrollments where workspace_id = $1 and status = 'active')
			from workspace_gates g join event_progress p using (workspace_id) where workspace_id = $1`, b.ID)
	})
}

// A row of a list of events.
type row struct {
	ID, Name, Status string
	EventID          string `json:"event_id"`
}

// list walks all pages of a workspace's events, each on another server.
func (r *rig) list(t testing.TB, b *book) (rows []row) {
	t.Helper()
	path, cursor, total := "/api/v1/events?limit=100", "", -1
	for page := 0; ; page++ {
		a := r.ask(t, page, "GET", path+cursor, "", b.APIKeys["all"].Token, "")
		var said struct {
			Rows       []row
			NextCursor *string
			Total      int
		}
		if err := json.Unmarshal(a.body, &said); err != nil || a.status != 200 {
			t.Fatalf("a list answers %d %s", a.status, a.body)
		}
		if total >= 0 && total != said.Total {
			t.Errorf("the total is %d, and was %d on the page before", said.Total, total)
		}
		total = said.Total
		if rows = append(rows, said.Rows...); said.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *said.NextCursor
	}
	if total != len(rows) {
		t.Errorf("the total of events is %d, and %d are listed", total, len(rows))
	}
	return rows
}

// auditEvents: what was answered as recorded is listed once, as it was answered;
// what was refused is not; what nobody heard of is there once at most; a repeat
// is a duplicate and names the first.
func (r *rig) auditEvents(t testing.TB, b *book) (c count) {
	t.Helper()
	rows := r.list(t, b)
	listed := make(map[string][]row)
	for _, e := range rows {
		listed[e.ID] = append(listed[e.ID], e)
	}
	if n := dbtest.Query[int](t, r.pg.URL(), `select count(*) from events where workspace_id = $1`, b.ID); n != len(rows) {
		t.Errorf("%d events are listed, and %d are stored", len(rows), n)
	}
	if n := dbtest.Query[int](t, r.pg.URL(), `select count(*) from event_ids where workspace_id = $1`, b.ID); n != len(rows) {
		t.Errorf("%d events are listed, and %d ids are kept", len(rows), n)
	}
	items := b.all(events)
	var repeat []item
	for _, i := range items {
		is := listed[i.id]
		delete(listed, i.id)
		switch {
		case len(is) > 1:
			c.doubled++
			t.Errorf("the event %s is listed %d times", i.id, len(is))
		case i.bad && len(is) > 0:
			t.Errorf("the event %s was to be refused and is listed", i.id)
		case i.done && len(is) == 0:
			c.lost++
			t.Errorf("the event %s was answered as %s and is lost", i.id, i.as)
		case !i.done && i.unsure == 0 && len(is) > 0:
			t.Errorf("the event %s was never answered with more than 429, and is listed", i.id)
		case i.done && (is[0].EventID != i.as || is[0].Name != i.name || i.status != "" && is[0].Status != i.status):
			t.Errorf("the event %s was answered as %s %s, and is listed as %+v", i.id, i.as, i.status, is[0])
		}
		if i.done {
			repeat = append(repeat, i)
		}
	}
	for id := range listed {
		t.Errorf("nobody sent the event %s, which is listed", id)
	}
	r.auditMinutes(t, b)
	// Those that were sent last, on each server; of a workspace with a limit, as
	// few as do not use it up.
	most := 300
	if b.perMinute < 1000 {
		most = 0
	}
	slices.SortFunc(repeat, func(a, b item) int { return strings.Compare(b.as, a.as) })
	for k, some := range slices.Collect(slices.Chunk(repeat[:min(most, len(repeat))], 100)) {
		r.repeatEvents(t, b, k, some)
	}
	return c
}

func (r *rig) repeatEvents(t testing.TB, b *book, server int, items []item) {
	t.Helper()
	var bodies []string
	for _, i := range items {
		bodies = append(bodies, fmt.Sprintf(`{"id":%q,"name":%q,"visitor":{"id":"v-nobody"}}`, i.id, i.name))
	}
	a := r.ask(t, server, http.MethodPost, "/api/v1/events/batch", `{"events":[`+strings.Join(bodies, ",")+`]}`, b.APIKeys["all"].Token, "")
	var said struct {
		Results []struct {
			Status  string
			EventID string `json:"event_id"`
		}
	}
	if json.Unmarshal(a.body, &said) != nil || len(said.Results) != len(items) {
		t.Fatalf("a batch of repeats answers %d %s", a.status, a.body)
	}
	for k, result := range said.Results {
		if result.Status != "duplicate" || result.EventID != items[k].as {
			t.Errorf("the event %s was answered as %s, and its repeat is %s %s", items[k].id, items[k].as, result.Status, result.EventID)
		}
	}
}

// auditMinutes: no minute has more events than the workspace may send, by
// whichever process they came.
func (r *rig) auditMinutes(t testing.TB, b *book) {
	t.Helper()
	most := dbtest.Query[int](t, r.pg.URL(), `
		select coalesce(max(n), 0) from (select count(*) as n from events where workspace_id = $1 group by (event_no >> 20) / 60000) minutes`, b.ID)
	if most > b.perMinute {
		t.Errorf("%s has %d events in a minute, and may send %d", b.Slug, most, b.perMinute)
	}
}

// rows reads what a statement gives as a JSON array.
func rows[T any](t testing.TB, address, statement string, args ...any) (all []T) {
	t.Helper()
	raw := dbtest.Query[string](t, address, `select coalesce(json_agg(r), '[]') from (`+statement+`) r`, args...)
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// auditLeads: a lead that was answered is there once, with its contact, its
// company and its entry into the motion that leads start; a repeat names it. So
// is what was sent by a form, which nobody can repeat.
func (r *rig) auditLeads(t testing.TB, b *book) (c count) {
	t.Helper()
	type lead struct {
		ID                         int64
		Key, Email                 string
		Contacts, Domains, Entries int
	}
	stored := make(map[string][]lead)
	for _, l := range rows[lead](t, r.pg.URL(), `
		select l.lead_id as id, coalesce(l.idempotency_key, '') as key, l.email,
			(select count(*) from contacts c where c.workspace_id = $1 and c.email = l.email) as contacts,
			(select count(*) from company_domains d where d.workspace_id = $1 and d.domain = split_part(l.email, '@', 2)) as domains,
			(select count(*) from motion_entries e where e.workspace_id = $1 and e.company_id = l.company_id and e.motion_id = $2) as entries
		from leads l where l.workspace_id = $1`, b.ID, b.Motions["lead"]) {
		id := "lead " + l.Key
		if l.Key == "" {
			id = "form " + l.Email
		}
		stored[id] = append(stored[id], l)
		if l.Contacts != 1 || l.Domains != 1 || l.Entries != 1 {
			t.Errorf("the lead of %s has %d contacts, %d companies and %d entries into a motion", l.Email, l.Contacts, l.Domains, l.Entries)
		}
	}
	var repeat []item
	for _, i := range append(b.all(leads), b.all(forms)...) {
		id := map[string]string{leads: "lead ", forms: "form "}[i.kind] + i.id
		is := stored[id]
		delete(stored, id)
		switch {
		case len(is) > 1:
			c.doubled++
			t.Errorf("the %s is there %d times", id, len(is))
		case i.bad && len(is) > 0:
			t.Errorf("the %s was to be refused and is there", id)
		case i.done && len(is) == 0:
			c.lost++
			t.Errorf("the %s was answered as %s and is lost", id, i.as)
		case i.kind == leads && i.done && fmt.Sprint(is[0].ID) != i.as:
			t.Errorf("the %s was answered as %s, and is %d", id, i.as, is[0].ID)
		}
		if i.kind == leads && i.done {
			repeat = append(repeat, i)
		}
	}
	for id := range stored {
		t.Errorf("nobody sent the %s", id)
	}
	for k, i := range sample(repeat, 10) {
		a := r.ask(t, k, http.MethodPost, "/api/v1/leads", fmt.Sprintf(`{"email":"other@%s.com"}`, i.id), b.APIKeys["all"].Token, i.id)
		if a.status != 409 || a.text("lead_id") != i.as {
			t.Errorf("the lead %s was answered as %s, and its repeat is %d %s", i.id, i.as, a.status, a.body)
		}
	}
	return c
}

// sample gives the last few, in a firm order.
func sample(items []item, most int) []item {
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(b.id, a.id) })
	return items[:min(most, len(items))]
}

// auditMotions: a start that was answered is one entry with one decision, which
// a repeat tells; who entered went through each step once, and its webhook came.
func (r *rig) auditMotions(t testing.TB, b *book) (c count) {
	t.Helper()
	type entry struct {
		Key        string
		Company    int64
		Reason     string
		Enrollment int64
	}
	stored := make(map[string][]entry)
	enrolled := make(map[int64]string)
	for _, e := range rows[entry](t, r.pg.URL(), `
		select idempotency_key as key, company_id as company, reason_code as reason, coalesce(enrollment_id, 0) as enrollment
		from motion_entries where workspace_id = $1 and idempotency_key is not null`, b.ID) {
		stored[e.Key] = append(stored[e.Key], e)
		if (e.Reason == "entered") != (e.Enrollment != 0) {
			t.Errorf("the start %s is decided as %s, with the enrollment %d", e.Key, e.Reason, e.Enrollment)
		}
		if of := enrolled[e.Enrollment]; of != "" {
			t.Errorf("the starts %s and %s led to one enrollment", of, e.Key)
		}
		if e.Enrollment != 0 {
			enrolled[e.Enrollment] = e.Key
		}
	}
	var repeat []item
	for _, i := range b.all(motions) {
		is := stored[i.id]
		delete(stored, i.id)
		switch {
		case len(is) > 1:
			c.doubled++
			t.Errorf("the start %s is there %d times", i.id, len(is))
		case i.bad && len(is) > 0:
			t.Errorf("the start %s was to be refused and is there", i.id)
		case i.done && len(is) == 0:
			c.lost++
			t.Errorf("the start %s was answered and is lost", i.id)
		case i.done && is[0].Company != i.company:
			t.Errorf("the start %s is of company %d, and was sent for %d", i.id, is[0].Company, i.company)
		}
		if i.done {
			repeat = append(repeat, i)
		}
	}
	for id := range stored {
		t.Errorf("nobody sent the start %s", id)
	}
	for k, i := range sample(repeat, 10) {
		path := fmt.Sprintf("/api/v1/motions/%d/start", b.Motions["steps"])
		a := r.ask(t, k, http.MethodPost, path, fmt.Sprintf(`{"companyId":%d}`, i.company), b.APIKeys["all"].Token, i.id)
		if a.status != 200 || i.as != "" && strings.TrimSpace(string(a.body)) != i.as {
			t.Errorf("the start %s was decided as %q, and its repeat is %d %s", i.id, i.as, a.status, a.body)
		}
	}
	doubled := r.auditSteps(t, b, enrolled)
	c.doubled += doubled
	return c
}

// auditSteps: every enrollment went through its steps, each once.
func (r *rig) auditSteps(t testing.TB, b *book, enrolled map[int64]string) (doubled int) {
	t.Helper()
	type steps struct {
		Enrollment, Motion   int64
		Status, Notes, Deals string
	}
	for _, s := range rows[steps](t, r.pg.URL(), `
		select n.enrollment_id as enrollment, n.motion_id as motion, n.status,
			coalesce((select string_agg(text, ',' order by note_id) from notes o where o.workspace_id = $1 and o.enrollment_id = n.enrollment_id), '') as notes,
			coalesce((select string_agg(name, ',') from opportunities o where o.workspace_id = $1 and o.enrollment_id = n.enrollment_id), '') as deals
		from enrollments n where n.workspace_id = $1`, b.ID) {
		want := steps{s.Enrollment, s.Motion, "completed", "one,two", "Deal"}
		if s.Motion == b.Motions["lead"] {
			want.Notes, want.Deals = "lead", ""
		}
		if s != want {
			if len(s.Notes) > len(want.Notes) || len(s.Deals) > len(want.Deals) {
				doubled++
			}
			t.Errorf("an enrollment went through %+v, want %+v", s, want)
		}
		if s.Motion != b.Motions["steps"] {
			continue
		}
		if enrolled[s.Enrollment] == "" {
			t.Errorf("the enrollment %d is nobody's", s.Enrollment)
		}
		delete(enrolled, s.Enrollment)
		r.receiver.mu.Lock()
		if came := r.receiver.got[fmt.Sprintf("msg_%d_2", s.Enrollment)]; came == 0 {
			t.Errorf("the webhook of enrollment %d never came", s.Enrollment)
		}
		r.receiver.mu.Unlock()
	}
	for n, key := range enrolled {
		t.Errorf("the start %s entered as %d, which is not there", key, n)
	}
	r.receiver.mu.Lock()
	defer r.receiver.mu.Unlock()
	if n := dbtest.Query[int](t, r.pg.URL(), `select count(*) from enrollments e join motions m using (workspace_id, motion_id) where m.name = 'Steps'`); n != len(r.receiver.got) {
		t.Errorf("webhooks came with %d ids, and there are %d enrollments", len(r.receiver.got), n)
	}
	return doubled
}

// auditLogs: no server raced, panicked, or ended by itself.
func (r *rig) auditLogs(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	logs := append(append([]*servertest.Server(nil), r.ended...), r.servers...)
	r.ended = nil
	r.mu.Unlock()
	for _, s := range logs {
		for line := range strings.SplitSeq(s.Log(), "\n") {
			if strings.Contains(line, "DATA RACE") || strings.Contains(line, `"msg":"panic"`) || strings.HasPrefix(line, "panic:") ||
				strings.Contains(line, `"status":500`) {
				t.Errorf("a server says: %.2000s", line)
			}
		}
	}
}
