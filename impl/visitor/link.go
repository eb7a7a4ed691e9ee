package visitor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// LinkParameter is the query parameter by which a link hands its visitor over to
// the tracker of the page that it leads to.
const LinkParameter = "_svclink"

// linkClaims are what a clicked link brings along: one use, within minutes.
type linkClaims struct {
	Workspace int64 `json:"workspace"`
	Site      int64 `json:"site"`
	Contact   int64 `json:"contact"`
	jwt.RegisteredClaims
}

// MakeLink gives the token of a link that leads a contact to a page of the site,
// which has to be of one of its origins: Inlet redirects to no others.
func MakeLink(ctx context.Context, s *db.Scope, site db.Site, contactID int64, page string, lifetime time.Duration) (string, error) {
	if !isPageOf(page, site.Origins) {
		return "", fmt.Errorf("the page has none of the site's origins %v", []string(site.Origins))
	}
	token := rand.Text() // 128 bits
	err := s.AddEmailLink(ctx, token, db.EmailLink{Site: site.ID, Contact: contactID, URL: page}, time.Now().Add(lifetime))
	return token, err
}

// Follow gives the page that a link leads to. The click itself identifies
// nobody: mail scanners click too. The page's tracker does, with what is added
// to the page's address. The fault is not_found.
func (i *Identifier) Follow(ctx context.Context, token string) (string, error) {
	link, err := i.db.EmailLink(ctx, token)
	// The site may have given up the origin since: its pages are somebody else's.
	if errors.Is(err, db.ErrNotFound) || err == nil && !isPageOf(link.URL, link.Origins) {
		return "", fault.NotFound.New()
	}
	if err != nil {
		return "", err
	}
	page, err := url.Parse(link.URL)
	if err != nil {
		return "", err
	}
	now := i.db.Now()
	proof, err := jwt.NewWithClaims(jwt.SigningMethodHS256, linkClaims{
		Workspace: link.Workspace, Site: link.Site, Contact: link.Contact,
		RegisteredClaims: jwt.RegisteredClaims{
			ID: rand.Text(), IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(limit.LinkLifetime)),
		},
	}).SignedString([]byte(i.links))
	if err != nil {
		return "", err
	}
	page.RawQuery = withLink(page.RawQuery, proof)
	return page.String(), nil
}

// withLink adds what a link brings along to a query, and leaves the rest as it is
// written: the page may not read what url.Values would make of it.
func withLink(query, proof string) string {
	pairs := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == LinkParameter || pair == ""
	})
	return strings.Join(append(pairs, LinkParameter+"="+proof), "&")
}

// isPageOf tells the addresses of pages that have one of these origins. (Package
// url lets through bytes that no address has, and that the database cannot hold.)
func isPageOf(page string, origins []string) bool {
	if !utf8.ValidString(page) || strings.ContainsFunc(page, unicode.IsControl) {
		return false
	}
	u, err := url.Parse(page)
	return err == nil && u.Host != "" && u.User == nil && AllowOrigin(u.Scheme+"://"+u.Host, origins) == nil
}

func (i *Identifier) verifyLink(token string, site db.Site) (linkClaims, bool) {
	var c linkClaims
	ok := parse(token, i.links, i.db.Now(), &c)
	return c, ok && c.Workspace == site.Workspace && c.Site == site.ID
}
