// Package servertest runs the real binary for tests: as server processes on a
// real PostgreSQL, and as commands.
package servertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// Binary is the path of the program, which Main builds.
var Binary string

// Main builds the program, runs the tests of a package and cleans up after them;
// TestMain calls it. flags are go build's, such as -race. The functions run
// once all tests have ended, with the database still there; with the error of one the
// run has failed.
func Main(m *testing.M, flags []string, last ...func() error) {
	dir, err := os.MkdirTemp("", "inlet-test-binary")
	if err != nil {
		panic(err)
	}
	Binary = filepath.Join(dir, "inlet")
	// What is built to find races would sleep a second at each exit.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", Binary, "github.com/inletdev/inlet/cmd/inlet")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build inlet:", err)
		os.Exit(1)
	}
	dbtest.Main(m, append(last, func() error { os.RemoveAll(dir); return nil })...)
}

// A Server is one running process.
type Server struct {
	Base    string // its address, such as http://127.0.0.1:40123
	Process *os.Process
	log     lines
	exited  chan struct{}
	err     error // how it ended, once it did
}

// Start runs a server and waits until it serves. env is added to the
// environment, and wins over what Start sets itself.
func Start(t testing.TB, databaseURL string, env ...string) *Server {
	t.Helper()
	return StartProgram(t, Binary, databaseURL, env...)
}

// StartProgram is Start with another build of the program.
func StartProgram(t testing.TB, program, databaseURL string, env ...string) *Server {
	t.Helper()
	// Not of the test's context: that ends before its clean-up does.
	cmd := exec.CommandContext(context.Background(), program, "serve")
	cmd.Env = append(os.Environ(), append([]string{
		"DATABASE_URL=" + databaseURL, "INLET_LISTEN=127.0.0.1:0", "INLET_TRUSTED_PROXIES=127.0.0.0/8",
	}, env...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Server{Process: cmd.Process, exited: make(chan struct{})}
	address := make(chan string, 1)
	go func() {
		read := bufio.NewScanner(stderr)
		read.Buffer(nil, 1<<20)
		for read.Scan() {
			s.log.add(read.Bytes())
			var line struct{ Msg, Addr string }
			if json.Unmarshal(read.Bytes(), &line) == nil && line.Msg == "serving" {
				address <- line.Addr
			}
		}
		if err := cmd.Wait(); err != nil {
			log := s.log.String()
			s.err = fmt.Errorf("%w, and said last:\n%s", err, log[max(0, len(log)-4<<10):])
		}
		close(s.exited)
	}()
	select {
	case a := <-address:
		s.Base = "http://" + a
	case <-s.exited:
		t.Fatalf("the server ends at once:\n%s", s.Log())
	case <-time.After(3 * time.Minute): // a bound for what hangs, on whatever machine
		s.Kill()
		t.Fatalf("the server does not serve:\n%s", s.Log())
	}
	return s
}

// Stop asks the server to end, and gives how it did. It may be called again.
func (s *Server) Stop() error {
	s.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		return s.err
	case <-time.After(15 * time.Second):
		s.Kill()
		return fmt.Errorf("the server does not stop:\n%s", s.Log())
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	s.Process.Kill()
	<-s.exited
}

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Log is what the server has written so far.
func (s *Server) Log() string { return s.log.String() }

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(line)
	l.b.WriteByte('\n')
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Command runs a command of the program on a database, and gives what it prints.
// The error tells what it said on stderr.
func Command(t testing.TB, databaseURL, stdin string, args ...string) (string, error) {
	t.Helper()
	return CommandOf(t, Binary, databaseURL, stdin, args...)
}

// CommandOf is Command with another build of the program.
func CommandOf(t testing.TB, program, databaseURL, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return string(out), err
}
