package db_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

// A relay stands between a server and its database, and can forget the
// connections that there are without telling anybody. New ones work.
type relay struct {
	url  string
	mu   sync.Mutex
	deaf []*atomic.Bool
}

func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.deaf {
		d.Store(true)
	}
}

func relayed(t *testing.T, address string) *relay {
	t.Helper()
	config, err := pq.NewConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	network, to := "tcp", net.JoinHostPort(config.Host, "5432")
	if u.Port() != "" {
		to = u.Host
	}
	if filepath.IsAbs(config.Host) {
		network, to = "unix", filepath.Join(config.Host, ".s.PGSQL.5432")
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	r := new(relay)
	query := u.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = listener.Addr().String(), query.Encode()
	r.url = u.String()
	carry := func(from, into net.Conn, deaf *atomic.Bool) {
		room := make([]byte, 64<<10)
		for {
			n, err := from.Read(room)
			if deaf.Load() {
				io.Copy(io.Discard, from)
				return
			}
			if err != nil {
				into.Close()
				return
			}
			into.Write(room[:n])
		}
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(t.Context(), network, to)
			if err != nil {
				near.Close()
				continue
			}
			deaf := new(atomic.Bool)
			r.mu.Lock()
			r.deaf = append(r.deaf, deaf)
			r.mu.Unlock()
			go carry(near, far, deaf)
			go carry(far, near, deaf)
		}
	}()
	return r
}

// inTime fails where something is waited for as long as a database that says
// nothing would be.
func inTime(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second): // of 90 that the database is given
		t.Fatalf("%s is waited for without end", what)
		return nil
	}
}

func TestConnectionsThatDieWithoutAWordAreReplacedBeforeAnybodyLearnsOfIt(t *testing.T) {
	r := relayed(t, dbtest.URL(t))
	d, err := db.Open(t.Context(), db.Config{URL: r.url, AnswerWithin: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, d, "deaf")
	pinned := d.Pin()
	defer pinned.Close()
	if err := pinned.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Over several connections, each of which is left with a prepared statement.
	var parallel sync.WaitGroup
	for range 8 {
		parallel.Go(func() {
			for range 20 {
				if _, err := d.QueuedWorkspaces(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	parallel.Wait()
	r.forget()
	time.Sleep(1200 * time.Millisecond)
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"a statement", func() error { return d.SyncClock(t.Context()) }},
		{"a transaction", func() error { return d.In(t.Context(), w, func(*db.Scope) error { return nil }) }},
		{"a pinned statement", func() error { return pinned.Flush(t.Context()) }},
	} {
		if err := inTime(t, c.what, c.do); err != nil {
			t.Errorf("%s gives %v", c.what, err)
		}
	}
}

func TestWhatIsUnderWayOverAConnectionThatDiesEndsWithItsContext(t *testing.T) {
	r := relayed(t, dbtest.URL(t))
	d, err := db.Open(t.Context(), db.Config{URL: r.url, AnswerWithin: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, d, "deaf-under-way")
	pinned := d.Pin()
	defer pinned.Close()
	if err := pinned.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun, forgotten := make(chan struct{}), make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- d.In(ctx, w, func(s *db.Scope) error {
			close(begun)
			<-forgotten
			_, err := s.Motions(context.WithoutCancel(ctx))
			return err
		})
	}()
	<-begun
	r.forget()
	close(forgotten)
	if err := inTime(t, "a transaction", func() error { return <-failed }); !errors.Is(err, db.ErrAway) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a transaction gives %v", err)
	}
	if err := inTime(t, "a pinned statement", func() error { return pinned.Flush(ctx) }); err == nil {
		t.Error("a pinned statement succeeds")
	}
	if err := inTime(t, "the next", func() error { return pinned.Flush(t.Context()) }); err != nil {
		t.Errorf("the next gives %v", err)
	}
}

func TestASessionWhoseContextEndsAsItsStatementDoesIsNobodyElses(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if !db.GivesUp(ctx, near) {
			t.Fatal("it is used again, and then cut off in the midst of another's statement")
		}
	}
	if db.GivesUp(t.Context(), near) {
		t.Error("it is given up on although its context goes on")
	}
}

func TestMigrationsGoToTheServerThatTakesWritesAsStatementsDo(t *testing.T) {
	for suffix, want := range map[string]string{"": "read-write", "target_session_attrs=any": "any"} {
		address := dbtest.URL(t)
		d, err := db.Open(t.Context(), db.Config{URL: address + and(address) + suffix})
		if err != nil {
			t.Fatal(err)
		}
		if got := db.MigratesOn(d); got != want {
			t.Errorf("%q: migrations go to a server that is %q, not %q", suffix, got, want)
		}
		d.Close()
	}
}

func TestAServerThatTakesAConnectionAndSaysNothingIsWaitedForNoLongerThanTheContext(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, more := range []string{"", "&connect_timeout=60"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := inTime(t, "a connection", func() error {
			_, err := db.Open(ctx, db.Config{URL: "postgres://inlet@" + silent.Addr().String() + "/inlet?sslmode=disable" + more, AnswerWithin: 90 * time.Second})
			return err
		})
		cancel()
		if err == nil {
			t.Error("it is there")
		}
	}
}
