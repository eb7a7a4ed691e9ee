package db

import "context"

// A Motion as it is defined; entry settings and steps are JSON.
type Motion struct {
	Name, Status string
	Entry, Steps []byte
}

const insertMotion = `
	insert into motions (workspace_id, name, status, entry, steps) values ($1, $2, $3, $4::jsonb, $5::jsonb)
	returning motion_id`

const updateMotion = `
	update motions set name = $3, status = $4, entry = $5::jsonb, steps = $6::jsonb
	where workspace_id = $1 and motion_id = $2`

// SaveMotion changes the motion of this id, or adds one where it is zero.
func (s *Scope) SaveMotion(ctx context.Context, id int64, m Motion) (int64, error) {
	if id != 0 {
		_, err := s.exec(ctx, updateMotion, id, m.Name, m.Status, string(m.Entry), string(m.Steps))
		return id, err
	}
	err := s.get(ctx, &id, insertMotion, m.Name, m.Status, string(m.Entry), string(m.Steps))
	return id, err
}
