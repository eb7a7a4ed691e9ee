package db_test

import (
	"errors"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

func TestAFlushVouchesOnlyForWhatWasRecordedOverTheSameConnection(t *testing.T) {
	d, address := dbtest.Private(t)
	w := newWorkspace(t, d, "flush")
	pinned := d.Pin()
	defer pinned.Close()
	record := func(wait bool) error {
		_, err := pinned.RecordEvents(t.Context(), &db.EventGroup{
			Workspaces: []int64{w}, Versions: []db.Versions{{}}, Counts: []int64{0}, Upto: []int64{0}, Wait: wait,
		})
		return err
	}
	terminate := func() {
		dbtest.Exec(t, address, `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid()`)
	}
	broken := func() {
		terminate()
		if err := record(true); err == nil {
			t.Fatal("the connection is not broken")
		}
	}
	if err := errors.Join(record(false), pinned.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := record(false); err != nil {
		t.Fatal(err)
	}
	broken()
	if err := record(false); err != nil {
		t.Fatalf("a fresh connection does not record: %v", err)
	}
	if err := pinned.Flush(t.Context()); !errors.Is(err, db.ErrAway) {
		t.Errorf("what was recorded over the broken connection is vouched for: %v", err)
	}
	// Nor is it where only the flush finds the connection broken, after a while
	// in which it was not used.
	if err := record(false); err != nil {
		t.Fatal(err)
	}
	terminate()
	time.Sleep(150 * time.Millisecond)
	if err := pinned.Flush(t.Context()); !errors.Is(err, db.ErrAway) {
		t.Errorf("what was recorded over a connection that broke unnoticed is vouched for: %v", err)
	}
	// And then all is well again.
	if err := errors.Join(record(false), pinned.Flush(t.Context())); err != nil {
		t.Error(err)
	}
	// Where nothing was left to be flushed, nothing was lost.
	broken()
	if err := errors.Join(record(false), pinned.Flush(t.Context())); err != nil {
		t.Error(err)
	}
}
