package db

import (
	"context"
	"time"

	"github.com/lib/pq"
)

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

// A CompanyShown is a company as people see it.
type CompanyShown struct {
	ID       int64          `db:"company_id" json:"id"`
	Name     string         `db:"name" json:"name"`
	Domains  pq.StringArray `db:"domains" json:"domains"` // the main one first
	Industry *string        `db:"industry" json:"industry"`
	Country  *string        `db:"country" json:"country"`
	Stage    *string        `db:"stage" json:"stage"`
	Source   string         `db:"source" json:"source"`
}

const company = `
	select c.company_id, c.name, c.industry, c.country, c.stage, c.source, array(
		select domain from company_domains d where d.workspace_id = $1 and d.company_id = c.company_id
		order by not main, domain
	) as domains
	from companies c where c.workspace_id = $1 and c.company_id = $2`

// Company gives a company; ErrNotFound where there is none.
func (s *Scope) Company(ctx context.Context, id int64) (CompanyShown, error) {
	var c CompanyShown
	err := s.get(ctx, &c, company, id)
	return c, err
}

// A Fact is what is known of a company, or a person there, by events of a name.
type Fact struct {
	Event   string    `db:"name" json:"event"`
	Contact int64     `db:"contact_id" json:"contact_id"` // zero for none
	Events  int64     `db:"events" json:"events"`
	First   time.Time `db:"first_at" json:"first_at"`
	Last    time.Time `db:"last_at" json:"last_at"`
}

const facts = `
	select t.name, f.contact_id, f.events, f.first_at, f.last_at
	from event_facts f
	join event_types t on t.workspace_id = f.workspace_id and t.event_type_id = f.event_type_id
	where f.workspace_id = $1 and f.company_id = $2
	order by t.name, f.contact_id`

// Facts lists what is known of a company by events.
func (s *Scope) Facts(ctx context.Context, id int64) ([]Fact, error) {
	all := []Fact{}
	err := s.selectAll(ctx, &all, facts, id)
	return all, err
}

// A CompanySignal is a signal of the workspace, as it stands for a company.
type CompanySignal struct {
	ID         int64      `db:"signal_id" json:"id"`
	Name       string     `db:"name" json:"name"`
	Event      string     `db:"event" json:"event"`
	MinCount   int        `db:"min_count" json:"min_count"`
	WithinDays int        `db:"within_days" json:"within_days"`
	Score      int        `db:"score" json:"score"`
	Holds      bool       `db:"holds" json:"holds"` // now: its score counts
	HoldsUntil *time.Time `db:"holds_until" json:"holds_until"`
}

const companySignals = `
	select s.signal_id, s.name, s.event, s.min_count, s.within_days, s.score, f.holds_until,
		coalesce(f.holds_until > inlet_now(), false) as holds
	from signals s
	left join signal_facts f on f.workspace_id = s.workspace_id and f.signal_id = s.signal_id and f.company_id = $2
	where s.workspace_id = $1
	order by s.signal_id`

// CompanySignals lists the signals of the workspace as they stand for a company,
// at this moment: windows pass by themselves.
func (s *Scope) CompanySignals(ctx context.Context, id int64) ([]CompanySignal, error) {
	all := []CompanySignal{}
	err := s.selectAll(ctx, &all, companySignals, id)
	return all, err
}
