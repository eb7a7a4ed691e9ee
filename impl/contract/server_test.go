// Package contract drives the real binary on a real PostgreSQL from outside,
// and holds every answer that it sees against the document.
package contract

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/embed/embedtest"
)

func TestMain(m *testing.M) {
	http.DefaultTransport = watched{http.DefaultTransport}
	dir, err := os.MkdirTemp("", "inlet-contract")
	if err != nil {
		panic(err)
	}
	// What is built to find races would sleep a second at each exit.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	build := exec.Command("go", "build", "-race", "-o", filepath.Join(dir, "inlet"), "../../cmd/inlet")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build inlet:", err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "inlet")
	dbtest.Main(m, func() {
		if shared.process != nil {
			shared.stop()
		}
		embedtest.Close()
		os.RemoveAll(dir)
	})
}

var binary string

// A server is one running process of the binary.
type server struct {
	base    string
	process *exec.Cmd
	log     *lockedBuffer
	exited  chan error
}

// start runs a server and waits until it serves.
func start(t testing.TB, databaseURL string, env ...string) *server {
	t.Helper()
	s := &server{log: new(lockedBuffer), exited: make(chan error, 1)}
	s.process = exec.CommandContext(context.Background(), binary, "serve")
	s.process.Env = append(os.Environ(), append([]string{
		"DATABASE_URL=" + databaseURL, "INLET_LISTEN=127.0.0.1:0", "INLET_TRUSTED_PROXIES=127.0.0.0/8",
	}, env...)...)
	stderr, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			fmt.Fprintln(s.log, lines.Text())
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				address <- line.Addr
			}
		}
		s.exited <- s.process.Wait()
	}()
	select {
	case a := <-address:
		s.base = "http://" + a
	case <-s.exited:
		t.Fatalf("the server ends at once:\n%s", s.log)
	case <-time.After(60 * time.Second):
		s.process.Process.Kill()
		t.Fatalf("the server does not serve:\n%s", s.log)
	}
	return s
}

// stop asks the server to end, and gives how it did.
func (s *server) stop() error {
	s.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.exited:
		return err
	case <-time.After(15 * time.Second):
		s.process.Process.Kill()
		return fmt.Errorf("the server does not stop:\n%s", s.log)
	}
}

var shared server

var startShared sync.Once

// sharedServer is the one that most tests drive, each in workspaces of its own.
func sharedServer(t testing.TB) *server {
	t.Helper()
	startShared.Do(func() { shared = *start(t, dbtest.URL(t)) })
	return &shared
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// An answer is what the server said to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and holds the answer against the document. A header
// given as "Name: value" with an empty value is not sent at all.
func (s *server) send(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(withTest(t), method, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	// As many clients as requests, so that no test uses up another's limit.
	r.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256)))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, raw}
}

// refusal gives code and param of an error, whichever shape it has.
func (a answer) refusal() (code, param string) {
	var body struct {
		Error json.RawMessage
		Param string
	}
	json.Unmarshal(a.body, &body)
	var object struct{ Code, Param string }
	if json.Unmarshal(body.Error, &object) == nil && object.Code != "" {
		return object.Code, object.Param
	}
	json.Unmarshal(body.Error, &code)
	return code, body.Param
}

func (a answer) field(name string) any {
	var body map[string]any
	json.Unmarshal(a.body, &body)
	return body[name]
}

// inlet runs a command of the binary on the shared database.
func inlet(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := tryInlet(t, stdin, args...)
	if err != nil {
		t.Fatalf("inlet %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func tryInlet(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	return tryInletOn(t, dbtest.URL(t), stdin, args...)
}

// tryInletOn is tryInlet on another database.
func tryInletOn(t testing.TB, address, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+address)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return string(out), err
}
