package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
)

// refused waits until so many refused events of a workspace are written down, which
// happens once a second.
func (w seeded) refused(t testing.TB, events int) {
	t.Helper()
	eventually(t, "refused events in the ledger", events, func() int {
		return dbtest.Query[int](t, dbtest.URL(t), `select coalesce(sum(events), 0) from refusals where workspace_id = $1`, w.ID)
	})
}

// refusals gives the ledger of a workspace once it has so many events: "events code
// param name" a line.
func (w seeded) refusals(t testing.TB, events int) []string {
	t.Helper()
	w.refused(t, events)
	var all []struct {
		Events    int
		Code      string
		Param     string
		EventName string `json:"event_name"`
		Key       string
	}
	if err := json.Unmarshal([]byte(inlet(t, "", "refusals", "--workspace", w.Slug, "--json")), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range all {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s %s by %s", r.Events, r.Code, r.Param, r.EventName, r.Key)))
	}
	slices.Sort(lines)
	return lines
}

func TestTheLedgerTellsWhatWasRefusedAndWhyAndNeverTheValue(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	w.record(t, s, `{"id":"a","name":"n","visitor":{"id":"v"},"properties":{"email":"x"}}`)
	w.record(t, s, `{"id":"b","name":"n","visitor":{"id":"v"},"properties":{"note":"leaky.person@secret-mail.example"}}`)
	w.record(t, s, `{"id":"c","name":"n","visitor":{"id":"v"},"properties":{"leaky.person@secret-mail.example":1}}`)
	w.record(t, s, `{"id":"d","name":"leaky.person@secret-mail.example","visitor":{"id":"v"}}`)
	w.record(t, s, `{"id":"e","name":"n","visitor":{"id":"v"},"leaky.person@secret-mail.example":1}`)
	w.record(t, s, `{"id":"f","name":"paid_4111111111111111","visitor":{"id":"v"},"properties":{"email":"x"}}`)
	w.record(t, s, `not JSON`)
	w.batch(t, s,
		`{"id":"g","name":"legacy_event","visitor":{"id":"v"}}`,
		`{"id":"h","name":"legacy_event","visitor":{"id":"v"}}`,
		`{"id":"i","name":"fine","visitor":{"id":"v"}}`,
		`{"id":"j","name":"fine","visitor":{"id":"v"},"occurred_at":"2020-01-01T00:00:00Z"}`)
	inlet(t, "", "workspace", "set", w.Slug, "--events-per-minute=1")
	w.batch(t, s, `{"id":"k","name":"many","visitor":{"id":"v"}}`, `{"id":"l","name":"more","visitor":{"id":"v"}}`)
	s.send(t, "POST", "/api/v1/events", `{}`, w.Key("none"))
	s.send(t, "GET", "/api/v1/events?limit=0", "", w.Key("all")) // no event is refused here

	want := []string{
		"1 event_too_old occurred_at fine by all",
		"1 events_rate_limited  many by all",
		"1 events_rate_limited  more by all",
		"1 forbidden_scope   by none",
		"1 invalid_body   by all",     // not JSON
		"1 invalid_body name  by all", // the name cannot be kept
		"1 invalid_body  n by all",    // nor can the unknown field
		"1 invalid_body properties n by all",
		"1 pii_property properties.email  by all", // a name that holds a card number
		"1 pii_property properties.email n by all",
		"1 pii_value properties.note n by all",
		"2 event_blocked name legacy_event by all",
	}
	slices.Sort(want)
	got := w.refusals(t, 13)
	if !slices.Equal(got, want) {
		t.Errorf("the ledger is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from refusals r where r::text like '%secret-mail%' or r::text like '%4111%'`); n != 0 {
		t.Error("the ledger holds a value")
	}
	if table := inlet(t, "", "refusals", "--workspace", w.Slug, "--by-minute"); !strings.Contains(table, "event_blocked") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestTheLedgerOfAMinuteIsBounded(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for batch := range 4 {
		var events []string
		for i := range 100 {
			events = append(events, fmt.Sprintf(`{"id":"x","name":"name_%d","visitor":{"id":"v"},"properties":{"email":"x"}}`, batch*100+i))
		}
		w.batch(t, s, events...)
	}
	lines := w.refusals(t, 400)
	if len(lines) > 402 { // the minute may have changed in between
		t.Errorf("%d lines", len(lines))
	}
	total := dbtest.Query[int](t, dbtest.URL(t), `select sum(events) from refusals where workspace_id = $1`, w.ID)
	rows := dbtest.Query[int](t, dbtest.URL(t), `select max(n) from (select count(*) as n from refusals where workspace_id = $1 group by minute) m`, w.ID)
	if total != 400 || rows > 201 {
		t.Errorf("%d refusals in %d rows a minute, want 400 in at most 201", total, rows)
	}
}
