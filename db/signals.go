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

const updateSignal = `
	update signals set name = $3, event = $4, min_count = $5, within_days = $6, conditions = $7::jsonb, score = $8
	where workspace_id = $1 and signal_id = $2`

const rebuildSignalFacts = `select rebuild_signal_facts($1, $2) /* the workspace_id, $1 */`

// SaveSignal changes the signal of this id, or adds one where it is zero. Its
// facts are made from the events that there are.
func (s *Scope) SaveSignal(ctx context.Context, id int64, g Signal) (int64, error) {
	var err error
	if id != 0 {
		_, err = s.exec(ctx, updateSignal, id, g.Name, g.Event, g.MinCount, g.WithinDays, string(g.Conditions), g.Score)
	} else {
		err = s.get(ctx, &id, insertSignal, g.Name, g.Event, g.MinCount, g.WithinDays, string(g.Conditions), g.Score)
	}
	if err != nil {
		return 0, err
	}
	_, err = s.exec(ctx, rebuildSignalFacts, id)
	return id, err
}
