package contact

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestTextOfALeadIsOneLine(t *testing.T) {
	for given, want := range map[string]string{
		"Hank":                                "Hank",
		"  Hank \t Scorpio\n":                 "Hank Scorpio",
		"Eve\r\nBcc: x@a.com":                 "Eve Bcc: x@a.com",
		"a\u2028b\u2029c\u0085d\vb\x00e\x1bf": "a b c d b e f",
		"\u00a0\u3000Hank\u2003":              "Hank",
		"\ufeffHank\u200b":                    "Hank",
		"\u200f\u202aليلى\u202c":              "ليلى",
		" \u200b \u2060\ufeff\u00ad ":         "",
		" \x00\x01 ":                          "",
		"":                                    "",
		// Inside of text, what cannot be seen has its part in what can.
		"Zoë 👩\u200d💻":  "Zoë 👩\u200d💻",
		"می\u200cخواهم": "می\u200cخواهم",
		"England 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f": "England 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
	} {
		if got := OneLine(given); got != want {
			t.Errorf("%q gives %q, want %q", given, got, want)
		}
	}
}

func TestDomainsThatMatch(t *testing.T) {
	for domain, want := range map[string]struct{ named, ofEmail []string }{
		"globex.com":             {[]string{"globex.com"}, []string{"globex.com"}},
		"a.b.globex.com":         {[]string{"a.b.globex.com", "globex.com"}, []string{"a.b.globex.com", "globex.com"}},
		"mail.initech.co.uk":     {[]string{"mail.initech.co.uk", "initech.co.uk"}, []string{"mail.initech.co.uk", "initech.co.uk"}},
		"docs.initech.github.io": {[]string{"docs.initech.github.io", "initech.github.io"}, []string{"docs.initech.github.io", "initech.github.io"}},
		// A name that is reserved is found where somebody says it, and adds nothing.
		"www2.corp.example": {[]string{"www2.corp.example", "corp.example"}, nil},
		"example.com":       {[]string{"example.com"}, nil},
		"gmail.com":         {}, "mail.gmail.com": {}, "mailinator.com": {}, "yourcompany.com": {}, "x.domain.com": {},
		"co.uk": {}, "github.io": {}, "": {},
	} {
		if got := matchable(domain, true); !slices.Equal(got, want.named) {
			t.Errorf("%q, named, gives %q, want %q", domain, got, want.named)
		}
		if got := matchable(domain, false); !slices.Equal(got, want.ofEmail) {
			t.Errorf("%q, of an e-mail address, gives %q, want %q", domain, got, want.ofEmail)
		}
	}
}

// FuzzOneLine takes any text of a lead: what comes out is one line of the words
// that went in, and comes out as it is.
func FuzzOneLine(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		line := OneLine(text)
		if again := OneLine(line); again != line {
			t.Errorf("%q gives %q, which gives %q", text, line, again)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) && r != ' ' }) || strings.Contains(line, "  ") {
			t.Errorf("%q gives %q, which is not one line", text, line)
		}
		rest := text
		for word := range strings.SplitSeq(line, " ") {
			_, after, ok := strings.Cut(rest, word)
			if !ok {
				t.Errorf("%q gives %q, whose %q is not of it", text, line, word)
			}
			rest = after
		}
	})
}
