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
	"time"
)

// A server is a process that is measured: Inlet, or the naive handler.
type server struct {
	process *exec.Cmd
	address string
	url     string // of its database
	tenants []tenant
	naive   bool
}

// A tenant is a workspace to send events, leads or motion starts to.
type tenant struct {
	key                 string
	people              int // and as many companies and visitors; fewer companies for leads
	companies, contacts []int64
}

// startServer starts Inlet on a database and seeds workspaces with so many
// companies and people each.
func startServer(ctx context.Context, databaseURL string, workspaces, people int) (*server, error) {
	s := &server{url: databaseURL}
	var err error
	if s.tenants, err = s.seed(ctx, "bench", workspaces, people); err != nil {
		return nil, err
	}
	return s, s.serve()
}

// serve starts Inlet.
func (s *server) serve() error {
	s.process = exec.Command(*program, "serve")
	s.process.Env = append(os.Environ(), "DATABASE_URL="+s.url, "INLET_LISTEN=127.0.0.1:0", "INLET_METRICS_LISTEN=")
	return s.start()
}

// start starts the process and reads its log until it serves.
func (s *server) start() error {
	// Of a process group of its own, so that Ctrl-C reaches this process alone,
	// which stops it in order.
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	go io.Copy(io.Discard, io.MultiReader(lines.Buffered(), stderr)) //nolint:errcheck // it ends with the process
	return nil
}

// stop ends the process, if there is one.
func (s *server) stop() {
	if s == nil || s.process == nil || s.process.Process == nil {
		return
	}
	s.process.Process.Signal(syscall.SIGTERM)
	tooLate := time.AfterFunc(20*time.Second, func() { s.process.Process.Kill() })
	defer tooLate.Stop()
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
// of reach.
func (s *server) seed(ctx context.Context, name string, workspaces, people int) ([]tenant, error) {
	var file strings.Builder
	file.WriteString("workspaces:\n")
	for w := range workspaces {
		fmt.Fprintf(&file, `
- slug: %s-%d
  api_enabled: true
  people: [{ref: a, email: a@bench.example, name: A, role: admin}]
  api_keys: [{ref: k, owner: a, scopes: [events.send, leads.manage, motions.start], requests_per_minute: 100000000}]
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
			APIKeys   map[string]struct{ Token string } `json:"api_keys"`
			Companies map[string]int64
			Contacts  map[string]int64
		}
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return nil, err
	}
	var tenants []tenant
	for w := range workspaces {
		one := made.Workspaces[fmt.Sprintf("%s-%d", name, w)]
		t := tenant{key: one.APIKeys["k"].Token, people: people}
		for c := range people {
			t.companies = append(t.companies, one.Companies[fmt.Sprintf("c%d", c)])
			t.contacts = append(t.contacts, one.Contacts[fmt.Sprintf("p%d", c)])
		}
		tenants = append(tenants, t)
	}
	// What inlet workspace set does, for thousands at once.
	return tenants, execSQL(ctx, s.url, `update workspace_gates set events_per_minute = 1000000000, events_per_day = 1000000000,
		events_backlog = 1000000000`, `analyze`)
}

// settle waits until the server's jobs have processed what was recorded, so that
// they don't take time from the next measurement, and tells how long that was.
func (s *server) settle(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	for {
		// The naive handler records elsewhere and leaves nothing to be done.
		left, err := querySQL[int](ctx, s.url, `select count(*) from workspace_gates g join event_progress p using (workspace_id)
			where g.last_event_no > p.processed_no`)
		took := time.Since(begun)
		if err != nil || left == 0 {
			return took, err
		}
		if took > 10*time.Minute {
			return took, fmt.Errorf("events of %d workspaces are still to be processed after %v", left, took)
		}
		time.Sleep(20 * time.Millisecond)
	}
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

// tick is the unit that Linux counts the processor time of other processes in.
const tick = time.Second / 100

// processor is the processor time that the process has taken.
func (s *server) processor() time.Duration { return ticks(stat(s.process.Process.Pid), 11, 12) }

// stat gives what Linux counts of a process, from its state on.
func stat(pid int) []string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(raw), ") ") // behind the name, which may hold anything
	return strings.Fields(after)
}

// ticks adds fields of times up.
func ticks(fields []string, which ...int) (total time.Duration) {
	for _, i := range which {
		if i < len(fields) {
			n, _ := strconv.Atoi(fields[i])
			total += time.Duration(n) * tick
		}
	}
	return total
}

// familyProcessor is the processor time of a process and its children, those
// that have ended as well: all of PostgreSQL, if it is the postmaster.
func familyProcessor(parent int) time.Duration {
	total := ticks(stat(parent), 11, 12, 13, 14)
	all, _ := os.ReadDir("/proc")
	for _, entry := range all {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
				total += ticks(fields, 11, 12)
			}
		}
	}
	return total
}

// postmaster is the process of the server's PostgreSQL that all others come from.
func (s *server) postmaster(ctx context.Context) (int, error) {
	return querySQL[int](ctx, s.url, `select split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int`)
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
