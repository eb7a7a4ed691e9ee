package db

import (
	"context"
	"database/sql"
	"errors"
)

const queuedBy = `
	select trace from (
		select trace from motion_entries where workspace_id = $1 and decided_at is null order by entry_id limit $2
	) next
	where trace is not null`

// QueuedBy gives the spans, as they are stored, of the requests that queued the
// entries of a workspace that are decided next, up to so many.
func (d *DB) QueuedBy(ctx context.Context, workspace int64, most int) ([][]byte, error) {
	var all [][]byte
	err := d.selectHot(ctx, &all, queuedBy, workspace, most)
	return all, err
}

const startedBy = `
	select e.trace from enrollments n
	join motion_entries e on e.workspace_id = n.workspace_id and e.company_id = n.company_id and e.enrollment_id = n.enrollment_id
	where n.workspace_id = $1 and n.enrollment_id = $2
	order by e.entry_id desc limit 1`

// StartedBy gives the span, as it is stored, of the request that an enrollment
// began with; nil where there is none.
func (d *DB) StartedBy(ctx context.Context, due Due) ([]byte, error) {
	var stored sql.Null[[]byte]
	err := d.getHot(ctx, &stored, startedBy, due.Workspace, due.Enrollment)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return stored.V, err
}
