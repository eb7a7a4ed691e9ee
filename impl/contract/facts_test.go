package contract

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// processed waits until every event of a workspace has been processed.
func (w seeded) processed(t testing.TB, address string) {
	t.Helper()
	for range 200 {
		if dbtest.Query[bool](t, address, `select g.last_event_no <= p.processed_no and g.accepted_events = p.processed_events
			from workspace_gates g join event_progress p using (workspace_id) where workspace_id = $1`, w.ID) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("events stay unprocessed")
}

// factsDisagree are the facts and counters that are not what the recorded events
// say they should be.
const factsDisagree = `
	with counted as (
		select ts::bigint as a, 0::bigint as b, 0::bigint as c, events, '' as span
		from event_counts where workspace_id = $1 and events <> 0
		union all
		select company_id, contact_id, event_type_id, events, first_at || ' ' || last_at
		from event_facts where workspace_id = $1
	), expected as (
		select ts::bigint as a, 0::bigint as b, 0::bigint as c, count(*) as events, '' as span
		from events where workspace_id = $1 group by ts
		union all
		select coalesce(company_id, 0), coalesce(contact_id, 0), ts >> 2, count(*), min(occurred_at) || ' ' || max(occurred_at)
		from events where workspace_id = $1 and ts & 3 = 0 group by 1, 2, 3
	)
	select coalesce(string_agg(wrong::text, ' '), '') from (
		(table counted except table expected) union all (table expected except table counted)
	) wrong`

func (w seeded) factsAgree(t testing.TB, address string) {
	t.Helper()
	w.processed(t, address)
	if wrong := dbtest.Query[string](t, address, factsDisagree, w.ID); wrong != "" {
		t.Errorf("facts and events disagree: %s", wrong)
	}
}

func TestAcceptedEventsBecomeFactsExactlyOnceThoughProcessesShareTheWork(t *testing.T) {
	t.Parallel()
	w := workspace(t)
	inlet(t, "", "workspace", "set", w.Slug, "--events-per-minute=100000")
	servers := []server{sharedServer(t), start(t, dbtest.URL(t))}
	defer servers[1].Stop()
	var parallel sync.WaitGroup
	for client := range 8 {
		parallel.Go(func() {
			for n := range 12 {
				var events []string
				for i := range 50 {
					about := []string{
						`"company":{"domain":"globex.de"}`, `"contact":{"email":"hank@globex.com"}`, `"visitor":{"id":"v-hank"}`,
						`"contact":{"email":"alone@example.org"}`, `"company":{"domain":"nobody.example"}`, `"visitor":{"id":"v-nobody"}`,
					}[i%6]
					at := time.Now().Add(-time.Duration(i*n) * time.Hour / 4).UTC().Format(time.RFC3339)
					events = append(events, fmt.Sprintf(`{"id":"f%d-%d-%d","name":"n%d","occurred_at":"%s",%s}`, client, n/2, i, i%3, at, about))
				}
				if a, _ := w.batch(t, servers[(client+n)%2], events...); a.status != 202 {
					t.Errorf("%s", a.body)
				}
			}
		})
	}
	parallel.Wait()
	w.factsAgree(t, dbtest.URL(t))
	if n := dbtest.Query[int](t, dbtest.URL(t), `select sum(events) from event_facts where workspace_id = $1`, w.ID); n != 8*6*34 {
		t.Errorf("%d events became facts, want %d", n, 8*6*34)
	}
}

func TestAFullBacklogRefusesRequestsWholeUntilItIsWorkedOff(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	inlet(t, "", "workspace", "set", w.Slug, "--events-backlog=3")
	release := dbtest.Hold(t, dbtest.URL(t), `select from event_progress where workspace_id = $1 for update`, w.ID)
	n := 0
	event := func(about string) string {
		n++
		return fmt.Sprintf(`{"id":"b%d","name":"n",%s}`, n, about)
	}
	accepted, waiting := `"company":{"domain":"globex.com"}`, `"visitor":{"id":"v"}`
	// What is not accepted does not wait for processing; the request that finds
	// two events waiting may bring more than one.
	for _, about := range []string{waiting, accepted, waiting, accepted, waiting} {
		if a := w.record(t, s, event(about)); a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if a, _ := w.batch(t, s, event(accepted), event(accepted)); a.status != 202 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	recorded := func() int {
		return dbtest.Query[int](t, dbtest.URL(t), `select count(*) from events where workspace_id = $1`, w.ID)
	}
	before := recorded()
	single := w.record(t, s, event(waiting))
	batch, _ := w.batch(t, s, event(accepted), event(waiting), `{"id":"b1","name":"n","visitor":{"id":"v"}}`)
	for _, a := range []answer{single, batch} {
		expect(t, a, 429, "ingest_backlogged", "")
		if wait := a.header.Get("Retry-After"); wait != "60" {
			t.Errorf("Retry-After is %q, want 60", wait)
		}
	}
	if after := recorded(); after != before {
		t.Errorf("%d events were recorded", after-before)
	}
	release()
	w.processed(t, dbtest.URL(t))
	if a := w.record(t, s, event(accepted)); a.status != 202 {
		t.Errorf("the backlog is worked off: %d %s", a.status, a.body)
	}
	w.factsAgree(t, dbtest.URL(t))
}

// identified makes v-nobody of the standard workspace known as hank.
func (w seeded) identify(t testing.TB) {
	t.Helper()
	file := strings.Replace(standard, "{id: v-nobody, site: www}", "{id: v-nobody, site: www, identified_as: hank}", 1)
	inlet(t, strings.ReplaceAll(file, "SLUG", w.Slug), "seed", "-")
}

func TestWaitingEventsAreMatchedWhenTheirVisitorIsIdentified(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, event := range []string{
		`{"id":"w1","name":"n","visitor":{"id":"v-nobody"}}`,
		`{"id":"w2","name":"m","visitor":{"id":"v-nobody"}}`,
		`{"id":"other","name":"n","visitor":{"id":"v-other"}}`,
		`{"id":"company","name":"n","company":{"domain":"globex.com"},"visitor":{"id":"v-nobody"}}`,
	} {
		w.record(t, s, event)
	}
	w.factsAgree(t, dbtest.URL(t))
	w.identify(t)
	w.identify(t) // once more changes nothing
	w.record(t, s, `{"id":"after","name":"n","visitor":{"id":"v-nobody"}}`)
	rows, _ := w.walk(t, s, url.Values{})
	got := make(map[string]string)
	for _, row := range rows {
		got[row.ID] = row.Status
		resolved := row.ID == "w1" || row.ID == "w2"
		if (row.ResolvedAt != nil) != resolved {
			t.Errorf("%s has resolved_at %v", row.ID, row.ResolvedAt)
		}
		if resolved && (row.CompanyID == nil || *row.CompanyID != w.Companies["globex"] || *row.ContactID != w.Contacts["hank"]) {
			t.Errorf("%s is of company %v and contact %v", row.ID, row.CompanyID, row.ContactID)
		}
	}
	if fmt.Sprint(got) != "map[after:accepted company:accepted other:pending_identity w1:accepted w2:accepted]" {
		t.Errorf("the events are %v", got)
	}
	if page := w.list(t, s, url.Values{"status": {"accepted"}, "name": {"n"}}); page.Total != 3 || len(page.Rows) != 3 {
		t.Errorf("%d accepted events named n, %d listed; want 3", page.Total, len(page.Rows))
	}
	w.factsAgree(t, dbtest.URL(t))
}

func TestNoEventIsLeftWaitingForAVisitorWhoIsIdentifiedMeanwhile(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for range 3 {
		w := workspace(t)
		stop := make(chan struct{})
		var sending sync.WaitGroup
		for client := range 4 {
			sending.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						w.record(t, s, fmt.Sprintf(`{"id":"r%d-%d","name":"n","visitor":{"id":"v-nobody"}}`, client, n))
					}
				}
			})
		}
		time.Sleep(30 * time.Millisecond)
		w.identify(t)
		close(stop)
		sending.Wait()
		if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from events where workspace_id = $1 and ts & 3 <> 0`, w.ID); n != 0 {
			t.Errorf("%d events still wait", n)
		}
		if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from events where workspace_id = $1 and resolved_at is not null`, w.ID); n == 0 {
			t.Error("none was matched late: the test shows nothing")
		}
		w.factsAgree(t, dbtest.URL(t))
	}
}

func TestSignalsKeepTheNewestTimesThatMetTheirConditions(t *testing.T) {
	t.Parallel()
	const signals = standard + `
    signals:
      - {ref: pro, name: Pro, event: trial, min_count: 2, within_days: 7, where: [{property: plan, equals: pro}, {property: seats, equals: 5}], score: 10}
      - {ref: any, name: Any, event: trial, min_count: 3, within_days: 7, score: 1}
`
	s, w := sharedServer(t), seed(t, signals)
	now := time.Now().UTC().Truncate(time.Second)
	at := func(hours int) string { return now.Add(-time.Duration(hours) * time.Hour).Format(time.RFC3339) }
	for i, e := range []struct {
		hours             int
		about, properties string
	}{
		{5, `"company":{"domain":"globex.com"}`, `"plan":"pro","seats":5`},
		{9, `"contact":{"email":"hank@globex.com"}`, `"plan":"pro","seats":5.0`},
		{1, `"company":{"domain":"globex.com"}`, `"plan":"free","seats":5`},
		{2, `"company":{"domain":"globex.com"}`, `"seats":5`},
		{3, `"company":{"domain":"initech.co.uk"}`, `"plan":"pro","seats":5`},
		{4, `"contact":{"email":"alone@example.org"}`, `"plan":"pro","seats":5`}, // of no company
		{7, `"visitor":{"id":"v-nobody"}`, `"plan":"pro","seats":5`},
	} {
		w.record(t, s, fmt.Sprintf(`{"id":"s%d","name":"trial","occurred_at":"%s",%s,"properties":{%s}}`, i, at(e.hours), e.about, e.properties))
	}
	holds := func(signal, company string, hours ...int) {
		t.Helper()
		w.processed(t, dbtest.URL(t))
		var want []string
		for _, h := range hours {
			want = append(want, at(h))
		}
		got := dbtest.Query[string](t, dbtest.URL(t), `select coalesce(string_agg(to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ' ' order by n), '')
			from signal_facts f join signals s using (workspace_id, signal_id), unnest(f.newest) with ordinality as u(at, n)
			where workspace_id = $1 and s.name = $2 and company_id = $3`, w.ID, signal, w.Companies[company])
		if got != strings.Join(want, " ") {
			t.Errorf("%s at %s holds %s, want %s", signal, company, got, want)
		}
	}
	holds("Pro", "globex", 5, 9)
	holds("Any", "globex", 1, 2, 5)
	holds("Pro", "initech", 3)
	// A late fact counts.
	w.identify(t)
	holds("Pro", "globex", 5, 7)
	// A signal that is changed knows the events that there were before.
	inlet(t, strings.ReplaceAll(strings.ReplaceAll(signals, "SLUG", w.Slug), "where: [{property: plan, equals: pro}, {property: seats, equals: 5}]",
		"where: [{property: plan, equals: free}]"), "seed", "-")
	holds("Pro", "globex", 1)
	holds("Pro", "initech")
}
