package db

import (
	"context"
)

const insertSegment = `insert into segments (workspace_id, name) values ($1, $2) returning segment_id`

const updateSegment = `update segments set name = $3 where workspace_id = $1 and segment_id = $2`

const removeFromSegment = `
	delete from segment_companies where workspace_id = $1 and segment_id = $2 and company_id <> all($3)`

const addToSegment = `
	insert into segment_companies (workspace_id, segment_id, company_id) select $1, $2, unnest($3::bigint[])
	on conflict do nothing`

// SaveSegment changes the segment of this id, or adds one where it is zero, and
// makes these companies its members.
func (s *Scope) SaveSegment(ctx context.Context, id int64, name string, companies []int64) (int64, error) {
	if id == 0 {
		if err := s.get(ctx, &id, insertSegment, name); err != nil {
			return 0, err
		}
	} else if _, err := s.exec(ctx, updateSegment, id, name); err != nil {
		return 0, err
	}
	if _, err := s.exec(ctx, removeFromSegment, id, ints(companies)); err != nil {
		return 0, err
	}
	_, err := s.exec(ctx, addToSegment, id, ints(companies))
	return id, err
}
