// Package dbtest gives tests a real PostgreSQL: one server for all test
// binaries of a run, one database a binary, one workspace a test. The product
// keeps workspaces apart, and so its tests.
package dbtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
)

// server is the URL of a database on the server that tests share:
// INLET_TEST_DATABASE_URL, else a private PostgreSQL in the temporary folder
// that the last test binary to leave stops. It does not sync, for tests do not
// outlive a crash; those that are about durability start their own.
var server = sync.OnceValues(func() (string, error) {
	if own := os.Getenv("INLET_TEST_DATABASE_URL"); own != "" {
		return own, nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("inlet-test-%d%s", os.Geteuid(), apart))
	e, err := db.StartEmbedded(context.Background(), dir, slog.New(slog.DiscardHandler), "-F", "-c max_connections=300")
	if err != nil {
		return "", err
	}
	embedded = e
	return e.URL(), nil
})

var embedded *db.Embedded

var apart string

// Apart has a test binary use a server of its own, for what it does to it would be
// felt by the others. It comes before Main.
func Apart(name string) { apart = "-" + name }

var shared = sync.OnceValues(func() (string, error) {
	return create(context.Background())
})

// Main runs the tests of a binary and cleans up after them; TestMain calls it.
// The functions run once all tests have ended and before the database goes; with
// the error of one the run has failed.
func Main(m *testing.M, last ...func() error) {
	code := m.Run()
	for _, f := range last {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if shared, err := sharedURL(); err == nil && shared != "" {
		drop(shared)
	}
	if embedded != nil {
		embedded.Stop()
	}
	os.Exit(code)
}

var used atomic.Bool

func sharedURL() (string, error) {
	if !used.Load() {
		return "", nil
	}
	return shared()
}

// URL gives the binary's migrated database.
func URL(t testing.TB) string {
	t.Helper()
	used.Store(true)
	address, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// DB opens the binary's migrated database.
func DB(t testing.TB) *db.DB {
	t.Helper()
	return openDB(t, URL(t))
}

// Private gives a migrated database of the test's own and its URL.
func Private(t testing.TB) (*db.DB, string) {
	t.Helper()
	address, err := create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drop(address) })
	return openDB(t, address), address
}

// Empty gives the URL of a database of the test's own without a schema.
func Empty(t testing.TB) string {
	t.Helper()
	address, err := createEmpty(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drop(address) })
	return address
}

func openDB(t testing.TB, address string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.SyncClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// Exec runs a statement that only a test needs.
func Exec(t testing.TB, address, statement string, args ...any) {
	t.Helper()
	x, err := sqlx.ConnectContext(t.Context(), "postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Query gives the single value of a statement that only a test needs.
func Query[T any](t testing.TB, address, statement string, args ...any) T {
	t.Helper()
	x, err := sqlx.ConnectContext(t.Context(), "postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var value T
	if err := x.GetContext(t.Context(), &value, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

// Hold runs a statement in a transaction that stays open, with its locks, until
// the function it gives back is called.
func Hold(t testing.TB, address, statement string, args ...any) (release func()) {
	t.Helper()
	tx, end := begin(t, address, statement, args)
	release = sync.OnceFunc(func() { tx.Rollback(); end() })
	t.Cleanup(release)
	return release
}

// HoldThenCommit is Hold, but what the statement did stays.
func HoldThenCommit(t testing.TB, address, statement string, args ...any) (commit func()) {
	t.Helper()
	tx, end := begin(t, address, statement, args)
	t.Cleanup(end)
	return func() {
		t.Helper()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func begin(t testing.TB, address, statement string, args []any) (tx *sqlx.Tx, end func()) {
	t.Helper()
	x, err := sqlx.ConnectContext(t.Context(), "postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	tx, err = x.BeginTxx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return tx, func() { x.Close() }
}

func create(ctx context.Context) (string, error) {
	address, err := createEmpty(ctx)
	if err != nil {
		return "", err
	}
	d, err := db.Open(ctx, db.Config{URL: address})
	if err != nil {
		return "", err
	}
	defer d.Close()
	if err := d.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	return address, distribute(ctx, d, address)
}

func createEmpty(ctx context.Context) (string, error) {
	base, err := server()
	if err != nil {
		return "", err
	}
	name := "inlet_test_" + strings.ToLower(rand.Text())
	x, err := sqlx.ConnectContext(ctx, "postgres", base)
	if err != nil {
		return "", err
	}
	defer x.Close()
	if _, err := x.ExecContext(ctx, `create database `+name); err != nil {
		return "", err
	}
	address, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	address.Path = "/" + name
	return address.String(), nil
}

func drop(address string) {
	base, err := server()
	if err != nil {
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	x, err := sqlx.Connect("postgres", base)
	if err != nil {
		return
	}
	defer x.Close()
	name := strings.TrimPrefix(u.Path, "/")
	x.Exec(`drop database if exists ` + name + ` with (force)`)
	dropFromWorkers(base, name)
}
