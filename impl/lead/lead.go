// Package lead takes leads in: people who showed interest somewhere else.
//
// A lead is new → working → qualified → converted, or disqualified. It is saved
// once, with what was sent, in the transaction that ties it to a contact and a
// company, and enters that company into the motions that leads trigger; a test
// lead is tied to nobody.
package lead

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// A Lead as it was sent. Blank text counts as absent.
type Lead struct {
	Email, Name, FirstName, LastName    string
	Title, Seniority, Department, Phone string
	LinkedInURL                         string
	CompanyDomain, CompanyName          string
	UTMSource, UTMMedium, UTMCampaign   string
	Extra                               map[string]json.RawMessage // fields that are none of these

	Test           bool   // sent with a test key
	Source         string // api, form or meeting
	Form           int64  // the form, where it came by one
	IdempotencyKey string // the first 128 characters count
}

// Created is what became of a lead.
type Created struct {
	ID               int64
	Test, Reconciled bool
	Company, Contact int64 // zero for none
}

// Status is that of a lead that was just created.
const Status = "new"

// Create saves a lead in a transaction of its own. The fault is invalid_lead, or
// duplicate_request with the lead that the idempotency key created.
func Create(ctx context.Context, d *db.DB, workspace int64, l Lead) (created Created, err error) {
	err = contact.Transact(ctx, d, workspace, func(s *db.Scope) error {
		created, err = Add(ctx, s, l)
		return err
	})
	return created, err
}

// Add is Create within a transaction of contact.Transact.
func Add(ctx context.Context, s *db.Scope, l Lead) (Created, error) {
	record, person, err := l.read()
	if err != nil {
		return Created{}, err
	}
	if record.IdempotencyKey != "" {
		first, err := s.LeadByIdempotencyKey(ctx, record.IdempotencyKey)
		if err == nil {
			duplicate := fault.DuplicateRequest.New()
			duplicate.LeadID = first
			return Created{}, duplicate
		}
		if !errors.Is(err, db.ErrNotFound) {
			return Created{}, err
		}
	}
	if !record.Test {
		tied, err := contact.Reconcile(ctx, s, person)
		if err != nil {
			return Created{}, err
		}
		record.Contact, record.Company, record.Reconciled = tied.Contact, tied.Company, tied.Existed
	}
	id, err := s.AddLead(ctx, record)
	if err != nil {
		return Created{}, err
	}
	if record.Company != 0 {
		if err := s.QueueLead(ctx, record.Company, record.Contact); err != nil {
			return Created{}, err
		}
	}
	return Created{ID: id, Test: record.Test, Reconciled: record.Reconciled, Company: record.Company, Contact: record.Contact}, nil
}

// Check says what is wrong with what was sent. The fault is invalid_lead.
func (l Lead) Check() error {
	_, _, err := l.read()
	return err
}

// read cleans and checks what was sent: as it is kept, and as the person that is
// looked for.
func (l Lead) read() (db.Lead, contact.Person, error) {
	for _, field := range []struct {
		name    string
		text    *string
		longest int
	}{
		{"email", &l.Email, limit.LeadEmailLength},
		{"name", &l.Name, limit.LeadTextLength},
		{"first_name", &l.FirstName, limit.LeadTextLength},
		{"last_name", &l.LastName, limit.LeadTextLength},
		{"title", &l.Title, limit.LeadTextLength},
		{"seniority", &l.Seniority, limit.LeadTextLength},
		{"department", &l.Department, limit.LeadTextLength},
		{"phone", &l.Phone, limit.LeadTextLength},
		{"linkedin_url", &l.LinkedInURL, limit.LeadLinkedInLength},
		{"company.domain", &l.CompanyDomain, limit.LeadTextLength},
		{"company.name", &l.CompanyName, limit.LeadTextLength},
		{"utm.source", &l.UTMSource, limit.LeadTextLength},
		{"utm.medium", &l.UTMMedium, limit.LeadTextLength},
		{"utm.campaign", &l.UTMCampaign, limit.LeadTextLength},
	} {
		if utf8.RuneCountInString(*field.text) > field.longest {
			return db.Lead{}, contact.Person{}, fault.InvalidLead.At(field.name, "want at most %d characters", field.longest)
		}
		*field.text = contact.OneLine(*field.text)
	}
	if l.Email == "" && l.Name == "" {
		return db.Lead{}, contact.Person{}, fault.InvalidLead.At("email", "A lead needs at least email or name.")
	}
	record := db.Lead{
		Test: l.Test, Source: l.Source, Form: l.Form, IdempotencyKey: firstCharacters(l.IdempotencyKey),
		Email: l.Email, Name: l.Name, FirstName: l.FirstName, LastName: l.LastName,
		Title: l.Title, Seniority: l.Seniority, Department: l.Department, Phone: contact.NormalizePhone(l.Phone),
		LinkedInURL: l.LinkedInURL, CompanyDomain: l.CompanyDomain, CompanyName: l.CompanyName,
		UTMSource: l.UTMSource, UTMMedium: l.UTMMedium, UTMCampaign: l.UTMCampaign, Extra: extra(l.Extra),
	}
	person := contact.Person{
		Name: l.Name, FirstName: l.FirstName, LastName: l.LastName,
		Title: l.Title, Seniority: l.Seniority, Department: l.Department, Phone: record.Phone, CompanyName: l.CompanyName,
	}
	if l.Email != "" {
		var ok bool
		if record.Email, person.EmailDomain, ok = contact.ParseEmail(l.Email); !ok {
			return db.Lead{}, contact.Person{}, fault.InvalidLead.At("email", "want an e-mail address such as hank@globex.com")
		}
		person.Email = record.Email
		record.Test = record.Test || company.IsReserved(person.EmailDomain)
	}
	// What names no profile and no domain is kept as it was sent and finds nobody.
	if profile, ok := contact.NormalizeLinkedIn(l.LinkedInURL); ok {
		record.LinkedInURL, person.LinkedInURL = profile, profile
	}
	if domain, ok := company.NamedDomain(l.CompanyDomain); ok {
		record.CompanyDomain, person.CompanyDomain = domain, domain
	}
	return record, person, nil
}

const longestNumber = 1000 // bytes; a double written out has up to 309 before its point

// firstCharacters gives what counts of an idempotency key. A header that is not
// UTF-8 has a character a byte.
func firstCharacters(key string) string {
	characters := []rune(key)
	if !utf8.ValidString(key) {
		characters = characters[:0]
		for _, b := range []byte(key) {
			characters = append(characters, rune(b))
		}
	}
	return string(characters[:min(len(characters), limit.LeadIdempotencyKeyLength)])
}

// extra keeps the first fields, by name, that are text, numbers or booleans. A
// number of more digits than anybody measures is no number that the database can
// hold.
func extra(fields map[string]json.RawMessage) []byte {
	kept := make(map[string]json.RawMessage)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(kept) == limit.LeadExtraFields {
			break
		}
		switch value := fields[name]; {
		case strings.IndexByte("{[n", value[0]) >= 0: // objects, arrays, null
		case value[0] != '"' && len(value) > longestNumber:
		default:
			kept[name] = value
		}
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		panic(err) // the fields were read from JSON
	}
	return raw
}
