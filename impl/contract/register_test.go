package contract

import (
	"fmt"
	"sync"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
)

// Each new name or property makes what the other process knows out of date.
func TestProcessesThatRegisterNamesAtOnceTurnNobodyAway(t *testing.T) {
	t.Parallel()
	servers, w := []server{sharedServer(t), start(t, dbtest.URL(t))}, workspace(t)
	defer servers[1].Stop()
	inlet(t, "", "workspace", "set", w.Slug, "--events-per-minute=1000000")
	var parallel sync.WaitGroup
	for client := range 8 {
		parallel.Go(func() {
			for n := range 150 {
				a := w.record(t, servers[client%2], fmt.Sprintf(
					`{"id":"r%d-%d","name":"n%d","visitor":{"id":"v"},"properties":{"p%d":1}}`, client, n, n%20, client*6+n/20%6))
				if a.status != 202 {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
	parallel.Wait()
}
