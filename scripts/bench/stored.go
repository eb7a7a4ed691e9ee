package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/lib/pq"
)

// listFilters are the lists that are measured. The statuses are those of ts, the
// column that an event keeps its type and status in.
var listFilters = []struct{ name, query, where string }{
	{"no filter", "", "true"},
	{"of a name", "name=event_3", "type = 'event_3'"},
	{"accepted", "status=accepted", "status = 0"},
	{"unmatched", "status=unmatched", "status = 1"},
	{"of a name, unmatched", "name=event_3&status=unmatched", "type = 'event_3' and status = 1"},
}

const (
	expiryClients = 64
	expiryRate    = 2000 // events a second
	expiryRows    = 333_000
)

// store starts the servers that the measurements need, each on a database of its
// own: one with all of the stored events, one with a tenth.
func (b *bench) store(wanted map[string]bool) (err error) {
	if wanted["stored tenth"] {
		if b.tenth, err = b.filled("stored_tenth", *stored/10); err != nil {
			return err
		}
	}
	b.all, err = b.filled("stored_all", *stored)
	return err
}

// withStored is what is measured on many stored events.
func (b *bench) withStored() []measurement {
	all := []measurement{
		{name: "stored tenth", do: func(int) (sample, error) { return b.tenth.closed(b.ctx, b.tenth.tenants, 256, single) }},
		{name: "stored all", do: func(int) (sample, error) { return b.all.closed(b.ctx, b.all.tenants, 256, single) }},
		{name: "page first", do: func(int) (sample, error) { return b.all.list(b.ctx, "limit=50") }},
		{name: "page deep", do: func() func(int) (sample, error) {
			var cursor string
			return func(int) (got sample, err error) {
				if cursor == "" {
					if cursor, err = b.all.deepCursor(b.ctx); err != nil {
						return got, err
					}
				}
				return b.all.list(b.ctx, "limit=50&cursor="+url.QueryEscape(cursor))
			}
		}()},
	}
	for _, filter := range listFilters {
		all = append(all, measurement{name: "list " + filter.name, do: func(round int) (sample, error) {
			if round == 0 {
				if err := b.all.checkTotal(b.ctx, filter.query, filter.where); err != nil {
					return sample{}, err
				}
			}
			return b.all.list(b.ctx, filter.query)
		}})
	}
	return append(all,
		measurement{name: "no expiry", do: func(int) (sample, error) {
			return b.all.open(b.ctx, expiryClients, expiryRate, 2**length, nil)
		}},
		measurement{name: "expiry", do: func(int) (sample, error) { return b.all.expiry(b.ctx) }},
	)
}

// pastPartitions are those of the 30 days that are filled, made as
// ensure_event_partitions makes those of the days to come.
const pastPartitions = `
	do $$
	declare
		today constant bigint := floor(extract(epoch from inlet_now()) / 86400);
		wanted record;
	begin
		for wanted in
			select 'events' as parent, '' as keys, 1 as days, day from generate_series(today - 30, today) day
			union all
			select 'event_ids', ', primary key (workspace_id, id_hash)', 30, span * 30
			from generate_series((today - 30) / 30, today / 30) span
		loop
			declare
				partition constant text := wanted.parent || '_'
					|| to_char(to_timestamp(wanted.day * 86400) at time zone 'UTC', 'YYYYMMDD');
			begin
				if to_regclass(partition) is null then
					execute format('create table %I (like %I including constraints%s)', partition, wanted.parent, wanted.keys);
					execute format('alter table %I attach partition %I for values from (%s) to (%s)', wanted.parent, partition,
						wanted.day * (86400000::bigint << 20), (wanted.day + wanted.days) * (86400000::bigint << 20));
				end if;
			end;
		end loop;
	end $$`

// storeEvents writes events $1 to $2 of $3 as record_events would have, evenly
// over the 30 days up to the millisecond $5; three in ten are of the first of
// the workspaces $4. Properties and references are those of the load.
const storeEvents = `
	with made as materialized (
		select w, (($5::bigint - 2591400000 + n * 2591400000 / $3::bigint) << 20) | n % 1048576 as event_no,
			'stored-' || w || '-' || n as id, n
		from (
			select n, ($4::bigint[])[case when n % 10 < 3 then 1 else 2 + n % (cardinality($4::bigint[]) - 1) end] as w
			from generate_series($1::bigint, $2::bigint) n
		) numbered
	), ids as (
		insert into event_ids (workspace_id, id_hash, event_no)
		select w, encode(substring(sha256(id::bytea) for 16), 'hex')::uuid, event_no from made
	)
	insert into events (workspace_id, event_no, occurred_at, company_id, ts, id, domain_hint, properties)
	select w, event_no, to_timestamp((event_no >> 20) / 1000.0),
		case when n % 7 < 5 then (select min(company_id) from companies where workspace_id = w) + n % 50 end,
		t.event_type_id * 4 + case when n % 7 < 5 then 0 when n % 7 = 5 then 1 else 2 end, id, 'c1.example',
		'{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"}'
	from made join event_types t on t.workspace_id = w and t.name = 'event_' || n / 10 % 20`

// filled gives a server on a database with so many events of the last 30 days,
// three tenths of them in the first workspace. The server itself counts them and
// makes their facts.
func (b *bench) filled(name string, events int) (*server, error) {
	fmt.Fprintf(os.Stderr, "storing %s events\n", millions(events))
	begun := time.Now()
	if err := execSQL(b.ctx, b.pg.url, `create database `+name); err != nil {
		return nil, err
	}
	address, err := url.Parse(b.pg.url)
	if err != nil {
		return nil, err
	}
	address.Path = "/" + name
	s := &server{url: address.String()}
	if s.tenants, err = s.seed(b.ctx, "bench", *workspaces, 50); err != nil {
		return nil, err
	}
	if err := execSQL(b.ctx, s.url, pastPartitions,
		`insert into event_types (workspace_id, event_type_id, name, label)
			select workspace_id, 2 + n, 'event_' || n, 'Event ' || n from workspaces, generate_series(0, 19) n`); err != nil {
		return nil, err
	}
	ids, err := querySQL[pq.Int64Array](b.ctx, s.url, `select array_agg(workspace_id order by workspace_id) from workspaces`)
	if err != nil {
		return nil, err
	}
	newest := time.Now().UnixMilli()
	const portion = 250_000
	for from := 1; from <= events; from += portion {
		if err := execArgs(b.ctx, s.url, storeEvents, from, min(from+portion-1, events), events, ids, newest); err != nil {
			return nil, err
		}
	}
	// accepted_events of the gate bound the backlog together with what the jobs
	// make of them.
	if err := execSQL(b.ctx, s.url, `vacuum analyze`,
		`update workspace_gates g set last_event_no = greatest(g.last_event_no, e.newest), accepted_events = e.accepted
			from (select workspace_id, max(event_no) as newest, count(*) filter (where ts & 3 = 0) as accepted
				from events group by 1) e
			where e.workspace_id = g.workspace_id`); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "stored in %v; the server counts them\n", time.Since(begun).Round(time.Second))
	if err := s.serve(); err != nil {
		return nil, err
	}
	took, err := s.settle(b.ctx)
	if err == nil {
		fmt.Fprintf(os.Stderr, "counted in %v\n", took.Round(time.Second))
		err = execSQL(b.ctx, s.url, `vacuum analyze`)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// reader gives a connection to read the first workspace's events by.
func (s *server) reader() (*client, error) { return dial(s.address, s.tenants[:1], single) }

func (s *server) page(c *client, query string) ([]byte, error) {
	return c.get("/api/v1/events?"+query, s.tenants[0].key)
}

// list reads the same page again and again.
func (s *server) list(ctx context.Context, query string) (sample, error) {
	c, err := s.reader()
	if err != nil {
		return sample{}, err
	}
	defer c.hangUp()
	var took []time.Duration
	for range 220 {
		if err := ctx.Err(); err != nil {
			return sample{}, err
		}
		start := time.Now()
		if _, err := s.page(c, query); err != nil {
			return sample{}, err
		}
		took = append(took, time.Since(start))
	}
	return summary(took[20:]), nil // the first ones make connections and plans
}

// A listPage is what is read of a page.
type listPage struct {
	Rows       []struct{ ID string }
	NextCursor string
	Total      int
}

func (s *server) readPage(c *client, query string) (p listPage, err error) {
	raw, err := s.page(c, query)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	return p, err
}

// checkTotal makes sure that the total of a list is exact: what is fast and
// wrong is not worth measuring. Events expire meanwhile, so it is between what
// is counted before and after.
func (s *server) checkTotal(ctx context.Context, query, where string) error {
	count := func() (int, error) {
		return querySQL[int](ctx, s.url, `select count(*) from (
				select t.name as type, e.ts & 3 as status
				from events e join event_types t on t.workspace_id = e.workspace_id and t.event_type_id = e.ts >> 2
				where e.workspace_id = (select min(workspace_id) from workspaces) and e.event_no >= oldest_listed_no()
			) listed where `+where)
	}
	before, err := count()
	if err != nil {
		return err
	}
	c, err := s.reader()
	if err != nil {
		return err
	}
	defer c.hangUp()
	p, err := s.readPage(c, query)
	if err != nil {
		return err
	}
	after, err := count()
	if err == nil && (p.Total > before || p.Total < after) {
		err = fmt.Errorf("the total is %d, and there are %d to %d", p.Total, after, before)
	}
	return err
}

// deepCursor walks the first workspace's events until nine tenths of them are
// behind it, as a client would, and gives the cursor of the next page.
func (s *server) deepCursor(ctx context.Context) (string, error) {
	fmt.Fprintln(os.Stderr, "walking to nine tenths of the largest workspace")
	c, err := s.reader()
	if err != nil {
		return "", err
	}
	defer c.hangUp()
	query := "limit=100"
	for walked := 0; ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		p, err := s.readPage(c, query)
		if err != nil {
			return "", err
		}
		if walked += len(p.Rows); walked >= p.Total*9/10 {
			return p.NextCursor, nil
		}
		query = "limit=100&cursor=" + url.QueryEscape(p.NextCursor)
	}
}

// expiredDay is a day of events that have all expired, in every workspace.
const expiredDay = `
	do $$
	declare
		day constant bigint := floor(extract(epoch from inlet_now()) / 86400) - 32;
		partition constant text := 'events_' || to_char(to_timestamp(day * 86400) at time zone 'UTC', 'YYYYMMDD');
		workspaces constant bigint[] := array(select workspace_id from workspaces order by 1);
	begin
		execute format('create table %%I (like events including all)', partition);
		execute format('insert into %%I (workspace_id, event_no, occurred_at, ts, id, properties)
			select ($1)[1 + n %%%% cardinality($1)], ($2 << 20) + n, to_timestamp($2 / 1000), 8, ''expired-'' || n, repeat(''x'', 90)
			from generate_series(1, %d) n', partition) using workspaces, day * 86400000;
		execute format('alter table events attach partition %%I for values from (%%s) to (%%s)',
			partition, day * (86400000::bigint << 20), (day + 1) * (86400000::bigint << 20));
	end $$`

// expiry drops a day of events under a steady load. The server's own job may be
// the one that does: it looks once a minute.
func (s *server) expiry(ctx context.Context) (sample, error) {
	if err := execSQL(ctx, s.url, fmt.Sprintf(expiredDay, expiryRows)); err != nil {
		return sample{}, err
	}
	return s.open(ctx, expiryClients, expiryRate, 2**length, func() error {
		for {
			there, err := querySQL[bool](ctx, s.url, `select to_regclass('events_'
				|| to_char(to_timestamp((floor(extract(epoch from inlet_now()) / 86400) - 32) * 86400) at time zone 'UTC', 'YYYYMMDD'))
				is not null`)
			if err != nil || !there {
				return err
			}
			if _, err := querySQL[int](ctx, s.url, `select drop_expired_events()`); err != nil {
				return err
			}
		}
	})
}
