package contact

import (
	"net/url"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/inletdev/inlet/impl/limit"
)

// nobodys are names below /in/ that are no person's: LinkedIn shows "me" to
// everybody as their own profile and "unavailable" for those that are hidden;
// the rest is what forms give as an example.
var nobodys = map[string]bool{
	"me": true, "unavailable": true, ".": true, "..": true,
	"username": true, "your-username": true, "yourname": true, "your-name": true, "yourprofile": true, "your-profile": true,
}

// NormalizeLinkedIn gives the address of a person's LinkedIn profile as it is
// stored and compared: https://www.linkedin.com/in/ and the profile's name in
// lower case, whatever the country, scheme, query or language around it. It is
// false for what names no person's profile, such as a company's page, and for
// what is no longer one once it is percent-encoded, beyond 2048 bytes.
func NormalizeLinkedIn(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		s = "https://" + strings.TrimPrefix(s, "//")
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", false
	}
	host := strings.ToLower(u.Hostname())
	if host != "linkedin.com" && !strings.HasSuffix(host, ".linkedin.com") {
		return "", false
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	name, _, _ := strings.Cut(rest, "/")
	name = norm.NFC.String(strings.ToLower(name))
	if !strings.EqualFold(kind, "in") || name == "" || strings.ContainsAny(name, "\x00 ") || nobodys[name] {
		return "", false
	}
	// Percent-encoding can make it longer than any profile, and than an index takes.
	profile := (&url.URL{Scheme: "https", Host: "www.linkedin.com", Path: "/in/" + name}).String()
	if len(profile) > limit.LeadLinkedInLength {
		return "", false
	}
	return profile, true
}
