package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver
)

// postgres is the server that everything runs on, with its own client programs.
type postgres struct {
	url, dir string
	programs string // folder of pgbench and psql
}

func newPostgres(url, dir string) (*postgres, error) {
	p := &postgres{url: url, dir: dir}
	found, err := exec.LookPath("pgbench")
	if err != nil {
		all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
		if len(all) == 0 {
			return nil, errors.New("pgbench is not on this machine; it comes with PostgreSQL's server package")
		}
		found = all[len(all)-1]
	}
	p.programs = filepath.Dir(found)
	return p, os.WriteFile(p.script(), []byte("insert into bench_rows (a, b) values (:client_id, repeat('x', 200));\n"), 0o600)
}

func (p *postgres) script() string { return filepath.Join(p.dir, "insert.sql") }

func execSQL(ctx context.Context, url string, statements ...string) error {
	x, err := sqlx.ConnectContext(ctx, "postgres", url)
	if err != nil {
		return err
	}
	defer x.Close()
	for _, s := range statements {
		if _, err := x.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%.80s: %w", strings.TrimSpace(s), err)
		}
	}
	return nil
}

func querySQL[T any](ctx context.Context, url, statement string, args ...any) (value T, err error) {
	x, err := sqlx.ConnectContext(ctx, "postgres", url)
	if err != nil {
		return value, err
	}
	defer x.Close()
	return value, x.GetContext(ctx, &value, statement, args...)
}

// rest waits until the events of a database are processed.
func (p *postgres) rest(ctx context.Context, url string) error {
	for {
		left, err := querySQL[int](ctx, url, `select count(*) from workspace_gates g join event_progress p using (workspace_id)
			where g.last_event_no > p.processed_no`)
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// about says what the measurements rest on.
func (p *postgres) about(ctx context.Context) (string, error) {
	return querySQL[string](ctx, p.url, `select 'PostgreSQL ' || current_setting('server_version')
		|| ', fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')`)
}

var (
	transactions = regexp.MustCompile(`tps = ([0-9.]+)`)
	logged       = regexp.MustCompile(`(?m)^\d+ \d+ (\d+) `)
)

// pgbench commits one inserted row a transaction, which is about the least that
// a durable write can be.
func (p *postgres) pgbench(ctx context.Context, clients int) (sample, error) {
	if err := execSQL(ctx, p.url, `create table if not exists bench_rows
		(n bigint generated always as identity primary key, a int, b text)`); err != nil {
		return sample{}, err
	}
	prefix := filepath.Join(p.dir, "pgbench")
	out, err := exec.CommandContext(ctx, filepath.Join(p.programs, "pgbench"), "-n", "-M", "prepared", "-f", p.script(),
		"-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(max(1, int(length.Seconds()))),
		"-l", "--log-prefix="+prefix, p.url).CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, out)
	}
	found := transactions.FindSubmatch(out)
	if found == nil {
		return sample{}, fmt.Errorf("%s", out)
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
	got := summary(took)
	got.rate, err = strconv.ParseFloat(string(found[1]), 64)
	return got, err
}

const (
	copyStreams = 2 // at a time, one a processor of the smallest machine
	copyChunks  = 10
	chunkRows   = 10_000 // in a transaction
)

// prepareCopy makes tables like those that events are recorded in, and the rows
// to be copied, so that only the copying is measured.
func (p *postgres) prepareCopy(ctx context.Context) error {
	if err := execSQL(ctx, p.url, `create schema bench_copy`,
		`create table bench_copy.events (like events including all) partition by range (event_no)`,
		`create table bench_copy.events_all partition of bench_copy.events default`,
		`create table bench_copy.event_ids (like event_ids) partition by range (event_no)`,
		`create table bench_copy.event_ids_all partition of bench_copy.event_ids (primary key (workspace_id, id_hash)) default`,
	); err != nil {
		return err
	}
	received := time.Now().UnixMilli() << 20
	for stream := range copyStreams {
		var script bytes.Buffer
		for chunk := range copyChunks {
			var events, ids bytes.Buffer
			for range chunkRows {
				received += 1 << 14
				workspace := received >> 14 % int64(*workspaces)
				var hash [16]byte
				rand.Read(hash[:])
				fmt.Fprintf(&events, "%d\t%d\t2026-01-01 00:00:00.123+00\t%d\t%d\t\\N\t%d\t%x\t\\N\tc%d.example\t%s\n", workspace, received,
					received%50, received%50, 4*(received>>14%20), hash[:8], received%50,
					`{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"}`)
				fmt.Fprintf(&ids, "%d\t%x\t%d\n", workspace, hash, received)
			}
			name := func(table string) string { return filepath.Join(p.dir, fmt.Sprintf("%s-%d-%d", table, stream, chunk)) }
			for table, rows := range map[string]*bytes.Buffer{"events": &events, "event_ids": &ids} {
				if err := os.WriteFile(name(table), rows.Bytes(), 0o600); err != nil {
					return err
				}
			}
			fmt.Fprintf(&script, "begin;\n\\copy bench_copy.events from '%s'\n\\copy bench_copy.event_ids from '%s'\ncommit;\n",
				name("events"), name("event_ids"))
		}
		if err := os.WriteFile(p.copyScript(stream), script.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgres) copyScript(stream int) string {
	return filepath.Join(p.dir, fmt.Sprintf("copy-%d.sql", stream))
}

// copyRows copies events and their ids, the same rows that recording them would
// write, and counts events.
func (p *postgres) copyRows(ctx context.Context) (sample, error) {
	if err := execSQL(ctx, p.url, `truncate bench_copy.events, bench_copy.event_ids`); err != nil {
		return sample{}, err
	}
	begun := time.Now()
	var errs [copyStreams]error
	var copying sync.WaitGroup
	for stream := range copyStreams {
		copying.Go(func() {
			if out, err := exec.CommandContext(ctx, filepath.Join(p.programs, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f",
				p.copyScript(stream), p.url).CombinedOutput(); err != nil {
				errs[stream] = fmt.Errorf("psql: %w: %s", err, out)
			}
		})
	}
	copying.Wait()
	elapsed := time.Since(begun)
	return sample{rate: copyStreams * copyChunks * chunkRows / elapsed.Seconds()}, errors.Join(slices.Clone(errs[:])...)
}
