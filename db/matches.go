package db

import (
	"context"
	"slices"
)

// Traits are what a person may be known by. Empty ones are known of nobody.
type Traits struct {
	Email          string   // normalized
	LinkedInURL    string   // normalized
	CompanyDomains []string // of the company that was named, at most two, best first, normalized
	EmailDomains   []string // of the e-mail address, if a company can be known by it, at most two, best first
	CompanyNameKey string   // as names are compared
}

// Matches are the records of the workspace that traits lead to; zero for none.
type Matches struct {
	ByEmail        int64 `db:"by_email"`
	ByLinkedIn     int64 `db:"by_linkedin"`     // the only contact with that profile
	HasLinkedIn    bool  `db:"has_linkedin"`    // some contact has it
	ContactCompany int64 `db:"contact_company"` // of the contact by e-mail, else by LinkedIn
	ContactEmail   bool  `db:"contact_email"`   // that contact has an e-mail address
	NamedCompany   int64 `db:"named_company"`   // by the domains of the company that was named
	EmailCompany   int64 `db:"email_company"`   // by the domains of the e-mail address
	NameCompany    int64 `db:"name_company"`    // the only company of that name

	CreateCompanies bool `db:"create_companies"` // settings of the workspace
	CreateContacts  bool `db:"create_contacts"`
}

// Each domain is looked up by itself: of any($4) PostgreSQL expects ten, and where
// most workspaces have fewer domains it reads all of the workspace's instead.
const matches = `
	with profile as (
		select contact_id from contacts where workspace_id = $1 and linkedin_url = nullif($3, '') limit 2
	), known as (
		select
			coalesce((select contact_id from contacts where workspace_id = $1 and email = nullif($2, '')), 0) as by_email,
			coalesce((select min(contact_id) from profile having count(*) = 1), 0) as by_linkedin,
			exists (select from profile) as has_linkedin
	)
	select k.by_email, k.by_linkedin, k.has_linkedin,
		coalesce(c.company_id, 0) as contact_company, c.email is not null as contact_email,
		coalesce((select company_id from company_domains where workspace_id = $1 and domain = ($4::text[])[1]),
			(select company_id from company_domains where workspace_id = $1 and domain = ($4::text[])[2]), 0) as named_company,
		coalesce((select company_id from company_domains where workspace_id = $1 and domain = ($5::text[])[1]),
			(select company_id from company_domains where workspace_id = $1 and domain = ($5::text[])[2]), 0) as email_company,
		coalesce((select min(company_id) from (
			select company_id from companies where workspace_id = $1 and name_key = nullif($6, '') limit 2
		) named having count(*) = 1), 0) as name_company,
		w.create_companies, w.create_contacts
	from known k
	join workspaces w on w.workspace_id = $1
	left join contacts c on c.workspace_id = $1 and c.contact_id = coalesce(nullif(k.by_email, 0), k.by_linkedin)`

// Matches looks a person up.
func (s *Scope) Matches(ctx context.Context, t Traits) (Matches, error) {
	var m Matches
	err := s.get(ctx, &m, matches, t.Email, t.LinkedInURL, texts(t.CompanyDomains), texts(t.EmailDomains), t.CompanyNameKey)
	return m, err
}

// 29 sets these locks apart from others of the database.
const lockIdentity = `select pg_advisory_xact_lock(29, hashtext($1::bigint || ' ' || $2::text))`

// LockIdentities keeps others from creating the companies and contacts of these
// names until the transaction ends; who was not there before has to be looked
// for again after it.
func (s *Scope) LockIdentities(ctx context.Context, names ...string) error {
	slices.Sort(names) // in one order, so that no two wait for each other
	for _, name := range names {
		if _, err := s.exec(ctx, lockIdentity, name); err != nil {
			return err
		}
	}
	return nil
}
