package db

import "context"

// A Contact is a person whom a workspace knows, perhaps at a company.
type Contact struct {
	Company                             int64  // zero for none
	Email                               string // normalized; may be empty
	FirstName, LastName                 string
	Name                                string // a full name whose parts nobody told
	Title, Seniority, Department, Phone string
	LinkedInURL                         string // normalized
	Source                              string // what created it: seed, lead …
}

const insertContact = `
	insert into contacts (workspace_id, company_id, email, first_name, last_name, title, seniority, department,
		phone, linkedin_url, name, source)
	values ($1, nullif($2, 0), nullif($3, ''), nullif($4, ''), nullif($5, ''), nullif($6, ''), nullif($7, ''),
		nullif($8, ''), nullif($9, ''), nullif($10, ''), nullif($11, ''), $12)
	returning contact_id`

const updateContact = `
	update contacts set company_id = nullif($3, 0), email = nullif($4, ''), first_name = nullif($5, ''),
		last_name = nullif($6, ''), title = nullif($7, ''), seniority = nullif($8, ''), department = nullif($9, ''),
		phone = nullif($10, ''), linkedin_url = nullif($11, ''), name = nullif($12, '')
	where workspace_id = $1 and contact_id = $2`

// SaveContact changes the contact of this id, or adds one where it is zero.
// ErrExists says that another contact has the e-mail address.
func (s *Scope) SaveContact(ctx context.Context, id int64, c Contact) (int64, error) {
	if id != 0 {
		_, err := s.exec(ctx, updateContact, id, c.Company, c.Email, c.FirstName, c.LastName, c.Title, c.Seniority,
			c.Department, c.Phone, c.LinkedInURL, c.Name)
		return id, err
	}
	err := s.get(ctx, &id, insertContact, c.Company, c.Email, c.FirstName, c.LastName, c.Title, c.Seniority,
		c.Department, c.Phone, c.LinkedInURL, c.Name, c.Source)
	return id, err
}

const fillContact = `
	update contacts set company_id = coalesce(company_id, nullif($3, 0)), email = coalesce(email, nullif($4, '')),
		first_name = coalesce(first_name, nullif($5, '')), last_name = coalesce(last_name, nullif($6, '')),
		title = coalesce(title, nullif($7, '')), seniority = coalesce(seniority, nullif($8, '')),
		department = coalesce(department, nullif($9, '')), phone = coalesce(phone, nullif($10, '')),
		linkedin_url = coalesce(linkedin_url, nullif($11, '')), name = coalesce(name, nullif($12, ''))
	where workspace_id = $1 and contact_id = $2 and (
		company_id is null and $3 <> 0 or email is null and $4 <> '' or first_name is null and $5 <> ''
		or last_name is null and $6 <> '' or title is null and $7 <> '' or seniority is null and $8 <> ''
		or department is null and $9 <> '' or phone is null and $10 <> '' or linkedin_url is null and $11 <> ''
		or name is null and $12 <> '')`

// FillContact puts values into those fields of a contact that are empty.
func (s *Scope) FillContact(ctx context.Context, id int64, c Contact) error {
	_, err := s.exec(ctx, fillContact, id, c.Company, c.Email, c.FirstName, c.LastName, c.Title, c.Seniority,
		c.Department, c.Phone, c.LinkedInURL, c.Name)
	return err
}
