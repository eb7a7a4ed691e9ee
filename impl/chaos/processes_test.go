package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// backends gives the processes of the servers' sessions.
func (r *rig) backends(t testing.TB) (pids []int) {
	t.Helper()
	return numbers(t, dbtest.Query[string](t, r.pg.URL(), `select coalesce(string_agg(pid::text, ' ' order by pid), '') from pg_stat_activity where usename = 'app'`))
}

func numbers(t testing.TB, text string) (all []int) {
	t.Helper()
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// processes gives all processes of PostgreSQL, the first of them first.
func (r *rig) processes(t testing.TB) []int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.pg.Data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	raw, err = os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", first, first))
	if err != nil {
		t.Skipf("the children of a process are not to be seen: %v", err)
	}
	return numbers(t, first+" "+string(raw))
}

// justAnswered waits for the moment in which many events were answered together:
// what is not on the disk now, and was answered, is lost with who was to write it.
func (r *rig) justAnswered() {
	select {
	case <-r.together:
	case <-time.After(2 * time.Second):
	}
}

// signal sends a signal to processes, those that have ended meanwhile excepted.
func signal(t testing.TB, pids []int, s syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH { //nolint:errorlint // a bare number
			t.Fatal(err)
		}
	}
}

// for so long does something again and again.
func again(lasts, every time.Duration, do func()) {
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(every) {
		do()
	}
}

// everySoOften runs a statement again and again, as whoever runs the database
// may.
func everySoOften(statement string) func(*testing.T, *rig, time.Duration) {
	return func(t *testing.T, r *rig, lasts time.Duration) {
		again(lasts, 50*time.Millisecond, func() { dbtest.Exec(t, r.pg.URL(), statement) })
	}
}
