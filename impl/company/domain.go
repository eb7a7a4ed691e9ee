// Package company knows companies and the domains they are known by.
package company

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// profile maps names to lower case and to ASCII as IDNA look-ups do (UTS 46,
// nontransitional: straße.de is not strasse.de). Hyphens are left to isHost,
// since names in use have them where IDNA would not (r3---sn.example.com).
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.CheckHyphens(false))

const (
	longestHost  = 253 // characters of a DNS name (RFC 1035), without the root
	longestLabel = 63
)

// NormalizeDomain gives a domain as it is stored and compared: lower case, in
// ASCII, without surrounding space, scheme, port, path, query, fragment,
// leading www. and trailing dot. It is false for what is then no DNS host name
// (RFC 1123: labels of letters, digits and inner hyphens) with at least one
// dot, is longer than 253 characters, or is an IP address in any spelling, as
// URLs know them: 127.1, 0x7f.0.0.1, [::1]. Addresses with a user part are none.
//
// What it gives, it leaves as it is.
func NormalizeDomain(s string) (string, bool) {
	host, ok := inASCII(hostOf(strings.TrimSpace(s)))
	for {
		// www.com is a name of its own.
		rest, www := strings.CutPrefix(host, "www.")
		if !www || !strings.Contains(rest, ".") {
			break
		}
		host = rest
	}
	return host, ok && isHost(host)
}

// NormalizeHost is NormalizeDomain for what is a host name and no web address:
// nothing but a trailing dot is taken off.
func NormalizeHost(s string) (string, bool) {
	host, ok := inASCII(s)
	return host, ok && isHost(host)
}

// inASCII maps a name to how it is looked up.
func inASCII(host string) (string, bool) {
	if len(host) > 4*longestHost || !utf8.ValidString(host) { // spares IDNA what cannot be right
		return "", false
	}
	if !isPlain(host) {
		mapped, err := profile.ToASCII(host)
		if err != nil {
			return "", false
		}
		// Whether letters of both directions mix is looked at before they are mapped,
		// which may turn a symbol into a letter of either.
		if host, err = profile.ToASCII(mapped); err != nil || host != mapped {
			return "", false
		}
	}
	return strings.TrimSuffix(host, "."), true
}

// hostOf gives the host part of a URL whose scheme may be missing.
func hostOf(s string) string {
	if end := strings.IndexAny(s, ":/?#"); end >= 0 && strings.HasPrefix(s[end:], "://") {
		s = s[end+len("://"):]
	} else {
		s = strings.TrimPrefix(s, "//")
	}
	if end := strings.IndexAny(s, "/?#"); end >= 0 {
		s = s[:end]
	}
	if host, port, ok := strings.Cut(s, ":"); ok && strings.Trim(port, "0123456789") == "" {
		return host
	}
	return s
}

// isPlain tells names that IDNA leaves as they are.
func isPlain(host string) bool {
	for i := range len(host) {
		if c := host[i]; c != '.' && c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return !strings.Contains(host, "xn--")
}

// isHost tells DNS host names with a dot from everything else.
func isHost(s string) bool {
	if len(s) > longestHost || !strings.Contains(s, ".") {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > longestLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				return false
			}
		}
		last = label
	}
	return !isNumber(last)
}

// isNumber tells what makes a name an IPv4 address when it stands last.
func isNumber(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// RegistrableDomain gives the part of a normalized domain that its owner
// registered, by the public suffix list: shop.example.co.uk → example.co.uk.
// It is false for a public suffix itself.
func RegistrableDomain(domain string) (string, bool) {
	registrable, err := publicsuffix.EffectiveTLDPlusOne(domain)
	return registrable, err == nil
}

// IsOnInternet tells domains below a suffix that the public suffix list has from
// those that nobody can have registered: globex.con, server.local.
func IsOnInternet(domain string) bool {
	suffix, icann := publicsuffix.PublicSuffix(domain)
	return icann || strings.Contains(suffix, ".")
}
