package db

import (
	"context"
	"time"
)

// A Refusal is how many events of a minute were refused for one reason.
type Refusal struct {
	Workspace int64
	Minute    int64 // since 1970
	KeyID     int64
	Code      string
	Param     string // empty where no field was at fault
	EventName string // empty where it is not known
	Events    int64
}

// Across workspaces: a process writes down what it refused, whoever it was.
const addRefusals = `
	insert into refusals as r (workspace_id, minute, key_id, code, param, event_name, events)
	select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
	order by 1, 2, 3, 4, 5, 6
	on conflict (workspace_id, minute, key_id, code, param, event_name) do update
		set events = r.events + excluded.events`

// AddRefusals adds to the ledger; no two of them may differ in their number alone.
func (d *DB) AddRefusals(ctx context.Context, all []Refusal) error {
	var workspaces, minutes, keys, events []int64
	var codes, params, names []string
	for _, r := range all {
		workspaces, minutes, keys = append(workspaces, r.Workspace), append(minutes, r.Minute), append(keys, r.KeyID)
		codes, params, names = append(codes, r.Code), append(params, r.Param), append(names, r.EventName)
		events = append(events, r.Events)
	}
	return d.exec(ctx, addRefusals, ints(workspaces), ints(minutes), ints(keys), texts(codes), texts(params),
		texts(names), ints(events))
}

// A RefusalLine sums refusals up for people.
type RefusalLine struct {
	First     time.Time `db:"first" json:"first"` // the first and the last minute
	Last      time.Time `db:"last" json:"last"`
	KeyID     int64     `db:"key_id" json:"key_id"`
	KeyName   string    `db:"key_name" json:"key"`
	Code      string    `db:"code" json:"code"`
	Param     string    `db:"param" json:"param"`
	EventName string    `db:"event_name" json:"event_name"`
	Events    int64     `db:"events" json:"events"`
}

const refusalLines = `
	select to_timestamp(min(r.minute) * 60) as first, to_timestamp(max(r.minute) * 60) as last,
		r.key_id, coalesce(k.name, '') as key_name, r.code, r.param, r.event_name, sum(r.events) as events
	from refusals r
	left join api_keys k on k.workspace_id = r.workspace_id and k.key_id = r.key_id
	where r.workspace_id = $1 and r.minute >= $2
	group by case when $3 then r.minute end, r.key_id, k.name, r.code, r.param, r.event_name
	order by last desc, events desc, code, param, event_name, key_id`

// Refusals gives what was refused since a time, summed up or minute by minute,
// the latest first.
func (s *Scope) Refusals(ctx context.Context, since time.Time, byMinute bool) ([]RefusalLine, error) {
	var all []RefusalLine
	err := s.selectAll(ctx, &all, refusalLines, since.Unix()/60, byMinute)
	return all, err
}
