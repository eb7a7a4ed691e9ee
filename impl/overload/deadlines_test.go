package overload

import (
	"net/http"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// Balancers give up after a minute: whatever hangs, the server says so before.
func TestARequestIsAnsweredInTimeWhateverTheDatabaseDoes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		does func(t *testing.T, s server)
		most time.Duration
	}{
		{"a table is locked", func(t *testing.T, s server) {
			dbtest.Hold(t, s.database, `lock table leads, motion_entries, contacts in access exclusive mode`)
		}, 12 * time.Second},
		{"it is slow", func(_ *testing.T, s server) { s.slow.by(4 * time.Second) }, 45 * time.Second},
		{"it hangs", func(_ *testing.T, s server) { s.slow.by(time.Hour) }, 45 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			w := s.tenant(t)
			s.one(t, w.lead(), 201)
			s.one(t, w.start(), 202)
			test.does(t, s)
			client := &http.Client{Timeout: time.Minute}
			for _, of := range []func(tenant) request{tenant.lead, tenant.start} {
				t.Run(of(w).path, func(t *testing.T) {
					t.Parallel()
					a := s.send(client, of(w))
					t.Logf("%d %s after %v", a.status, a.code, a.took)
					if a.status != 503 || a.code != "service_unavailable" || a.retryAfter == "" {
						t.Errorf("it answers %d %s %v, with Retry-After %q", a.status, a.code, a.err, a.retryAfter)
					}
					if a.took > test.most {
						t.Errorf("it answers after %v", a.took)
					}
				})
			}
			t.Run("readyz", func(t *testing.T) {
				t.Parallel()
				if a := s.send(client, request{"GET", "/readyz", "", nil}); a.err != nil || a.took > patience {
					t.Errorf("readyz answers %d %v after %v", a.status, a.err, a.took)
				}
			})
		})
	}
}
