package company

import (
	"slices"
	"strings"
	"testing"
)

func TestABusinessDomainStandsForOneCompany(t *testing.T) {
	for domain, want := range map[string]string{
		"globex.com": "globex.com", "mail.globex.com": "globex.com", "shop.globex.co.uk": "globex.co.uk",
		"globex.github.io": "globex.github.io", "xn--bcher-kva.de": "xn--bcher-kva.de", "xn--fsqu00a.xn--55qx5d": "xn--fsqu00a.xn--55qx5d",
		"test.company": "test.company", "my-example.com": "my-example.com", "gmail.globex.com": "globex.com", "notgmail.com": "notgmail.com",
		// Anybody's.
		"gmail.com": "", "googlemail.com": "", "mail.gmail.com": "", "outlook.com": "", "hotmail.co.uk": "", "yahoo.co.jp": "", "icloud.com": "",
		"gmx.de": "", "web.de": "", "qq.com": "", "163.com": "", "mail.ru": "", "proton.me": "", "protonmail.com": "", "aol.com": "",
		"gmial.com": "", "mailinator.com": "", "sub.mailinator.com": "", "guerrillamail.com": "", "hey.com": "", "tuta.com": "",
		"discardmail.live": "", "sub.discardmail.ninja": "",
		"privaterelay.appleid.com": "", "mozmail.com": "", "mailbox.org": "", "gmail.co": "", "yahooo.com": "",
		// Nobody's.
		"none.com": "", "yourcompany.com": "", "mail.yourcompany.com": "", "domain.com": "",
		"example.com": "", "mail.example.org": "", "corp.example": "", "a.test": "", "a.b.invalid": "", "x.localhost": "",
		"com": "", "co.uk": "", "github.io": "", "": "",
	} {
		if got, ok := BusinessDomain(domain); got != want || ok != (want != "") {
			t.Errorf("%q gives %q, %t; want %q", domain, got, ok, want)
		}
	}
}

func TestReservedNames(t *testing.T) {
	for domain, want := range map[string]bool{
		"example.com": true, "a.b.example.com": true, "example.org": true, "example.net": true, "a.test": true, "a.example": true,
		"a.invalid": true, "a.localhost": true,
		"example.co": false, "example.de": false, "my-example.com": false, "example.com.evil.io": false, "test.com": false, "localhost.com": false,
		"atest": false, "a.contest": false,
	} {
		if got := IsReserved(domain); got != want {
			t.Errorf("%q is reserved: %t, want %t", domain, got, want)
		}
	}
}

// The look-up wants sorted lines, each a domain as it is compared.
func TestTheListsOfMailDomainsAreAsTheLookUpWantsThem(t *testing.T) {
	for name, list := range map[string]string{"free.txt": freeMail, "disposable.txt": disposableMail} {
		lines := strings.Split(strings.TrimSuffix(list, "\n"), "\n")
		if !slices.IsSorted(lines) || !strings.HasSuffix(list, "\n") {
			t.Errorf("%s is not sorted by byte, or does not end its last line", name)
		}
		for i, line := range lines {
			if i%50 == 0 || i == len(lines)-1 || i < 3 {
				if !listed(list, line) {
					t.Errorf("%s: %q is not found", name, line)
				}
			}
			if strings.Trim(line, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || !strings.Contains(line, ".") {
				t.Errorf("%s: %q is no domain", name, line)
			}
		}
		for _, none := range []string{"", "0", "zzzz.zz", "globex.com", lines[0][1:], lines[0] + "x", lines[len(lines)-1] + "x"} {
			if listed(list, none) {
				t.Errorf("%s: %q is found", name, none)
			}
		}
	}
}

func TestAPageThatOthersKeepAboutACompanyIsNotItsDomain(t *testing.T) {
	for address, want := range map[string]string{
		"https://www.linkedin.com/company/globex": "",
		"facebook.com/globex":                     "",
		"https://linkedin.com/":                   "linkedin.com", // the company of that name
		"linkedin.com":                            "linkedin.com",
		"https://www.globex.com/about":            "globex.com",
		"nothing":                                 "",
	} {
		if got, ok := NamedDomain(address); ok != (want != "") || ok && got != want {
			t.Errorf("%s names %q, %v; want %q", address, got, ok, want)
		}
	}
}
