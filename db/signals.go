package db

import "context"

// A Signal holds for a company with so many events of a name within so many
// days; conditions are JSON.
type Signal struct {
	Name, Event          string
	MinCount, WithinDays int
	Conditions           []byte
	Score                int
}

const insertSignal = `
	insert into signals (workspace_id, name, event, min_count, within_days, conditions, score)
	values ($1, $2, $3, $4, $5, $6::jsonb, $7)
	returning signal_id`

// Tells whether other events meet the signal now.
const updateSignal = `
	with before as (
		select event, min_count, within_days, conditions from signals where workspace_id = $1 and signal_id = $2 for update
	)
	update signals s
	set name = $3, event = $4, min_count = $5, within_days = $6, conditions = $7::jsonb, score = $8
	from before
	where s.workspace_id = $1 and s.signal_id = $2
	returning (before.event, before.min_count, before.within_days, before.conditions)
		is distinct from (s.event, s.min_count, s.within_days, s.conditions)`

const rebuildSignalFacts = `select rebuild_signal_facts($1, $2) /* the workspace_id, $1 */`

// SaveSignal changes the signal of this id, or adds one where it is zero. Where
// other events meet it than before, its facts are made from the events that there
// are.
func (s *Scope) SaveSignal(ctx context.Context, id int64, g Signal) (int64, error) {
	var err error
	others := true
	if id != 0 {
		err = s.get(ctx, &others, updateSignal, id, g.Name, g.Event, g.MinCount, g.WithinDays, string(g.Conditions), g.Score)
	} else {
		err = s.get(ctx, &id, insertSignal, g.Name, g.Event, g.MinCount, g.WithinDays, string(g.Conditions), g.Score)
	}
	if err != nil || !others {
		return id, err
	}
	_, err = s.exec(ctx, rebuildSignalFacts, id)
	return id, err
}
