package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

func TestExpiryDropsWholeDaysAndNothingThatIsStillListed(t *testing.T) {
	d, address := dbtest.Private(t)
	w := newWorkspace(t, d, "expiry")
	at := func(offset string) *db.DB {
		t.Helper()
		dbtest.Exec(t, address, fmt.Sprintf(`alter database %s set inlet.clock_offset = '%s'`,
			dbtest.Query[string](t, address, `select current_database()`), offset))
		moved, err := db.Open(t.Context(), db.Config{URL: address})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { moved.Close() })
		if err := moved.EnsureEventPartitions(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		return moved
	}
	record := func(d *db.DB, id string) {
		t.Helper()
		r, err := d.Pin().RecordEvents(t.Context(), &db.EventGroup{
			Workspaces: []int64{w}, Versions: []db.Versions{{
				Workspace: dbtest.Query[int64](t, address, `select version from workspace_gates where workspace_id = $1`, w),
				Types:     dbtest.Query[int64](t, address, `select types_version from workspace_gates where workspace_id = $1`, w),
			}},
			Counts: []int64{1}, Upto: []int64{1}, Workspace: []int64{1}, Mode: []int64{db.EventRecord},
			IDHash: [][16]byte{{id[0]}}, ID: []string{id}, Type: []int64{1}, OccurredMS: []int64{0},
			CompanyID: []int64{0}, Domain: []string{""}, Registrable: []string{""}, ContactID: []int64{0},
			Email: []string{""}, Visitor: []string{"v"}, Properties: []string{"{}"}, Wait: true,
		})
		if err != nil || r.Verdicts[0] != db.GroupHeld {
			t.Fatalf("%v %+v", err, r)
		}
	}
	left := func() string {
		return dbtest.Query[string](t, address, `select coalesce(string_agg(id, ' ' order by event_no), '') from events`) + "/" +
			dbtest.Query[string](t, address, `select count(*)::text from event_ids`)
	}
	record(at("0"), "a")
	record(at("10 days"), "b")
	record(at("29 days 23 hours"), "c")
	process := func(d *db.DB) {
		t.Helper()
		if _, err := d.ProcessEvents(t.Context(), w, 100); err != nil {
			t.Fatal(err)
		}
	}
	process(at("29 days 23 hours"))
	// The ledger of refusals has room wherever events have, and ends with them.
	refuse := func(moved *db.DB, offset string) {
		t.Helper()
		minute := dbtest.Query[int64](t, address, `select floor(extract(epoch from now() + $1::interval) / 60)`, offset)
		err := moved.AddRefusals(t.Context(), []db.Refusal{{Workspace: w, Minute: minute, KeyID: 1, Code: "invalid_body", Events: 1}})
		if err != nil {
			t.Errorf("after %s no refusal can be written down: %v", offset, err)
		}
	}
	for _, step := range []struct{ offset, want string }{
		{"29 days 23 hours", "a b c/3"},
		{"32 days", "b c/"}, // a's id may stay for as long as its span does
		{"42 days", "c/"},
		{"100 days", "/0"},
	} {
		moved := at(step.offset)
		if err := moved.DropExpiredEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := left(); !strings.HasPrefix(got, step.want) {
			t.Errorf("after %s %s is left, want %s", step.offset, got, step.want)
		}
		refuse(moved, step.offset)
	}
	if n := dbtest.Query[int](t, address, `select sum(events) from event_counts`); n != 0 {
		t.Errorf("the counters still hold %d events", n)
	}
	if n := dbtest.Query[int](t, address, `select count(*) from refusals`); n != 1 {
		t.Errorf("%d refusals are left, want the last one", n)
	}
	record(at("100 days"), "a")
}

// A server may have been down for so long that events expired before they were
// processed.
func TestAcceptedEventsBecomeFactsBeforeTheirDayIsDropped(t *testing.T) {
	d, address := dbtest.Private(t)
	w, versions, contact := peopled(t, d, address, "down")
	identify(t, d, w, "v", contact)
	p := d.Pin()
	defer p.Close()
	recordOne(t, p, w, versions, 1, "v")
	dbtest.Exec(t, address, fmt.Sprintf(`alter database %s set inlet.clock_offset = '32 days'`,
		dbtest.Query[string](t, address, `select current_database()`)))
	later, err := db.Open(t.Context(), db.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	if err := later.EnsureEventPartitions(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := later.DropExpiredEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := later.ProcessEvents(t.Context(), w, 100); err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Query[int](t, address, `select g.accepted_events - p.processed_events
		from workspace_gates g join event_progress p on p.workspace_id = g.workspace_id where g.workspace_id = $1`, w); n != 0 {
		t.Errorf("the backlog holds %d events that are gone", n)
	}
	if n := dbtest.Query[int](t, address, `select coalesce(sum(events), 0) from event_facts`); n != 1 {
		t.Errorf("%d events became facts, want 1", n)
	}
	if err := later.DropExpiredEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Query[int](t, address, `select count(*) from events`); n != 0 {
		t.Errorf("%d events are left", n)
	}
}
