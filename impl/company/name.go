package company

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// NameKey gives a company's name as names are compared: without regard to
// case, to how its characters are encoded, and to the space around and between
// its words.
func NameKey(name string) string {
	return strings.Join(strings.Fields(cases.Fold().String(norm.NFKC.String(name))), " ")
}
