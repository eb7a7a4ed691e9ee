package db

import "context"

const saveVisitor = `
	insert into visitors as v (workspace_id, visitor_id, site_id, contact_id, identified_at)
	values ($1, $2, nullif($3, 0), nullif($4, 0), case when $4 <> 0 then inlet_now() end)
	on conflict (workspace_id, visitor_id) do update set
		site_id = excluded.site_id, contact_id = excluded.contact_id,
		identified_at = case when v.contact_id is distinct from excluded.contact_id
			then excluded.identified_at else v.identified_at end`

// SaveVisitor says on which site a visitor was seen and which contact it is;
// zero for neither.
func (s *Scope) SaveVisitor(ctx context.Context, id string, site, contact int64) error {
	_, err := s.exec(ctx, saveVisitor, id, site, contact)
	return err
}
