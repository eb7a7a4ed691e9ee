package contract

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// crowded adds motions to doomed that let few in.
func crowded(companies int) string {
	return doomed(companies) + `
      - {ref: capped, name: Capped, entry: {api_call: true, reentry: always, daily_cap: 3}, steps: [{kind: wait, days: 1}]}
      - {ref: monthly, name: Monthly, entry: {api_call: true, reentry: {after_days: 30}}, steps: []}
      - {ref: also, name: Also, entry: {events: [{name: trial_started}], reentry: always}, steps: []}
      - {ref: noted, name: Noted, entry: {api_call: true, reentry: always}, steps: [{kind: add_note, text: "in"}, {kind: wait, days: 1}]}
`
}

// reasons tells how often each was why, of a motion.
func (w seeded) reasons(t testing.TB, address, motion string) string {
	t.Helper()
	return dbtest.Query[string](t, address, `
		select coalesce(string_agg(n || ' ' || reason, ', ' order by reason), '') from (
			select coalesce(reason_code, 'queued') as reason, count(*) as n from motion_entries
			where workspace_id = $1 and motion_id = $2 group by 1) reasons`, w.ID, w.Motions[motion])
}

// Not beside others: how long it takes is what it tells.
func TestEntriesAreDecidedWithinTwoSecondsWhateverTriggersThem(t *testing.T) {
	_, address := dbtest.Private(t)
	broken, stuckElsewhere := seedOn(t, address, "broken", crowded(1)), seedOn(t, address, "stuck", crowded(1))
	w := seedOn(t, address, "prompt", crowded(5))
	s := start(t, address)
	defer s.Stop()
	// Another workspace whose decisions fail or are held up is no reason.
	defer dbtest.Hold(t, address, `select pg_advisory_xact_lock(30, hashint8($1))`, stuckElsewhere.ID)()
	dbtest.Exec(t, address, `update motions set entry = entry || '{"reentry_days": "x"}' where workspace_id = $1`, broken.ID)
	for _, other := range []seeded{stuckElsewhere, broken} {
		other.triggers(s, "plain", "c0", "k")
	}
	for i, trigger := range []string{"plain", "event", "signal", "lead", "plain"} {
		company := fmt.Sprint("c", i)
		if status := w.triggers(s, trigger, company, fmt.Sprint("k", i)); status/100 != 2 {
			t.Fatalf("%s answers %d", trigger, status)
		}
		began := time.Now()
		eventually(t, trigger, "entered", func() string {
			return dbtest.Query[string](t, address, `select coalesce(max(reason_code), '') from motion_entries where workspace_id = $1 and company_id = $2`, w.ID, w.Companies[company])
		})
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("by %s it took %v", trigger, took)
		}
	}
}

func TestMotions(t *testing.T) {
	t.Parallel()
	beside, wait := sideBySide(t)
	defer wait()
	webhooks(beside)
	deadWorkers(beside)
	engine(t, beside)
}

func engine(t *testing.T, beside func(string, func(*testing.T))) {
	_, shared := dbtest.Private(t)
	common := start(t, shared)
	t.Cleanup(func() { common.Stop() })
	beside("decide five thousand entries once, with two processes", func(t *testing.T) {
		_, address := dbtest.Private(t)
		w := seedOn(t, address, "crowd", crowded(500))
		dbtest.Exec(t, address, `
			insert into motion_entries (workspace_id, motion_id, company_id, trigger, key_id, idempotency_key)
			select c.workspace_id, $2, c.company_id, 'api', 1, n || '-' || c.company_id from companies c, generate_series(1, 10) n where workspace_id = $1 order by n`,
			w.ID, w.Motions["noted"])
		began := time.Now()
		for range 2 {
			s := start(t, address)
			defer s.Stop()
		}
		eventually(t, "decisions", "4500 already_enrolled, 500 entered", func() string { return w.reasons(t, address, "noted") })
		t.Logf("decided after %v", time.Since(began))
		eventually(t, "notes", 500, func() int { return dbtest.Query[int](t, address, `select count(*) from notes`) })
		time.Sleep(600 * time.Millisecond)
		if got := dbtest.Query[string](t, address, `select concat_ws(' ', (select count(*) from enrollments), (select count(*) from notes), (select count(distinct company_id) from notes))`); got != "500 500 500" {
			t.Errorf("enrollments, notes and companies are %s, want 500 of each", got)
		}
	})

	beside("have one process at a time decide for a workspace", func(t *testing.T) {
		_, address := dbtest.Private(t)
		w := seedOn(t, address, "alone", crowded(2))
		s, other := start(t, address), start(t, address)
		defer s.Stop()
		defer other.Stop()
		undecided := dbtest.Hold(t, address, `select pg_advisory_xact_lock(30, hashint8($1))`, w.ID)
		w.starts(t, s, "plain", "c0")
		held := dbtest.Hold(t, address, `select from motion_entries where workspace_id = $1 for update`, w.ID)
		undecided()
		stuck(t, address, "decide_entries")
		// The other one would decide again what this one is about to.
		time.Sleep(1200 * time.Millisecond)
		if n := dbtest.Query[int](t, address, `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'inlet'
			and wait_event_type = 'Lock' and query like '%decide_entries%'`); n != 1 {
			t.Errorf("%d processes decide at a time", n)
		}
		held()
		eventually(t, "the decision", "1 entered", func() string { return w.reasons(t, address, "plain") })
	})

	beside("let in no more than the daily cap, at the edge of a day as well", func(t *testing.T) {
		d, address := dbtest.Private(t)
		w := seedOn(t, address, "capped", crowded(60))
		edge := d.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		var midnight time.Time // by this machine's clock: the servers have started by then
		var servers []server
		for within := 20 * time.Second; time.Until(midnight) < 5*time.Second; within *= 2 {
			for _, s := range servers {
				s.Stop()
			}
			midnight = time.Now().Add(within)
			dbtest.Exec(t, address, fmt.Sprintf(`alter database %s set inlet.clock_offset = '%d milliseconds'`,
				dbtest.Query[string](t, address, `select current_database()`), edge.Sub(midnight).Milliseconds()))
			servers = []server{start(t, address), start(t, address)}
		}
		defer servers[0].Stop()
		defer servers[1].Stop()
		time.Sleep(time.Until(midnight.Add(-4 * time.Second)))
		var parallel sync.WaitGroup
		for i := range 60 {
			parallel.Go(func() {
				time.Sleep(time.Duration(i) * 120 * time.Millisecond)
				if status := w.triggers(servers[i%2], "capped", fmt.Sprint("c", i), fmt.Sprint("k", i)); status != 202 {
					t.Errorf("a start answers %d", status)
				}
			})
		}
		parallel.Wait()
		eventually(t, "decisions", "54 daily_cap_reached, 6 entered", func() string { return w.reasons(t, address, "capped") })
		if got := dbtest.Query[string](t, address, `
			select string_agg(day || ':' || n, ' ' order by day) from (
				select extract(day from entered_at - $2::timestamptz) >= 0 and entered_at >= $2 as day, count(*) n from enrollments where workspace_id = $1 group by 1) days`,
			w.ID, edge); got != "false:3 true:3" {
			t.Errorf("before and after midnight entered %s, want 3 each", got)
		}
		if late := dbtest.Query[int](t, address, `
			select count(*) from motion_entries e where reason_code = 'daily_cap_reached' and decided_at >= $1
				and (select count(*) from enrollments n where n.entered_at >= $1 and n.entered_at <= e.decided_at + interval '1 millisecond') < 3`, edge); late != 0 {
			t.Errorf("%d were kept out of the new day by the cap before it was reached", late)
		}
	})

	beside("let nobody in again a moment too early", func(t *testing.T) {
		address, s := shared, common
		w := seedOn(t, address, "monthly", crowded(2))
		again := func(company, ago, want string) {
			t.Helper()
			dbtest.Exec(t, address, `insert into enrollments (workspace_id, motion_id, company_id, contact_ids, status, steps, entered_at, ended_at)
				values ($1, $2, $3, '{}', 'completed', '[]', inlet_now() - $4::interval, inlet_now())`,
				w.ID, w.Motions["monthly"], w.Companies[company], ago)
			if d := w.decided(t, s, "monthly", company, ago[:2]+company, ""); d.ReasonCode != want {
				t.Errorf("%s after the last entry it is %s, want %s", ago, d.ReasonCode, want)
			}
		}
		again("c0", "30 days 1 second", "entered")
		again("c1", "29 days 23:59:40", "reentry_not_allowed")
	})

	beside("tell other triggers why they let nobody in", func(t *testing.T) {
		address, s := shared, common
		w := seedOn(t, address, "refused", crowded(3))
		run := func(args ...string) {
			t.Helper()
			if out, err := servertest.Command(t, address, "", args...); err != nil {
				t.Fatalf("%s %v", out, err)
			}
		}
		run("motion", "pause", fmt.Sprint(w.Motions["event"]), "--workspace", w.Slug)
		w.triggers(s, "event", "c0", "e0")
		eventually(t, "a paused motion", "1 motion_paused", func() string { return w.reasons(t, address, "event") })
		run("workspace", "set", w.Slug, "--agents=off")
		w.triggers(s, "event", "c0", "e1")
		w.triggers(s, "lead", "c0", "l1")
		w.triggers(s, "signal", "c0", "s1")
		eventually(t, "agents off", "1 agents_off, 1 motion_paused", func() string { return w.reasons(t, address, "event") })
		eventually(t, "agents off", "1 agents_off", func() string { return w.reasons(t, address, "lead") })
		eventually(t, "agents off", "1 agents_off", func() string { return w.reasons(t, address, "signal") })
		run("workspace", "set", w.Slug, "--agents=on")
		run("motion", "archive", fmt.Sprint(w.Motions["event"]), "--workspace", w.Slug)
		w.triggers(s, "event", "c1", "e2")
		w.triggers(s, "lead", "c1", "l2")
		eventually(t, "agents on", "1 agents_off, 1 entered", func() string { return w.reasons(t, address, "lead") })
		eventually(t, "another motion", "1 agents_off, 2 entered", func() string { return w.reasons(t, address, "also") })
		if got := w.reasons(t, address, "event"); got != "1 agents_off, 1 motion_paused" {
			t.Errorf("an archived motion has %s", got)
		}
	})

	beside("fail at the steps that always fail, and take those of others", func(t *testing.T) {
		_, address := dbtest.Private(t)
		const poisoned = 210 // more than are looked for at a time
		w := seedOn(t, address, "poison", crowded(poisoned+2))
		dbtest.Exec(t, address, `
			insert into enrollments (workspace_id, motion_id, company_id, contact_ids, steps, due_at)
			select workspace_id, $2, company_id, '{}', '[{"kind": "add_note", "text": "no"}, {"kind": "add_to_segment", "segment": 9999999}]', inlet_now() - interval '1 day'
			from companies where workspace_id = $1 order by company_id limit $3`, w.ID, w.Motions["steps"], poisoned)
		postpone := func(until string) {
			t.Helper()
			dbtest.Exec(t, address, `update enrollments set due_at = inlet_now() + $3::interval where workspace_id = $1 and company_id = $2 and status = 'active'`,
				w.ID, w.Companies["c0"], until)
		}
		postpone("1 hour")
		s := start(t, address)
		defer s.Stop()
		good := fmt.Sprint("c", poisoned)
		w.starts(t, s, "noted", good)
		eventually(t, "another's step", 1, func() int {
			return dbtest.Query[int](t, address, `select count(*) from notes where workspace_id = $1 and company_id = $2`, w.ID, w.Companies[good])
		})
		// One of them to its end.
		waits := []float64{5, 300, 1800, 7200, 18000, 36000, 36000}
		for i := 1; i <= 8; i++ {
			begun := time.Now()
			postpone("0")
			eventually(t, "attempts at what fails", i, func() int { return w.sent(t, address, "steps", "c0").Attempts + i/8*8 - i/8*7 })
			n := w.sent(t, address, "steps", "c0")
			if most := waits[min(i, 7)-1]; i < 8 && (n.Wait > most || n.Wait < most-time.Since(begun).Seconds()-0.1) {
				t.Errorf("after attempt %d it is %+v", i, n)
			}
		}
		eventually(t, "what always fails", sent{Status: "failed", Problem: "The step failed on the server."}, func() sent {
			n := w.sent(t, address, "steps", "c0")
			return sent{Status: n.Status, Problem: n.Problem, Notes: n.Notes}
		})
		out, err := servertest.Command(t, address, "", "motion", "list", "--workspace", w.Slug)
		if err != nil || !strings.Contains(out, "209") {
			t.Errorf("motion list says\n%s%v", out, err)
		}
	})

	beside("take the steps of others while a lock keeps it from one", func(t *testing.T) {
		_, address := dbtest.Private(t)
		w := seedOn(t, address, "locked", crowded(2))
		s := start(t, address)
		defer s.Stop()
		w.starts(t, s, "steps", "c0")
		eventually(t, "half way", halfWay, func() string { return w.effects(t, address, "c0") })
		held := dbtest.Hold(t, address, `select from companies where workspace_id = $1 and company_id = $2 for update`, w.ID, w.Companies["c0"])
		dbtest.Exec(t, address, `update enrollments set due_at = inlet_now() - interval '1 minute' where workspace_id = $1`, w.ID)
		stuck(t, address, "segment_companies")
		w.starts(t, s, "steps", "c1")
		time.Sleep(6 * time.Second) // a lock is waited for for ten
		eventually(t, "another's steps", halfWay, func() string { return w.effects(t, address, "c1") })
		held()
		eventually(t, "what was held up", allDone, func() string {
			hasten(t, address, w.ID)
			return w.effects(t, address, "c0")
		})
	})

	beside("do not count a webhook that the server's end cut off", func(t *testing.T) {
		_, address := dbtest.Private(t)
		r := receive(t)
		s := start(t, address, r.env...)
		defer func() { s.Stop() }()
		w := seedOn(t, address, "last", hooked(1, r.URL+"/last"))
		arrived := make(chan bool, 1000)
		r.on("/last", func(attempt int, _ http.ResponseWriter, r *http.Request) {
			if arrived <- true; attempt == 1 {
				<-r.Context().Done()
			}
		})
		undecided := dbtest.Hold(t, address, `select pg_advisory_xact_lock(30, hashint8($1))`, w.ID)
		dbtest.Exec(t, address, `insert into enrollments (workspace_id, motion_id, company_id, contact_ids, steps, attempts, due_at)
			select $1, $2, $3, '{}', steps, 7, inlet_now() from motions where motion_id = $2`, w.ID, w.Motions["hook0"], w.Companies["c0"])
		undecided()
		<-arrived
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if n := w.sent(t, address, "hook0", "c0"); n.Status != "active" || n.Attempts != 7 {
			t.Errorf("the server's end left %+v", n)
		}
		s = start(t, address, r.env...)
		w.told(t, address, "hook0", "c0")
	})

	beside("keep workspaces apart", func(t *testing.T) {
		address, s := shared, common
		ours, theirs := seedOn(t, address, "ours", crowded(2)), seedOn(t, address, "theirs", crowded(2))
		begin := func(w seeded, motion, company int64, contacts string) int {
			return s.post(fmt.Sprintf("/api/v1/motions/%d/start", motion), fmt.Sprintf(`{"companyId":%d%s}`, company, contacts), w.Key("all"), "Idempotency-Key: same")
		}
		if status := begin(ours, theirs.Motions["steps"], ours.Companies["c0"], ""); status != 404 {
			t.Errorf("a motion of another workspace answers %d", status)
		}
		if status := begin(ours, ours.Motions["steps"], theirs.Companies["c0"], ""); status != 404 {
			t.Errorf("a company of another workspace answers %d", status)
		}
		if status := begin(ours, ours.Motions["steps"], ours.Companies["c0"], fmt.Sprintf(`,"contactIds":[%d]`, theirs.Contacts["p0"])); status != 400 {
			t.Errorf("a contact of another workspace answers %d", status)
		}
		// One key in two workspaces is two.
		for _, w := range []seeded{ours, theirs} {
			if status := begin(w, w.Motions["steps"], w.Companies["c0"], ""); status != 202 {
				t.Errorf("the start answers %d", status)
			}
		}
		eventually(t, "ours", halfWay, func() string { return ours.effects(t, address, "c0") })
		for _, command := range []string{"pause", "activate", "archive", "show"} {
			if out, err := servertest.Command(t, address, "", "motion", command, fmt.Sprint(theirs.Motions["steps"]), "--workspace", ours.Slug); err == nil {
				t.Errorf("motion %s of another workspace's says %s", command, out)
			}
		}
		if got := dbtest.Query[string](t, address, `select status from motions where motion_id = $1`, theirs.Motions["steps"]); got != "active" {
			t.Errorf("another workspace's motion is %s now", got)
		}
		// Ours are paused and their enrollment goes on; agents likewise.
		servertest.Command(t, address, "", "workspace", "set", ours.Slug, "--agents=off")
		eventually(t, "theirs", allDone, func() string {
			hasten(t, address, theirs.ID)
			return theirs.effects(t, address, "c0")
		})
		if got := ours.effects(t, address, "c0"); got != halfWay {
			t.Errorf("ours went on: %s", got)
		}
		if n := dbtest.Query[int](t, address, `
			select (select count(*) from notes n join enrollments e using (enrollment_id) where n.workspace_id <> e.workspace_id or n.company_id <> e.company_id)
				+ (select count(*) from segment_companies m join segments g using (segment_id) where m.workspace_id <> g.workspace_id)`); n != 0 {
			t.Errorf("%d effects are in the wrong workspace", n)
		}
	})
}
