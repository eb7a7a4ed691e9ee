package contact

import "testing"

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

func FuzzNormalizePhoneLeavesWhatItGives(f *testing.F) {
	for _, seed := range []string{"+1 (415) 555-2671", "+44 20 7946 0958 x12", "tel:+49;phone-context=+49", "+1-800-FLOWERS", "٠٠"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		number := NormalizePhone(given)
		if again := NormalizePhone(number); again != number {
			t.Errorf("%q gives %q, which gives %q", given, number, again)
		}
	})
}
