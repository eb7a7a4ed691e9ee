package db_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

// recordOne records an event about a visitor.
func recordOne(t *testing.T, p *db.Pinned, workspace int64, versions db.Versions, n int, visitor string) {
	t.Helper()
	var hash [16]byte
	binary.BigEndian.PutUint64(hash[:], uint64(n)+1)
	r, err := p.RecordEvents(t.Context(), &db.EventGroup{
		Workspaces: []int64{workspace}, Versions: []db.Versions{versions}, Counts: []int64{1}, Upto: []int64{1},
		Workspace: []int64{1}, Mode: []int64{db.EventRecord}, IDHash: [][16]byte{hash}, ID: []string{fmt.Sprint(n)},
		Type: []int64{1}, OccurredMS: []int64{0}, CompanyID: []int64{0}, Domain: []string{""}, Registrable: []string{""},
		ContactID: []int64{0}, Email: []string{""}, Visitor: []string{visitor}, Properties: []string{"{}"}, Wait: true,
	})
	if err != nil || r.Verdicts[0] != db.GroupHeld {
		t.Errorf("%v %+v", err, r)
	}
}

// peopled makes a workspace without limits, and gives it with its versions and a
// contact.
func peopled(t *testing.T, d *db.DB, address, slug string) (workspace int64, versions db.Versions, contact int64) {
	t.Helper()
	workspace = newWorkspace(t, d, slug)
	dbtest.Exec(t, address, `update workspace_gates set events_per_minute = 1000000, events_per_day = 1000000 where workspace_id = $1`, workspace)
	versions, _, err := d.EventTypes(t.Context(), workspace)
	if err != nil {
		t.Fatal(err)
	}
	contact = dbtest.Query[int64](t, address, `insert into contacts (workspace_id, email, source) values ($1, 'a@b.example', 'test')
		returning contact_id`, workspace)
	return workspace, versions, contact
}

func identify(t *testing.T, d *db.DB, workspace int64, visitor string, contact int64) {
	t.Helper()
	if err := d.In(t.Context(), workspace, func(s *db.Scope) error {
		_, err := s.IdentifyVisitor(t.Context(), visitor, contact)
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestProcessesThatProcessAtOnceProcessEachEventOnce(t *testing.T) {
	d, address := dbtest.Private(t)
	w, versions, contact := peopled(t, d, address, "process")
	identify(t, d, w, "v", contact)
	const events = 400
	var parallel sync.WaitGroup
	stop := make(chan struct{})
	for range 6 {
		parallel.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := d.ProcessEvents(t.Context(), w, 5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	p := d.Pin()
	for n := range events {
		recordOne(t, p, w, versions, n, "v")
	}
	p.Close()
	close(stop)
	parallel.Wait()
	for {
		n, err := d.ProcessEvents(t.Context(), w, 100)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	for _, sum := range []string{`select sum(events) from event_counts`, `select sum(events) from event_facts`,
		`select sum(processed_events) from event_progress`} {
		if n := dbtest.Query[int](t, address, sum); n != events {
			t.Errorf("%s gives %d, want %d", sum, n, events)
		}
	}
}

func TestAnEventThatMeetsTheIdentificationOfItsVisitorIsNotLeftWaiting(t *testing.T) {
	d, address := dbtest.Private(t)
	w, versions, contact := peopled(t, d, address, "identify")
	p := d.Pin()
	defer p.Close()
	for n := range 400 {
		visitor := fmt.Sprintf("v-%d", n)
		var both sync.WaitGroup
		both.Go(func() { recordOne(t, p, w, versions, n, visitor) })
		both.Go(func() { identify(t, d, w, visitor, contact) })
		both.Wait()
	}
	if n := dbtest.Query[int](t, address, `select count(*) from events where ts & 3 = 2`); n != 0 {
		t.Errorf("%d events wait for visitors who are identified", n)
	}
}
