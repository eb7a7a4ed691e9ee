package servertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inletdev/inlet/db"
)

// A Postgres is a PostgreSQL of the test's own, which it may stop and kill. It
// syncs, as one that people use.
type Postgres struct {
	dir   string
	flags []string
	e     *db.Embedded
}

// StartPostgres starts a new PostgreSQL; flags are handed to postgres. It ends
// with the test.
func StartPostgres(t testing.TB, flags ...string) *Postgres {
	t.Helper()
	return StartPostgresOn(t, nil, flags...)
}

// StartPostgresOn is StartPostgres with a folder that fill makes before, such as
// from a backup; it is given the path.
func StartPostgresOn(t testing.TB, fill func(data string), flags ...string) *Postgres {
	t.Helper()
	// Below /tmp whatever $TMPDIR says: the user it runs as must reach it.
	dir, err := os.MkdirTemp("/tmp", "inlet-test-postgres")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &Postgres{dir: filepath.Join(dir, "data"), flags: flags}
	t.Cleanup(func() {
		if p.e != nil {
			p.e.Stop() // the test may have killed it
		}
		os.RemoveAll(dir)
	})
	if fill != nil {
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		fill(p.Data())
	}
	p.Start(t)
	return p
}

// Program is the path of one of PostgreSQL's own programs, of the server's version.
func (p *Postgres) Program(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.Data(), "postmaster.opts"))
	if err != nil {
		t.Fatal(err)
	}
	server, _, _ := strings.Cut(string(raw), " ")
	return filepath.Join(filepath.Dir(server), name)
}

// Own gives a folder and what is in it to the user that PostgreSQL runs as.
func (p *Postgres) Own(t testing.TB, dir string) {
	t.Helper()
	info, err := os.Stat(p.Data())
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	}); err != nil {
		t.Fatal(err)
	}
}

// URL is the connection string of the database; it stays the same.
func (p *Postgres) URL() string { return p.e.URL() }

// Data is PostgreSQL's own folder.
func (p *Postgres) Data() string { return filepath.Join(p.dir, "postgres") }

// Start starts it again, after Stop or Kill.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()
	e, err := db.StartEmbedded(context.Background(), p.dir, slog.New(slog.DiscardHandler), p.flags...)
	if err != nil {
		t.Fatal(err)
	}
	p.e = e
}

// Stop ends it in order: sessions are cut, and nothing is left to recover.
func (p *Postgres) Stop(t testing.TB) {
	t.Helper()
	if err := p.e.Stop(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends its first process at once; the others notice and go.
func (p *Postgres) Kill(t testing.TB) {
	t.Helper()
	p.end(t, syscall.SIGKILL)
}

// Quit ends all its processes at once, and leaves what they were at to be
// recovered. It may have ended by itself before.
func (p *Postgres) Quit(t testing.TB) {
	t.Helper()
	p.end(t, syscall.SIGQUIT)
}

func (p *Postgres) end(t testing.TB, by syscall.Signal) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.Data(), "postmaster.pid"))
	if err == nil {
		var pid int
		if _, err = fmt.Sscan(string(raw), &pid); err == nil {
			err = syscall.Kill(pid, by)
		}
	}
	if by == syscall.SIGQUIT && (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)) {
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
	p.e.Stop() // waits until it has ended; the lock is given back
}
