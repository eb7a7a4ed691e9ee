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
	// A leading www. belongs to a web site's name, not to a mail domain.
	host := s[at+1:]
	if strings.HasPrefix(host, "www.") {
		return s
	}
	if domain, ok := company.NormalizeDomain(host); ok {
		return s[:at+1] + domain
	}
	return s
}
