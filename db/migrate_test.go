package db_test

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

// migrationFiles are those of the program up to a number, and others.
func migrationFiles(t *testing.T, upto int64, others fstest.MapFS) fstest.MapFS {
	t.Helper()
	files := maps.Clone(others)
	if files == nil {
		files = make(fstest.MapFS)
	}
	names, err := fs.Glob(os.DirFS("migrations"), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if numberOf(t, name) <= upto {
			content, err := os.ReadFile("migrations/" + name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: content}
		}
	}
	return files
}

const (
	last   = 1 << 40
	beyond = "9000000000_probe.sql"
)

func TestAMigrationThatCannotHaveItsLockGivesUpForAMomentAndLetsOthersPass(t *testing.T) {
	d, address := dbtest.Private(t)
	files := migrationFiles(t, last, fstest.MapFS{beyond: {Data: []byte("-- +goose Up\nalter table segments add column probe text;\n")}})
	// A reader that takes its time, such as a dump.
	release := dbtest.Hold(t, address, `select from segments`)
	migrated := make(chan error, 1)
	go func() { migrated <- db.MigrateFiles(d, context.WithoutCancel(t.Context()), quiet, files) }()
	// Queued behind one that waits, these would never get their turn. The session
	// is slow to say that it waits, so they come for longer than one try lasts.
	x, err := sqlx.Connect("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for begun := time.Now(); time.Since(begun) < 4*time.Second; time.Sleep(20 * time.Millisecond) {
		if _, err := x.Exec(`set lock_timeout = '5s'; select from segments`); err != nil {
			t.Fatalf("another reader is held up: %v", err)
		}
	}
	select {
	case err := <-migrated:
		t.Fatalf("the migration ends while its lock is held: %v", err)
	default:
	}
	release()
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Query[int](t, address, `select count(probe) from segments`); n != 0 {
		t.Errorf("%d probes", n)
	}
}

// An old server that restarts while a new one migrates must not wait for it.
func TestWhoeverFindsNothingToMigrateWaitsForNobody(t *testing.T) {
	d, address := dbtest.Private(t)
	dbtest.Hold(t, address, `select pg_advisory_xact_lock(4097083626) /* goose's */`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := d.Migrate(ctx, quiet); err != nil {
		t.Error(err)
	}
}

func TestASchemaThatIsNewerThanTheProgramIsLeftAsItIs(t *testing.T) {
	d, address := dbtest.Private(t)
	if err := db.MigrateFiles(d, t.Context(), quiet, migrationFiles(t, last, fstest.MapFS{
		beyond: {Data: []byte("-- +goose Up\ncreate table probes (n integer);\n")},
	})); err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context(), quiet); err != nil {
		t.Fatal(err)
	}
	if n := dbtest.Query[int64](t, address, `select max(version_id) from goose_db_version`); n != 9000000000 {
		t.Errorf("the schema is at %d", n)
	}
}

// What builds an index of a large table takes long and waits for everybody, and
// nobody waits for it: such a migration says so itself.
func TestAnIndexIsBuiltWhileOthersWriteHoweverLongItWaitsForThem(t *testing.T) {
	d, address := dbtest.Private(t)
	files := migrationFiles(t, last, fstest.MapFS{beyond: {Data: []byte(`-- +goose NO TRANSACTION
-- +goose Up
set lock_timeout = 0;
drop index concurrently if exists segments_probe;
create index concurrently segments_probe on segments (workspace_id, name);
reset lock_timeout;
`)}})
	release := dbtest.Hold(t, address, `insert into segments (workspace_id, name) select workspace_id, 'x' from workspaces`)
	migrated := make(chan error, 1)
	go func() { migrated <- db.MigrateFiles(d, context.WithoutCancel(t.Context()), quiet, files) }()
	for begun := time.Now(); time.Since(begun) < time.Second; time.Sleep(20 * time.Millisecond) {
		dbtest.Exec(t, address, `set lock_timeout = '5s'; update segments set name = name`)
	}
	release()
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if !dbtest.Query[bool](t, address, `select indisvalid from pg_index where indexrelid = 'segments_probe'::regclass`) {
		t.Error("the index is not valid")
	}
}
