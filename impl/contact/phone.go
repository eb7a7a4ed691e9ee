package contact

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// NormalizePhone gives a phone number in E.164 form, with its extension where it
// has one. A number that does not say its country stays as it was written: to
// assume one would be a guess.
func NormalizePhone(s string) string {
	s = strings.TrimSpace(s)
	number, err := phonenumbers.Parse(s, phonenumbers.UNKNOWN_REGION)
	if err != nil || !phonenumbers.IsValidNumber(number) {
		return s
	}
	e164 := phonenumbers.Format(number, phonenumbers.E164)
	if extension := number.GetExtension(); extension != "" {
		return e164 + ";ext=" + extension
	}
	return e164
}
