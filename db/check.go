package db

import (
	"context"
	"fmt"
)

// What must hold of a workspace at any moment, whatever was killed, restored or
// failed over before: each statement tells what does not. They are read in one
// snapshot, while servers work.
var checks = []string{factsDisagree, countersDisagree, gateDisagrees, idsDisagree, motionsDisagree}

// Facts outlive the events that they were made of, which are kept for 30 days: of
// an older workspace they may say more.
const factsDisagree = `
	select 'event_facts of company ' || company || ', contact ' || contact || ', type ' || type || ' say ' || coalesce(f.events, 0)
		|| ' events from ' || coalesce(f.first_at::text, '-') || ' to ' || coalesce(f.last_at::text, '-')
		|| ', the events say ' || coalesce(e.events, 0) || ' from ' || coalesce(e.first_at::text, '-') || ' to ' || coalesce(e.last_at::text, '-')
	from (
		select company_id as company, contact_id as contact, event_type_id as type, events, first_at, last_at
		from event_facts where workspace_id = $1
	) f
	full join (
		select coalesce(company_id, 0) as company, coalesce(contact_id, 0) as contact, (ts >> 2)::smallint as type,
			count(*) as events, min(occurred_at) as first_at, max(occurred_at) as last_at
		from events
		where workspace_id = $1 and ts & 3 = 0
			and event_no <= (select processed_no from event_progress where workspace_id = $1)
		group by 1, 2, 3
	) e using (company, contact, type)
	where case
		when (select created_at from workspaces where workspace_id = $1) > inlet_now() - interval '30 days'
			then (f.events, f.first_at, f.last_at) is distinct from (e.events, e.first_at, e.last_at)
		else e.events > coalesce(f.events, 0) or e.first_at < f.first_at or e.last_at > f.last_at
	end`

const countersDisagree = `
	select 'event_counts say ' || coalesce(c.events, 0) || ' events of type ' || (ts >> 2) || ' and status ' || (ts & 3)
		|| ', there are ' || coalesce(e.events, 0)
	from (select ts, events from event_counts where workspace_id = $1) c
	full join (
		select ts, count(*) as events from events
		where workspace_id = $1
			and event_no >= (select oldest_no from event_progress where workspace_id = $1)
			and event_no <= (select processed_no from event_progress where workspace_id = $1)
		group by ts
	) e using (ts)
	where coalesce(c.events, 0) <> coalesce(e.events, 0)`

const gateDisagrees = `
	select 'workspace_gates: ' || wrong from workspace_gates g
	join event_progress p on p.workspace_id = g.workspace_id
	cross join lateral (
		select count(*) filter (where ts & 3 = 0) as waiting, coalesce(max(event_no), 0) as newest
		from events e where e.workspace_id = $1 and e.event_no > p.processed_no
	) e
	cross join lateral (
		select 'the last number is ' || g.last_event_no || ', events have ' || e.newest as wrong where e.newest > g.last_event_no
		union all
		select 'events are processed up to ' || p.processed_no || ', beyond the last number ' || g.last_event_no
		where p.processed_no > g.last_event_no
		union all
		select g.accepted_events - p.processed_events || ' events wait to be processed, there are ' || e.waiting
		where g.accepted_events - p.processed_events <> e.waiting
	) found
	where g.workspace_id = $1`

const idsDisagree = `
	select 'event ' || event_no || ' is not found by its id' from events e
	where workspace_id = $1 and event_no >= oldest_listed_no() and not exists (
		select from event_ids i
		where i.workspace_id = $1 and i.id_hash = encode(substr(sha256(convert_to(e.id, 'UTF8')), 1, 16), 'hex')::uuid
			and i.event_no = e.event_no
	)
	union all
	select 'the id of event ' || event_no || ' has no event' from event_ids i
	where workspace_id = $1 and event_no >= oldest_listed_no()
		and not exists (select from events e where e.workspace_id = $1 and e.event_no = i.event_no)
	union all
	select 'an id is recorded ' || count(*) || ' times' from event_ids
	where workspace_id = $1 and event_no >= oldest_listed_no() group by id_hash having count(*) > 1`

const motionsDisagree = `
	select 'motion entry ' || entry_id || ' was let in and has no enrollment' from motion_entries q
	where workspace_id = $1 and enrollment_id is not null and not exists (
		select from enrollments e where e.workspace_id = $1 and e.enrollment_id = q.enrollment_id
	)
	union all
	select 'notes ' || string_agg(note_id::text, ', ') || ' are of one step' from notes
	where workspace_id = $1 and enrollment_id is not null
	group by enrollment_id, text, created_at having count(*) > 1`

// Of what belongs to no single workspace.
const serverDisagrees = `
	select 'there is no secret for ' || name from (values ('cursors'), ('links')) as wanted(name)
	where not exists (select from server_secrets s where s.name = wanted.name) /* of no workspace_id */
	union all
	select 'there is no room for ' || parent || ' of ' || day from unnest(array[0, 1]) ahead
	cross join lateral (select (inlet_now() at time zone 'UTC')::date + ahead as day) days
	cross join (values ('events'), ('refusals')) as daily(parent)
	where to_regclass(parent || '_' || to_char(day, 'YYYYMMDD')) is null
	union all
	select * from ids_behind()`

const readAllTheTime = `select set_config('statement_timeout', '0', true)`

// Check tells what does not hold of what is stored, in words for the people who
// run the server; nothing where all is well. It reads every event.
func (d *DB) Check(ctx context.Context) ([]string, error) {
	var wrong []string
	if err := d.selectAll(ctx, &wrong, serverDisagrees); err != nil {
		return nil, err
	}
	workspaces, err := d.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range workspaces {
		if err := d.Snapshot(ctx, w.ID, func(s *Scope) error {
			if _, err := s.tx.ExecContext(ctx, readAllTheTime); err != nil {
				return classify(ctx, err)
			}
			for _, check := range checks {
				var found []string
				if err := s.selectAll(ctx, &found, check); err != nil {
					return err
				}
				for _, what := range found {
					wrong = append(wrong, fmt.Sprintf("%s: %s", w.Slug, what))
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return wrong, nil
}

const passOverIDs = `select pass_over_ids($1)`

const doubtEverything = `
	update workspace_gates set version = greatest(version + 1, floor(extract(epoch from inlet_now()) * 1000)::bigint),
		types_version = greatest(types_version + 1, floor(extract(epoch from inlet_now()) * 1000)::bigint)`

// PassOver is for a database that was brought back to an earlier moment: so many
// ids of each kind, which may have been given out since, are not given out again,
// and servers forget what they keep in memory.
func (d *DB) PassOver(ctx context.Context, ids int64) error {
	return d.Across(ctx, func(t *Tx) error {
		if _, err := t.tx.ExecContext(ctx, passOverIDs, ids); err != nil {
			return classify(ctx, err)
		}
		_, err := t.tx.ExecContext(ctx, doubtEverything)
		return classify(ctx, err)
	})
}
