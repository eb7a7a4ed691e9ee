package company

import (
	"strings"
	"testing"
)

func TestADomainIsTheSameHoweverItIsWritten(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := strings.Join([]string{label, label, label, strings.Repeat("b", 57), "com"}, ".") // 253
	for given, want := range map[string]string{
		"globex.com":                            "globex.com",
		"GLOBEX.com":                            "globex.com",
		" " + "globex.com" + "\n":               "globex.com",
		"globex.com.":                           "globex.com",
		"www.globex.com":                        "globex.com",
		"WWW.Globex.COM":                        "globex.com",
		"www.www.globex.com":                    "globex.com",
		"www.com":                               "www.com",
		"www.www.com":                           "www.com",
		"wwwglobex.com":                         "wwwglobex.com",
		"https://www.globex.com/a/b?c=d#e":      "globex.com",
		"HTTPS://globex.com":                    "globex.com",
		"//globex.com/a":                        "globex.com",
		"globex.com:8443":                       "globex.com",
		"globex.com:":                           "globex.com",
		"globex.com.:80/":                       "globex.com",
		"globex.com?q=https://other.com":        "globex.com",
		"globex.com/to/https://other.com":       "globex.com",
		"globex.com#https://other.com":          "globex.com",
		"shop.globex.co.uk":                     "shop.globex.co.uk",
		"bücher.example":                        "xn--bcher-kva.example",
		"BÜCHER.example":                        "xn--bcher-kva.example",
		"bu\u0308cher.example":                  "xn--bcher-kva.example",
		"XN--Bcher-KVA.example":                 "xn--bcher-kva.example",
		"straße.de":                             "xn--strae-oqa.de",
		"例子。公司":                                 "xn--fsqu00a.xn--55qx5d",
		"globex。com。":                           "globex.com",
		"ｗｗｗ.ｇｌｏｂｅｘ.com":                        "globex.com",
		"glo\u00adbex.com":                      "globex.com",
		"r3---sn-4g5e6nez.googlevideo.com":      "r3---sn-4g5e6nez.googlevideo.com",
		"r3---sn.bücher.example":                "r3---sn.xn--bcher-kva.example",
		"3com.com":                              "3com.com",
		"1.2.3.4.com":                           "1.2.3.4.com",
		"163.com":                               "163.com",
		"a.b":                                   "a.b",
		longest:                                 longest,
		"www." + longest:                        longest,
		"https://" + longest + ".:443/and/more": longest,
	} {
		if got, ok := NormalizeDomain(given); !ok || got != want {
			t.Errorf("%q gives %q, %t; want %q", given, got, ok, want)
		}
	}
}

func TestWhatIsNoHostNameIsNoDomain(t *testing.T) {
	label := strings.Repeat("a", 63)
	for _, given := range []string{
		"", " ", ".", "..", "/", "://", "https://", "https:///path",
		"globex", "localhost", "com.", "globex..com", ".globex.com", "globex.com..",
		"-globex.com", "globex-.com", "glo_bex.com", "_dmarc.globex.com", "glo bex.com", "globex.c*m", "globex.com,globex.de",
		"globex.com\\path", "globex.com\x00", "globex.com:http", "https:globex.com",
		"ada@globex.com", "https://ada:secret@globex.com/", "mailto:ada@globex.com",
		"127.0.0.1", "127.1", "0x7f.0.0.1", "0x7f.0x1", "1.2.3.0x", "017700000001", "192.168.0.1:8080", "http://10.0.0.1/",
		"１２７.０.０.１", "globex.123", "globex.0xff",
		"::1", "[::1]", "[::1]:8080", "http://[2001:db8::1]/", "fe80::1%eth0", "::ffff:127.0.0.1",
		"xn--a.com", "xn--.com", "xn--globex-.com", "globex.com：80", "globex.com／path", "a\u200bb..com", "\u2024com",
		"a." + label + "a.com",
		strings.Join([]string{label, label, label, strings.Repeat("b", 58), "com"}, "."), // 254
		strings.Repeat("ü", 64) + ".de",
		strings.Repeat("\u00ad", 5000) + "globex.com",
		"\xff.com", "шкала.\xd0",
	} {
		if got, ok := NormalizeDomain(given); ok {
			t.Errorf("%q gives %q, want none", given, got)
		}
	}
}

func TestTheRegistrableDomainIsBelowThePublicSuffix(t *testing.T) {
	for domain, want := range map[string]string{
		"globex.com":              "globex.com",
		"a.b.globex.com":          "globex.com",
		"shop.globex.co.uk":       "globex.co.uk",
		"co.uk":                   "",
		"github.io":               "",
		"globex.github.io":        "globex.github.io",
		"docs.globex.github.io":   "globex.github.io",
		"a.xn--bcher-kva.example": "xn--bcher-kva.example",
		"hq.corp.internal":        "corp.internal",
	} {
		if got, ok := RegistrableDomain(domain); got != want || ok != (want != "") {
			t.Errorf("%q gives %q, %t; want %q", domain, got, ok, want)
		}
	}
}

func TestDomainsThatCanBeRegistered(t *testing.T) {
	for domain, want := range map[string]bool{
		"globex.com": true, "shop.globex.co.uk": true, "globex.github.io": true, "xn--fsqu00a.xn--55qx5d": true, "globex.company": true,
		"globex.con": false, "globex.cmo": false, "corp.internal": false, "server.local": false, "a.b.lan": false,
	} {
		if got := IsOnInternet(domain); got != want {
			t.Errorf("%q is on the internet: %t, want %t", domain, got, want)
		}
	}
}

func FuzzNormalizeDomainLeavesWhatItGives(f *testing.F) {
	for _, seed := range []string{
		"https://www.Globex.com:443/a?b#c", "www.www.com", "bücher.example", "例子。公司。", "xn--bcher-kva.example.",
		"127.1", "[::1]:80", "ada@globex.com", "//globex.com//", "ﬀ.com", "a\u200d.com", "\u0645\u062b.com", "℀.com",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		domain, ok := NormalizeDomain(given)
		if !ok {
			return
		}
		if again, ok := NormalizeDomain(domain); !ok || again != domain {
			t.Errorf("%q gives %q, which gives %q, %t", given, domain, again, ok)
		}
		if strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || len(domain) > 253 || !strings.Contains(domain, ".") {
			t.Errorf("%q gives %q, which is no host name", given, domain)
		}
		if registrable, ok := RegistrableDomain(domain); ok && registrable != domain && !strings.HasSuffix(domain, "."+registrable) {
			t.Errorf("the registrable domain of %q is %q", domain, registrable)
		}
	})
}
