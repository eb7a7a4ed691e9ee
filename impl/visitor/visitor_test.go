package visitor

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnOriginIsWrittenAsBrowsersSendIt(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://www.acme.example":         true,
		"https://WWW.acme.example":         true,
		"http://localhost:3000":            true,
		"http://127.0.0.1":                 true,
		"http://[::1]:8080":                true,
		"https://xn--bcher-kva.example":    true,
		"https://my_site.acme.example":     true,
		"https://www.acme.example:8443":    true,
		"http://www.acme.example:443":      true,
		"https://www.acme.example:443":     false, // which browsers leave out
		"http://www.acme.example:80":       false,
		"https://www.acme.example:":        false,
		"https://www.acme.example:0443":    false,
		"https://bücher.example":           false, // which they send in ASCII
		"https://*.acme.example":           false,
		"https://acme.example;x":           false,
		"https://www.acme.example/":        false,
		"https://www.acme.example#x":       false,
		"https://a@www.acme.example":       false,
		"https://www.acme.example@evil.io": false,
		"//www.acme.example":               false,
		"www.acme.example":                 false,
		"ftp://www.acme.example":           false,
		"javascript:alert(1)":              false,
		"null":                             false,
		"":                                 false,
	} {
		if got := IsOrigin(origin); got != want {
			t.Errorf("%q: %v, want %v", origin, got, want)
		}
	}
}

// FuzzOrigins holds what is taken for an origin, of a site or of a page, to package
// url: scheme, host and port and nothing else; and lets only such pages pass.
func FuzzOrigins(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, query string) {
		if IsOrigin(text) {
			u, err := url.Parse(text)
			if err != nil || u.Scheme+"://"+u.Host != text || u.Hostname() == "" || strings.ContainsAny(text, " ;,*'\"\\@?#%\r\n\t") {
				t.Errorf("%q is taken for an origin: %v", text, err)
			}
			if AllowOrigin(strings.ToUpper(text), []string{"https://a.example", text}) != nil {
				t.Errorf("pages of %q are refused at their own site", text)
			}
			if !isPageOf(text+"/a?b#c", []string{text}) {
				t.Errorf("%q has no pages", text)
			}
		}
		const own = "https://www.acme.example"
		if text != "" && !strings.EqualFold(text, own) && AllowOrigin(text, []string{own}) == nil {
			t.Errorf("pages of %q pass for those of %s", text, own)
		}
		// A browser takes a backslash for a slash, and passes over what is not printed.
		if isPageOf(text, []string{own}) {
			start := strings.ToLower(text[:min(len(text), len(own))])
			if end := text[len(start):]; start != own || end != "" && !strings.ContainsAny(end[:1], "/?#") || strings.ContainsAny(text, "\r\n\t\x00\x7f") || !utf8.ValidString(text) {
				t.Errorf("%q passes for a page of %s", text, own)
			}
		}
		with := withLink(query, "p.r.oof")
		if rest := strings.TrimSuffix(with, LinkParameter+"=p.r.oof"); strings.Count("&"+with, "&"+LinkParameter+"=") != 1 || rest == with {
			t.Errorf("%q becomes %q", query, with)
		}
		if again := withLink(with, "p.r.oof"); again != with {
			t.Errorf("%q becomes %q, and that %q", query, with, again)
		}
		for pair := range strings.SplitSeq(query, "&") {
			if name, _, _ := strings.Cut(pair, "="); name != LinkParameter && pair != "" && !strings.Contains("&"+with, "&"+pair+"&") {
				t.Errorf("%q becomes %q, which lacks %q", query, with, pair)
			}
		}
	})
}
