// Command bench measures the running server over HTTP against what the same
// PostgreSQL can do at all: pgbench committing one inserted row a transaction.
// Both run in turn, round by round, on one private PostgreSQL with fsync and
// synchronous_commit on; ratios and medians of the rounds are what to quote.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inletdev/inlet/db"
)

var (
	binary     = flag.String("inlet", "bin/inlet", "the server to measure")
	rounds     = flag.Int("rounds", 3, "rounds, of which the median is printed")
	length     = flag.Duration("length", 5*time.Second, "of one measurement")
	workspaces = flag.Int("workspaces", 20, "workspaces that the events are spread over")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal("bench: ", err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("/tmp", "inlet-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	postgres, err := db.StartEmbedded(ctx, filepath.Join(dir, "data"), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer postgres.Stop()
	s, err := serve(ctx, postgres.URL())
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.seed(ctx); err != nil {
		return err
	}
	pgbench, err := findPgbench()
	if err != nil {
		return err
	}
	insert := filepath.Join(dir, "insert.sql")
	if err := os.WriteFile(insert, []byte("insert into bench_rows (a, b) values (:client_id, repeat('x', 200));\n"), 0o644); err != nil {
		return err
	}

	measurements := []*measurement{
		{name: "pgbench, one row a commit", clients: 64, do: func(m *measurement) (sample, error) {
			return runPgbench(ctx, pgbench, insert, postgres.URL(), m.clients)
		}},
		{name: "single events", clients: 64, against: 0, do: s.singles},
		{name: "single events", clients: 256, against: 0, do: s.singles},
		{name: "single events", clients: 1024, against: 0, do: s.singles},
		{name: "batches of 100", clients: 32, against: -1, do: s.batches},
		{name: "pgbench, one row a commit", clients: 1, do: func(m *measurement) (sample, error) {
			return runPgbench(ctx, pgbench, insert, postgres.URL(), m.clients)
		}},
		{name: "single events", clients: 1, against: 5, do: s.singles},
	}
	for round := range *rounds {
		for _, m := range measurements {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s, %d clients\n", round+1, *rounds, m.name, m.clients)
			got, err := m.do(m)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			m.samples = append(m.samples, got)
		}
	}
	report(measurements, s)
	return nil
}

// A measurement is one row of the table. against is the row it is a ratio of;
// -1 for none.
type measurement struct {
	name    string
	clients int
	against int
	do      func(*measurement) (sample, error)
	samples []sample
}

type sample struct {
	rate     float64 // a second
	p50, p99 time.Duration
}

func median(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func report(all []*measurement, s *server) {
	fmt.Printf("\n%s, %d processors, %s, median of %d rounds of %v, %d workspaces\n\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), runtime.Version(), *rounds, *length, *workspaces)
	fmt.Println("| figure | clients | a second | ratio | p50 ms | p99 ms |")
	fmt.Println("|---|---|---|---|---|---|")
	rate := func(s sample) float64 { return s.rate }
	for i, m := range all {
		ratio := ""
		if m.against >= 0 && i != m.against {
			var ratios []sample
			for k := range m.samples {
				ratios = append(ratios, sample{rate: m.samples[k].rate / all[m.against].samples[k].rate})
			}
			ratio = fmt.Sprintf("%.2f", median(ratios, rate))
		}
		if strings.HasPrefix(m.name, "pgbench") {
			ratio = ""
		}
		fmt.Printf("| %s | %d | %.0f | %s | %.2f | %.2f |\n", m.name, m.clients, median(m.samples, rate), ratio,
			median(m.samples, func(s sample) float64 { return float64(s.p50.Microseconds()) / 1000 }),
			median(m.samples, func(s sample) float64 { return float64(s.p99.Microseconds()) / 1000 }))
	}
	fmt.Printf("\nlargest memory of the server: %s\n", s.memory())
}

// A server is the process that is measured.
type server struct {
	process *exec.Cmd
	base    string
	url     string
	keys    []string
	sent    atomic.Int64
	client  *http.Client
}

func serve(ctx context.Context, databaseURL string) (*server, error) {
	s := &server{url: databaseURL, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 2048, MaxConnsPerHost: 2048,
	}}}
	s.process = exec.CommandContext(ctx, *binary, "serve")
	s.process.Env = append(os.Environ(), "DATABASE_URL="+databaseURL, "INLET_LISTEN=127.0.0.1:0")
	stderr, err := s.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	lines := json.NewDecoder(stderr)
	for s.base == "" {
		var line struct{ Msg, Addr string }
		if err := lines.Decode(&line); err != nil {
			return nil, fmt.Errorf("the server does not serve: %w", err)
		}
		if line.Msg == "serving" {
			s.base = "http://" + line.Addr
		}
	}
	go io.Copy(io.Discard, stderr)
	return s, nil
}

func (s *server) stop() {
	s.process.Process.Signal(os.Interrupt)
	s.process.Wait()
}

// memory is the most that the process has had resident.
func (s *server) memory() string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return "unknown"
	}
	if found := regexp.MustCompile(`VmHWM:\s+(.*)`).FindSubmatch(raw); found != nil {
		return string(found[1])
	}
	return "unknown"
}

func (s *server) command(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, *binary, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

// seed makes the workspaces, each with companies and people to match, and room
// for the load.
func (s *server) seed(ctx context.Context) error {
	var file strings.Builder
	file.WriteString("workspaces:\n")
	for w := range *workspaces {
		fmt.Fprintf(&file, `
- slug: bench-%d
  people: [{ref: a, email: a@bench.example, name: A, role: admin}]
  api_keys: [{ref: k, owner: a, scopes: [events.send], requests_per_minute: 100000000}]
  event_types: [{name: blocked_event, status: blocked}]
  companies:
`, w)
		for c := range 50 {
			fmt.Fprintf(&file, "  - {ref: c%d, name: Company %d, domain: c%d.example}\n", c, c, c)
		}
		file.WriteString("  contacts:\n")
		for c := range 50 {
			fmt.Fprintf(&file, "  - {ref: p%d, email: p%d@c%d.example, company: c%d}\n", c, c, c, c)
		}
		file.WriteString("  visitors:\n")
		for c := range 50 {
			fmt.Fprintf(&file, "  - {id: v-%d, identified_as: p%d}\n", c, c)
		}
	}
	out, err := s.command(ctx, file.String(), "seed", "-", "--json")
	if err != nil {
		return err
	}
	var made struct {
		Workspaces map[string]struct {
			APIKeys map[string]struct{ Token string } `json:"api_keys"`
		}
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return err
	}
	for slug, w := range made.Workspaces {
		if _, err := s.command(ctx, "", "workspace", "set", slug, "--events-per-minute=100000000", "--events-per-day=1000000000"); err != nil {
			return err
		}
		s.keys = append(s.keys, w.APIKeys["k"].Token)
	}
	return nil
}

// event makes one event: all kinds of references, one in ten a repeat, one in
// fifty refused.
func (s *server) event(b *bytes.Buffer, workspace int) {
	n := s.sent.Add(1)
	if rand.IntN(10) == 0 {
		n = max(1, n-int64(rand.IntN(5000)))
	}
	name := "event_" + strconv.Itoa(int(n%20))
	if rand.IntN(50) == 0 {
		name = "blocked_event"
	}
	fmt.Fprintf(b, `{"id":"b%d-%d","name":"%s",`, workspace, n, name)
	switch i := n % 60; n % 5 {
	case 0:
		fmt.Fprintf(b, `"company":{"domain":"www.c%d.example"}`, i)
	case 1:
		fmt.Fprintf(b, `"contact":{"email":"p%d@c%d.example"}`, i, i)
	case 2:
		fmt.Fprintf(b, `"visitor":{"id":"v-%d"}`, i)
	case 3:
		fmt.Fprintf(b, `"company":{"domain":"c%d.example"},"visitor":{"id":"v-%d"}`, i, i)
	default:
		fmt.Fprintf(b, `"company":{"domain":"nobody-%d.example"}`, i)
	}
	b.WriteString(`,"properties":{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"}}`)
}

func (s *server) singles(m *measurement) (sample, error) {
	return s.load(m.clients, "/api/v1/events", 1, s.event)
}

func (s *server) batches(m *measurement) (sample, error) {
	return s.load(m.clients, "/api/v1/events/batch", 100, func(b *bytes.Buffer, workspace int) {
		b.WriteString(`{"events":[`)
		for i := range 100 {
			if i > 0 {
				b.WriteByte(',')
			}
			s.event(b, workspace)
		}
		b.WriteString(`]}`)
	})
}

// load has so many clients send one request after the other.
func (s *server) load(clients int, path string, events int, body func(*bytes.Buffer, int)) (sample, error) {
	var (
		mu    sync.Mutex
		took  []time.Duration
		wrong error
	)
	begun := time.Now()
	until := begun.Add(*length)
	var sending sync.WaitGroup
	for client := range clients {
		sending.Go(func() {
			var own []time.Duration
			var b bytes.Buffer
			workspace := client % len(s.keys)
			for time.Now().Before(until) {
				b.Reset()
				body(&b, workspace)
				start := time.Now()
				err := s.send(path, s.keys[workspace], b.Bytes())
				own = append(own, time.Since(start))
				if err != nil {
					mu.Lock()
					wrong = err
					mu.Unlock()
					return
				}
			}
			mu.Lock()
			took = append(took, own...)
			mu.Unlock()
		})
	}
	sending.Wait()
	if wrong != nil {
		return sample{}, wrong
	}
	slices.Sort(took)
	return sample{
		rate: float64(len(took)*events) / time.Since(begun).Seconds(),
		p50:  took[len(took)/2], p99: took[len(took)*99/100],
	}, nil
}

func (s *server) send(path, key string, body []byte) error {
	r, err := http.NewRequest(http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusAccepted && response.StatusCode != http.StatusUnprocessableEntity {
		return fmt.Errorf("%d %s", response.StatusCode, answer)
	}
	return nil
}

func findPgbench() (string, error) {
	if found, err := exec.LookPath("pgbench"); err == nil {
		return found, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", errors.New("pgbench is not on this machine; it comes with PostgreSQL's server package")
	}
	return found[len(found)-1], nil
}

var (
	transactions = regexp.MustCompile(`tps = ([0-9.]+)`)
	logged       = regexp.MustCompile(`(?m)^\d+ \d+ (\d+) `)
)

func runPgbench(ctx context.Context, program, script, url string, clients int) (sample, error) {
	psql := filepath.Join(filepath.Dir(program), "psql")
	if err := exec.CommandContext(ctx, psql, "-q", url, "-c",
		"create table if not exists bench_rows (n bigint generated always as identity primary key, a int, b text)").Run(); err != nil {
		return sample{}, fmt.Errorf("psql: %w", err)
	}
	prefix := strings.TrimSuffix(script, ".sql") + "-log"
	out, err := exec.CommandContext(ctx, program, "-n", "-M", "prepared", "-f", script, "-c", strconv.Itoa(clients),
		"-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(max(1, int(length.Seconds()))), "-l", "--log-prefix="+prefix, url).CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	found := transactions.FindSubmatch(out)
	if found == nil {
		return sample{}, fmt.Errorf("pgbench: %s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return sample{}, err
	}
	var took []time.Duration
	logs, _ := filepath.Glob(prefix + ".*")
	for _, name := range logs {
		raw, err := os.ReadFile(name)
		if err != nil {
			return sample{}, err
		}
		for _, line := range logged.FindAllSubmatch(raw, -1) {
			us, _ := strconv.Atoi(string(line[1]))
			took = append(took, time.Duration(us)*time.Microsecond)
		}
		os.Remove(name)
	}
	slices.Sort(took)
	if len(took) == 0 {
		return sample{rate: rate}, nil
	}
	return sample{rate: rate, p50: took[len(took)/2], p99: took[len(took)*99/100]}, nil
}
