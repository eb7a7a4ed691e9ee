package upgrade

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

const (
	companies = 12
	secret    = "s3cret-of-the-site"
)

func workspaceFile() string {
	var b strings.Builder
	b.WriteString(`
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 1000000}
      - {ref: old, owner: ada, scopes: [events.send], requests_per_minute: 1000000}
      - {ref: new, owner: ada, scopes: [events.send], requests_per_minute: 1000000}
    sites:
      - {ref: www, site_key: site_SLUG_www, secret: ` + secret + `, origins: ["https://www.SLUG.example"]}
    forms:
      - {ref: demo, public_key: form_SLUG_demo, name: Request a demo, fields: [email, first_name]}
    meeting_forms:
      - {ref: call, public_key: meet_SLUG_call, name: Intro call, minutes: 15}
    companies:
`)
	for i := range companies {
		fmt.Fprintf(&b, "      - {ref: c%d, name: C%d, domain: c%d-works.com}\n", i, i, i)
	}
	b.WriteString("    contacts:\n")
	for i := range companies {
		fmt.Fprintf(&b, "      - {ref: p%d, email: p%d@c%d-works.com, company: c%d}\n", i, i, i, i)
	}
	b.WriteString(`    signals:
      - {ref: hot, name: Hot, event: clicked, min_count: 2, within_days: 7, score: 10}
    motions:
      - {ref: plain, name: Plain, entry: {api_call: true, reentry: always}, steps: [{kind: add_note, text: entered}]}
      - ref: long
        name: Long
        entry: {events: [{name: clicked}, {name: viewed}], reentry: never}
        steps: [{kind: add_note, text: one}, {kind: wait, days: 1}, {kind: add_note, text: two}, {kind: wait, days: 1}, {kind: add_note, text: three}]
`)
	return b.String()
}

func command(t *testing.T, program, address string, args ...string) string {
	t.Helper()
	out, err := servertest.CommandOf(t, program, address, "", args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

// hasten makes what waits in motions due.
func hasten(t *testing.T, address string) {
	t.Helper()
	dbtest.Exec(t, address, `update enrollments set due_at = inlet_now() where status = 'active'`)
}

// agree has every server answer alike what was changed by one version's commands
// or over one version's server.
func (l *clients) agree(t *testing.T, program, address, key string) {
	t.Helper()
	token := "Authorization: Bearer " + l.w.APIKeys[key].Token
	first, last := l.servers[0].Base, l.servers[len(l.servers)-1].Base
	event := func(base, id, value string, status int) {
		t.Helper()
		if _, err := l.send(base, "", "POST", "/api/v1/events",
			fmt.Sprintf(`{"id":"%s-%s","name":"learned_%s","company":{"id":%d},"properties":{"p":%s}}`, key, id, key, l.company(0), value), status, token); err != nil {
			t.Errorf("%s: %v", l.phase, err)
		} else if status == 202 {
			l.keep(key+"-"+id, "")
		}
	}
	for i, s := range l.servers {
		event(s.Base, fmt.Sprint("warm", i), `1`, 202)
	}
	// What one learns of a type, the others know.
	event(first, "text", `"x"`, 422)
	event(last, "text", `"x"`, 422)
	id := regexp.MustCompile(`(?m)^\s*(\d+)\s+` + key + `\b`).FindStringSubmatch(command(t, program, address, "key", "list", "--workspace", l.w.Slug))
	if id == nil {
		t.Fatal("the key is not listed")
	}
	command(t, program, address, "key", "revoke", id[1], "--workspace", l.w.Slug)
	for i, s := range l.servers {
		event(s.Base, fmt.Sprint("revoked", i), `1`, 401)
	}
}

func TestServersOfThePreviousVersionAndOfThisOneServeSideBySideAndNoRequestFails(t *testing.T) {
	previous, current := servertest.PreviousBinary(t), servertest.Binary
	address := dbtest.Empty(t)

	// The database is made and filled by the previous version.
	old := []*servertest.Server{servertest.StartProgram(t, previous, address), servertest.StartProgram(t, previous, address)}
	all := append([]*servertest.Server(nil), old...)
	defer func() {
		for _, s := range all {
			s.Kill()
		}
	}()
	start := func(program string) *servertest.Server {
		s := servertest.StartProgram(t, program, address)
		all = append(all, s)
		return s
	}
	end := func(servers ...*servertest.Server) {
		for _, s := range servers {
			if err := s.Stop(); err != nil {
				t.Errorf("a server ends with %v", err)
			}
		}
	}
	l := &clients{
		w:      servertest.SeedBy(t, previous, address, "rolling", workspaceFile()),
		shapes: make(map[string]map[string]any), recorded: make(map[string]string), leads: make(map[string]any), starts: make(map[string]bool),
	}
	dbtest.Exec(t, address, `update workspace_gates set events_per_minute = 1000000, events_per_day = 1000000`)
	// More slots than there will be bookings, however long it takes.
	dbtest.Exec(t, address, `update meeting_forms set weekdays = '{1,2,3,4,5,6,7}', opens_minute = 0, closes_minute = 1440, notice_minutes = 0`)
	for i := range companies {
		out := command(t, previous, address, "link", "create", l.w.Sites["www"].SiteKey,
			"--contact", fmt.Sprintf("p%d@c%d-works.com", i, i), "--page", "https://www.rolling.example/")
		l.links = append(l.links, regexp.MustCompile(`/l/(\S+)`).FindStringSubmatch(out)[1])
	}
	stop := make(chan struct{})
	var sending sync.WaitGroup
	finish := sync.OnceFunc(func() { close(stop); sending.Wait() })
	defer finish()

	l.use("the previous version", old...)
	for range 4 {
		sending.Go(func() { l.run(stop) })
	}
	l.times(t, 2)

	l.use("the previous version while the schema becomes this one's", old...)
	command(t, current, address, "migrate")
	hasten(t, address)
	l.times(t, 3)

	fresh := []*servertest.Server{start(current), start(current)}
	l.use("both versions", append(old, fresh...)...)
	l.times(t, 2)
	l.agree(t, previous, address, "old")
	l.agree(t, current, address, "new")
	hasten(t, address)
	l.times(t, 3)

	l.use("this version", fresh...)
	end(old...)
	l.times(t, 2)

	// And back: a server of the previous version starts on the schema of this one.
	back := start(previous)
	l.use("rolling back", append(fresh, back)...)
	l.times(t, 2)
	l.use("rolled back", back)
	end(fresh...)
	hasten(t, address)
	l.times(t, 2)
	finish()
	end(back)

	again := start(current)
	l.whole(t, address)
	end(again)
	if len(l.failed) > 0 {
		t.Errorf("%d requests failed: %s", len(l.failed), strings.Join(l.failed, "\n"))
	}
	t.Logf("%d operations, %d events, %d leads, %d starts, %d bookings", l.n, len(l.recorded), len(l.leads), len(l.starts), l.bookings)
}

// whole looks for everything that was answered: it is there once, and its work was
// done once.
func (l *clients) whole(t *testing.T, address string) {
	t.Helper()
	same := func(what string, want int, statement string, args ...any) {
		t.Helper()
		var got int
		for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
			if got = dbtest.Query[int](t, address, statement, args...); got == want {
				return
			}
		}
		t.Errorf("%s: %d, want %d", what, got, want)
	}
	recorded := make(map[string]int)
	for id := range strings.SplitSeq(dbtest.Query[string](t, address, `select string_agg(id, ' ') from events`), " ") {
		recorded[id]++
	}
	for id := range l.recorded {
		if recorded[id] != 1 {
			t.Errorf("event %s was recorded and is there %d times", id, recorded[id])
		}
	}
	same("events", len(l.recorded), `select count(*) from events`)
	same("leads with a key", len(l.leads), `select count(*) from leads where idempotency_key is not null`)
	same("bookings", l.bookings, `select count(*) from bookings`)
	same("leads of forms", l.submits, `select count(*) from leads where source = 'form'`)
	same("starts", len(l.starts), `select count(*) from motion_entries where idempotency_key is not null`)
	same("undecided entries", 0, `select count(*) from motion_entries where decided_at is null`)
	same("visitors who are not known", 0, `select count(*) from unnest($1::text[]) v where not exists (select from visitors where visitor_id = v and contact_id is not null)`,
		"{"+strings.Join(l.visitors, ",")+"}")
	same("events that wait for them", 0, `select count(*) from events where ts & 3 = 2`)
	hasten(t, address)
	same("enrollments under way", 0, `select count(*) from enrollments e join motions using (workspace_id, motion_id) where name = 'Plain' and e.status = 'active'`)
	for range 3 {
		hasten(t, address)
		time.Sleep(300 * time.Millisecond)
	}
	same("enrollments that did not end well", 0, `select count(*) from enrollments where status <> 'completed'`)
	same("companies in the long motion", companies, `select count(distinct company_id) from enrollments join motions using (workspace_id, motion_id) where name = 'Long'`)
	same("their enrollments", companies, `select count(*) from enrollments join motions using (workspace_id, motion_id) where name = 'Long'`)
	same("notes", dbtest.Query[int](t, address, `select sum(case name when 'Long' then 3 else 1 end) from enrollments join motions using (workspace_id, motion_id)`),
		`select count(*) from notes`)
	if out, err := servertest.Command(t, address, "", "check"); err != nil {
		t.Errorf("%s%v", out, err)
	}
}
