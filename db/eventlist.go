package db

import (
	"context"
	"time"
)

// A ListedEvent is an event as it was recorded.
type ListedEvent struct {
	Number     int64      `db:"event_no"`
	Name       string     `db:"name"`
	OccurredAt time.Time  `db:"occurred_at"`
	CompanyID  *int64     `db:"company_id"`
	ContactID  *int64     `db:"contact_id"`
	ResolvedAt *time.Time `db:"resolved_at"`
	TypeStatus int64      `db:"ts"` // number of the event type * 4 + status
	ID         string     `db:"id"`
	DomainHint *string    `db:"domain_hint"`
	Properties string     `db:"properties"`
}

// An EventFilter says which events are listed.
type EventFilter struct {
	Since  int64  // the least event number
	Before int64  // numbers on the page are less
	Name   string // empty for all
	Status int64  // as it is recorded; -1 for all
}

// The counters, plus what was recorded since they were brought up to date, less
// what expired since. All of a list is one statement, so page and total are of
// one moment.
const eventPage = `
	with bounds as materialized (
		select processed_no, oldest_no, greatest($2::bigint, oldest_no) as since
		from event_progress where workspace_id = $1
	), page as materialized (
		select event_no, occurred_at, company_id, contact_id, resolved_at, ts, id, domain_hint, properties
		from events
		where workspace_id = $1 and event_no >= (select since from bounds) and event_no < $3
		order by event_no desc
		limit $4
	)
	select total, coalesce(event_no, 0) as event_no, coalesce(t.name, '') as name,
		coalesce(occurred_at, 'epoch') as occurred_at, company_id, contact_id, resolved_at, coalesce(ts, 0) as ts,
		coalesce(id, '') as id, domain_hint, coalesce(page.properties, '') as properties
	from (
		select (select coalesce(sum(events), 0) from event_counts where workspace_id = $1)
			+ (select count(*) from events where workspace_id = $1
				and event_no > (select processed_no from bounds) and event_no >= (select since from bounds))
			- (select count(*) from events where workspace_id = $1
				and event_no >= (select oldest_no from bounds) and event_no < (select since from bounds)
				and event_no <= (select processed_no from bounds)) as total
	) totals
	left join page on true
	left join event_types t on t.workspace_id = $1 and t.event_type_id = page.ts >> 2
	order by event_no desc`

// Of each type and status that is wanted, first a few are probed, which bounds
// how far back the page can reach; then only what is newer than that is fetched.
const eventPageFiltered = `
	with bounds as materialized (
		select processed_no, oldest_no, greatest($2::bigint, oldest_no) as since
		from event_progress where workspace_id = $1
	), wanted as materialized (
		select (event_type_id * 4 + recorded)::smallint as ts
		from event_types, generate_series(0, 2) recorded
		where workspace_id = $1 and ($5 = '' or name = $5) and ($6::integer = -1 or recorded = $6)
	), probed as materialized (
		select e.event_no
		from wanted cross join lateral (
			select event_no from events
			where workspace_id = $1 and ts = wanted.ts and event_no >= (select since from bounds) and event_no < $3
			order by event_no desc
			limit (select 1 + 2 * $4::bigint / count(*) from wanted)
		) e
		order by event_no desc
		limit $4
	), reach as materialized (
		select case when count(*) < $4 then (select since from bounds) else min(event_no) end as event_no from probed
	), page as materialized (
		select e.*
		from wanted cross join lateral (
			select event_no, occurred_at, company_id, contact_id, resolved_at, ts, id, domain_hint, properties
			from events
			where workspace_id = $1 and ts = wanted.ts and event_no >= (select event_no from reach) and event_no < $3
			order by event_no desc
			limit $4
		) e
		order by event_no desc
		limit $4
	)
	select total, coalesce(event_no, 0) as event_no, coalesce(t.name, '') as name,
		coalesce(occurred_at, 'epoch') as occurred_at, company_id, contact_id, resolved_at, coalesce(ts, 0) as ts,
		coalesce(id, '') as id, domain_hint, coalesce(page.properties, '') as properties
	from (
		select (select coalesce(sum(events), 0) from event_counts
				where workspace_id = $1 and ts in (select ts from wanted))
			+ (select count(*) from events where workspace_id = $1 and ts in (select ts from wanted)
				and event_no > (select processed_no from bounds) and event_no >= (select since from bounds))
			- (select count(*) from events where workspace_id = $1 and ts in (select ts from wanted)
				and event_no >= (select oldest_no from bounds) and event_no < (select since from bounds)
				and event_no <= (select processed_no from bounds)) as total
	) totals
	left join page on true
	left join event_types t on t.workspace_id = $1 and t.event_type_id = page.ts >> 2
	order by event_no desc`

// Events gives the newest events of a filter, and the exact number of all that
// it lets through, whatever the page.
func (d *DB) Events(ctx context.Context, workspace int64, f EventFilter, limit int) (page []ListedEvent, total int64, err error) {
	var rows []struct {
		Total int64 `db:"total"`
		ListedEvent
	}
	if f.Name == "" && f.Status < 0 {
		err = d.selectHot(ctx, &rows, eventPage, workspace, f.Since, f.Before, limit)
	} else {
		err = d.selectHot(ctx, &rows, eventPageFiltered, workspace, f.Since, f.Before, limit, f.Name, f.Status)
	}
	for _, row := range rows {
		total = row.Total
		if row.Number != 0 {
			page = append(page, row.ListedEvent)
		}
	}
	return page, total, err
}

// Across workspaces: the job that processes goes from one to the next.
const unprocessedWorkspaces = `
	select g.workspace_id from workspace_gates g
	join event_progress p on p.workspace_id = g.workspace_id
	where g.last_event_no > p.processed_no
		or p.oldest_no <= p.processed_no and p.oldest_no < (select oldest_listed_no())`

// UnprocessedWorkspaces gives the workspaces with events to be processed or
// taken off the counters.
func (d *DB) UnprocessedWorkspaces(ctx context.Context) ([]int64, error) {
	var all []int64
	err := d.selectAll(ctx, &all, unprocessedWorkspaces)
	return all, err
}

const processEvents = `select process_events($1, $2) /* the workspace_id, $1 */`

// ProcessEvents counts up to so many events of a workspace and makes facts of
// the accepted ones, each exactly once, and gives how many it did: none where
// another process is at it.
func (d *DB) ProcessEvents(ctx context.Context, workspace int64, most int) (int, error) {
	var n int
	err := d.getHot(ctx, &n, processEvents, workspace, most)
	return n, err
}

// A secret of the server, of no workspace.
const secret = `select secret from server_secrets where name = $1`

// Secret gives a secret that all processes share.
func (d *DB) Secret(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	err := d.get(ctx, &value, secret, name)
	return value, err
}
