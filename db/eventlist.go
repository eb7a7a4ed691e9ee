package db

import (
	"context"
	"time"
)

// A ListedEvent is an event as it was recorded.
type ListedEvent struct {
	Number     int64      `db:"event_no"`
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
	Since      int64   // the least event number
	Before     int64   // numbers on the page are less
	TypeStatus []int64 // nil for all; else one of these
}

const eventPage = `
	select event_no, occurred_at, company_id, contact_id, resolved_at, ts, id, domain_hint, properties
	from events
	where workspace_id = $1 and event_no >= $2 and event_no < $3
	order by event_no desc
	limit $4`

// One probe of the index a type and status, and the newest of all of them.
const eventPageFiltered = `
	select e.*
	from unnest($5::smallint[]) as wanted(ts)
	cross join lateral (
		select event_no, occurred_at, company_id, contact_id, resolved_at, ts, id, domain_hint, properties
		from events
		where workspace_id = $1 and ts = wanted.ts and event_no >= $2 and event_no < $3
		order by event_no desc
		limit $4
	) e
	order by event_no desc
	limit $4`

// Events gives the newest events of a filter.
func (s *Scope) Events(ctx context.Context, f EventFilter, limit int) ([]ListedEvent, error) {
	var page []ListedEvent
	var err error
	if f.TypeStatus == nil {
		err = s.selectAll(ctx, &page, eventPage, f.Since, f.Before, limit)
	} else {
		err = s.selectAll(ctx, &page, eventPageFiltered, f.Since, f.Before, limit, ints(f.TypeStatus))
	}
	return page, err
}

// Whole days from the counters; what is left of the oldest day, and what was
// recorded since the last count, one by one.
const eventTotal = `
	with bounds as (
		select counted_no, ($2::bigint >> 20) / 86400000 as oldest,
			(($2::bigint >> 20) / 86400000 + 1) * (86400000::bigint << 20) as whole
		from event_counted where workspace_id = $1
	)
	select (select coalesce(sum(n), 0) from event_counts where workspace_id = $1 and day > oldest)
		+ (select count(*) from events where workspace_id = $1 and event_no >= $2 and event_no < whole)
		+ (select count(*) from events where workspace_id = $1 and event_no > counted_no and event_no >= whole)
	from bounds`

const eventTotalFiltered = `
	with bounds as (
		select counted_no, ($2::bigint >> 20) / 86400000 as oldest,
			(($2::bigint >> 20) / 86400000 + 1) * (86400000::bigint << 20) as whole
		from event_counted where workspace_id = $1
	)
	select (select coalesce(sum(n), 0) from event_counts where workspace_id = $1 and day > oldest and ts = any($3))
		+ (select count(*) from events where workspace_id = $1 and ts = any($3) and event_no >= $2 and event_no < whole)
		+ (select count(*) from events where workspace_id = $1 and ts = any($3) and event_no > counted_no and event_no >= whole)
	from bounds`

// EventTotal gives the exact number of events of a filter, whatever the page.
// It belongs to a page that is read in the same snapshot.
func (s *Scope) EventTotal(ctx context.Context, f EventFilter) (int64, error) {
	var total int64
	var err error
	if f.TypeStatus == nil {
		err = s.get(ctx, &total, eventTotal, f.Since)
	} else {
		err = s.get(ctx, &total, eventTotalFiltered, f.Since, ints(f.TypeStatus))
	}
	return total, err
}

// Across workspaces: the job that counts goes from one to the next.
const uncountedWorkspaces = `
	select g.workspace_id from workspace_gates g
	join event_counted c on c.workspace_id = g.workspace_id
	where g.last_event_no > c.counted_no`

const countEvents = `select count_events($1) /* the workspace_id */`

// CountEvents brings the counters of all workspaces up to date.
func (d *DB) CountEvents(ctx context.Context) error {
	var workspaces []int64
	if err := d.selectAll(ctx, &workspaces, uncountedWorkspaces); err != nil {
		return err
	}
	for _, w := range workspaces {
		if err := d.exec(ctx, countEvents, w); err != nil {
			return err
		}
	}
	return nil
}

// A secret of the server, of no workspace.
const secret = `select secret from server_secrets where name = $1`

// Secret gives a secret that all processes share.
func (d *DB) Secret(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	err := d.get(ctx, &value, secret, name)
	return value, err
}
