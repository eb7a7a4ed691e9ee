package visitor

import (
	"crypto/rand"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/limit"
)

// claims of a signed identify token.
type claims struct {
	Email string `json:"email"`
	Site  string `json:"site"`
	jwt.RegisteredClaims
}

// SignToken makes a signed identify token, as a customer's server would: for one
// use where single is set.
func SignToken(secret, siteKey, email string, lifetime time.Duration, single bool) (string, error) {
	now := time.Now()
	c := claims{Email: email, Site: siteKey, RegisteredClaims: jwt.RegisteredClaims{
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
	}}
	if single {
		c.ID = rand.Text()
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(secret))
}

// verify gives the claims of a token that one of the site's secrets signed with
// HS256, for this site, with a lifetime of at most a day that lasts still; the
// clocks of signer and server may differ by a minute. It is false for all else.
func verify(token string, site db.Site, now time.Time) (claims, bool) {
	for _, secret := range site.Secrets {
		var c claims
		if !parse(token, secret, now, &c) {
			continue
		}
		address, _, ok := contact.ParseEmail(c.Email)
		c.Email = address
		lifetime := c.ExpiresAt.Sub(c.IssuedAt.Time)
		ok = ok && utf8.RuneCountInString(address) <= limit.LeadEmailLength // as of a lead
		return c, ok && c.Site == site.Key && lifetime > 0 && lifetime <= limit.IdentifyTokenLifetime
	}
	return claims{}, false
}

// parse checks signature and times of a token into claims that it must have
// both of.
func parse(token, secret string, now time.Time, into jwt.Claims) bool {
	if strings.ContainsAny(token, "\r\n") { // which decoding passes over, strict or not
		return false
	}
	parsed, err := jwt.ParseWithClaims(token, into,
		func(*jwt.Token) (any, error) { return []byte(secret), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(limit.IdentifyTokenLeeway),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil {
		return false
	}
	issued, err := into.GetIssuedAt()
	// A header that has to be understood is not (RFC 7515, 4.1.11).
	return err == nil && issued != nil && parsed.Header["crit"] == nil
}
