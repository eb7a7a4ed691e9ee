package db

import (
	"context"
	"time"

	"github.com/lib/pq"
)

// An APIKey as it is stored: its token's hash, and enough to recognise it by.
type APIKey struct {
	Kind              string // api or service
	Hash              [32]byte
	Prefix, Last4     string
	Name              string
	Owner             int64  // a person; zero for none
	Role              string // that narrows it; empty for none
	Scopes            []string
	RequestsPerMinute int
	Test              bool
	ExpiresAt         time.Time // zero: never
	Revoked           bool
}

const insertAPIKey = `
	insert into api_keys (workspace_id, kind, hash, prefix, last4, name, owner_id, role, scopes,
		requests_per_minute, test, expires_at, revoked_at)
	values ($1, $2, $3, $4, $5, $6, nullif($7, 0), nullif($8, ''), $9, $10, $11, $12, $13)
	returning key_id`

// CreateAPIKey stores a key. ErrExists says that its token is in use.
func (s *Scope) CreateAPIKey(ctx context.Context, k APIKey) (int64, error) {
	var id int64
	if err := s.get(ctx, &id, insertAPIKey, k.Kind, k.Hash[:], k.Prefix, k.Last4, k.Name, k.Owner, k.Role,
		texts(k.Scopes), k.RequestsPerMinute, k.Test, timeOrNil(k.ExpiresAt), s.since(k.Revoked)); err != nil {
		return 0, err
	}
	return id, s.touch(ctx)
}

const updateAPIKey = `
	update api_keys set name = $3, owner_id = nullif($4, 0), scopes = $5, requests_per_minute = $6, test = $7,
		expires_at = $8, revoked_at = case when $9::timestamptz is not null then coalesce(revoked_at, $9) end
	where workspace_id = $1 and key_id = $2`

// UpdateAPIKey changes everything but the credential, its kind and its role.
func (s *Scope) UpdateAPIKey(ctx context.Context, id int64, k APIKey) error {
	if _, err := s.exec(ctx, updateAPIKey, id, k.Name, k.Owner, texts(k.Scopes), k.RequestsPerMinute,
		k.Test, timeOrNil(k.ExpiresAt), s.since(k.Revoked)); err != nil {
		return err
	}
	return s.touch(ctx)
}

const replaceCredential = `
	update api_keys set kind = $3, hash = $4, prefix = $5, last4 = $6
	where workspace_id = $1 and key_id = $2 and hash <> $4`

// ReplaceCredential gives a key another token.
func (s *Scope) ReplaceCredential(ctx context.Context, id int64, k APIKey) error {
	changed, err := s.exec(ctx, replaceCredential, id, k.Kind, k.Hash[:], k.Prefix, k.Last4)
	if err != nil || changed == 0 {
		return err
	}
	return s.touch(ctx)
}

const revokeAPIKey = `
	update api_keys set revoked_at = least(revoked_at, inlet_now()) where workspace_id = $1 and key_id = $2`

// RevokeAPIKey ends a key for good, from the very next request on.
func (s *Scope) RevokeAPIKey(ctx context.Context, id int64) error {
	n, err := s.exec(ctx, revokeAPIKey, id)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotFound
	}
	return s.touch(ctx)
}

// A ListedKey is an API key as people see it.
type ListedKey struct {
	ID                int64          `db:"key_id" json:"id"`
	Name              string         `db:"name" json:"name"`
	Kind              string         `db:"kind" json:"kind"`
	Shown             string         `db:"shown" json:"shown"`
	Owner             *string        `db:"owner" json:"owner"`
	Role              *string        `db:"role" json:"role"`
	Scopes            pq.StringArray `db:"scopes" json:"scopes"`
	RequestsPerMinute int            `db:"requests_per_minute" json:"requests_per_minute"`
	Test              bool           `db:"test" json:"test"`
	ExpiresAt         *time.Time     `db:"expires_at" json:"expires_at"`
	Status            string         `db:"status" json:"status"`
}

const listAPIKeys = `
	select k.key_id, k.name, k.kind, k.prefix || '…' || k.last4 as shown, p.email as owner, k.role, k.scopes,
		k.requests_per_minute, k.test, k.expires_at,
		case
			when k.revoked_at is not null then 'revoked'
			when k.expires_at <= inlet_now() then 'expired'
			when k.kind = 'service' and p.left_at is not null then 'suspended'
			else 'active'
		end as status
	from api_keys k left join people p on p.workspace_id = k.workspace_id and p.person_id = k.owner_id
	where k.workspace_id = $1
	order by k.key_id`

// APIKeys lists all keys of the workspace.
func (s *Scope) APIKeys(ctx context.Context) ([]ListedKey, error) {
	keys := []ListedKey{}
	err := s.selectAll(ctx, &keys, listAPIKeys)
	return keys, err
}
