package db

import (
	"context"
	"time"

	"github.com/lib/pq"
)

// An Admission is what a credential may do at this moment, and what is left of
// its minute. The request has been counted, unless a limit refused it.
type Admission struct {
	WorkspaceID int64          `db:"workspace_id"`
	KeyID       int64          `db:"key_id"`
	Kind        string         `db:"kind"`
	Scopes      pq.StringArray `db:"scopes"`
	OwnerStays  bool           `db:"owner_stays"`
	OwnerScopes pq.StringArray `db:"owner_scopes"`
	HasRole     bool           `db:"has_role"`
	RoleScopes  pq.StringArray `db:"role_scopes"`
	Test        bool           `db:"test"`
	APIEnabled  bool           `db:"api_enabled"`
	ExpiresAt   *time.Time     `db:"expires_at"`
	Version     int64          `db:"version"` // of the workspace: while it stands, so does all of the above but the expiry

	KeyLimit          int  `db:"requests_per_minute"`
	KeyRequests       *int `db:"key_requests"`       // of this minute; nil when the key's limit refused the request
	WorkspaceRequests *int `db:"workspace_requests"` // of this minute; nil for API keys, and when the workspace's limit refused
	SecondsLeft       int  `db:"seconds_left"`       // of this minute, at least 1
}

// The one place where a credential is looked up: it knows no workspace yet.
// A service key whose owner left is suspended. Being one statement, it sees a
// revocation, an expiry or a narrowed role from the very next request on.
const admitCredential = `
	with found as materialized (
		select k.workspace_id, k.key_id, k.kind, k.scopes, k.test, k.requests_per_minute, k.expires_at,
			w.api_enabled, g.version,
			p.person_id is not null and p.left_at is null as owner_stays,
			coalesce(owners.scopes, '{}') as owner_scopes,
			k.role is not null as has_role,
			coalesce(narrowing.scopes, '{}') as role_scopes
		from api_keys k
		join workspaces w on w.workspace_id = k.workspace_id
		join workspace_gates g on g.workspace_id = k.workspace_id
		left join people p on p.workspace_id = k.workspace_id and p.person_id = k.owner_id
		left join roles owners on owners.workspace_id = p.workspace_id and owners.name = p.role
		left join roles narrowing on narrowing.workspace_id = k.workspace_id and narrowing.name = k.role
		where k.hash = $1 and k.revoked_at is null
			and (k.expires_at is null or k.expires_at > inlet_now())
			and (k.kind = 'api' or (p.person_id is not null and p.left_at is null))
	)
	select found.*, taken.*
	from found, take_request(workspace_id, key_id, requests_per_minute, case kind when 'service' then $2::integer end) taken`

// Admit looks a credential up by the SHA-256 of its token and counts the
// request. workspaceLimit is how many requests a minute the service keys of a
// workspace have together. ErrNotFound stands for every credential that is not
// valid now, whatever the reason.
func (d *DB) Admit(ctx context.Context, hash [32]byte, workspaceLimit int) (Admission, error) {
	var a Admission
	err := d.getHot(ctx, &a, admitCredential, hash[:], workspaceLimit)
	return a, err
}
