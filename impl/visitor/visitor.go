// Package visitor knows who the visitors of a workspace's sites are.
//
// A visitor is a browser, by the id that the tracker gave it. It is anonymous
// until it proves to be a contact: by a token that the site's owner signed, by
// the link of an e-mail to that contact, by submitting a form, or by booking a
// meeting. From then on it is that contact, and the events that waited for it
// are matched; proof of another contact makes it that one for what comes after.
// Whatever else a browser says is a claim and changes nothing.
package visitor

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// A Claim is what a browser says of its visitor.
type Claim struct {
	Origin  string // of the page; empty where the caller is no other origin's page
	Visitor string
	Token   string // that the site's owner signed
	Link    string // that the link of an e-mail brought along

	// For a person whom the token adds, and only for that one.
	FirstName, LastName, Company string
}

// An Identifier tells who visitors are.
type Identifier struct {
	db    *db.DB
	links string // signs what links bring along
}

// NewIdentifier makes one; the key signs what the links of e-mails bring along.
func NewIdentifier(d *db.DB, key []byte) *Identifier { return &Identifier{d, string(key)} }

// Site gives the site of a key. The fault is site_not_found.
func (i *Identifier) Site(ctx context.Context, key string) (db.Site, error) {
	site, err := i.db.SiteByKey(ctx, key)
	if errors.Is(err, db.ErrNotFound) {
		return db.Site{}, fault.SiteNotFound.New()
	}
	return site, err
}

// Identify weighs a claim that a page of the site makes. Whether it identified
// anybody is not told: the fault is origin_not_allowed.
func (i *Identifier) Identify(ctx context.Context, site db.Site, c Claim) error {
	if err := AllowOrigin(c.Origin, site.Origins); err != nil {
		return err
	}
	if token, ok := verify(c.Token, site, i.db.Now()); ok {
		return i.byToken(ctx, site, c, token)
	}
	if link, ok := i.verifyLink(c.Link, site); ok {
		return i.byLink(ctx, site, c.Visitor, link)
	}
	return nil
}

// origins are those of web pages, but for the ports that browsers leave out.
var origins = regexp.MustCompile(`^https?://(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9a-f:]+\])(?::[1-9][0-9]{0,4})?$`)

// IsOrigin tells the origins of web pages, written as browsers send them: a name
// of other letters in its ASCII form, and without the port that the scheme has
// anyway. Another would never match.
func IsOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && origins.MatchString(s) && u.Port() != map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// AllowOrigin gives the fault of a page that none of these origins has. What
// sends no origin is no page of another one.
func AllowOrigin(origin string, allowed []string) error {
	if origin == "" || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, origin) }) {
		return nil
	}
	return fault.OriginNotAllowed.New()
}

func (i *Identifier) byToken(ctx context.Context, site db.Site, c Claim, token claims) error {
	single := token.ID != ""
	return contact.Transact(ctx, i.db, site.Workspace, func(s *db.Scope) error {
		if single {
			if usable, err := s.UseToken(ctx, site.ID, token.ID, c.Visitor, token.ExpiresAt.Time); err != nil || !usable {
				return err
			}
		}
		id, err := s.ContactByEmail(ctx, token.Email)
		if err == nil && id == 0 && single {
			id, err = add(ctx, s, c, token.Email)
		}
		if err != nil || id == 0 {
			return err
		}
		if single {
			if err := s.TokenIdentified(ctx, site.ID, token.ID); err != nil {
				return err
			}
		}
		return Identify(ctx, s, c.Visitor, id)
	})
}

func (i *Identifier) byLink(ctx context.Context, site db.Site, visitor string, link linkClaims) error {
	return contact.Transact(ctx, i.db, site.Workspace, func(s *db.Scope) error {
		usable, err := s.UseToken(ctx, site.ID, link.ID, visitor, link.ExpiresAt.Time)
		if err != nil || !usable {
			return err
		}
		if err := s.TokenIdentified(ctx, site.ID, link.ID); err != nil {
			return err
		}
		return Identify(ctx, s, visitor, link.Contact)
	})
}

// add adds the person of a token the way a lead would, and gives the contact;
// zero where the workspace adds nobody, or nobody more today. What the browser
// says of the company names a new one and finds none: nobody signed it.
func add(ctx context.Context, s *db.Scope, c Claim, email string) (int64, error) {
	_, domain, _ := contact.ParseEmail(email)
	if company.IsReserved(domain) { // a test, as a lead would be
		return 0, nil
	}
	if people, err := s.PeopleAdded(ctx); err != nil || people >= limit.PeopleAddedPerDay {
		return 0, err
	}
	tied, err := contact.Reconcile(ctx, s, contact.Person{
		Email: email, EmailDomain: domain, FirstName: contact.OneLine(c.FirstName),
		LastName: contact.OneLine(c.LastName), NewCompanyName: contact.OneLine(c.Company),
	})
	if err != nil || !tied.Added {
		return tied.Contact, err
	}
	return tied.Contact, s.CountPersonAdded(ctx)
}

// Identify says who a visitor is, for those who know: the form that was
// submitted, the meeting that was booked.
func Identify(ctx context.Context, s *db.Scope, visitor string, contact int64) error {
	_, err := s.IdentifyVisitor(ctx, visitor, contact)
	return err
}
