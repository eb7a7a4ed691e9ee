package contact

import (
	"net/url"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/inletdev/inlet/impl/limit"
)

// NormalizeLinkedIn gives the address of a person's LinkedIn profile as it is
// stored and compared: https://www.linkedin.com/in/ and the profile's name in
// lower case, whatever the country, scheme, query or language around it. It is
// false for what names no person's profile, such as a company's page.
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
	if !strings.EqualFold(kind, "in") || name == "" || strings.ContainsAny(name, "\x00 ") {
		return "", false
	}
	// Percent-encoding can make it longer than any profile, and than an index takes.
	profile := (&url.URL{Scheme: "https", Host: "www.linkedin.com", Path: "/in/" + name}).String()
	return profile, len(profile) <= limit.LeadLinkedInLength
}
