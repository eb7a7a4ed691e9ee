package db

import (
	"context"
	"time"

	"github.com/lib/pq"
)

// A Site is where a workspace's tracker runs.
type Site struct {
	Workspace int64          `db:"workspace_id" json:"-"`
	ID        int64          `db:"site_id" json:"id"`
	Key       string         `db:"site_key" json:"site_key"`
	Origins   pq.StringArray `db:"origins" json:"origins"`
	Secrets   pq.StringArray `db:"secrets" json:"-"` // those that are valid, the newest first
	CreatedAt time.Time      `db:"created_at" json:"created_at"`
}

const insertSite = `
	insert into sites (workspace_id, site_key, origins) values ($1, $2, $3) returning site_id`

const updateSite = `
	update sites set site_key = $3, origins = $4 where workspace_id = $1 and site_id = $2`

// SaveSite changes the site of this id, or adds one where it is zero. A secret
// that is not empty is added. ErrExists says that a site has the key.
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
	return id, s.AddSiteSecret(ctx, id, secret)
}

const insertSecret = `
	insert into site_secrets (workspace_id, site_id, secret) values ($1, $2, $3)
	on conflict do nothing`

const retireSecrets = `
	update site_secrets set retired_at = inlet_now()
	where workspace_id = $1 and site_id = $2 and retired_at is null and secret <> $3 and secret not in (
		select secret from site_secrets
		where workspace_id = $1 and site_id = $2 and retired_at is null and secret <> $3
		order by created_at desc limit 1
	)`

// AddSiteSecret makes a secret valid for a site, beside the newest that it had:
// older ones are retired. One that was added before is left as it is.
func (s *Scope) AddSiteSecret(ctx context.Context, site int64, secret string) error {
	n, err := s.exec(ctx, insertSecret, site, secret)
	if err == nil && n > 0 {
		_, err = s.exec(ctx, retireSecrets, site, secret)
	}
	return err
}

const retireOlderSecrets = `
	update site_secrets set retired_at = inlet_now()
	where workspace_id = $1 and site_id = $2 and retired_at is null and secret not in (
		select secret from site_secrets
		where workspace_id = $1 and site_id = $2 and retired_at is null
		order by created_at desc limit 1
	)`

// RetireOlderSecrets leaves a site its newest secret alone, and gives how many
// were retired.
func (s *Scope) RetireOlderSecrets(ctx context.Context, site int64) (int64, error) {
	return s.exec(ctx, retireOlderSecrets, site)
}

const siteByKey = `
	select s.workspace_id, s.site_id, s.site_key, s.origins, s.created_at, array(
		select secret from site_secrets k
		where k.workspace_id = s.workspace_id and k.site_id = s.site_id and k.retired_at is null
		order by created_at desc
	) as secrets
	from sites s
	where s.site_key = $1`

// SiteByKey finds a site by its public key, in whatever workspace it is;
// ErrNotFound where there is none.
func (d *DB) SiteByKey(ctx context.Context, key string) (Site, error) {
	var site Site
	err := d.getHot(ctx, &site, siteByKey, key)
	return site, err
}

const allSites = `
	select s.workspace_id, s.site_id, s.site_key, s.origins, s.created_at, array(
		select secret from site_secrets k
		where k.workspace_id = s.workspace_id and k.site_id = s.site_id and k.retired_at is null
		order by created_at desc
	) as secrets
	from sites s
	where s.workspace_id = $1 order by s.site_id`

// Sites lists the sites of the workspace.
func (s *Scope) Sites(ctx context.Context) ([]Site, error) {
	var all []Site
	err := s.selectAll(ctx, &all, allSites)
	return all, err
}

const siteKey = `select site_key from sites where workspace_id = $1 and site_id = $2`

// SiteKey gives the public key of a site.
func (s *Scope) SiteKey(ctx context.Context, id int64) (string, error) {
	var key string
	err := s.get(ctx, &key, siteKey, id)
	return key, err
}
