// Package form serves the forms that stand in a workspace's pages: what they ask
// for, and what becomes of an answer. A submission is a lead, and so is the
// booking of a meeting; both identify the visitor that sent them.
package form

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/lead"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
	"github.com/inletdev/inlet/impl/visitor"
)

// A Form asks for Fields, on pages of Origins.
type Form struct {
	Workspace, ID   int64
	PublicKey, Name string
	Fields          []Field
	Origins         []string
}

// A Field of a form.
type Field struct {
	Name      string
	Label     string
	Type      string // text, email, tel or url
	Required  bool
	MaxLength int // characters
}

// ofALead are the fields that mean something to a lead, in their flat spelling;
// others are kept with it.
var ofALead = map[string]struct {
	label, kind string
	longest     int
	set         func(*lead.Lead, string)
}{
	"email":          {"E-mail", "email", limit.LeadEmailLength, func(l *lead.Lead, v string) { l.Email = v }},
	"name":           {"Name", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.Name = v }},
	"first_name":     {"First name", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.FirstName = v }},
	"last_name":      {"Last name", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.LastName = v }},
	"title":          {"Job title", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.Title = v }},
	"seniority":      {"Seniority", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.Seniority = v }},
	"department":     {"Department", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.Department = v }},
	"phone":          {"Phone", "tel", limit.LeadTextLength, func(l *lead.Lead, v string) { l.Phone = v }},
	"linkedin_url":   {"LinkedIn profile", "url", limit.LeadLinkedInLength, func(l *lead.Lead, v string) { l.LinkedInURL = v }},
	"company_domain": {"Company website", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.CompanyDomain = v }},
	"company_name":   {"Company", "text", limit.LeadTextLength, func(l *lead.Lead, v string) { l.CompanyName = v }},
}

var fieldNames = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// CheckName says what is wrong with the name of a form or meeting form.
func CheckName(name string) error {
	if strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > limit.FormNameLength {
		return fmt.Errorf("want a name of at most %d characters", limit.FormNameLength)
	}
	return nil
}

// CheckFields says what is wrong with the fields of a form.
func CheckFields(names []string) error {
	for i, name := range names {
		switch {
		case !fieldNames.MatchString(name) || len(name) > limit.FormFieldLength:
			return fmt.Errorf("%q is no field: want a lower-case letter, then a-z, 0-9 and underscore, at most %d characters", name, limit.FormFieldLength)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("the field %s stands twice", name)
		}
	}
	if len(names) > limit.FormFields {
		return fmt.Errorf("want at most %d fields", limit.FormFields)
	}
	if !slices.Contains(names, "email") && !slices.Contains(names, "name") {
		return errors.New("want email or name among the fields, for no lead is without either")
	}
	return nil
}

// fields describes the fields of these names. The e-mail address is required
// where it is asked for, else the name.
func fields(names []string) []Field {
	needed := "name"
	if slices.Contains(names, "email") {
		needed = "email"
	}
	all := make([]Field, len(names))
	for i, name := range names {
		all[i] = Field{Name: name, Required: name == needed, Type: "text", MaxLength: limit.LeadTextLength}
		if known, ok := ofALead[name]; ok {
			all[i].Label, all[i].Type, all[i].MaxLength = known.label, known.kind, known.longest
		} else {
			words := strings.ReplaceAll(name, "_", " ")
			all[i].Label = strings.ToUpper(words[:1]) + words[1:]
		}
	}
	return all
}

// Find gives the form of a public key. The fault is form_not_found.
func Find(ctx context.Context, d *db.DB, publicKey string) (Form, error) {
	if !isKey(publicKey) {
		return Form{}, fault.FormNotFound.New()
	}
	f, err := d.FormByKey(ctx, publicKey)
	if err != nil {
		return Form{}, notFound(err)
	}
	return Form{
		Workspace: f.Workspace, ID: f.ID, PublicKey: f.PublicKey, Name: f.Name,
		Fields: fields(f.Fields), Origins: f.Origins,
	}, nil
}

// isKey spares the database what no key holds, and it cannot: U+0000.
func isKey(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func notFound(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return fault.FormNotFound.New()
	}
	return err
}

// An Answer is a form as it was filled in.
type Answer struct {
	Values  map[string]string // by the names of the fields; blank counts as absent
	Visitor string            // empty where the tracker knows none
	PageURL string
	Trap    string // nobody sees this field, so a program filled it in
}

// Submit makes a lead of an answer and identifies its visitor. What a program
// filled in is dropped without a word. The fault is invalid_request.
func Submit(ctx context.Context, d *db.DB, f Form, a Answer) error {
	l, err := f.lead(a)
	if err != nil {
		return err
	}
	l.Source, l.Form = "form", f.ID
	defer even(ctx, time.Now())
	if a.Trap != "" {
		return nil
	}
	return contact.Transact(ctx, d, f.Workspace, func(s *db.Scope) error {
		_, err := take(ctx, s, l, a.Visitor)
		return err
	})
}

// even makes an answer take as long as any other: adding a person takes longer than
// finding one, and anybody could ask whom the workspace knows. It is deferred with
// the time at which the work began.
func even(ctx context.Context, began time.Time) {
	select {
	case <-time.After(limit.FormAnswer - time.Since(began)):
	case <-ctx.Done():
	}
}

// take saves the lead of an answer and says who its visitor is.
func take(ctx context.Context, s *db.Scope, l lead.Lead, from string) (lead.Created, error) {
	created, err := lead.Add(ctx, s, l)
	if err != nil {
		return created, err
	}
	if from == "" || created.Contact == 0 {
		return created, nil
	}
	return created, visitor.Identify(ctx, s, from, created.Contact)
}

// lead reads an answer by the form's fields.
func (f Form) lead(a Answer) (lead.Lead, error) {
	l := lead.Lead{Extra: make(map[string]json.RawMessage)}
	asked := make(map[string]bool)
	for _, field := range f.Fields {
		asked[field.Name] = true
		value := a.Values[field.Name]
		switch {
		case contact.OneLine(value) != "": // what a lead takes for blank, a form does too
		case field.Required:
			return l, fault.InvalidRequest.At("fields."+field.Name, "the field is required")
		default:
			continue
		}
		if known, ok := ofALead[field.Name]; ok {
			known.set(&l, value)
			continue
		}
		if len([]rune(value)) > field.MaxLength {
			return l, fault.InvalidRequest.At("fields."+field.Name, "want at most %d characters", field.MaxLength)
		}
		l.Extra[field.Name] = text(value)
	}
	for name := range a.Values {
		if !asked[name] {
			return l, fault.InvalidRequest.At("fields."+strictjson.Clip(name), "the form has no such field")
		}
	}
	if a.PageURL != "" && !asked["page_url"] {
		l.Extra["page_url"] = text(a.PageURL)
	}
	return l, ofField(l.Check())
}

func text(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // text has a JSON form
	}
	return raw
}

// ofField tells the fault of a lead as that of a form's field.
func ofField(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) && f.Code == fault.InvalidLead {
		return fault.InvalidRequest.At("fields."+strings.ReplaceAll(f.Param, ".", "_"), "%s", f.Message)
	}
	return err
}
