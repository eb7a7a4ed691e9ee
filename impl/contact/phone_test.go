package contact

import (
	"regexp"
	"strings"
	"testing"
)

func TestAPhoneNumberThatSaysItsCountryIsWrittenOneWay(t *testing.T) {
	for given, want := range map[string]string{
		"+1 (415) 555-2671":        "+14155552671",
		"+14155552671":             "+14155552671",
		"tel:+1-415-555-2671":      "+14155552671",
		"＋86 138 0013 8000":        "+8613800138000",
		"+٩٦٦٥٠١٢٣٤٥٦٧":            "+966501234567",
		"+49 (0)30 901820":         "+4930901820",
		"+44 20 7946 0958 ext. 12": "+442079460958;ext=12",
		"+442079460958;ext=12":     "+442079460958;ext=12",
		// What does not, or is no number, stays as it was written.
		"415 555 2671": "415 555 2671", "030 901820": "030 901820", "0049 30 901820": "0049 30 901820",
		"+999999": "+999999", "+1 415": "+1 415", "n/a": "n/a", "call me": "call me", "": "", "+": "+", "+++++": "+++++",
	} {
		if got := NormalizePhone(given); got != want {
			t.Errorf("%q gives %q, want %q", given, got, want)
		}
		if got := NormalizePhone(want); got != want {
			t.Errorf("%q gives %q the second time", want, got)
		}
	}
}

// FuzzNormalizePhone takes what somebody typed as a telephone number: what comes
// out is E.164 with its extension, else what was typed, and comes out as it is.
func FuzzNormalizePhone(f *testing.F) {
	f.Fuzz(func(t *testing.T, given string) {
		number := NormalizePhone(given)
		if again := NormalizePhone(number); again != number {
			t.Errorf("%q gives %q, which gives %q", given, number, again)
		}
		if number != strings.TrimSpace(given) && !e164.MatchString(number) {
			t.Errorf("%q gives %q, which is neither E.164 nor what was typed", given, number)
		}
	})
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,17}(;ext=[0-9]{1,20})?$`) // some countries have numbers of more than 15 digits
