package company

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// NameKey gives a company's name as names are compared: without regard to
// case, to how its characters are encoded, and to the space around and between
// its words. It is its own key.
func NameKey(name string) string {
	// What folding makes of a few characters is not normal, and the other way
	// round; it settles in two or three rounds.
	for range 4 {
		// Folding swaps the cases of Cherokee, and so does not make them one.
		key := strings.ToLower(cases.Fold().String(norm.NFKC.String(name)))
		if key = strings.Join(strings.Fields(key), " "); key == name {
			break
		}
		name = key
	}
	return name
}
