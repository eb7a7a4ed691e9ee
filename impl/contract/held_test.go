package contract

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// A large seed, or a session that hangs, may hold on to a workspace for long.
func TestAWorkspaceThatIsHeldDoesNotHoldUpTheOthers(t *testing.T) {
	// Not beside others: how long it takes is what it tells.
	s := sharedServer(t)
	held, alsoHeld, free := workspace(t), workspace(t), workspace(t)
	event := `{"id":"e","name":"n","visitor":{"id":"v"}}`
	var release []func()
	for _, w := range []seeded{held, alsoHeld} {
		release = append(release, dbtest.Hold(t, dbtest.URL(t), `select pg_advisory_xact_lock(gate_key($1))`, w.ID))
	}
	var parallel sync.WaitGroup
	send := func(w seeded, check func(answer, time.Duration)) {
		parallel.Go(func() {
			begun := time.Now()
			a := w.record(t, s, event)
			check(a, time.Since(begun))
		})
	}
	turnedAway := func(a answer, took time.Duration) {
		expect(t, a, 503, "events_unavailable", "")
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
		if took > 6*time.Second {
			t.Errorf("an event of a held workspace is turned away after %v", took)
		}
	}
	send(held, turnedAway)
	time.Sleep(100 * time.Millisecond)
	// These wait for the one before, and are recorded together.
	for range 4 {
		send(held, turnedAway)
		send(alsoHeld, turnedAway)
		send(free, func(a answer, took time.Duration) {
			if a.status != 202 {
				t.Errorf("an event of another workspace answers %d %s", a.status, a.body)
			}
			if took > 6*time.Second {
				t.Errorf("an event of another workspace is recorded after %v", took)
			}
		})
	}
	parallel.Wait()
	for _, f := range release {
		f()
	}
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if held.record(t, s, event).status == 202 && alsoHeld.record(t, s, event).status == 202 {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("workspaces that were held are turned away for ever")
		}
	}
}
