package contact

import "testing"

func TestEmailAddressesCompareWithoutCaseAndWithTheirDomainNormalized(t *testing.T) {
	for address, want := range map[string]string{
		"Ada@Example.COM":      "ada@example.com",
		"  ada@example.com ":   "ada@example.com",
		"ada@example.com.":     "ada@example.com",
		"ada+x@BÜCHER.example": "ada+x@xn--bcher-kva.example",
		`"a@b"@example.com`:    `"a@b"@example.com`,
		"ada@www.example.com":  "ada@www.example.com",
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
