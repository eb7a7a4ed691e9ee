// Package contact knows the people of a workspace, and ties what is heard of a
// person to them.
package contact

import (
	"net/mail"
	"strings"
	"unicode"

	"github.com/inletdev/inlet/impl/company"
)

// NormalizeEmail gives an e-mail address as it is stored and compared: without
// surrounding space, lower case, its domain normalized like a company's. What
// is no address comes back lower-cased, and matches nobody.
func NormalizeEmail(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		if host, ok := company.NormalizeHost(s[at+1:]); ok {
			return s[:at+1] + host
		}
	}
	return s
}

// ParseEmail reads an e-mail address that a person typed: an addr-spec of RFC
// 5322 without comments, whose domain is a DNS host name with a dot, letters of
// any script allowed (RFC 6531). Space and invisible characters around it do not
// count, nor does a full stop behind it. It gives the address as it is stored and
// compared, and the domain by which its company may be known.
func ParseEmail(s string) (address, domain string, ok bool) {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	parsed, err := mail.ParseAddress(strings.TrimSuffix(s, "."))
	// A display name, angle brackets and comments are no part of an address.
	if err != nil || parsed.Name != "" || strings.ContainsAny(s, "<>()") {
		return "", "", false
	}
	local, host := s[:strings.LastIndexByte(s, '@')], s[strings.LastIndexByte(s, '@')+1:]
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return "", "", false
	}
	if host, ok = company.NormalizeHost(strings.ToLower(host)); !ok {
		return "", "", false
	}
	domain, ok = company.NormalizeDomain(host) // without www.
	return strings.ToLower(local) + "@" + host, domain, ok
}
