package lead

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
)

func TestExtraFieldsAreTextNumbersAndBooleans(t *testing.T) {
	for value, kept := range map[string]bool{
		`"x"`: true, `""`: true, `"{"`: true, `"[1]"`: true, `"null"`: true, `0`: true, `-1.5e3`: true, `true`: true, `false`: true,
		`null`: false, `{}`: false, `[]`: false, `{"a":"b"}`: false, `["a"]`: false,
		`"` + strings.Repeat("x", 200000) + `"`: true,
		`1` + strings.Repeat("0", 308):          true,
		`0.` + strings.Repeat("1", 20000):       false, // more digits than PostgreSQL's numeric has
		`-0.` + strings.Repeat("1", 20000):      false,
	} {
		var got map[string]json.RawMessage
		if err := json.Unmarshal(extra(map[string]json.RawMessage{"f": json.RawMessage(value)}), &got); err != nil {
			t.Fatal(err)
		}
		if (got["f"] != nil) != kept || kept && string(got["f"]) != value {
			t.Errorf("%.40s is kept as %.40s", value, got["f"])
		}
	}
}

func TestTheFirstFiftyExtraFieldsByNameAreKept(t *testing.T) {
	fields := map[string]json.RawMessage{}
	for i := range 100 {
		fields[fmt.Sprintf("f%02d", i)] = json.RawMessage(`1`)
		fields[fmt.Sprintf("a%02d", i)] = json.RawMessage(`[]`)
	}
	var got map[string]int
	if err := json.Unmarshal(extra(fields), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 50 || got["f00"] != 1 || got["f49"] != 1 {
		t.Errorf("got %v", got)
	}
}

func TestTheFirst128CharactersOfAKeyCount(t *testing.T) {
	for key, want := range map[string]string{
		"":                          "",
		"k":                         "k",
		strings.Repeat("k", 128):    strings.Repeat("k", 128),
		strings.Repeat("k", 129):    strings.Repeat("k", 128),
		strings.Repeat("ü", 200):    strings.Repeat("ü", 128),
		strings.Repeat("😀", 128):    strings.Repeat("😀", 128),
		"k\xff":                     "kÿ",
		strings.Repeat("\xe4", 200): strings.Repeat("ä", 128),
	} {
		if got := firstCharacters(key); got != want {
			t.Errorf("%q gives %q", key, got)
		}
	}
}

// FuzzRead reads leads of any text: what is kept is what the database can hold,
// one line each and no longer than the limits, and read again it stays as it is.
// A refusal names a field and quotes nothing.
func FuzzRead(f *testing.F) {
	f.Fuzz(func(t *testing.T, email, name, phone, linkedIn, domain, key, fields string) {
		// The document lets nothing else in.
		for _, text := range []*string{&email, &name, &phone, &linkedIn, &domain} {
			*text = strings.ReplaceAll(strings.ToValidUTF8(*text, "?"), "\x00", "")
		}
		l := Lead{Email: email, Name: name, Phone: phone, LinkedInURL: linkedIn, CompanyDomain: domain, CompanyName: phone, UTMSource: domain, IdempotencyKey: key}
		if strictjson.Check([]byte(fields)) == nil {
			_ = json.Unmarshal([]byte(fields), &l.Extra) // what is no object has no fields
		}
		record, person, err := l.read()
		if err != nil {
			var f *fault.Fault
			if !errors.As(err, &f) || f.Code != fault.InvalidLead || !said[f.Message] ||
				!slices.Contains([]string{"email", "name", "phone", "linkedin_url", "company.domain", "company.name", "utm.source"}, f.Param) {
				t.Errorf("%+v is refused for %+v", l, err)
			}
			if person != (contact.Person{}) || !reflect.DeepEqual(record, reflect.Zero(reflect.TypeOf(record)).Interface()) {
				t.Errorf("%+v is refused, and says %+v", l, person)
			}
			return
		}
		for field, longest := range map[*string]int{
			&record.Email: limit.LeadEmailLength, &record.Name: limit.LeadTextLength, &record.Phone: limit.LeadTextLength,
			&record.LinkedInURL: limit.LeadLinkedInLength, &record.CompanyDomain: limit.LeadTextLength, &record.CompanyName: limit.LeadTextLength, &record.UTMSource: limit.LeadTextLength,
		} {
			if !utf8.ValidString(*field) || utf8.RuneCountInString(*field) > longest || strings.ContainsFunc(*field, unicode.IsControl) || strings.TrimSpace(*field) != *field {
				t.Errorf("%+v keeps %q", l, *field)
			}
		}
		if record.Email == "" && record.Name == "" {
			t.Errorf("%+v has neither address nor name", l)
		}
		if person.Email != record.Email || person.LinkedInURL != "" && person.LinkedInURL != record.LinkedInURL || person.CompanyDomain != "" && person.CompanyDomain != record.CompanyDomain {
			t.Errorf("%+v is kept as %+v and looked for as %+v", l, record, person)
		}
		if person.EmailDomain != "" && record.Test != company.IsReserved(person.EmailDomain) {
			t.Errorf("%q is a test: %t", person.EmailDomain, record.Test)
		}
		if !utf8.ValidString(record.IdempotencyKey) || utf8.RuneCountInString(record.IdempotencyKey) > limit.LeadIdempotencyKeyLength {
			t.Errorf("%q is kept as the key %q", key, record.IdempotencyKey)
		}
		l.Email, l.Phone, l.LinkedInURL, l.CompanyDomain = record.Email, record.Phone, record.LinkedInURL, record.CompanyDomain
		l.Name, l.CompanyName, l.UTMSource, l.IdempotencyKey = record.Name, record.CompanyName, record.UTMSource, record.IdempotencyKey
		if again, same, err := l.read(); err != nil || !reflect.DeepEqual(again, record) || same != person {
			t.Errorf("%+v becomes %+v when it is read again, %v", record, again, err)
		}
		kept := holdsExtra(t, l.Extra, record.Extra)
		if most := min(len(l.Extra), limit.LeadExtraFields); kept > most {
			t.Errorf("%d fields are kept of %d", kept, len(l.Extra))
		}
	})
}

// said are all messages of refusals: none quotes what was sent.
var said = map[string]bool{
	"want at most 320 characters": true, "want at most 512 characters": true, "want at most 2048 characters": true,
	"A lead needs at least email or name.": true, "want an e-mail address such as hank@globex.com": true,
}

// holdsExtra makes sure that what is kept are text, numbers and booleans, as they
// were sent.
func holdsExtra(t *testing.T, sent map[string]json.RawMessage, raw []byte) int {
	t.Helper()
	var kept, wanted map[string]any
	if err := json.Unmarshal(raw, &kept); err != nil || strictjson.Check(raw) != nil {
		t.Fatalf("%s is kept: %v", raw, err)
	}
	whole, err := json.Marshal(sent)
	if err != nil || json.Unmarshal(whole, &wanted) != nil {
		t.Fatal(err)
	}
	for name, value := range kept {
		switch value.(type) {
		case string, float64, bool:
		default:
			t.Errorf("%q is kept as %v", name, value)
		}
		if value != wanted[name] {
			t.Errorf("%q is kept as %v, and was %v", name, value, wanted[name])
		}
	}
	last := ""
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		last = name
	}
	for name, value := range wanted {
		switch value.(type) {
		case string, bool:
			if kept[name] == nil && (len(kept) < limit.LeadExtraFields || name < last) {
				t.Errorf("%q is not kept", name)
			}
		}
	}
	return len(kept)
}
