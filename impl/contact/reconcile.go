package contact

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/company"
)

// A Person is what a lead, or a token that a site signed, says of somebody. All
// text is trimmed; Email and the domains are normalized.
type Person struct {
	Email, EmailDomain                  string // the latter is that of the former
	Name, FirstName, LastName           string
	Title, Seniority, Department, Phone string
	LinkedInURL                         string // normalized
	CompanyDomain, CompanyName          string
	NewCompanyName                      string // names a company that is added, and finds none
}

// Reconciled is whom a person was tied to; zero for none.
type Reconciled struct {
	Contact, Company int64
	Existed          bool // the contact or the company was there before
	Added            bool // the contact is new
}

// Reconcile ties a person to a contact and a company of the workspace, never at
// a guess, and adds those that are missing as far as the workspace's settings
// say:
//
//   - contact: by e-mail address, else by a LinkedIn profile that one contact
//     alone has. One is added where an e-mail address is known and none matches.
//   - company: by the domain that was named, else the contact's, else by the
//     e-mail's domain when that is a business domain, else by a name that one
//     company alone has. One is added where none matches and a business domain
//     is known, the named one first.
//
// Domains match exactly, else by their registrable domain. Mailboxes that
// anybody can have and domains that stand for no company never match; one that
// is reserved for examples matches a company that is there, if it was named,
// and adds none, nor does one below a top-level domain that does not exist. A contact's empty fields are filled and others left alone.
// Two that know one new person or company at the same instant add one.
func Reconcile(ctx context.Context, s *db.Scope, p Person) (Reconciled, error) {
	traits := db.Traits{
		Email: p.Email, LinkedInURL: p.LinkedInURL,
		CompanyDomains: matchable(p.CompanyDomain, true), EmailDomains: matchable(p.EmailDomain, false),
		CompanyNameKey: company.NameKey(p.CompanyName),
	}
	m, err := s.Matches(ctx, traits)
	if err != nil {
		return Reconciled{}, err
	}
	if names := p.missing(m); names != nil {
		// Others may be adding the same: what is missing still is for certain
		// only behind their locks.
		if err := s.LockIdentities(ctx, names...); err != nil {
			return Reconciled{}, err
		}
		if m, err = s.Matches(ctx, traits); err != nil {
			return Reconciled{}, err
		}
	}
	out := Reconciled{Contact: contactOf(m), Company: companyOf(m)}
	out.Existed = out.Contact != 0 || out.Company != 0
	if domain := p.newCompany(m); domain != "" {
		name := cmp.Or(p.CompanyName, p.NewCompanyName, domain)
		out.Company, err = s.SaveCompany(ctx, 0, db.Company{
			Name: name, NameKey: company.NameKey(name), Domain: domain, Source: "lead",
		})
		if err != nil {
			return Reconciled{}, err
		}
	}
	record := db.Contact{
		Company: out.Company, Email: p.Email, Name: p.Name, FirstName: p.FirstName, LastName: p.LastName,
		Title: p.Title, Seniority: p.Seniority, Department: p.Department, Phone: p.Phone, Source: "lead",
	}
	if !m.HasLinkedIn { // a profile of two contacts would match neither
		record.LinkedInURL = p.LinkedInURL
	}
	switch {
	case out.Contact != 0:
		err = s.FillContact(ctx, out.Contact, record)
	case p.Email != "" && m.CreateContacts:
		out.Contact, err = s.SaveContact(ctx, 0, record)
		out.Added = true
	}
	return out, err
}

// Transact runs a transaction that reconciles. Where somebody else was first
// with a record of the same name, it is run again: now that one can be seen.
func Transact(ctx context.Context, d *db.DB, workspace int64, fn func(*db.Scope) error) error {
	for attempt := 1; ; attempt++ {
		if err := d.In(ctx, workspace, fn); !errors.Is(err, db.ErrExists) || attempt == 3 {
			return err
		}
	}
}

// OneLine trims text and makes every run of space and control characters in it
// one space: a name with a line break could end up in a header. What cannot be
// seen is trimmed with the space; inside of text it may join letters.
func OneLine(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || isInvisible(r) })
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// isInvisible tells joiners, marks of direction and the like. Not every format
// character (Cf) is one: some end the flags of countries.
func isInvisible(r rune) bool {
	return r == '\u00ad' || r >= '\u200b' && r <= '\u200f' || r >= '\u202a' && r <= '\u202e' ||
		r >= '\u2060' && r <= '\u206f' || r == '\ufeff'
}

func contactOf(m db.Matches) int64 { return cmp.Or(m.ByEmail, m.ByLinkedIn) }

func companyOf(m db.Matches) int64 {
	return cmp.Or(m.NamedCompany, m.ContactCompany, m.EmailCompany, m.NameCompany)
}

// newCompany gives the domain of the company that is to be added, if one is.
func (p Person) newCompany(m db.Matches) string {
	if companyOf(m) != 0 || !m.CreateCompanies {
		return ""
	}
	for _, domain := range []string{p.CompanyDomain, p.EmailDomain} {
		if registrable, ok := company.BusinessDomain(domain); ok && company.IsOnInternet(domain) {
			return registrable
		}
	}
	return ""
}

// missing names what is about to be given to a contact or company for the first
// time.
func (p Person) missing(m db.Matches) (names []string) {
	if domain := p.newCompany(m); domain != "" {
		names = append(names, "domain "+domain)
	}
	found := contactOf(m)
	adds := found == 0 && p.Email != "" && m.CreateContacts
	if adds || found != 0 && !m.ContactEmail && p.Email != "" {
		names = append(names, "email "+p.Email)
	}
	if p.LinkedInURL != "" && !m.HasLinkedIn && (adds || found != 0) {
		names = append(names, "linkedin "+p.LinkedInURL)
	}
	return names
}

// matchable gives the domains by which a company may be found, best first.
func matchable(domain string, named bool) []string {
	if domain == "" {
		return nil
	}
	registrable, ok := company.BusinessDomain(domain)
	if !ok && named && company.IsReserved(domain) {
		registrable, ok = company.RegistrableDomain(domain)
	}
	switch {
	case !ok:
		return nil
	case registrable == domain:
		return []string{domain}
	}
	return []string{domain, registrable}
}
