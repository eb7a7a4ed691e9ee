package company

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

func TestNamesAreComparedWithoutRegardToCaseWidthAndSpace(t *testing.T) {
	for _, same := range [][]string{
		{"Globex", "globex", "GLOBEX", " Globex ", "\u00a0Globex\t", "Ｇｌｏｂｅｘ"},
		{"Globex Inc", "globex  inc", "GLOBEX\u00a0INC", "Globex\r\nInc"},
		{"Straße & Söhne", "STRASSE & SÖHNE", "straße & so\u0308hne"},
		{"Σίσυφος", "ΣΊΣΥΦΟΣ", "σίσυφοσ"},
		{"例子公司", " 例子公司 "},
		{"", " ", "\t"},
	} {
		for _, name := range same {
			if got, want := NameKey(name), NameKey(same[0]); got != want {
				t.Errorf("%q is compared as %q, %q as %q", name, got, same[0], want)
			}
		}
	}
	keys := map[string]string{}
	for _, name := range []string{"Globex", "Globex Inc", "GlobexInc", "Globex, Inc.", "Glöbex", "例子公司", "例子", "Hooli", ""} {
		key := NameKey(name)
		if other, ok := keys[key]; ok {
			t.Errorf("%q and %q are one name", name, other)
		}
		keys[key] = name
	}
}

// FuzzNameKey writes a name in the ways that Unicode takes for the same, which all
// have one key, and that key is its own.
func FuzzNameKey(f *testing.F) {
	f.Fuzz(func(t *testing.T, name string) {
		key := NameKey(name)
		for _, same := range []string{
			key, " " + name + "\u3000", norm.NFC.String(name), norm.NFD.String(name), norm.NFKC.String(name), norm.NFKD.String(name),
			cases.Fold().String(name),
		} {
			if got := NameKey(same); got != key {
				t.Errorf("%+q has the key %+q, and %+q has %+q", name, key, same, got)
			}
		}
		if strings.TrimSpace(key) != key || strings.Contains(key, "  ") || strings.ContainsFunc(key, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }) {
			t.Errorf("%q has the key %q", name, key)
		}
		if len(key) > 36*len(name) { // as long as Unicode lets one character become (U+FDFA), case folded
			t.Errorf("%q has a key of %d bytes", name, len(key))
		}
	})
}
