package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// running is a workspace with motions of every kind.
const running = `
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 100000}
      - {ref: other, owner: ada, scopes: [motions.start], requests_per_minute: 100000}
    companies:
      - {ref: globex, name: Globex, domain: globex.com}
      - {ref: initech, name: Initech, domain: initech.com}
      - {ref: umbrella, name: Umbrella, domain: umbrella.com}
      - {ref: empty, name: Nobody There}
    contacts:
      - {ref: hank, email: hank@globex.com, company: globex}
      - {ref: mindy, email: mindy@globex.com, company: globex}
      - {ref: peter, email: peter@initech.com, company: initech}
      - {ref: alice, email: alice@umbrella.com, company: umbrella}
    segments:
      - {ref: in, name: In, companies: [globex, initech]}
      - {ref: out, name: Out, companies: [initech]}
    signals:
      - {ref: hot, name: Hot, event: clicked, min_count: 2, within_days: 7, where: [{property: plan, equals: pro}], score: 10}
      - {ref: warm, name: Warm, event: clicked, score: 5}
    motions:
      - {ref: api, name: By API, entry: {api_call: true, reentry: always}, steps: [{kind: wait, days: 1}]}
      - {ref: never, name: Never again, entry: {api_call: true}}
      - {ref: after, name: After a month, entry: {api_call: true, reentry: {after_days: 30}}}
      - {ref: segments, name: Segments, entry: {api_call: true, in_segments: [in], not_in_segments: [out]}}
      - {ref: capped, name: Capped, entry: {api_call: true, reentry: always, daily_cap: 2}}
      - {ref: paused, name: Paused, status: paused, entry: {api_call: true}}
      - {ref: archived, name: Archived, status: archived, entry: {api_call: true}}
      - {ref: silent, name: No API call, entry: {}}
      - {ref: trial, name: Trial, entry: {events: [{name: trial_started, where: [{property: plan, equals: pro}]}], reentry: always}}
      - {ref: signal, name: Signal, entry: {signals: [hot], reentry: always}}
      - {ref: lead, name: Lead, entry: {lead_created: true}}
      - ref: steps
        name: Steps
        entry: {api_call: true}
        steps:
          - {kind: add_to_segment, segment: out}
          - {kind: remove_from_segment, segment: in}
          - {kind: set_field, field: stage, value: engaged}
          - {kind: set_field, field: tier, value: gold}
          - {kind: add_note, text: "Entered."}
          - {kind: create_opportunity, name: Deal, amount: 12.5}
          - {kind: wait, hours: 1}
          - {kind: add_note, text: "Waited."}
`

func (w seeded) start(t testing.TB, s server, motion, company, key, contacts string) answer {
	t.Helper()
	body := fmt.Sprintf(`{"companyId":%d%s}`, w.Companies[company], contacts)
	return s.send(t, "POST", fmt.Sprintf("/api/v1/motions/%d/start", w.Motions[motion]), body, w.Key("all"), "Idempotency-Key: "+key)
}

// decision is what an entry came to.
type decision struct {
	Status, Outcome, ReasonCode, Reason, DecidedAt string
	MotionID                                       int64 `json:"motionId"`
	CompanyID                                      int64 `json:"companyId"`
	EnrollmentID                                   *int64
	ContactIDs                                     []int64
}

// decided starts a motion and waits for its decision.
func (w seeded) decided(t testing.TB, s server, motion, company, key, contacts string) decision {
	t.Helper()
	for wait := 0; ; wait++ {
		a := w.start(t, s, motion, company, key, contacts)
		if a.status == 200 {
			var d decision
			json.Unmarshal(a.body, &d)
			return d
		}
		if a.status != 202 || a.field("status") != "queued" || wait == 100 {
			t.Fatalf("the start answers %d %s", a.status, a.body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestAStartIsQueuedThenDecidedAndARepeatAnswersThatDecision(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, running)
	a := w.start(t, s, "api", "globex", "k", fmt.Sprintf(`,"contactIds":[%d]`, w.Contacts["hank"]))
	if a.status != 202 || a.field("status") != "queued" || a.field("motionId") != float64(w.Motions["api"]) || a.field("companyId") != float64(w.Companies["globex"]) {
		t.Errorf("the start answers %d %s", a.status, a.body)
	}
	began := time.Now()
	d := w.decided(t, s, "api", "globex", "k", "")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the decision took %v", took)
	}
	if d.Status != "decided" || d.Outcome != "entered" || d.ReasonCode != "entered" || d.Reason == "" || d.EnrollmentID == nil ||
		fmt.Sprint(d.ContactIDs) != fmt.Sprint([]int64{w.Contacts["hank"]}) {
		t.Errorf("the decision is %+v", d)
	}
	// Whatever changes, the same key answers the same.
	inlet(t, "", "motion", "pause", fmt.Sprint(w.Motions["api"]), "--workspace", w.Slug)
	inlet(t, "", "workspace", "set", w.Slug, "--agents=off")
	if again := w.decided(t, s, "api", "globex", "k", fmt.Sprintf(`,"contactIds":[%d]`, w.Contacts["mindy"])); fmt.Sprint(*again.EnrollmentID, again.DecidedAt, again.ContactIDs) != fmt.Sprint(*d.EnrollmentID, d.DecidedAt, d.ContactIDs) {
		t.Errorf("the repeat answers %+v, want %+v", again, d)
	}
	expect(t, w.start(t, s, "api", "initech", "k", ""), 409, "idempotency_key_reused", "")
	expect(t, w.start(t, s, "never", "globex", "k", ""), 409, "idempotency_key_reused", "")
	// The key is that API key's own.
	inlet(t, "", "workspace", "set", w.Slug, "--agents=on")
	if a := s.send(t, "POST", fmt.Sprintf("/api/v1/motions/%d/start", w.Motions["never"]),
		fmt.Sprintf(`{"companyId":%d}`, w.Companies["initech"]), w.Key("other"), "Idempotency-Key: k"); a.status != 202 {
		t.Errorf("another API key's start answers %d %s", a.status, a.body)
	}
}

func TestAStartIsRefusedInTheOrderOfTheChecks(t *testing.T) {
	t.Parallel()
	s, w, theirs := sharedServer(t), seed(t, running), seed(t, running)
	n := 0
	send := func(motion, company int64, contacts string) answer {
		n++
		return s.send(t, "POST", fmt.Sprintf("/api/v1/motions/%d/start", motion), fmt.Sprintf(`{"companyId":%d%s}`, company, contacts),
			w.Key("all"), fmt.Sprintf("Idempotency-Key: o%d", n))
	}
	const nobody = int64(9007199254740991)
	globex := w.Companies["globex"]
	inlet(t, "", "workspace", "set", w.Slug, "--agents=off")
	for name, motion := range map[string]int64{"unknown": nobody, "theirs": theirs.Motions["api"], "archived": w.Motions["archived"]} {
		if a := send(motion, nobody, ""); a.status != 404 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		} else {
			expect(t, a, 404, "motion_not_found", "")
		}
	}
	for _, company := range []int64{nobody, theirs.Companies["globex"]} {
		expect(t, send(w.Motions["silent"], company, `,"contactIds":[1]`), 404, "company_not_found", "")
	}
	for _, contact := range []int64{nobody, theirs.Contacts["hank"], w.Contacts["peter"]} {
		expect(t, send(w.Motions["silent"], globex, fmt.Sprintf(`,"contactIds":[%d,%d]`, w.Contacts["hank"], contact)), 400, "invalid_request", "contactIds[1]")
	}
	expect(t, send(w.Motions["silent"], globex, ""), 409, "api_trigger_missing", "")
	expect(t, send(w.Motions["api"], globex, ""), 409, "engine_off", "")
	inlet(t, "", "workspace", "set", w.Slug, "--agents=on")
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from motion_entries where workspace_id = $1`, w.ID); n != 0 {
		t.Errorf("%d of what was refused is queued", n)
	}
	// A refused start leaves its key free.
	n = 0
	if a := send(w.Motions["api"], globex, ""); a.status != 202 {
		t.Errorf("the key of a refused start answers %d %s", a.status, a.body)
	}
}

func TestADecisionGivesTheFirstCheckThatFails(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, running)
	n := 0
	want := func(motion, company, contacts, reason string) decision {
		t.Helper()
		n++
		d := w.decided(t, s, motion, company, fmt.Sprint("d", n), contacts)
		outcome := "not_entered"
		if reason == "entered" {
			outcome = "entered"
		}
		if d.ReasonCode != reason || d.Outcome != outcome || (d.EnrollmentID != nil) != (reason == "entered") || d.Reason == "" {
			t.Errorf("%s into %s is %+v, want %s", company, motion, d, reason)
		}
		return d
	}
	want("paused", "globex", "", "motion_paused")
	want("api", "globex", "", "entered")
	want("api", "globex", "", "already_enrolled")
	want("never", "globex", "", "entered") // without steps it is completed at once
	w.ended(t)
	want("never", "globex", "", "reentry_not_allowed")
	want("after", "globex", "", "entered")
	w.ended(t)
	want("after", "globex", "", "reentry_not_allowed")
	dbtest.Exec(t, dbtest.URL(t), `update enrollments set entered_at = inlet_now() - interval '30 days 1 minute' where workspace_id = $1 and motion_id = $2`,
		w.ID, w.Motions["after"])
	want("after", "globex", "", "entered")
	want("segments", "globex", "", "entered")
	want("segments", "initech", "", "conditions_not_met")
	want("segments", "umbrella", "", "conditions_not_met")
	want("never", "empty", "", "no_contacts")
	dbtest.Exec(t, dbtest.URL(t), `insert into motion_entries (workspace_id, motion_id, company_id, contact_ids, trigger, key_id, idempotency_key)
		select $1, $2, $3, array[$4::bigint], 'api', key_id, 'moved' from api_keys where workspace_id = $1 and name = 'all'`,
		w.ID, w.Motions["never"], w.Companies["umbrella"], w.Contacts["peter"])
	if d := w.decided(t, s, "never", "umbrella", "moved", ""); d.ReasonCode != "no_contacts" {
		t.Errorf("an entry whose contact has moved on is %+v", d)
	}
	want("capped", "globex", "", "entered")
	want("capped", "initech", "", "entered")
	w.ended(t)
	want("capped", "umbrella", "", "daily_cap_reached")
	want("capped", "empty", "", "no_contacts") // comes before the cap
	dbtest.Exec(t, dbtest.URL(t), `update enrollments set entered_at = inlet_now() - interval '1 day' where workspace_id = $1 and motion_id = $2`,
		w.ID, w.Motions["capped"])
	want("capped", "umbrella", "", "entered")

	// What changes between queueing and deciding is judged as it is then.
	held := dbtest.Hold(t, dbtest.URL(t), `select pg_advisory_xact_lock(30, hashint8($1))`, w.ID)
	for i, company := range []string{"initech", "umbrella"} {
		if a := w.start(t, s, "never", company, fmt.Sprint("later", i), ""); a.status != 202 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	inlet(t, "", "workspace", "set", w.Slug, "--agents=off")
	held()
	for i, company := range []string{"initech", "umbrella"} {
		if d := w.decided(t, s, "never", company, fmt.Sprint("later", i), ""); d.ReasonCode != "agents_off" {
			t.Errorf("%+v", d)
		}
	}
	inlet(t, "", "workspace", "set", w.Slug, "--agents=on")
	held = dbtest.Hold(t, dbtest.URL(t), `select pg_advisory_xact_lock(30, hashint8($1))`, w.ID)
	gone := dbtest.Query[int64](t, dbtest.URL(t), `insert into companies (workspace_id, name, name_key, source) values ($1, 'Gone', 'gone', 'test') returning company_id`, w.ID)
	w.Companies["gone"] = gone
	w.start(t, s, "never", "gone", "gone", "")
	dbtest.Exec(t, dbtest.URL(t), `delete from companies where workspace_id = $1 and company_id = $2`, w.ID, gone)
	held()
	for wait := 0; ; wait++ {
		reason := dbtest.Query[string](t, dbtest.URL(t), `select coalesce(reason_code, '') from motion_entries where workspace_id = $1 and company_id = $2`, w.ID, gone)
		if reason == "company_gone" {
			break
		}
		if reason != "" || wait == 100 {
			t.Fatalf("an entry of a company that is gone is %q", reason)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ended waits until no enrollment without a wait is under way.
func (w seeded) ended(t testing.TB) {
	t.Helper()
	for wait := 0; dbtest.Query[int](t, dbtest.URL(t), `select count(*) from enrollments where workspace_id = $1 and status = 'active' and steps = '[]'`, w.ID) > 0; wait++ {
		if wait == 100 {
			t.Fatal("enrollments do not end")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestOfManyStartsWithOneKeyOneIsQueuedAndOfManyKeysOneEntersAndTheOthersAreExplained(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, running)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	servers := []server{s, other}
	var parallel sync.WaitGroup
	for i := range 20 {
		parallel.Go(func() {
			if a := w.start(t, servers[i%2], "api", "initech", "one", ""); a.status != 202 && a.status != 200 {
				t.Errorf("one key: %d %s", a.status, a.body)
			}
		})
		parallel.Go(func() {
			if a := w.start(t, servers[i%2], "api", "globex", fmt.Sprint("many", i), ""); a.status != 202 {
				t.Errorf("many keys: %d %s", a.status, a.body)
			}
		})
	}
	parallel.Wait()
	entered := 0
	for i := range 20 {
		switch d := w.decided(t, s, "api", "globex", fmt.Sprint("many", i), ""); d.ReasonCode {
		case "entered":
			entered++
		case "already_enrolled":
		default:
			t.Errorf("%+v", d)
		}
	}
	if entered != 1 {
		t.Errorf("%d entered", entered)
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from motion_entries where workspace_id = $1 and company_id = $2`, w.ID, w.Companies["initech"]); n != 1 {
		t.Errorf("%d entries of one key", n)
	}
}

func TestEveryStepTakesEffectOnceInOrderAndWaitsLast(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, running)
	company := w.Companies["globex"]
	d := w.decided(t, s, "steps", "globex", "k", "")
	state := func() string {
		return dbtest.Query[string](t, dbtest.URL(t), `
			select concat_ws(' ', n.status, n.step,
				(select string_agg(g.name, ',' order by g.name) from segment_companies m join segments g using (workspace_id, segment_id)
					where m.workspace_id = $1 and m.company_id = $2),
				c.stage, c.custom_fields ->> 'tier',
				(select string_agg(text, ',' order by note_id) from notes where workspace_id = $1 and company_id = $2),
				(select string_agg(name || ':' || amount, ',') from opportunities where workspace_id = $1 and company_id = $2))
			from enrollments n join companies c on c.workspace_id = n.workspace_id and c.company_id = n.company_id
			where n.workspace_id = $1 and n.enrollment_id = $3`, w.ID, company, *d.EnrollmentID)
	}
	reaches := func(want string) {
		t.Helper()
		for wait := 0; state() != want; wait++ {
			if wait == 60 {
				t.Fatalf("the state is %s, want %s", state(), want)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	reaches("active 7 Out engaged gold Entered. Deal:12.5")
	pass := func() {
		dbtest.Exec(t, dbtest.URL(t), `update enrollments set due_at = inlet_now() where workspace_id = $1 and status = 'active'`, w.ID)
	}
	// While the motion is paused or the agents are off, what is due waits.
	inlet(t, "", "motion", "pause", fmt.Sprint(w.Motions["steps"]), "--workspace", w.Slug)
	pass()
	time.Sleep(1200 * time.Millisecond)
	reaches("active 7 Out engaged gold Entered. Deal:12.5")
	inlet(t, "", "motion", "activate", fmt.Sprint(w.Motions["steps"]), "--workspace", w.Slug)
	inlet(t, "", "workspace", "set", w.Slug, "--agents=off")
	pass()
	time.Sleep(1200 * time.Millisecond)
	reaches("active 7 Out engaged gold Entered. Deal:12.5")
	inlet(t, "", "workspace", "set", w.Slug, "--agents=on")
	pass()
	reaches("completed 8 Out engaged gold Entered.,Waited. Deal:12.5")
	// An archived motion lets go of who is in it.
	in := w.decided(t, s, "api", "initech", "k2", "")
	inlet(t, "", "motion", "archive", fmt.Sprint(w.Motions["api"]), "--workspace", w.Slug)
	dbtest.Exec(t, dbtest.URL(t), `update enrollments set due_at = now() where workspace_id = $1 and enrollment_id = $2`, w.ID, *in.EnrollmentID)
	for wait := 0; dbtest.Query[string](t, dbtest.URL(t), `select status from enrollments where workspace_id = $1 and enrollment_id = $2`, w.ID, *in.EnrollmentID) != "exited"; wait++ {
		if wait == 60 {
			t.Fatal("the company does not leave the archived motion")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestEventsSignalsAndLeadsEnterTheirCompaniesAndLateFactsDoNot(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, running)
	entries := func(motion string) string {
		return dbtest.Query[string](t, dbtest.URL(t), `
			select coalesce(string_agg(c.name || ':' || e.trigger || ':' || coalesce(e.reason_code, 'queued') || ':' || cardinality(e.contact_ids), ' ' order by e.entry_id), '')
			from motion_entries e join companies c using (workspace_id, company_id)
			where e.workspace_id = $1 and e.motion_id = $2`, w.ID, w.Motions[motion])
	}
	reaches := func(motion, want string) {
		t.Helper()
		for wait := 0; entries(motion) != want; wait++ {
			if wait == 80 {
				t.Fatalf("%s has %q, want %q", motion, entries(motion), want)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	w.record(t, s, `{"id":"e1","name":"trial_started","contact":{"email":"hank@globex.com"},"properties":{"plan":"pro"}}`)
	w.record(t, s, `{"id":"e2","name":"trial_started","company":{"domain":"initech.com"},"properties":{"plan":"free"}}`)
	w.record(t, s, `{"id":"e3","name":"trial_started","company":{"domain":"unknown.com"},"properties":{"plan":"pro"}}`)
	reaches("trial", "Globex:event:entered:1")

	// A signal starts when it begins to hold, and not with every event after.
	click := func(id, company, plan, at string) {
		w.record(t, s, fmt.Sprintf(`{"id":%q,"name":"clicked","company":{"domain":%q},"properties":{"plan":%q}%s}`, id, company, plan, at))
		w.factsAgree(t, dbtest.URL(t)) // each in a run of its own
	}
	old := fmt.Sprintf(`,"occurred_at":%q`, time.Now().AddDate(0, 0, -8).UTC().Format(time.RFC3339))
	click("c1", "globex.com", "pro", old)
	click("c2", "globex.com", "pro", "")
	click("c3", "globex.com", "free", "")
	if got := entries("signal"); got != "" {
		t.Errorf("the signal starts with one event in its days: %q", got)
	}
	click("c4", "globex.com", "pro", "")
	reaches("signal", "Globex:signal:entered:0")
	click("c5", "globex.com", "pro", "")
	click("c6", "globex.com", "pro", "")
	time.Sleep(600 * time.Millisecond)
	reaches("signal", "Globex:signal:entered:0")

	// Late facts count for the signal and start nothing.
	for i := range 3 {
		w.record(t, s, fmt.Sprintf(`{"id":"l%d","name":"clicked","visitor":{"id":"v1"},"properties":{"plan":"pro"}}`, i))
		w.record(t, s, fmt.Sprintf(`{"id":"t%d","name":"trial_started","visitor":{"id":"v1"},"properties":{"plan":"pro"}}`, i))
	}
	w.factsAgree(t, dbtest.URL(t))
	dbtest.Exec(t, dbtest.URL(t), `select identify_visitor($1, 'v1', $2)`, w.ID, w.Contacts["peter"])
	time.Sleep(1200 * time.Millisecond)
	reaches("signal", "Globex:signal:entered:0")
	reaches("trial", "Globex:event:entered:1")
	if score := w.company(t, "initech").Score; score != 15 {
		t.Errorf("the score with late facts is %d, want 15", score)
	}

	a := s.send(t, "POST", "/api/v1/leads", `{"email":"new@umbrella.com"}`, w.Key("all"))
	s.send(t, "POST", "/api/v1/leads", `{"email":"other@umbrella.com"}`, w.Key("all"))
	s.send(t, "POST", "/api/v1/leads", `{"email":"test@example.com","company_domain":"globex.com"}`, w.Key("all"))
	if a.status != 201 {
		t.Fatalf("%s", a.body)
	}
	for wait := 0; !strings.HasPrefix(entries("lead"), "Umbrella:lead:entered:1"); wait++ {
		if wait == 80 {
			t.Fatalf("a lead starts %q", entries("lead"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	if strings.Contains(entries("lead"), "Globex") {
		t.Error("a test lead starts a motion")
	}
}

// company gives what inlet company show says.
func (w seeded) company(t testing.TB, ref string) (report struct {
	Score   int
	Signals []struct {
		Name  string
		Holds bool
	}
	Facts, Entries []json.RawMessage
}) {
	t.Helper()
	out := inlet(t, "", "company", "show", fmt.Sprint(w.Companies[ref]), "--workspace", w.Slug, "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestTheScoreIsTheSumOfTheSignalsThatHoldAndFallsAsTheirWindowsPass(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, running)
	if score := w.company(t, "globex").Score; score != 0 {
		t.Errorf("at first it is %d", score)
	}
	// Two that will leave the window of seven days in a moment, the first first.
	leaves := time.Now().AddDate(0, 0, -7).Add(3 * time.Second)
	for i := range 2 {
		at := leaves.Add(time.Duration(i) * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
		w.record(t, s, fmt.Sprintf(`{"id":"c%d","name":"clicked","company":{"domain":"globex.com"},"properties":{"plan":"pro"},"occurred_at":%q}`, i, at))
	}
	w.factsAgree(t, dbtest.URL(t))
	if r := w.company(t, "globex"); r.Score != 15 || len(r.Facts) != 1 {
		t.Errorf("with both it is %d, and there are %d facts", r.Score, len(r.Facts))
	}
	for wait := 0; w.company(t, "globex").Score != 5; wait++ {
		if wait == 100 {
			t.Fatalf("it is %d after the window has passed, want 5", w.company(t, "globex").Score)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
