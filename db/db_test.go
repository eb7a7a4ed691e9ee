package db_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

var quiet = slog.New(slog.DiscardHandler)

func newWorkspace(t *testing.T, d *db.DB, slug string) int64 {
	t.Helper()
	var id int64
	if err := d.Across(t.Context(), func(tx *db.Tx) (err error) {
		id, err = tx.CreateWorkspace(t.Context(), slug, slug, map[string][]string{"admin": {"events.send"}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSeveralProcessesMayMigrateAtOnce(t *testing.T) {
	address := dbtest.Empty(t)
	var parallel sync.WaitGroup
	for range 6 {
		parallel.Go(func() {
			d, err := db.Open(t.Context(), db.Config{URL: address})
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			if err := d.Migrate(t.Context(), quiet); err != nil {
				t.Error(err)
			}
		})
	}
	parallel.Wait()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Query[int](t, address, `select count(*) from goose_db_version where version_id > 0`); n != len(files) {
		t.Errorf("%d migrations are noted, want each of %d once", n, len(files))
	}
}

func TestATransactionThatDeadlocksIsRunAgain(t *testing.T) {
	d := dbtest.DB(t)
	first, second := newWorkspace(t, d, "deadlock-1"), newWorkspace(t, d, "deadlock-2")
	var runs atomic.Int32
	var met sync.WaitGroup
	met.Add(2)
	swap := func(one, other int64) error {
		var once sync.Once
		return d.Across(t.Context(), func(tx *db.Tx) error {
			runs.Add(1)
			if err := tx.Scope(one).SetRole(t.Context(), "admin", []string{}); err != nil {
				return err
			}
			once.Do(func() { met.Done(); met.Wait() })
			return tx.Scope(other).SetRole(t.Context(), "admin", []string{})
		})
	}
	var parallel sync.WaitGroup
	for _, pair := range [][2]int64{{first, second}, {second, first}} {
		parallel.Go(func() {
			if err := swap(pair[0], pair[1]); err != nil {
				t.Error(err)
			}
		})
	}
	parallel.Wait()
	if runs.Load() < 3 {
		t.Errorf("%d runs: nothing deadlocked", runs.Load())
	}
}

func TestATransactionThatFailsOrPanicsLeavesNothing(t *testing.T) {
	d := dbtest.DB(t)
	w := newWorkspace(t, d, "rollback")
	broken := errors.New("broken")
	if err := d.In(t.Context(), w, func(s *db.Scope) error {
		if _, err := s.SaveMotion(t.Context(), db.Motion{Name: "x", Status: "active", Entry: []byte("{}"), Steps: []byte("[]")}); err != nil {
			return err
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
	func() {
		defer func() {
			if recover() != "panicked" {
				t.Error("the panic is lost")
			}
		}()
		d.In(t.Context(), w, func(s *db.Scope) error {
			s.SaveMotion(t.Context(), db.Motion{Name: "x", Status: "active", Entry: []byte("{}"), Steps: []byte("[]")})
			panic("panicked")
		})
	}()
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from motions where workspace_id = $1`, w); n != 0 {
		t.Errorf("%d motions are left", n)
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	d := dbtest.DB(t)
	newWorkspace(t, d, "taken")
	err := d.Across(t.Context(), func(tx *db.Tx) error {
		_, err := tx.CreateWorkspace(t.Context(), "taken", "", nil)
		return err
	})
	var exists *db.ExistsError
	if !errors.Is(err, db.ErrExists) || !errors.As(err, &exists) || exists.Constraint != "workspaces_slug_key" {
		t.Errorf("a taken slug is %v", err)
	}
	if err := d.Across(t.Context(), func(tx *db.Tx) error {
		_, err := tx.WorkspaceBySlug(t.Context(), "nobody")
		return err
	}); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("an unknown slug is %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	time.Sleep(2 * time.Millisecond)
	if _, err := d.Workspaces(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a time-out is %v", err)
	}

	if _, err := db.Open(t.Context(), db.Config{URL: "postgres://nobody@127.0.0.1:1/x?sslmode=disable"}); !errors.Is(err, db.ErrAway) {
		t.Errorf("an address where nothing listens is %v", err)
	}
}

func TestTheClockIsTheDatabases(t *testing.T) {
	d, address := dbtest.Private(t)
	if off := time.Since(d.Now()); off > time.Second || off < -time.Second {
		t.Errorf("the clock is off by %v", off)
	}
	dbtest.Exec(t, address, `alter database `+dbtest.Query[string](t, address, `select current_database()`)+` set inlet.clock_offset = '40 days'`)
	moved, err := db.Open(t.Context(), db.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer moved.Close()
	if err := moved.SyncClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(moved.Now()); ahead < 39*24*time.Hour || ahead > 41*24*time.Hour {
		t.Errorf("the clock is ahead by %v, want 40 days", ahead)
	}
}

func TestADatabaseThatComesBackIsUsedAgain(t *testing.T) {
	dir := privateDir(t)
	e, err := db.StartEmbedded(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.Context(), db.Config{URL: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Migrate(t.Context(), quiet); err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := d.Workspaces(t.Context()); !errors.Is(err, db.ErrAway) {
			t.Errorf("a stopped database is %v", err)
		}
	}
	if e, err = db.StartEmbedded(t.Context(), dir, quiet); err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	if _, err := d.Workspaces(t.Context()); err != nil {
		t.Errorf("a database that came back is %v", err)
	}
}

// A database whose machine hangs takes connections and statements, and says
// nothing, not even to a request to cancel.
func TestADatabaseThatSaysNothingIsAway(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	opened := make(chan error, 1)
	go func() {
		_, err := db.Open(context.Background(), db.Config{
			URL:          fmt.Sprintf("postgres://nobody@%s/x?sslmode=disable", silent.Addr()),
			AnswerWithin: 200 * time.Millisecond,
		})
		opened <- err
	}()
	select {
	case err := <-opened:
		if !errors.Is(err, db.ErrAway) {
			t.Errorf("it is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it is waited for without end")
	}
}

func TestASlowAnswerDoesNotPutTheClockWrong(t *testing.T) {
	d, err := db.Open(t.Context(), db.Config{URL: dbtest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.SyncClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, d, "slow-clock")
	busy, began := make(chan error, 1), make(chan struct{})
	go func() {
		busy <- d.In(t.Context(), w, func(*db.Scope) error {
			close(began)
			time.Sleep(time.Second)
			return nil
		})
	}()
	<-began
	if err := d.SyncClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-busy; err != nil {
		t.Fatal(err)
	}
	// The test's database runs by the same clock.
	if off := time.Until(d.Now()).Abs(); off > 100*time.Millisecond {
		t.Errorf("the database's time is taken to be off by %v", off)
	}
}

func TestAReplicaIsADatabaseThatIsAway(t *testing.T) {
	address := dbtest.URL(t)
	for name, url := range map[string]string{
		"it has become one": address + "&default_transaction_read_only=on",
		"and was not to be": address + "&default_transaction_read_only=on&target_session_attrs=read-write",
	} {
		d, err := db.Open(t.Context(), db.Config{URL: url})
		if err == nil {
			err = d.DropExpiredTokens(t.Context())
			d.Close()
		}
		if !errors.Is(err, db.ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
