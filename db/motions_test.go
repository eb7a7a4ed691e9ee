package db_test

import (
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// A motion is resumed while an entry is being decided for which it was paused.
// What triggers the motion now is an entry of its own.
func TestATriggerThatComesWhileAnEntryIsDecidedByEarlierSettingsIsNotLost(t *testing.T) {
	d, address := dbtest.Private(t)
	w := newWorkspace(t, d, "trigger")
	company := dbtest.Query[int64](t, address, `insert into companies (workspace_id, name, name_key, source)
		values ($1, 'Acme', 'acme', 'test') returning company_id`, w)
	motion := dbtest.Query[int64](t, address, `insert into motions (workspace_id, name, status, entry, steps)
		values ($1, 'M', 'paused', '{}', '[]') returning motion_id`, w)
	trigger := func() {
		dbtest.Exec(t, address, `select queue_entries($1, array[$2::bigint], array[$3::bigint], null, 'event')`, w, motion, company)
	}
	queued := func() int {
		return dbtest.Query[int](t, address, `select count(*) from motion_entries where workspace_id = $1 and decided_at is null`, w)
	}

	trigger()
	trigger()
	if n := queued(); n != 1 {
		t.Fatalf("%d entries are queued, want the one that both triggers meet", n)
	}
	commit := dbtest.HoldThenCommit(t, address, `select decide_entries($1, 10)`, w)
	dbtest.Exec(t, address, `update motions set status = 'active' where workspace_id = $1`, w)
	triggered := make(chan struct{})
	go func() { defer close(triggered); trigger() }()
	for wait := 0; wait < 500 && dbtest.Query[int](t, address, `select count(*) from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like '%queue_entries%'`) == 0; wait++ {
		select {
		case <-triggered:
			wait = 500
		case <-time.After(20 * time.Millisecond):
		}
	}
	commit()
	<-triggered
	if n := queued(); n != 1 {
		t.Errorf("%d entries are queued, want one of the trigger that came last", n)
	}
}
