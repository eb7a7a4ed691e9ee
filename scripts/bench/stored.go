package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// listFilters are the lists that are measured.
var listFilters = []struct{ name, query string }{
	{"no filter", ""},
	{"of a name", "name=event_3"},
	{"accepted", "status=accepted"},
	{"unmatched", "status=unmatched"},
	{"of a name, unmatched", "name=event_3&status=unmatched"},
}

// withStored measures what depends on how many events there are: two servers,
// one on a database with all of them and one with a tenth.
func (b *bench) withStored() error {
	all, err := b.filled("stored_all", *stored)
	if err != nil {
		return err
	}
	defer all.stop()
	tenth, err := b.filled("stored_tenth", *stored/10)
	if err != nil {
		return err
	}
	defer tenth.stop()
	cursor, err := b.deepCursor(all)
	if err != nil {
		return err
	}
	for round := range *rounds {
		for _, m := range []struct {
			name string
			do   func() (sample, error)
		}{
			{"stored tenth", func() (sample, error) { return tenth.closed(b.ctx, tenth.keys, 256, single) }},
			{"stored all", func() (sample, error) { return all.closed(b.ctx, all.keys, 256, single) }},
			{"page first", func() (sample, error) { return all.list(b.ctx, "limit=50") }},
			{"page deep", func() (sample, error) { return all.list(b.ctx, "limit=50&cursor="+url.QueryEscape(cursor)) }},
		} {
			if err := b.measure(round, m.name, m.do); err != nil {
				return err
			}
		}
		for _, filter := range listFilters {
			if err := b.measure(round, "list "+filter.name, func() (sample, error) { return all.list(b.ctx, filter.query) }); err != nil {
				return err
			}
		}
	}
	return b.expiry(all)
}

// filled gives a server on a database with so many events of the last 30 days,
// three tenths of them in the first workspace.
func (b *bench) filled(name string, events int) (*server, error) {
	fmt.Fprintf(os.Stderr, "storing %d events\n", events)
	if err := execSQL(b.ctx, b.pg.url, `create database `+name); err != nil {
		return nil, err
	}
	address, err := url.Parse(b.pg.url)
	if err != nil {
		return nil, err
	}
	address.Path = "/" + name
	s, err := startServer(b.ctx, address.String(), *workspaces, 50)
	if err != nil {
		return nil, err
	}
	const days = 30
	if err := execSQL(b.ctx, s.url, `
		do $$
		declare today constant bigint := extract(epoch from now())::bigint / 86400; part text;
		begin
			for day in today - 30 .. today loop
				part := 'events_' || to_char(to_timestamp(day * 86400) at time zone 'UTC', 'YYYYMMDD');
				if to_regclass(part) is null then
					execute format('create table %I partition of events for values from (%s) to (%s)',
						part, day::bigint * 86400000 << 20, (day + 1)::bigint * 86400000 << 20);
				end if;
			end loop;
			for span in (today - 30) / 30 .. today / 30 loop
				part := 'event_ids_' || to_char(to_timestamp(span * 30 * 86400) at time zone 'UTC', 'YYYYMMDD');
				if to_regclass(part) is null then
					execute format('create table %I partition of event_ids (primary key (workspace_id, id_hash)) for values from (%s) to (%s)',
						part, span::bigint * 30 * 86400000 << 20, (span + 1)::bigint * 30 * 86400000 << 20);
				end if;
			end loop;
		end $$`,
		`insert into event_types (workspace_id, event_type_id, name, label)
			select w.workspace_id, n + 2, 'event_' || n, 'Event ' || n from workspaces w, generate_series(0, 19) n
			on conflict do nothing`); err != nil {
		s.stop()
		return nil, err
	}
	for day := range days {
		if err := execSQL(b.ctx, s.url, fmt.Sprintf(`
			with made as materialized (
				select n, case when n %% 10 < 3 then 1 else 2 + n / 10 %% (select count(*) - 1 from workspaces) end as w,
					((extract(epoch from now())::bigint - 86400 * %d - 60) * 1000 + n * 86400000 / %d << 20) + n as event_no,
					gen_random_uuid() as id
				from generate_series(1::bigint, %d) n
			), ids as (
				insert into event_ids select workspace_id, id, event_no
				from made join (select row_number() over (order by workspace_id) as w, workspace_id from workspaces) x using (w)
			)
			insert into events (workspace_id, event_no, occurred_at, company_id, ts, id, domain_hint, properties)
			select workspace_id, event_no, to_timestamp((event_no >> 20) / 1000.0), n %% 50 + 1,
				(2 + n %% 20) * 4 + case when n %% 7 < 5 then 0 when n %% 7 = 5 then 1 else 2 end, id::text, 'c1.example',
				'{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"}'
			from made join (select row_number() over (order by workspace_id) as w, workspace_id from workspaces) x using (w)`,
			days-day, events/days, events/days)); err != nil {
			s.stop()
			return nil, err
		}
	}
	// As the workers would have left it, but for the facts.
	err = execSQL(b.ctx, s.url,
		`insert into event_counts select workspace_id, ts, count(*) from events group by 1, 2`,
		`update event_progress p set processed_no = e.newest, oldest_no = e.oldest
			from (select workspace_id, max(event_no) as newest, min(event_no) as oldest from events group by 1) e
			where e.workspace_id = p.workspace_id`,
		`update workspace_gates g set last_event_no = processed_no, version = version + 1 from event_progress p
			where p.workspace_id = g.workspace_id`,
		`vacuum analyze`)
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// get reads a page of the first workspace's events.
func (s *server) get(ctx context.Context, query string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/events?"+query, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.keys[0])
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", response.StatusCode, body)
	}
	return body, err
}

// list reads the same page again and again.
func (s *server) list(ctx context.Context, query string) (sample, error) {
	var took []time.Duration
	for range 200 {
		start := time.Now()
		if _, err := s.get(ctx, query); err != nil {
			return sample{}, err
		}
		took = append(took, time.Since(start))
	}
	return summary(took[20:]), nil // the first ones make connections and plans
}

// expiry drops a day of 333,000 events under load.
func (b *bench) expiry(s *server) error {
	const rate, clients = 2000, 64
	window := 3 * *length
	if err := b.measure(0, "no expiry", func() (sample, error) {
		return s.open(b.ctx, s.keys, clients, rate, window, nothing)
	}); err != nil {
		return err
	}
	if err := execSQL(b.ctx, s.url, `
		do $$
		declare day constant bigint := extract(epoch from now())::bigint / 86400 - 32; part text;
		begin
			part := 'events_' || to_char(to_timestamp(day * 86400) at time zone 'UTC', 'YYYYMMDD');
			execute format('create table %I (like events including all)', part);
			execute format('insert into %I (workspace_id, event_no, occurred_at, ts, id, properties)
				select 1, (%s << 20) + n, now(), 8, n::text, repeat(''x'', 90) from generate_series(1, 333000) n', part, day * 86400000);
			execute format('alter table events attach partition %I for values from (%s) to (%s)',
				part, day * 86400000 << 20, (day + 1) * 86400000 << 20);
		end $$`); err != nil {
		return err
	}
	return b.measure(0, "expiry", func() (sample, error) {
		return s.open(b.ctx, s.keys, clients, rate, window, func() error {
			_, err := querySQL[int](b.ctx, s.url, `select drop_expired_events()`)
			return err
		})
	})
}

// deepCursor walks the first workspace's events until nine tenths of them are
// behind it, as a client would, and gives the cursor of the next page.
func (b *bench) deepCursor(s *server) (string, error) {
	fmt.Fprintln(os.Stderr, "walking to nine tenths of the largest workspace")
	query := "limit=100"
	for walked := 0; ; walked += 100 {
		raw, err := s.get(b.ctx, query)
		if err != nil {
			return "", err
		}
		var page struct {
			NextCursor string
			Total      int
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return "", err
		}
		if walked >= page.Total*9/10 {
			return page.NextCursor, nil
		}
		query = "limit=100&cursor=" + url.QueryEscape(page.NextCursor)
	}
}
