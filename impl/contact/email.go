// Package contact knows the people of a workspace.
package contact

import (
	"strings"

	"github.com/inletdev/inlet/impl/company"
)

// NormalizeEmail gives an e-mail address as it is stored and compared: without
// surrounding space, lower case, its domain normalized like a company's. What
// is no address comes back lower-cased, and matches nobody.
func NormalizeEmail(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	// Of what is stripped from a web address (www., port, path), an e-mail
	// address has nothing: one that does is none.
	host := s[at+1:]
	if strings.HasPrefix(host, "www.") || strings.ContainsAny(host, ":/?#\\") {
		return s
	}
	if domain, ok := company.NormalizeDomain(host); ok {
		return s[:at+1] + domain
	}
	return s
}
