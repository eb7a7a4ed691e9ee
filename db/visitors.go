package db

import "context"

const saveVisitor = `
	insert into visitors (workspace_id, visitor_id, site_id) values ($1, $2, nullif($3, 0))
	on conflict (workspace_id, visitor_id) do update set site_id = excluded.site_id`

// SaveVisitor says on which site a visitor was seen; zero for none.
func (s *Scope) SaveVisitor(ctx context.Context, id string, site int64) error {
	_, err := s.exec(ctx, saveVisitor, id, site)
	return err
}

const identifyVisitor = `select identify_visitor($1, $2, $3) /* the workspace_id, $1 */`

// IdentifyVisitor says which contact a visitor is from now on, and matches the
// events of the last 30 days that waited for it; it gives how many there were.
func (s *Scope) IdentifyVisitor(ctx context.Context, id string, contact int64) (int, error) {
	var matched int
	err := s.get(ctx, &matched, identifyVisitor, id, contact)
	return matched, err
}
