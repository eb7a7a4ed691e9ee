package contact

import (
	"net/mail"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inletdev/inlet/impl/company"
)

func TestEmailAddressesCompareWithoutCaseAndWithTheirDomainNormalized(t *testing.T) {
	for address, want := range map[string]string{
		"Ada@Example.COM":      "ada@example.com",
		"  ada@example.com ":   "ada@example.com",
		"ada@example.com.":     "ada@example.com",
		"ada+x@BÜCHER.example": "ada+x@xn--bcher-kva.example",
		`"a@b"@example.com`:    `"a@b"@example.com`,
		"ada@www.example.com":  "ada@www.example.com",
		"ada@WWW.bücher.de":    "ada@www.xn--bcher-kva.de",
		"ada@example.com/x":    "ada@example.com/x",
		"ada@example.com:80":   "ada@example.com:80",
		"Not An Address":       "not an address",
		"ada@":                 "ada@",
		"":                     "",
	} {
		if got := NormalizeEmail(address); got != want {
			t.Errorf("%q gives %q, want %q", address, got, want)
		}
		if got := NormalizeEmail(want); got != want {
			t.Errorf("%q gives %q the second time", want, got)
		}
	}
}

func TestAnAddressIsReadAsPeopleTypeIt(t *testing.T) {
	for typed, want := range map[string][2]string{
		"hank@globex.com":                 {"hank@globex.com", "globex.com"},
		" Hank@Globex.COM\t":              {"hank@globex.com", "globex.com"},
		"\u00a0hank@globex.com\u200b":     {"hank@globex.com", "globex.com"},
		"\ufeffhank@globex.com\r\n":       {"hank@globex.com", "globex.com"},
		"\u202ahank@globex.com\u202c":     {"hank@globex.com", "globex.com"},
		"hank@globex.com.":                {"hank@globex.com", "globex.com"},
		"hank+news@mail.globex.co.uk":     {"hank+news@mail.globex.co.uk", "mail.globex.co.uk"},
		"o'brien@globex.com":              {"o'brien@globex.com", "globex.com"},
		"a.b-c_d!#$%&*/=?^`{|}~@x.io":     {"a.b-c_d!#$%&*/=?^`{|}~@x.io", "x.io"},
		`"hank scorpio"@globex.com`:       {"", ""},
		`"a@b"@globex.com`:                {`"a@b"@globex.com`, "globex.com"},
		"ÜNAL@globex.com":                 {"ünal@globex.com", "globex.com"},
		"王芳@例子。公司":                        {"王芳@xn--fsqu00a.xn--55qx5d", "xn--fsqu00a.xn--55qx5d"},
		"gerd@BÜCHER.de":                  {"gerd@xn--bcher-kva.de", "xn--bcher-kva.de"},
		"x@3com.com":                      {"x@3com.com", "3com.com"},
		"info@www.globex.com":             {"info@www.globex.com", "globex.com"},
		"info@WWW.Globex。com":             {"info@www.globex.com", "globex.com"},
		"info@www.com":                    {"info@www.com", "www.com"},
		"hank@globex.com..":               {"", ""},
		"hank@globex":                     {"", ""},
		"hank@www":                        {"", ""},
		"hank@127.0.0.1":                  {"", ""},
		"hank@[127.0.0.1]":                {"", ""},
		"hank@globex.com:25":              {"", ""},
		"hank@globex.com/x":               {"", ""},
		"hank@//globex.com":               {"", ""},
		"hank@https://globex.com":         {"", ""},
		"Hank <hank@globex.com>":          {"", ""},
		"<hank@globex.com>":               {"", ""},
		"hank@globex.com (Hank)":          {"", ""},
		"(x)hank@globex.com":              {"", ""},
		"hank@globex.com, milton@a.com":   {"", ""},
		"hank@globex.com\r\nBcc: x@a.com": {"", ""},
		"hank\r\n @globex.com":            {"", ""},
		"hank @globex.com":                {"", ""},
		"hank\u200b@globex.com":           {"", ""},
		"hank@glo\u202ebex.com":           {"", ""},
		"ha\x7fnk@globex.com":             {"", ""},
		"mailto:hank@globex.com":          {"", ""},
		"hank..x@globex.com":              {"", ""},
		".hank@globex.com":                {"", ""},
		"hank＠globex.com":                 {"", ""},
		"@globex.com":                     {"", ""},
		"hank":                            {"", ""},
		"":                                {"", ""},
	} {
		address, domain, ok := ParseEmail(typed)
		if address != want[0] || domain != want[1] || ok != (want[0] != "") {
			t.Errorf("%q gives %q, %q, %t; want %q", typed, address, domain, ok, want)
		}
	}
}

// FuzzParseEmail takes what somebody typed as an address: what comes out is an
// address that every reader leaves as it is, one line of nothing that could end a
// header or begin another address.
func FuzzParseEmail(f *testing.F) {
	f.Fuzz(func(t *testing.T, typed string) {
		compared := NormalizeEmail(typed)
		if again := NormalizeEmail(compared); again != compared {
			t.Errorf("%q is compared as %q, and that as %q", typed, compared, again)
		}
		address, domain, ok := ParseEmail(typed)
		if !ok {
			return
		}
		if again, d, ok := ParseEmail(address); !ok || again != address || d != domain {
			t.Errorf("%q gives %q, which gives %q, %t", typed, address, again, ok)
		}
		// Events look contacts up by this.
		if again := NormalizeEmail(address); again != address {
			t.Errorf("%q gives %q, which is compared as %q", typed, address, again)
		}
		if normal, ok := company.NormalizeDomain(domain); !ok || normal != domain || !strings.HasSuffix(address, domain) {
			t.Errorf("%q gives %q with the domain %q", typed, address, domain)
		}
		if parsed, err := mail.ParseAddress(address); err != nil || parsed.Name != "" {
			t.Errorf("%q gives %q, which is no address: %v", typed, address, err)
		}
		if OneLine(address) != address || strings.ContainsAny(address, " <>()\x00") || !strings.Contains(address, "@") || !utf8.ValidString(address) {
			t.Errorf("%q gives %q", typed, address)
		}
		if strings.ToLower(address) != address {
			t.Errorf("%q gives %q, which is not lower case", typed, address)
		}
	})
}
