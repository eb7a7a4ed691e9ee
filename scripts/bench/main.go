// Command bench measures the running server over HTTP against what the same
// PostgreSQL can do at all. Server and reference points run in turn, round by
// round, on one private PostgreSQL with fsync and synchronous_commit on, and the
// load generator shares the machine with them: ratios, medians over the rounds,
// are what to quote.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/inletdev/inlet/db"
)

var (
	program    = flag.String("inlet", "bin/inlet", "the server to measure")
	rounds     = flag.Int("rounds", 3, "rounds, of which the median is printed")
	length     = flag.Duration("length", 5*time.Second, "of one measurement")
	workspaces = flag.Int("workspaces", 10, "workspaces that the events are spread over")
	full       = flag.Bool("full", true, "measure with stored events as well")
	stored     = flag.Int("stored", 10_000_000, "events stored for that, three tenths of them in one workspace")
)

func main() {
	log.SetFlags(0)
	if address := os.Getenv("INLET_BENCH_NAIVE"); address != "" {
		log.Fatal(serveNaive(address, os.Getenv("DATABASE_URL")))
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal("bench: ", err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "inlet-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	embedded, err := db.StartEmbedded(ctx, filepath.Join(dir, "data"), slog.New(slog.DiscardHandler), "-c max_connections=200")
	if err != nil {
		return err
	}
	defer embedded.Stop()
	pg, err := newPostgres(embedded.URL(), dir)
	if err != nil {
		return err
	}
	b := &bench{ctx: ctx, pg: pg, results: make(map[string][]sample)}
	defer b.stop()
	if b.server, err = startServer(ctx, pg.url, *workspaces, 50); err != nil {
		return err
	}
	if b.naive, err = startNaive(ctx, pg, b.server.keys); err != nil {
		return err
	}
	if b.many, err = manyWorkspaces(ctx, b.server); err != nil {
		return err
	}
	if err := pg.prepareCopy(ctx); err != nil {
		return err
	}
	for round := range *rounds {
		if err := b.round(round); err != nil {
			return err
		}
	}
	if *full {
		if err := b.withStored(); err != nil {
			return err
		}
	}
	return b.report()
}

// A sample is what one measurement gave.
type sample struct {
	rate          float64 // a second
	p50, p99, max time.Duration
	memory        int64   // largest of the server meanwhile, bytes
	allocations   float64 // of the server, a request
}

type bench struct {
	ctx     context.Context
	pg      *postgres
	server  *server
	naive   *server
	many    []string // keys of many workspaces
	results map[string][]sample
	notes   []string
}

func (b *bench) stop() {
	for _, s := range []*server{b.server, b.naive} {
		if s != nil {
			s.stop()
		}
	}
}

// measure does a measurement and keeps what it gave under its name.
func (b *bench) measure(round int, name string, do func() (sample, error)) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	// What one measurement leaves to the workers must not slow down the next.
	if err := b.pg.rest(b.ctx, b.server.url); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "round %d: %s\n", round+1, name)
	got, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.results[name] = append(b.results[name], got)
	return nil
}

// round takes every measurement once, each reference next to what is compared
// with it.
func (b *bench) round(round int) error {
	s := b.server
	for _, m := range []struct {
		name string
		do   func() (sample, error)
	}{
		{"pgbench 64", func() (sample, error) { return b.pg.pgbench(b.ctx, 64) }},
		{"singles 64", func() (sample, error) { return s.closed(b.ctx, s.keys, 64, single) }},
		{"singles 256", func() (sample, error) { return s.closed(b.ctx, s.keys, 256, single) }},
		{"singles 1024", func() (sample, error) { return s.closed(b.ctx, s.keys, 1024, single) }},
		{"many 256", func() (sample, error) { return s.closed(b.ctx, b.many, 256, single) }},
		{"naive 64", func() (sample, error) { return b.naive.closed(b.ctx, b.naive.keys, 64, single) }},
		{"copy", func() (sample, error) { return b.pg.copyRows(b.ctx) }},
		{"batches 32", func() (sample, error) { return s.closed(b.ctx, s.keys, 32, batch) }},
		{"pgbench 1", func() (sample, error) { return b.pg.pgbench(b.ctx, 1) }},
		{"singles 1", func() (sample, error) { return s.closed(b.ctx, s.keys, 1, single) }},
		{"open", func() (sample, error) {
			return s.open(b.ctx, s.keys, 256, b.results["singles 256"][round].rate/2, *length, nothing)
		}},
	} {
		if err := b.measure(round, m.name, m.do); err != nil {
			return err
		}
	}
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// of gives the median over the rounds of a figure of a measurement.
func (b *bench) of(name string, figure func(sample) float64) float64 {
	var all []float64
	for _, s := range b.results[name] {
		all = append(all, figure(s))
	}
	return median(all)
}

// ratio gives the median over the rounds of the ratio of two measurements.
func (b *bench) ratio(name, to string, figure func(sample) float64) float64 {
	var all []float64
	for i, s := range b.results[name] {
		all = append(all, figure(s)/figure(b.results[to][i]))
	}
	return median(all)
}

func rate(s sample) float64 { return s.rate }
func p50(s sample) float64  { return float64(s.p50) / float64(time.Millisecond) }
func p99(s sample) float64  { return float64(s.p99) / float64(time.Millisecond) }

func (b *bench) report() error {
	about, err := b.pg.about(b.ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %d processors (%s), %s, %s; median of %d rounds of %v; %d workspaces; `make bench`\n\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), processor(), runtime.Version(), about, *rounds, *length, *workspaces)
	var lines []string
	line := func(figure, value, target string) { lines = append(lines, "| "+figure+" | "+value+" | "+target+" |") }
	line("figure", "measured", "at least")
	line("---", "---", "---")
	latency := func(name string) string {
		return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", b.of(name, p50), b.of(name, p99))
	}
	line("pgbench, one inserted row a commit, 64 clients", fmt.Sprintf("%.0f/s", b.of("pgbench 64", rate)), "")
	for _, f := range []struct {
		clients int
		target  string
	}{{64, "0.65"}, {256, "0.75"}, {1024, "0.9"}} {
		name := fmt.Sprintf("singles %d", f.clients)
		line(fmt.Sprintf("single events, %d clients, over pgbench with 64", f.clients),
			fmt.Sprintf("**%.2f** (%.0f/s, %s)", b.ratio(name, "pgbench 64", rate), b.of(name, rate), latency(name)), f.target)
	}
	line(fmt.Sprintf("single events, 256 clients, spread over %d workspaces, over pgbench with 64", len(b.many)),
		fmt.Sprintf("**%.2f** (%.0f/s, %s)", b.ratio("many 256", "pgbench 64", rate), b.of("many 256", rate), latency("many 256")), "")
	line("single events, 64 clients, over a naive handler",
		fmt.Sprintf("**%.1f** (naive %.0f/s, %s)", b.ratio("singles 64", "naive 64", rate), b.of("naive 64", rate), latency("naive 64")), "12")
	line("batches of 100, 32 clients, over COPY into the same tables",
		fmt.Sprintf("**%.2f** (%.0f events/s, %s; COPY %.0f/s)", b.ratio("batches 32", "copy", rate),
			b.of("batches 32", rate), latency("batches 32"), b.of("copy", rate)), "0.33")
	line("one client, single event: p50 over pgbench's with one client",
		fmt.Sprintf("**%.1f** (%.2f ms, pgbench %.2f ms)", b.ratio("singles 1", "pgbench 1", p50), b.of("singles 1", p50), b.of("pgbench 1", p50)), "≤ 3")
	var tails []float64
	for _, s := range b.results["open"] {
		tails = append(tails, float64(s.p99)/float64(s.p50))
	}
	line("open loop at half of the rate of 256 clients: p99 over p50",
		fmt.Sprintf("**%.1f** (%.0f/s, %s)", median(tails), b.of("open", rate), latency("open")), "≤ 6")
	line("memory of the server, 1,024 clients",
		fmt.Sprintf("**%.0f MB**", b.of("singles 1024", func(s sample) float64 { return float64(s.memory) / 1e6 })), "≤ 200 MB")
	line("heap allocations of the server a single event, 64 and 256 clients, everything in the process included",
		fmt.Sprintf("**%.0f and %.0f**", b.of("singles 64", func(s sample) float64 { return s.allocations }),
			b.of("singles 256", func(s sample) float64 { return s.allocations })), "≤ 60")
	if *full {
		line(fmt.Sprintf("single events, 256 clients, with %s stored over with %s stored", millions(*stored), millions(*stored/10)),
			fmt.Sprintf("**%.2f** (%.0f/s and %.0f/s)", b.ratio("stored all", "stored tenth", rate), b.of("stored all", rate), b.of("stored tenth", rate)), "0.8")
		large := millions(*stored * 3 / 10)
		line(fmt.Sprintf("page at depth 90 %% of %s events over the first page", large),
			fmt.Sprintf("**%.2f** (%.2f ms and %.2f ms)", b.ratio("page deep", "page first", p50), b.of("page deep", p50), b.of("page first", p50)), "≤ 1.2")
		for _, filter := range listFilters {
			name := "list " + filter.name
			line(fmt.Sprintf("page and exact total of %s events, %s", large, filter.name),
				fmt.Sprintf("**%.2f ms** (p99 %.2f ms)", b.of(name, p50), b.of(name, p99)), "≤ 10 ms")
		}
		line("expiry of a day of 333,000 events: longest pause of ingest",
			fmt.Sprintf("**%.0f ms** (%.0f ms in the same time without)", float64(b.results["expiry"][0].max.Milliseconds()),
				float64(b.results["no expiry"][0].max.Milliseconds())), "≤ 100 ms")
	}
	fmt.Println(strings.Join(lines, "\n"))
	for _, note := range b.notes {
		fmt.Println("\n" + note)
	}
	return nil
}

func millions(n int) string { return fmt.Sprintf("%.3g million", float64(n)/1e6) }

// processor gives the name of the machine's processor.
func processor() string {
	raw, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t: "))
		}
	}
	return runtime.GOARCH
}
