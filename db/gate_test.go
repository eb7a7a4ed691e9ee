package db_test

import (
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

// A group of events locks the gate and then rows of the workspace: whoever
// locked them in the other order would have both wait until one is ended.
func TestWhatChangesAWorkspaceWaitsForItsGateBeforeItLocksARow(t *testing.T) {
	d, address := dbtest.Private(t)
	w := newWorkspace(t, d, "gate")
	if err := d.In(t.Context(), w, func(s *db.Scope) error {
		_, err := s.SaveEventType(t.Context(), "n", "N", "active", nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	settings := db.Workspace{Name: "x", EventsPerMinute: 1, EventsPerDay: 1, EventsBacklog: 1}
	for name, change := range map[string]func(*db.Scope) error{
		"settings": func(s *db.Scope) error { return s.UpdateWorkspace(t.Context(), settings) },
		"status":   func(s *db.Scope) error { return s.SetEventTypeStatus(t.Context(), "n", "blocked") },
		"label":    func(s *db.Scope) error { return s.RenameEventType(t.Context(), "n", "Other") },
	} {
		x, err := sqlx.ConnectContext(t.Context(), "postgres", address)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		group, err := x.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer group.Rollback()
		if _, err := group.ExecContext(t.Context(), `select pg_advisory_xact_lock(gate_key($1))`, w); err != nil {
			t.Fatal(err)
		}
		changed := make(chan error, 1)
		go func() { changed <- d.In(t.Context(), w, change) }()
		for dbtest.Query[int](t, address, `select count(*) from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`) == 0 {
			time.Sleep(time.Millisecond)
		}
		for _, statement := range []string{
			`set local lock_timeout = '500ms'`,
			`update event_types set properties = properties`,
			`update workspace_gates set last_event_no = last_event_no`,
		} {
			if _, err := group.ExecContext(t.Context(), statement); err != nil {
				t.Errorf("a change of %s waits for the gate and yet has what a group of events needs: %v", name, err)
				break
			}
		}
		if err := group.Rollback(); err != nil {
			t.Error(err)
		}
		if err := <-changed; err != nil {
			t.Error(err)
		}
	}
}
