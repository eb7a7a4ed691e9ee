// Command bench measures the running server over HTTP against what the same
// PostgreSQL can do at all. Server and reference points run in turn, round by
// round, on one private PostgreSQL with fsync and synchronous_commit on, and the
// load generator shares the machine with them: ratios, medians over the rounds
// of the ratio within a round, are what to quote.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/inletdev/inlet/db"
)

var (
	program    = flag.String("inlet", "bin/inlet", "the server to measure")
	rounds     = flag.Int("rounds", 3, "rounds, of which the median is printed")
	length     = flag.Duration("length", 5*time.Second, "of one measurement")
	workspaces = flag.Int("workspaces", 20, "workspaces that the events are spread over")
	many       = flag.Int("many", 2000, "workspaces of the one figure that is spread over many")
	only       = flag.String("only", "", "measure the figures whose name matches this regular expression")
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
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	// Fewer would leave a workspace, a day or a page of what is stored empty.
	if *rounds < 1 || *length < 100*time.Millisecond || *workspaces < 2 || *many < 1 || *stored < 10_000 {
		return errors.New("want at least 1 round, 100ms, 2 workspaces and 10000 stored events")
	}
	b := &bench{ctx: ctx, results: make(map[string][]sample)}
	for _, f := range figures() {
		if chosen.MatchString(f.title()) && (*full || !f.stored) {
			b.figures = append(b.figures, f)
		}
	}
	if len(b.figures) == 0 {
		return errors.New("no figure matches -only")
	}
	// Not /tmp, which may be kept in memory, where a commit waits for nothing.
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv("TMPDIR"), "/var/tmp"), "inlet-bench")
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
	defer leave(embedded)
	if b.pg, err = newPostgres(embedded.URL(), dir); err != nil {
		return err
	}
	defer b.stop()
	if b.about, err = b.pg.about(ctx); err != nil {
		return err
	}
	// What was measured is worth printing even if the rest fails.
	err = b.measureAll()
	b.report()
	return err
}

// leave stops PostgreSQL and removes its folder of sockets, which lies outside
// of the data folder.
func leave(embedded *db.Embedded) {
	if err := embedded.Stop(); err != nil {
		log.Print("bench: ", err)
		return
	}
	if address, err := url.Parse(embedded.URL()); err == nil {
		os.Remove(address.Query().Get("host"))
	}
}

// A sample is what one measurement gave.
type sample struct {
	rate                float64 // a second
	p50, p99, p999, max time.Duration
	gap                 time.Duration // longest time without an answer
	memory              int64         // largest of the server meanwhile, bytes
	allocations         float64       // of the server, a request
	serverCPU           time.Duration // a request
	postgresCPU         time.Duration // a request
	loadCPU             time.Duration // of the load generator, a request
	offered             float64       // a second, where more were sent than were served
	shed                float64       // the part of them that was turned away
	backlog             time.Duration // what the server's jobs still took afterwards

	stored, storedIDs, logged, fullPages float64 // bytes an event
	connections, connectionMemory        float64 // of the server; bytes of each
}

// A measurement is taken once a round, or once.
type measurement struct {
	name  string
	needs []string // measurements of the same round that come before it
	once  bool
	do    func(round int) (sample, error)
}

type bench struct {
	ctx     context.Context
	pg      *postgres
	about   string
	figures []figure
	server  *server
	naive   *server
	many    []tenant
	all     *server // with all of the stored events
	tenth   *server // with a tenth of them
	few     *server // with few contacts
	lots    *server // with many
	motions *server // with entries and steps
	results map[string][]sample
}

func (b *bench) stop() {
	for _, s := range []*server{b.server, b.naive, b.all, b.tenth, b.few, b.lots, b.motions} {
		s.stop()
	}
}

// measureAll takes the measurements that the chosen figures rest on, each
// reference next to what is compared with it.
func (b *bench) measureAll() error {
	fresh, withLeads, withMotions, withStored := b.chosen(b.fresh()), b.chosen(b.withLeads()), b.chosen(b.withMotions()), b.chosen(b.withStored())
	if len(fresh) > 0 {
		if err := b.prepare(names(fresh)); err != nil {
			return err
		}
		if err := b.take(fresh); err != nil {
			return err
		}
	}
	if len(withLeads) > 0 {
		if err := b.storeLeads(names(withLeads)); err != nil {
			return err
		}
		if err := b.take(withLeads); err != nil {
			return err
		}
	}
	if len(withMotions) > 0 {
		if err := b.prepareMotions(); err != nil {
			return err
		}
		if err := b.take(withMotions); err != nil {
			return err
		}
	}
	if len(withStored) > 0 {
		if err := b.store(names(withStored)); err != nil {
			return err
		}
		return b.take(withStored)
	}
	return nil
}

// chosen gives those of the measurements that the figures rest on, in order.
func (b *bench) chosen(all []measurement) []measurement {
	wanted := make(map[string]bool)
	for _, f := range b.figures {
		wanted[f.of] = true
		wanted[f.to] = f.to != "" || wanted[f.to]
	}
	var chosen []measurement
	for i := len(all) - 1; i >= 0; i-- { // what is needed comes before
		if m := all[i]; wanted[m.name] {
			for _, name := range m.needs {
				wanted[name] = true
			}
			chosen = append([]measurement{m}, chosen...)
		}
	}
	return chosen
}

func names(all []measurement) map[string]bool {
	set := make(map[string]bool)
	for _, m := range all {
		set[m.name] = true
	}
	return set
}

func (b *bench) take(all []measurement) error {
	for round := range *rounds {
		for _, m := range all {
			if err := b.ctx.Err(); err != nil {
				return err
			}
			if m.once && round > 0 {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, *rounds, m.name)
			got, err := m.do(round)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			b.results[m.name] = append(b.results[m.name], got)
		}
	}
	return nil
}

// prepare starts what the measurements on fresh tables need.
func (b *bench) prepare(wanted map[string]bool) (err error) {
	if b.server, err = startServer(b.ctx, b.pg.url, *workspaces, 50); err != nil {
		return err
	}
	if wanted["naive 64"] {
		if b.naive, err = startNaive(b.ctx, b.pg, b.server.tenants); err != nil {
			return err
		}
	}
	if wanted["many 256"] {
		fmt.Fprintf(os.Stderr, "seeding %d workspaces\n", *many)
		if b.many, err = b.server.seed(b.ctx, "many", *many, 5); err != nil {
			return err
		}
	}
	if wanted["copy"] {
		if err := b.pg.prepareCopy(b.ctx); err != nil {
			return err
		}
	}
	// What seeding wrote is not to be written out during the first measurement.
	return execSQL(b.ctx, b.pg.url, `checkpoint`)
}

// fresh is what is measured on tables that hold little but what the
// measurements themselves write.
func (b *bench) fresh() []measurement {
	closed := func(clients int, t traffic) func(int) (sample, error) {
		return func(int) (sample, error) { return b.server.closed(b.ctx, b.server.tenants, clients, t) }
	}
	own := func() *server { return b.server }
	return append([]measurement{
		{name: "pgbench 64", do: func(int) (sample, error) { return b.pg.pgbench(b.ctx, 64) }},
		{name: "singles 64", do: closed(64, single)},
		{name: "naive 64", do: func(int) (sample, error) { return b.naive.closed(b.ctx, b.naive.tenants, 64, single) }},
		{name: "singles 256", do: closed(256, single)},
		{name: "open", needs: []string{"singles 256"}, do: func(round int) (sample, error) {
			return b.server.open(b.ctx, 256, b.results["singles 256"][round].rate/2, *length, nil)
		}},
		{name: "singles 1024", do: closed(1024, single)},
		{name: "many 256", do: func(int) (sample, error) { return b.server.closed(b.ctx, b.many, 256, single) }},
		{name: "copy", do: func(int) (sample, error) { return b.pg.copyRows(b.ctx) }},
		{name: "batches 32", do: closed(32, batch)},
		{name: "pgbench 1", do: func(int) (sample, error) { return b.pg.pgbench(b.ctx, 1) }},
		{name: "singles 1", do: closed(1, single)},
		{name: "batches 1", do: closed(1, batch)},
	}, slices.Concat(b.capacity(), b.overloads("singles", "singles 256", own, single), b.overloads("batches", "batches 32", own, batch))...)
}
