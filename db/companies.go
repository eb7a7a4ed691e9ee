package db

import "context"

// A Company of a workspace. Domains are normalized.
type Company struct {
	Name, Industry, Country, Stage string
	NameKey                        string // the name as names are compared
	Domain                         string // the main one; may be empty
	OtherDomains                   []string
	Source                         string // what created it: seed, lead …
}

const insertCompany = `
	insert into companies (workspace_id, name, name_key, industry, country, stage, source)
	values ($1, $2, $3, nullif($4, ''), nullif($5, ''), nullif($6, ''), $7)
	returning company_id`

const updateCompany = `
	update companies set name = $3, name_key = $4, industry = nullif($5, ''), country = nullif($6, ''), stage = nullif($7, '')
	where workspace_id = $1 and company_id = $2`

const deleteOtherDomains = `
	delete from company_domains where workspace_id = $1 and company_id = $2 and domain <> all($3)`

const clearMainDomain = `
	update company_domains set main = false where workspace_id = $1 and company_id = $2 and main and domain <> $3`

const insertDomain = `
	insert into company_domains as d (workspace_id, domain, company_id, main)
	values ($1, $2, $3, $4)
	on conflict (workspace_id, domain) do update set main = excluded.main where d.company_id = excluded.company_id`

// SaveCompany changes the company of this id, or adds one where it is zero, and
// makes its domains these. ErrExists says that another company has a domain.
func (s *Scope) SaveCompany(ctx context.Context, id int64, c Company) (int64, error) {
	if id == 0 {
		if err := s.get(ctx, &id, insertCompany, c.Name, c.NameKey, c.Industry, c.Country, c.Stage, c.Source); err != nil {
			return 0, err
		}
	} else if _, err := s.exec(ctx, updateCompany, id, c.Name, c.NameKey, c.Industry, c.Country, c.Stage); err != nil {
		return 0, err
	}
	domains := c.OtherDomains
	if c.Domain != "" {
		domains = append([]string{c.Domain}, domains...)
	}
	if _, err := s.exec(ctx, deleteOtherDomains, id, texts(domains)); err != nil {
		return 0, err
	}
	if _, err := s.exec(ctx, clearMainDomain, id, c.Domain); err != nil {
		return 0, err
	}
	for _, domain := range domains {
		n, err := s.exec(ctx, insertDomain, domain, id, domain == c.Domain)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, &ExistsError{Constraint: "company_domains_pkey"}
		}
	}
	return id, nil
}
