package company

import (
	_ "embed"
	"strings"
)

// Domains at which anybody can have an address; mail/README.md says whence.
var (
	//go:embed mail/free.txt
	freeMail string
	//go:embed mail/disposable.txt
	disposableMail string
)

// placeholders are what people and programs write where they have no domain,
// and some mail providers that the lists lack.
var placeholders = map[string]bool{
	"none.com": true, "noemail.com": true, "nomail.com": true, "noreply.com": true, "na.com": true,
	"domain.com": true, "mydomain.com": true, "yourdomain.com": true,
	"company.com": true, "mycompany.com": true, "yourcompany.com": true,
	"website.com": true, "mywebsite.com": true, "yourwebsite.com": true, "sample.com": true, "asdf.com": true,
	"hey.com": true, "tutanota.com": true, "tuta.com": true, "mailbox.org": true, "zoho.eu": true, "skiff.com": true,
	"tin.it": true, "sympatico.ca": true, "hispeed.ch": true,
	// Forwarders: who is behind them is their point.
	"appleid.com": true, "mozmail.com": true, "simplelogin.com": true,
	// How people misspell the largest.
	"gmail.co": true, "gnail.com": true, "gmali.com": true, "gamil.com": true, "gmaill.com": true, "gmail.cm": true, "gmail.om": true,
	"yahooo.com": true, "yaho.com": true, "hotmai.com": true, "hotmal.com": true, "hotmail.co": true,
	"outlok.com": true, "outloo.com": true, "iclould.com": true, "icoud.com": true,
}

// BusinessDomain gives the registrable domain of a normalized domain, when it
// can stand for one company: it is false for a public suffix, for a domain of
// mailboxes that anybody can have, and for one that stands for none.
func BusinessDomain(domain string) (registrable string, ok bool) {
	registrable, ok = RegistrableDomain(domain)
	if !ok || IsReserved(domain) || placeholders[registrable] {
		return "", false
	}
	// A list may name the registrable domain or any name below it.
	for name := domain; ; {
		if listed(freeMail, name) || listed(disposableMail, name) {
			return "", false
		}
		if name == registrable {
			return registrable, true
		}
		_, name, _ = strings.Cut(name, ".")
	}
}

// profileHosts are where companies have pages: an address there names the page's
// host, and not the company's own domain.
var profileHosts = map[string]bool{
	"linkedin.com": true, "facebook.com": true, "fb.com": true, "instagram.com": true, "x.com": true, "twitter.com": true,
	"youtube.com": true, "tiktok.com": true, "xing.com": true, "crunchbase.com": true, "linktr.ee": true, "github.com": true,
	"medium.com": true, "google.com": true, "goo.gl": true, "bit.ly": true,
}

// NamedDomain gives the normalized domain that somebody gave as their company's,
// perhaps as the address of its website. It is false for what is no domain, and
// for the address of a page that others keep about it.
func NamedDomain(s string) (string, bool) {
	domain, ok := NormalizeDomain(s)
	if !ok {
		return "", false
	}
	registrable, _ := RegistrableDomain(domain)
	_, rest, _ := strings.Cut(strings.TrimSpace(s), "://")
	if rest == "" {
		rest = strings.TrimSpace(s)
	}
	_, page, _ := strings.Cut(rest, "/")
	return domain, page == "" || !profileHosts[registrable]
}

// IsReserved tells the names that are reserved for examples and tests (RFC
// 2606, RFC 6761), which belong to nobody.
func IsReserved(domain string) bool {
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	switch last {
	case "test", "example", "invalid", "localhost":
		return true
	}
	registrable, _ := RegistrableDomain(domain)
	return registrable == "example.com" || registrable == "example.org" || registrable == "example.net"
}

// listed finds a name among sorted lines.
func listed(lines, name string) bool {
	for lines != "" {
		// The line around the middle.
		start := strings.LastIndexByte(lines[:len(lines)/2], '\n') + 1
		end := start + strings.IndexByte(lines[start:], '\n')
		switch strings.Compare(name, lines[start:end]) {
		case 0:
			return true
		case -1:
			lines = lines[:start]
		default:
			lines = lines[end+1:]
		}
	}
	return false
}
