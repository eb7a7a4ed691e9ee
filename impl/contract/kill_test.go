package contract

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

func TestEveryAnsweredEventSurvivesKillsOfServerAndDatabaseAndIsRecordedAndCountedOnce(t *testing.T) {
	e := servertest.StartPostgres(t)
	key := ""
	answered := make(map[string]bool)
	sent := 0
	for _, victim := range []string{"server", "database"} {
		s := start(t, e.URL())
		if key == "" {
			key = newKey(t, e)
			dbtest.Exec(t, e.URL(), `update api_keys set requests_per_minute = 1000000`)
			dbtest.Exec(t, e.URL(), `insert into companies (workspace_id, company_id, name, name_key, source) select workspace_id, 7, 'Acme', 'acme', 'test' from workspaces`)
			dbtest.Exec(t, e.URL(), `update workspace_gates set events_per_minute = 1000000, events_per_day = 1000000`)
		}
		var mu sync.Mutex
		stop := make(chan struct{})
		var sending sync.WaitGroup
		for range 8 {
			sending.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					mu.Lock()
					sent++
					id := fmt.Sprintf("k%d", sent)
					mu.Unlock()
					// Each id is sent until it is answered, as a client would.
					for range 3 {
						r, _ := http.NewRequest(http.MethodPost, s.Base+"/api/v1/events",
							strings.NewReader(`{"id":"`+id+`","name":"n","company":{"id":7}}`))
						r.Header.Set("Authorization", strings.TrimPrefix(key, "Authorization: "))
						response, err := http.DefaultClient.Do(r)
						if err != nil {
							continue
						}
						response.Body.Close()
						if response.StatusCode == http.StatusAccepted {
							mu.Lock()
							answered[id] = true
							mu.Unlock()
							break
						}
					}
				}
			})
		}
		time.Sleep(1200 * time.Millisecond)
		if victim == "server" {
			s.Kill()
		} else {
			e.Kill(t)
		}
		close(stop)
		sending.Wait()
		if victim == "database" {
			e.Start(t)
			s.Stop()
		}
	}
	if len(answered) < 50 {
		t.Fatalf("only %d events were answered", len(answered))
	}
	s := start(t, e.URL())
	defer s.Stop()
	recorded := make(map[string]int)
	for id := range strings.SplitSeq(dbtest.Query[string](t, e.URL(), `select string_agg(id, ' ') from events`), " ") {
		recorded[id]++
	}
	for id := range answered {
		if recorded[id] != 1 {
			t.Errorf("%s was answered and is recorded %d times", id, recorded[id])
		}
	}
	for id, n := range recorded {
		if n != 1 {
			t.Errorf("%s is recorded %d times", id, n)
		}
	}
	// The list agrees.
	if a := s.send(t, "GET", "/api/v1/events?limit=1", "", key); a.field("total") != float64(len(recorded)) {
		t.Errorf("the total is %v, %d are recorded", a.field("total"), len(recorded))
	}
	// And so do the facts, though the work on them was cut off.
	w := seeded{servertest.Workspace{ID: dbtest.Query[int64](t, e.URL(), `select workspace_id from workspaces`)}}
	w.factsAgree(t, e.URL())
	if n := dbtest.Query[int](t, e.URL(), `select sum(events) from event_facts`); n != len(recorded) {
		t.Errorf("%d events became facts, %d are recorded", n, len(recorded))
	}
	t.Logf("%d sent, %d answered, %d recorded", sent, len(answered), len(recorded))
}
