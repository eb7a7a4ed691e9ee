package visitor

import "testing"

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
