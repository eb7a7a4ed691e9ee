package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// most limits a process, from outside: how much of something it may have. It
// may be told again, for the hard limit stays.
func most(t testing.TB, pid, resource int, n uint64) {
	t.Helper()
	err := as(pid, func() error {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &limit); err != nil {
			return err
		}
		limit.Cur = min(n, limit.Max)
		return unix.Prlimit(pid, resource, &limit, nil)
	})
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// as does something as the user of a process, who alone may limit it where root
// is not almighty, as in containers.
func as(pid int, do func() error) error {
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	done := make(chan error)
	go func() {
		// The thread is another user's from now on, and so ends with the goroutine.
		runtime.LockOSThread()
		for _, call := range []struct {
			number uintptr
			id     uint32
		}{{syscall.SYS_SETRESGID, owner.Gid}, {syscall.SYS_SETRESUID, owner.Uid}} {
			id := uintptr(call.id)
			if _, _, failed := syscall.RawSyscall(call.number, id, id, id); failed != 0 {
				done <- failed
				return
			}
		}
		done <- do()
	}()
	return <-done
}

// memory gives a figure of a process in bytes, such as VmData.
func memory(t testing.TB, pid int, figure string) uint64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			var kilobytes uint64
			fmt.Sscan(rest, &kilobytes)
			return kilobytes << 10
		}
	}
	return 0
}

// useUpMemory lets a server have next to no more memory than it has, and floods
// it. It may die of that, and is started again whenever it did.
func useUpMemory(t *testing.T, r *rig, lasts time.Duration) {
	r.server(1).Stop() //nolint:errcheck // other faults are about how it ends
	start := func() {
		r.start(t, 1, moved.path)
		pid := r.server(1).Process.Pid
		most(t, pid, unix.RLIMIT_DATA, memory(t, pid, "VmData")+(4<<20))
	}
	start()
	var flood sync.WaitGroup
	done := make(chan struct{})
	body := `{"events":[` + strings.Repeat(`{"id":"x"},`, 20_000) + `{}]}`
	for range 24 {
		flood.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					r.send(1, "POST", "/api/v1/events/batch", body, r.books[0].APIKeys["all"].Token, "")
				}
			}
		})
	}
	deaths := 0
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		select {
		case <-r.server(1).Exited():
			deaths++
			start()
		case <-time.After(20 * time.Millisecond):
		}
	}
	close(done)
	flood.Wait()
	r.server(1).Stop() //nolint:errcheck // it may be dead
	r.start(t, 1)
	t.Logf("it died %d times", deaths)
}

// useUpMemoryOfDatabase lets the sessions of the servers have no more memory than
// they have.
func useUpMemoryOfDatabase(t *testing.T, r *rig, lasts time.Duration) {
	again(lasts, 100*time.Millisecond, func() {
		for _, pid := range r.backends(t) {
			most(t, pid, unix.RLIMIT_AS, memory(t, pid, "VmSize"))
		}
	})
	for _, pid := range r.backends(t) {
		most(t, pid, unix.RLIMIT_AS, unix.RLIM_INFINITY)
	}
}

// useUpFiles lets a server have no more files and connections open than it has,
// and takes those that it has for connections which say nothing.
func useUpFiles(t *testing.T, r *rig, lasts time.Duration) {
	pid := r.server(1).Process.Pid
	open, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(pid), "fd"))
	if err != nil {
		t.Skipf("the files of a process are not to be seen: %v", err)
	}
	most(t, pid, unix.RLIMIT_NOFILE, uint64(len(open)+5))
	var idle []net.Conn
	for range 100 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(r.server(1).Base, "http://"), time.Second)
		if err != nil {
			break
		}
		idle = append(idle, c)
	}
	// Those that it has to the database it needs anew, too.
	r.lines[1].cut()
	time.Sleep(lasts)
	most(t, pid, unix.RLIMIT_NOFILE, 4096)
	for _, c := range idle {
		c.Close()
	}
}
