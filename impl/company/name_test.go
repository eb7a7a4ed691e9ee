package company

import "testing"

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
