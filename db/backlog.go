package db

import "context"

// A Backlog is what waits to be done, of all workspaces.
type Backlog struct {
	Events        int64   `db:"events"`         // accepted, and not facts yet
	Entries       int64   `db:"entries"`        // into motions, undecided; of more than MostCounted, that many
	EntryAge      float64 `db:"entry_age"`      // seconds since the one that has waited longest was queued, nearly
	Steps         int64   `db:"steps"`          // due; of more than MostCounted, that many
	StepAge       float64 `db:"step_age"`       // seconds since the one that has waited longest was due
	PartitionDays int64   `db:"partition_days"` // that there is room for events ahead
}

// MostCounted is where counting ends: it must not add to the load that it tells of.
const MostCounted = 100_000

// Of all workspaces. The oldest entry is one of those that are the first of their
// workspace, each found by one probe.
const backlog = `
	with recursive first(workspace_id, queued_at) as (
		(select workspace_id, queued_at from motion_entries where decided_at is null order by workspace_id, entry_id limit 1)
		union all
		select next.workspace_id, next.queued_at from first, lateral (
			select workspace_id, queued_at from motion_entries e
			where e.decided_at is null and e.workspace_id > first.workspace_id order by e.workspace_id, e.entry_id limit 1
		) next
	), now as materialized (select inlet_now() as at)
	select
		(select coalesce(sum(greatest(g.accepted_events - p.processed_events, 0)), 0)::bigint
			from workspace_gates g join event_progress p on p.workspace_id = g.workspace_id) as events,
		(select count(*) from (select from motion_entries where decided_at is null order by workspace_id, entry_id limit $1) counted) as entries,
		(select coalesce(greatest(extract(epoch from now.at - min(queued_at)), 0), 0)::float8 from first) as entry_age,
		(select count(*) from (select from enrollments where due_at <= (select at from now) order by due_at limit $1) counted) as steps,
		(select coalesce(greatest(extract(epoch from now.at - min(due_at)), 0), 0)::float8
			from (select due_at from enrollments where due_at is not null order by due_at limit 1) soonest) as step_age,
		(select coalesce(max(to_date(substr(c.relname, 8), 'YYYYMMDD')) - (now.at at time zone 'UTC')::date, -1)::bigint
			from pg_inherits i join pg_class c on c.oid = i.inhrelid
			where i.inhparent = 'events'::regclass and c.relname ~ '^events_[0-9]{8}$') as partition_days
	from now`

// The same where the tables are on several nodes: each is counted there, whole.
const backlogApart = `
	with waiting as (
		select coalesce(sum(greatest(g.accepted_events - p.processed_events, 0)), 0)::bigint as events
		from workspace_gates g join event_progress p on p.workspace_id = g.workspace_id
	), queued as (
		select count(*) as entries, min(queued_at) as oldest from motion_entries where decided_at is null
	), due as (
		select count(*) filter (where due_at <= inlet_now()) as steps, min(due_at) as oldest from enrollments where due_at is not null
	)
	select events, least(entries, $1) as entries, least(steps, $1) as steps,
		coalesce(greatest(extract(epoch from inlet_now() - queued.oldest), 0), 0)::float8 as entry_age,
		coalesce(greatest(extract(epoch from inlet_now() - due.oldest), 0), 0)::float8 as step_age,
		(select coalesce(max(to_date(substr(c.relname, 8), 'YYYYMMDD')) - (inlet_now() at time zone 'UTC')::date, -1)::bigint
			from pg_inherits i join pg_class c on c.oid = i.inhrelid
			where i.inhparent = 'events'::regclass and c.relname ~ '^events_[0-9]{8}$') as partition_days
	from waiting, queued, due`

// Backlog tells what waits to be done.
func (d *DB) Backlog(ctx context.Context) (Backlog, error) {
	statement := backlog
	if d.distributed {
		statement = backlogApart
	}
	var b Backlog
	err := d.getHot(ctx, &b, statement, MostCounted)
	return b, err
}
