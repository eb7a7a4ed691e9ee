package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// What the small disks hold, in bytes.
const (
	dataDisk = 192 << 20
	logDisk  = 160 << 20
)

// onSmallDisks puts PostgreSQL's data and its log on a small disk each. Only root
// may.
func onSmallDisks(t testing.TB, pg *servertest.Postgres) {
	t.Helper()
	pg.Stop(t)
	data := pg.Data()
	mount(t, data, dataDisk)
	mount(t, filepath.Join(data, "pg_wal"), logDisk)
	pg.Start(t)
	t.Cleanup(func() {
		pg.Quit(t)
		for _, dir := range []string{filepath.Join(data, "pg_wal"), data} {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}
	})
}

// mount puts a folder, with what is in it, on a disk of its own.
func mount(t testing.TB, dir string, bytes int) {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	aside := dir + ".aside"
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("size=%d,mode=700,uid=%d,gid=%d", bytes, owner.Uid, owner.Gid)
	if err := syscall.Mount("inlet", dir, "tmpfs", 0, options); err != nil {
		if err := errors.Join(os.Remove(dir), os.Rename(aside, dir)); err != nil {
			t.Fatal(err)
		}
		t.Skipf("a disk that can be filled takes the right to mount one: %v", err)
	}
	if out, err := exec.Command("cp", "-a", aside+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll(aside); err != nil {
		t.Fatal(err)
	}
}

// fill leaves no room on the disk of a folder, now and whenever it is called
// again; free makes room again.
func fill(t testing.TB, dir string) (more, free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	more = func() {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for block := make([]byte, 1<<20); len(block) > 0; {
			if _, err := file.Write(block); errors.Is(err, syscall.ENOSPC) {
				block = block[:len(block)/2]
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	more()
	return more, func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// fillData leaves no room for data: tables cannot grow. They do not have to at
// once, so it lasts until somebody hears of it.
func fillData(t *testing.T, r *rig, lasts time.Duration) {
	more, free := fill(t, r.pg.Data())
	begun := time.Now()
	wait(t, "nobody hears of a disk that is full", func() bool {
		more()
		return slices.ContainsFunc(r.requests(begun), func(q request) bool { return q.status == 503 })
	})
	again(lasts, 50*time.Millisecond, more)
	free()
}

// fillLog leaves no room for the log: PostgreSQL gives up, and cannot start
// before there is room, whoever tries.
func fillLog(t *testing.T, r *rig, lasts time.Duration) {
	_, free := fill(t, filepath.Join(r.pg.Data(), "pg_wal"))
	for end := time.Now().Add(lasts + 30*time.Second); ; time.Sleep(50 * time.Millisecond) {
		// The segments that it has in store are used up first.
		if r.tryExec(`select pg_switch_wal()`) != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the log is not used up")
		}
	}
	time.Sleep(lasts)
	free()
	r.pg.Quit(t) // it may hang in between
	r.pg.Start(t)
	dbtest.Exec(t, r.pg.URL(), `checkpoint`)
}
