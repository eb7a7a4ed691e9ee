package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

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

// execSQL runs statements one by one.
func execSQL(ctx context.Context, url string, statements ...string) error {
	for _, s := range statements {
		if err := execArgs(ctx, url, s); err != nil {
			return err
		}
	}
	return nil
}

func execArgs(ctx context.Context, url, statement string, args ...any) error {
	d, err := sql.Open("postgres", url)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("%.80s: %w", strings.TrimSpace(statement), err)
	}
	return nil
}

// querySQL gives the one value of a statement.
func querySQL[T any](ctx context.Context, url, statement string, args ...any) (value T, err error) {
	d, err := sql.Open("postgres", url)
	if err != nil {
		return value, err
	}
	defer d.Close()
	err = d.QueryRowContext(ctx, statement, args...).Scan(&value)
	return value, err
}

// about says what the measurements rest on.
func (p *postgres) about(ctx context.Context) (string, error) {
	settings, err := querySQL[string](ctx, p.url, `select 'PostgreSQL ' || current_setting('server_version')
		|| ', fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')`)
	if err != nil {
		return "", err
	}
	sync, err := syncTime(p.dir)
	return fmt.Sprintf("%s; the disk syncs 8 kB in %v", settings, sync.Round(time.Microsecond)), err
}

// syncTime is the median time in which the disk takes a page and says that it is
// safe: what a commit waits for, and with it every ratio here, depends on it.
func syncTime(dir string) (time.Duration, error) {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []time.Duration
	page := make([]byte, 8192)
	for range 200 {
		start := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return summary(took).p50, nil
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
	// Writing a line for every transaction would slow many clients down.
	share := "1"
	if clients > 1 {
		share = "0.1"
	}
	out, err := exec.CommandContext(ctx, filepath.Join(p.programs, "pgbench"), "-n", "-M", "prepared", "-f", p.script(),
		"-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(max(1, int(length.Seconds()))),
		"-l", "--sampling-rate="+share, "--log-prefix="+prefix, p.url).CombinedOutput()
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
	copyStreams = 4      // connections that copy at a time
	chunkRows   = 10_000 // in a transaction
)

// copyChunks is how many transactions a connection copies in: enough to take
// some seconds of a measurement of five.
func copyChunks() int { return max(3, int(length.Seconds()*4)) }

// prepareCopy makes tables like those that events are recorded in, partitions
// included, and the rows to be copied, so that only the copying is measured.
func (p *postgres) prepareCopy(ctx context.Context) error {
	if err := execSQL(ctx, p.url, `create schema bench_copy`,
		`create table bench_copy.events (like public.events including all) partition by range (event_no)`,
		`create table bench_copy.event_ids (like public.event_ids including all) partition by range (event_no)`,
		`do $$
		declare p record;
		begin
			for p in
				select c.relname, i.inhparent::regclass as parent, pg_get_expr(c.relpartbound, c.oid) as bounds,
					case i.inhparent when 'event_ids'::regclass then '(primary key (workspace_id, id_hash))' else '' end as keys
				from pg_inherits i join pg_class c on c.oid = i.inhrelid
				where i.inhparent in ('events'::regclass, 'event_ids'::regclass)
			loop
				execute format('create table bench_copy.%I partition of bench_copy.%s %s %s', p.relname, p.parent, p.keys, p.bounds);
			end loop;
		end $$`); err != nil {
		return err
	}
	n := 0
	for stream := range copyStreams {
		var script bytes.Buffer
		for chunk := range copyChunks() {
			var events, ids bytes.Buffer
			for range chunkRows {
				n++
				mix := mixed(n)
				workspace := n%*workspaces + 1
				// 64 in a millisecond, as a busy server would number them.
				number := (time.Now().UnixMilli()+int64(n>>6))<<20 | int64(n&63)
				id := fmt.Sprintf("%x-%d-%d", uint64(1)<<60+mix>>8, stream, n)
				hash := sha256.Sum256([]byte(id))
				contact := `\N`
				if mix%2 == 0 {
					contact = strconv.FormatUint(mix>>20%50, 10)
				}
				fmt.Fprintf(&events, "%d\t%d\t2026-01-01 00:00:00.123+00\t%d\t%s\t\\N\t%d\t%s\t\\N\tc%d.example\t%s\n", workspace, number,
					mix>>20%50, contact, 4*(mix>>30%20), id, mix>>20%50,
					`{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"}`)
				fmt.Fprintf(&ids, "%d\t%x\t%d\n", workspace, hash[:16], number)
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
// write, and counts events. Copying begins with empty tables each time.
func (p *postgres) copyRows(ctx context.Context) (sample, error) {
	if err := execSQL(ctx, p.url, `truncate bench_copy.events, bench_copy.event_ids`); err != nil {
		return sample{}, err
	}
	begun := time.Now()
	var errs [copyStreams]error
	var copying sync.WaitGroup
	for stream := range copyStreams {
		copying.Go(func() {
			if out, err := exec.CommandContext(ctx, filepath.Join(p.programs, "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f",
				p.copyScript(stream), p.url).CombinedOutput(); err != nil {
				errs[stream] = fmt.Errorf("psql: %w: %s", err, out)
			}
		})
	}
	copying.Wait()
	rows := copyStreams * copyChunks() * chunkRows
	return sample{rate: float64(rows) / time.Since(begun).Seconds()}, errors.Join(errs[:]...)
}
