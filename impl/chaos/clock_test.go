package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// moved is the program as it would be if the clock of its machine were moved: the
// same source, built with another time.Now. Nothing in the product knows of it.
// A process that calls the kernel past its library, as Go's do, cannot be
// deceived from outside without also slowing it down.
var moved struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// movedClock is what replaces time.Now in that build. CLOCK_MOVES names, again and
// again, the nanosecond since 1970 from which on the clock is off, that until
// which, and by how many seconds. As on a machine, only the time of day moves;
// what is measured does not.
const movedClock = `

var clockMoves = func() (moves []int64) {
	text, _ := syscall.Getenv("CLOCK_MOVES")
	n, sign := int64(0), int64(1)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ':
			moves = append(moves, n*sign)
			n, sign = 0, 1
		case '-':
			sign = -1
		default:
			n = n*10 + int64(c-'0')
		}
	}
	return moves
}()

// Now is the time that this machine's clock shows.
func Now() Time {
	t := trueNow()
	at := t.UnixNano()
	for i := 0; i+2 < len(clockMoves); i += 3 {
		if clockMoves[i] <= at && at < clockMoves[i+1] {
			t.addSec(clockMoves[i+2])
		}
	}
	return t
}
`

// buildMoved builds it, where that was not done yet, without the race detector,
// whose memory cannot be limited. All packages are compiled anew the first time.
func buildMoved() error {
	moved.once.Do(func() { moved.path, moved.err = buildWithMovedClock() })
	return moved.err
}

func buildMovedFirst(t testing.TB) {
	t.Helper()
	if err := buildMoved(); err != nil {
		t.Fatal(err)
	}
}

func buildWithMovedClock() (program string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	of := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(of)
	if err != nil {
		return "", err
	}
	const now, imports = "\nfunc Now() Time {", "import (\n"
	text := strings.Replace(string(source), now, "\nfunc trueNow() Time {", 1)
	text = strings.Replace(text, "//go:linkname Now\n", "", 1)
	text = strings.Replace(text, imports, imports+"\t\"syscall\"\n", 1)
	if !strings.Contains(text, "trueNow") || !strings.Contains(text, `"syscall"`) {
		return "", fmt.Errorf("%s is not what it was: its time.Now is not found", of)
	}
	if moved.dir, err = os.MkdirTemp("", "inlet-moved-clock"); err != nil {
		return "", err
	}
	file, overlay := filepath.Join(moved.dir, "time.go"), filepath.Join(moved.dir, "overlay.json")
	if err := os.WriteFile(file, []byte(text+movedClock), 0o600); err != nil {
		return "", err
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {of: file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(moved.dir, "inlet")
	// -trimpath, so that what is built once is found again though the folder is
	// another.
	build := exec.Command("go", "build", "-trimpath", "-overlay", overlay, "-o", program, "github.com/inletdev/inlet/cmd/inlet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with a clock that moves: %w: %s", err, out)
	}
	return program, nil
}

// moveClock has the clock of one server jump while it serves: ahead and back, by
// an hour and by two days.
func moveClock(t *testing.T, r *rig, lasts time.Duration) {
	by := []time.Duration{time.Hour, -time.Hour, 48 * time.Hour, -48 * time.Hour}
	r.server(1).Stop() //nolint:errcheck // other faults are about how it ends
	// How long it takes to start, nobody knows; it jumps on for a while.
	moves, at := "", time.Now()
	for n := range 100 * len(by) {
		until := at.Add(lasts / 2)
		moves += fmt.Sprintf("%d %d %d ", at.UnixNano(), until.UnixNano(), int64(by[n%len(by)].Seconds()))
		at = until
	}
	r.start(t, 1, moved.path, "CLOCK_MOVES="+moves)
	time.Sleep(time.Duration(len(by)+1) * lasts / 2)
	log := r.server(1).Log()
	for _, d := range by {
		if !shows(log, time.Now().Add(d)) {
			t.Errorf("the clock was not moved by %v", d)
		}
	}
	r.server(1).Stop() //nolint:errcheck // other faults are about how it ends
	r.start(t, 1)
}

// shows tells whether a log has a line of about this time.
func shows(log string, at time.Time) bool {
	for text := range strings.SplitSeq(log, "\n") {
		var line struct{ Time time.Time }
		if json.Unmarshal([]byte(text), &line) == nil && line.Time.Sub(at).Abs() < 10*time.Minute {
			return true
		}
	}
	return false
}
