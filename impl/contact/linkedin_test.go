package contact

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/inletdev/inlet/impl/limit"
)

func TestALinkedInProfileIsTheSameHoweverItIsWritten(t *testing.T) {
	for given, want := range map[string]string{
		"https://www.linkedin.com/in/hank-scorpio":                  "hank-scorpio",
		"https://www.linkedin.com/in/hank-scorpio/":                 "hank-scorpio",
		"http://linkedin.com/in/hank-scorpio":                       "hank-scorpio",
		"HTTPS://WWW.LINKEDIN.COM/IN/HANK-SCORPIO":                  "hank-scorpio",
		"linkedin.com/in/hank-scorpio":                              "hank-scorpio",
		"//linkedin.com/in/hank-scorpio":                            "hank-scorpio",
		"\u00a0www.linkedin.com/in/hank-scorpio":                    "hank-scorpio",
		"uk.linkedin.com/in/hank-scorpio":                           "hank-scorpio",
		"https://m.linkedin.com:443/in/hank-scorpio/de?trk=a&b=c#d": "hank-scorpio",
		"https://www.linkedin.com/in/hank-scorpio/overlay/photo/":   "hank-scorpio",
		"https://www.linkedin.com/in/张伟":                            "%E5%BC%A0%E4%BC%9F",
		"https://www.linkedin.com/in/%E5%BC%A0%E4%BC%9F":            "%E5%BC%A0%E4%BC%9F",
		"https://www.linkedin.com/in/%e5%bc%a0%e4%bc%9f/":           "%E5%BC%A0%E4%BC%9F",
		"https://www.linkedin.com/in/JOS\u00c9":                     "jos%C3%A9",
		"https://www.linkedin.com/in/jose\u0301":                    "jos%C3%A9",
		"https://www.linkedin.com/in/mehmet":                        "mehmet", // begins with a name of nobody's
	} {
		want = "https://www.linkedin.com/in/" + want
		if got, ok := NormalizeLinkedIn(given); !ok || got != want {
			t.Errorf("%q gives %q, %t; want %q", given, got, ok, want)
		}
	}
}

func TestWhatNamesNoPersonsProfileIsNone(t *testing.T) {
	for _, given := range []string{
		"", " ", "hank-scorpio", "in/hank-scorpio", "/in/hank-scorpio", "@hank-scorpio", "n/a",
		"https://www.linkedin.com", "https://www.linkedin.com/", "https://www.linkedin.com/in", "https://www.linkedin.com/in/",
		"https://www.linkedin.com/company/globex", "https://www.linkedin.com/school/globex", "https://www.linkedin.com/feed/",
		"https://www.linkedin.com/sales/lead/ACwAAA", "https://www.linkedin.com/pub/hank/1/2/3", "https://www.linkedin.com/inn/hank",
		"https://lnkd.in/abc", "https://www.xing.com/in/hank", "https://notlinkedin.com/in/hank", "https://linkedin.com.evil.io/in/hank",
		"https://linkedin.com@evil.io/in/hank", "https://evil.io/linkedin.com/in/hank", "https://evil.io?linkedin.com/in/hank",
		"https://www.linkedin.com/in/hank scorpio", "https://www.linkedin.com/in/hank%20scorpio", "https://www.linkedin.com/in/%zz",
		"https://www.linkedin.com/in/a%00", "https://www.linkedin.com/in/..", "https://www.linkedin.com/in/.",
		// Everybody's own address of these is the same.
		"https://www.linkedin.com/in/me", "https://www.linkedin.com/in/ME/", "linkedin.com/in/me?trk=x", "https://www.linkedin.com/in/me/edit",
		"https://www.linkedin.com/in/unavailable/", "https://www.linkedin.com/in/UNAVAILABLE", "https://www.linkedin.com/in/your-profile",
		"https://www.linkedin.com/in/username", "linkedin.com/in/yourname",
		"https://www.linkedin.com/in/" + strings.Repeat("x", 2021),
		"https://www.linkedin.com/in/" + strings.Repeat("张", 300),
	} {
		if got, ok := NormalizeLinkedIn(given); ok || got != "" {
			t.Errorf("%q gives %q, want none", given, got)
		}
	}
}

// FuzzNormalizeLinkedIn takes what somebody typed as the address of a profile: what
// comes out leads to LinkedIn and to one profile, and comes out as it is.
func FuzzNormalizeLinkedIn(f *testing.F) {
	f.Fuzz(func(t *testing.T, given string) {
		profile, ok := NormalizeLinkedIn(given)
		if !ok {
			return
		}
		for _, same := range []string{profile, strings.ToUpper(profile[:28]) + profile[28:], profile + "/?trk=x#y", strings.TrimPrefix(profile, "https://www.")} {
			if again, ok := NormalizeLinkedIn(same); !ok || again != profile {
				t.Errorf("%q gives %q, and %q gives %q, %t", given, profile, same, again, ok)
			}
		}
		if !linkedIn.MatchString(given) {
			t.Errorf("%q, which is not LinkedIn's, gives %q", given, profile)
		}
		name, ours := strings.CutPrefix(profile, "https://www.linkedin.com/in/")
		if !ours || name == "" || strings.ContainsAny(name, "/?# \x00") || len(profile) > limit.LeadLinkedInLength {
			t.Errorf("%q gives %q, which is no profile", given, profile)
		}
		if u, err := url.Parse(profile); err != nil || u.Host != "www.linkedin.com" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q gives %q, which leads elsewhere: %v", given, profile, err)
		}
	})
}

var linkedIn = regexp.MustCompile(`(?i)(^|[^a-z0-9_-])linkedin\.com`)
