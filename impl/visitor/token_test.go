package visitor

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"hash"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/contact"
)

const (
	newest = "the newest secret of a site, thirty-two bytes or more"
	older  = "the secret before it, which is valid until it is retired"
)

// sign gives the signed form of a header and claims, whatever these are.
func sign(secret, header, claims string) string { return signWith(sha256.New, secret, header, claims) }

func signWith(algorithm func() hash.Hash, secret, header, claims string) string {
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(algorithm, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// isSigned checks the signature of a token with nothing but the standard library.
func isSigned(token, secret string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	claims, err2 := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && err2 == nil && sign(secret, string(header), string(claims)) == token
}

// FuzzVerify signs any header and any claims with the site's secret, with another
// one and not at all, and changes what is signed. A token is taken only with a
// signature that is computed here anew, by HS256, for this site, for an address, and
// between its iat and an exp that is at most a day later. What links bring along is
// no token of a site, nor the other way round.
func FuzzVerify(f *testing.F) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	site := db.Site{Workspace: 7, ID: 3, Key: "site_acme", Secrets: []string{newest, older}}
	const links = "the server's own key, of thirty-two bytes"
	f.Fuzz(func(t *testing.T, raw, header, claims string, at int) {
		if c, ok := verify(raw, site, now); ok && !isSigned(raw, newest) && !isSigned(raw, older) {
			t.Errorf("%q, which is not signed, is taken for %+v", raw, c)
		}
		for _, unsigned := range []string{
			sign("another secret", header, claims), sign("", header, claims), sign(site.Key, header, claims), sign(links, header, claims),
			signWith(sha512.New384, newest, header, claims), signWith(sha512.New, newest, header, claims),
			signWith(sha512.New384, newest, `{"alg":"HS384"}`, claims), signWith(sha512.New, newest, `{"alg":"HS512"}`, claims),
		} {
			if c, ok := verify(unsigned, site, now); ok {
				t.Errorf("%q, whose signature is another's or by another algorithm, is taken for %+v", unsigned, c)
			}
		}
		token := sign(older, header, claims)
		if parse(token, links, now, new(linkClaims)) {
			t.Errorf("%q is taken for what a link brings along", token)
		}
		c, ok := verify(token, site, now)
		if !ok {
			if header == `{"alg":"HS256","typ":"JWT"}` && isInOrder(claims, now) {
				t.Errorf("%s is refused", claims)
			}
			return
		}
		var said struct{ Alg string }
		if err := json.Unmarshal([]byte(header), &said); err != nil || said.Alg != "HS256" {
			t.Errorf("%s is taken: %v", header, err)
		}
		if address, _, ok := contact.ParseEmail(c.Email); !ok || address != c.Email || c.Site != site.Key {
			t.Errorf("%s is taken for %+v", claims, c)
		}
		const leeway = time.Minute
		if c.IssuedAt == nil || c.ExpiresAt == nil || c.IssuedAt.After(now.Add(leeway)) || c.ExpiresAt.Before(now.Add(-leeway)) ||
			!c.ExpiresAt.After(c.IssuedAt.Time) || c.ExpiresAt.Sub(c.IssuedAt.Time) > 24*time.Hour {
			t.Errorf("%s is taken for %+v", claims, c)
		}
		if _, ok := verify(token, db.Site{Workspace: 7, ID: 4, Key: "site_other", Secrets: site.Secrets}, now); ok {
			t.Errorf("%s is taken at another site", claims)
		}
		at = int(uint(at) % uint(len(token)))
		for _, changed := range []string{token[:at] + token[at+1:], token[:at] + "A" + token[at+1:], token[:at] + "=" + token[at:], token + "=", token + ".", token + "\n", " " + token} {
			if _, ok := verify(changed, site, now); ok && changed != token && !isSigned(changed, older) {
				t.Errorf("%q, changed at %d, is taken", changed, at)
			}
		}
	})
}

// isInOrder tells claims that are beyond doubt.
func isInOrder(claims string, now time.Time) bool {
	var c map[string]any
	if json.Unmarshal([]byte(claims), &c) != nil || len(c) != 4 && len(c) != 5 || len(c) == 5 && c["jti"] == nil {
		return false
	}
	issued, ok1 := c["iat"].(float64)
	expires, ok2 := c["exp"].(float64)
	_, isText := c["jti"].(string)
	email, _ := c["email"].(string)
	address, _, ok := contact.ParseEmail(email)
	return ok && ok1 && ok2 && (isText || len(c) == 4) && c["site"] == "site_acme" && len(address) <= 320 &&
		issued <= float64(now.Unix()) && expires > float64(now.Unix()) && expires-issued > 1 && expires-issued <= 24*60*60-1
}
