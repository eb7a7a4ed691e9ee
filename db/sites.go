package db

import (
	"context"
)

const insertSite = `
	insert into sites (workspace_id, site_key, origins) values ($1, $2, $3) returning site_id`

const updateSite = `
	update sites set site_key = $3, origins = $4 where workspace_id = $1 and site_id = $2`

const retireSecrets = `
	update site_secrets set retired_at = coalesce(retired_at, inlet_now())
	where workspace_id = $1 and site_id = $2 and secret <> $3`

const insertSecret = `
	insert into site_secrets (workspace_id, site_id, secret) values ($1, $2, $3)
	on conflict (workspace_id, site_id, secret) do update set retired_at = null`

// SaveSite changes the site of this id, or adds one where it is zero. A secret
// that is not empty becomes its only valid one. ErrExists says that a site has
// the key.
func (s *Scope) SaveSite(ctx context.Context, id int64, key, secret string, origins []string) (int64, error) {
	if id == 0 {
		if err := s.get(ctx, &id, insertSite, key, texts(origins)); err != nil {
			return 0, err
		}
	} else if _, err := s.exec(ctx, updateSite, id, key, texts(origins)); err != nil {
		return 0, err
	}
	if secret == "" {
		return id, nil
	}
	if _, err := s.exec(ctx, retireSecrets, id, secret); err != nil {
		return 0, err
	}
	_, err := s.exec(ctx, insertSecret, id, secret)
	return id, err
}

const siteKey = `select site_key from sites where workspace_id = $1 and site_id = $2`

// SiteKey gives the public key of a site.
func (s *Scope) SiteKey(ctx context.Context, id int64) (string, error) {
	var key string
	err := s.get(ctx, &key, siteKey, id)
	return key, err
}
