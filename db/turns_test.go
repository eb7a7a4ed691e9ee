package db_test

import (
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

func TestWhatWaitsInOneWorkspaceDoesNotStopTheOthers(t *testing.T) {
	d, address := dbtest.Private(t)
	held, free := newWorkspace(t, d, "held"), newWorkspace(t, d, "free")
	release := dbtest.Hold(t, address, `select pg_advisory_xact_lock(1, 1)`)
	var waiting sync.WaitGroup
	for range 40 {
		waiting.Go(func() {
			d.In(t.Context(), held, func(s *db.Scope) error { //nolint:errcheck // that it waits too long is the point
				dbtest.Exec(t, address, `select pg_advisory_xact_lock(1, 1)`)
				return s.LockIdentities(t.Context(), "x")
			})
		})
	}
	time.Sleep(200 * time.Millisecond)
	begun := time.Now()
	if err := d.In(t.Context(), free, func(s *db.Scope) error { return s.LockIdentities(t.Context(), "x") }); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("another workspace waits for %v", took)
	}
	release()
	waiting.Wait()
}
