package db

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/lib/pq"
)

const useToken = `
	insert into identify_tokens as t (workspace_id, site_id, jti_hash, visitor_id, expires_at)
	values ($1, $2, $3, $4, $5)
	on conflict (workspace_id, site_id, jti_hash) do update set visitor_id = t.visitor_id
	returning t.visitor_id = $4 and not t.identified`

// UseToken ties a token of a site to the visitor that sends it first, by its
// jti, and tells whether it may have an effect: to another visitor it never
// has, to this one it has until TokenIdentified. Who else sends it waits until
// the transaction has ended.
func (s *Scope) UseToken(ctx context.Context, site int64, jti, visitor string, expires time.Time) (bool, error) {
	hash := sha256.Sum256([]byte(jti))
	var usable bool
	err := s.get(ctx, &usable, useToken, site, hash[:], visitor, expires)
	return usable, err
}

const tokenIdentified = `
	update identify_tokens set identified = true where workspace_id = $1 and site_id = $2 and jti_hash = $3`

// TokenIdentified says that a token has had its effect.
func (s *Scope) TokenIdentified(ctx context.Context, site int64, jti string) error {
	hash := sha256.Sum256([]byte(jti))
	_, err := s.exec(ctx, tokenIdentified, site, hash[:])
	return err
}

const dropExpiredTokens = `delete from identify_tokens where expires_at < (select inlet_now()) - interval '1 hour'`

const dropExpiredLinks = `delete from email_links where expires_at < (select inlet_now())`

// DropExpiredTokens forgets the tokens, and the links in e-mails, that would be
// refused anyway.
func (d *DB) DropExpiredTokens(ctx context.Context) error {
	if err := d.exec(ctx, dropExpiredTokens); err != nil {
		return err
	}
	return d.exec(ctx, dropExpiredLinks)
}

const beginCount = `
	insert into people_added (workspace_id, day, people) values ($1, (inlet_now() at time zone 'UTC')::date, 0)
	on conflict do nothing`

const peopleAdded = `
	update people_added set
		people = people * (day = (inlet_now() at time zone 'UTC')::date)::integer,
		day = (inlet_now() at time zone 'UTC')::date
	where workspace_id = $1
	returning people`

// PeopleAdded tells how many people signed tokens have added this UTC day, and
// keeps the number as it is until the transaction ends.
func (s *Scope) PeopleAdded(ctx context.Context) (int, error) {
	if _, err := s.exec(ctx, beginCount); err != nil {
		return 0, err
	}
	var people int
	err := s.get(ctx, &people, peopleAdded)
	return people, err
}

const countPerson = `update people_added set people = people + 1 where workspace_id = $1`

// CountPersonAdded adds one to PeopleAdded.
func (s *Scope) CountPersonAdded(ctx context.Context) error {
	_, err := s.exec(ctx, countPerson)
	return err
}

const contactByEmail = `
	select coalesce((select contact_id from contacts where workspace_id = $1 and email = $2), 0)`

// ContactByEmail finds a contact by its normalized address; zero where there is
// none.
func (s *Scope) ContactByEmail(ctx context.Context, email string) (int64, error) {
	var id int64
	err := s.get(ctx, &id, contactByEmail, email)
	return id, err
}

// An EmailLink leads whoever clicks it in an e-mail to a page, as the contact
// it was sent to.
type EmailLink struct {
	Workspace int64          `db:"workspace_id"`
	Site      int64          `db:"site_id"`
	Contact   int64          `db:"contact_id"`
	URL       string         `db:"url"`
	Origins   pq.StringArray `db:"origins"` // that the site has now
}

const insertLink = `
	insert into email_links (workspace_id, token_hash, site_id, contact_id, url, expires_at)
	select $1, $2, $3, contact_id, $5, $6 from contacts where workspace_id = $1 and contact_id = $4`

// AddEmailLink saves a link by its token. ErrNotFound says that the workspace
// has no such contact.
func (s *Scope) AddEmailLink(ctx context.Context, token string, l EmailLink, expires time.Time) error {
	hash := sha256.Sum256([]byte(token))
	n, err := s.exec(ctx, insertLink, hash[:], l.Site, l.Contact, l.URL, expires)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

const emailLink = `
	select l.workspace_id, l.site_id, l.contact_id, l.url, s.origins
	from email_links l
	join sites s on s.workspace_id = l.workspace_id and s.site_id = l.site_id
	where l.token_hash = $1 and l.expires_at > inlet_now()`

// EmailLink finds a link by its token, in whatever workspace it is; ErrNotFound
// where there is none that is still valid.
func (d *DB) EmailLink(ctx context.Context, token string) (EmailLink, error) {
	hash := sha256.Sum256([]byte(token))
	var link EmailLink
	err := d.get(ctx, &link, emailLink, hash[:])
	return link, err
}
