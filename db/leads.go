package db

import "context"

// A Lead as it was sent, and whom it was tied to. Empty text and zero stand for
// nothing.
type Lead struct {
	Test, Reconciled                    bool
	Company, Contact                    int64
	Source                              string // api, form or meeting
	Form                                int64
	IdempotencyKey                      string
	Email, Name, FirstName, LastName    string
	Title, Seniority, Department, Phone string
	LinkedInURL                         string
	CompanyDomain, CompanyName          string
	UTMSource, UTMMedium, UTMCampaign   string
	Extra                               []byte // a JSON object
}

const insertLead = `
	insert into leads (workspace_id, is_test, reconciled, company_id, contact_id, source, form_id, idempotency_key,
		email, name, first_name, last_name, title, seniority, department, phone, linkedin_url,
		company_domain, company_name, utm_source, utm_medium, utm_campaign, extra)
	values ($1, $2, $3, nullif($4, 0), nullif($5, 0), $6, nullif($7, 0), nullif($8, ''),
		nullif($9, ''), nullif($10, ''), nullif($11, ''), nullif($12, ''), nullif($13, ''), nullif($14, ''),
		nullif($15, ''), nullif($16, ''), nullif($17, ''),
		nullif($18, ''), nullif($19, ''), nullif($20, ''), nullif($21, ''), nullif($22, ''), $23)
	returning lead_id`

// AddLead saves a lead and gives its id. ErrExists says that another has its
// idempotency key.
func (s *Scope) AddLead(ctx context.Context, l Lead) (int64, error) {
	var id int64
	err := s.get(ctx, &id, insertLead, l.Test, l.Reconciled, l.Company, l.Contact, l.Source, l.Form, l.IdempotencyKey,
		l.Email, l.Name, l.FirstName, l.LastName, l.Title, l.Seniority, l.Department, l.Phone, l.LinkedInURL,
		l.CompanyDomain, l.CompanyName, l.UTMSource, l.UTMMedium, l.UTMCampaign, string(l.Extra))
	return id, err
}

const leadByKey = `select lead_id from leads where workspace_id = $1 and idempotency_key = $2`

// LeadByIdempotencyKey gives the lead that a key created; ErrNotFound where
// there is none.
func (s *Scope) LeadByIdempotencyKey(ctx context.Context, key string) (int64, error) {
	var id int64
	err := s.get(ctx, &id, leadByKey, key)
	return id, err
}
