package company

import (
	"regexp"
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

// FuzzNormalizeDomain takes what somebody typed as a domain: what comes out is a
// host name that comes out of every normaliser as it is, and the same however it
// was written.
func FuzzNormalizeDomain(f *testing.F) {
	f.Fuzz(func(t *testing.T, given string) {
		domain, ok := NormalizeDomain(given)
		if named, namedOK := NamedDomain(given); namedOK && (!ok || named != domain) {
			t.Errorf("%q names %q, and is the domain %q, %t", given, named, domain, ok)
		}
		if host, isHost := NormalizeHost(given); isHost {
			if again, ok := NormalizeHost(host); !ok || again != host {
				t.Errorf("%q gives the host %q, which gives %q, %t", given, host, again, ok)
			}
			if !ok || domain != host && !strings.HasSuffix(host, "www."+domain) {
				t.Errorf("%q is the host %q, and the domain %q, %t", given, host, domain, ok)
			}
		}
		if !ok {
			return
		}
		if again, ok := NormalizeDomain(domain); !ok || again != domain {
			t.Errorf("%q gives %q, which gives %q, %t", given, domain, again, ok)
		}
		for _, dressed := range []string{strings.ToUpper(domain), "https://www." + domain + ".:443/a?b#c", "//" + domain + "/", "\t" + domain + "\n"} {
			if again, ok := NormalizeDomain(dressed); !ok || again != domain {
				t.Errorf("%q gives %q, and %q gives %q, %t", given, domain, dressed, again, ok)
			}
		}
		if !hostName.MatchString(domain) || len(domain) > 253 {
			t.Errorf("%q gives %q, which is no host name", given, domain)
		}
		if ipv4.MatchString(domain) {
			t.Errorf("%q gives the address %q", given, domain)
		}
		if registrable, ok := RegistrableDomain(domain); ok && registrable != domain && !strings.HasSuffix(domain, "."+registrable) {
			t.Errorf("the registrable domain of %q is %q", domain, registrable)
		}
		if business, ok := BusinessDomain(domain); ok {
			if again, ok := BusinessDomain(business); !ok || again != business || business != domain && !strings.HasSuffix(domain, "."+business) {
				t.Errorf("the business domain of %q is %q, and of that %q, %t", domain, business, again, ok)
			}
			if IsReserved(domain) {
				t.Errorf("%q is reserved, and the business domain %q", domain, business)
			}
		}
	})
}

// ipv4 is what browsers take for an address, or for a broken one.
var ipv4 = regexp.MustCompile(`\.([0-9]+|0x[0-9a-f]*)$`)

// hostName is what RFC 1123 says one is, with a dot.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
