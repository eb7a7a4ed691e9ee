package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// A server is a process that is measured: Inlet, or the naive handler.
type server struct {
	process *exec.Cmd
	address string
	url     string // of its database
	keys    []string
}

// startServer starts Inlet on a database and seeds workspaces with so many
// companies and people each.
func startServer(ctx context.Context, databaseURL string, workspaces, people int) (*server, error) {
	s := &server{url: databaseURL}
	var err error
	if s.keys, err = s.seed(ctx, "bench", workspaces, people); err != nil {
		return nil, err
	}
	s.process = exec.Command(*program, "serve")
	s.process.Env = append(os.Environ(), "DATABASE_URL="+databaseURL, "INLET_LISTEN=127.0.0.1:0")
	return s, s.start()
}

// start starts the process and reads its log until it serves.
func (s *server) start() error {
	stderr, err := s.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	lines := json.NewDecoder(stderr)
	for s.address == "" {
		var line struct{ Msg, Addr string }
		if err := lines.Decode(&line); err != nil {
			s.stop()
			return fmt.Errorf("the server does not serve: %w", err)
		}
		if line.Msg == "serving" {
			s.address = line.Addr
		}
	}
	go io.Copy(io.Discard, stderr) //nolint:errcheck // it ends with the process
	return nil
}

func (s *server) stop() {
	s.process.Process.Signal(syscall.SIGTERM)
	s.process.Wait()
}

func (s *server) command(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, *program, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

// seed makes workspaces, each with companies and people to match and limits out
// of reach, and gives a key of each.
func (s *server) seed(ctx context.Context, name string, workspaces, people int) ([]string, error) {
	var file strings.Builder
	file.WriteString("workspaces:\n")
	for w := range workspaces {
		fmt.Fprintf(&file, `
- slug: %s-%d
  people: [{ref: a, email: a@bench.example, name: A, role: admin}]
  api_keys: [{ref: k, owner: a, scopes: [events.send], requests_per_minute: 100000000}]
  event_types: [{name: blocked_event, status: blocked}]
  companies:
`, name, w)
		for c := range people {
			fmt.Fprintf(&file, "  - {ref: c%d, name: Company %d, domain: c%d.example, other_domains: [o%d.example]}\n", c, c, c, c)
		}
		file.WriteString("  contacts:\n")
		for c := range people {
			fmt.Fprintf(&file, "  - {ref: p%d, email: p%d@c%d.example, company: c%d}\n", c, c, c, c)
		}
		file.WriteString("  visitors:\n")
		for c := range people {
			fmt.Fprintf(&file, "  - {id: v-%d, identified_as: p%d}\n", c, c)
		}
	}
	out, err := s.command(ctx, file.String(), "seed", "-", "--json")
	if err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	var made struct {
		Workspaces map[string]struct {
			APIKeys map[string]struct{ Token string } `json:"api_keys"`
		}
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return nil, err
	}
	var keys []string
	for w := range workspaces {
		keys = append(keys, made.Workspaces[fmt.Sprintf("%s-%d", name, w)].APIKeys["k"].Token)
	}
	return keys, execSQL(ctx, s.url, `update workspace_gates set events_per_minute = 1000000000, events_per_day = 1000000000,
		events_backlog = 1000000000`)
}

// manyWorkspaces are so many that hardly two events of a group are of the same.
func manyWorkspaces(ctx context.Context, s *server) ([]string, error) {
	return s.seed(ctx, "many", 500, 5)
}

// forgetPeak makes peak begin anew.
func (s *server) forgetPeak() {
	os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.process.Process.Pid), []byte("5"), 0) //nolint:errcheck // the peak is then of longer
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that the process has had resident, in bytes.
func (s *server) peak() int64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if found := peakLine.FindSubmatch(raw); found != nil {
		kb, _ := strconv.ParseInt(string(found[1]), 10, 64)
		return kb * 1024
	}
	return 0
}

var mallocsLine = regexp.MustCompile(`(?m)^go_memstats_mallocs_total (\S+)$`)

// allocations is how many objects the process has allocated on its heap.
func (s *server) allocations() float64 {
	response, err := http.Get("http://" + s.address + "/metrics")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	if found := mallocsLine.FindSubmatch(raw); found != nil {
		n, _ := strconv.ParseFloat(string(found[1]), 64)
		return n
	}
	return 0
}
