package form

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
)

// FuzzAnswer fills in a form of any fields with any values: a form that its owner
// may have takes what is asked for, and no more, to where it belongs, and refuses
// the rest with the name of a field that was sent or is asked for, quoting nothing.
func FuzzAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, asked, answered, pageURL string) {
		names := strings.Split(asked, ",")
		if CheckName(asked) == nil && (strings.TrimSpace(asked) == "" || utf8.RuneCountInString(asked) > limit.FormNameLength) {
			t.Errorf("%q is taken for a name", asked)
		}
		if CheckFields(names) != nil {
			return
		}
		if len(names) > limit.FormFields || !slices.Contains(names, "email") && !slices.Contains(names, "name") {
			t.Errorf("a form may have the fields %q", names)
		}
		form := Form{Fields: fields(names)}
		for i, field := range form.Fields {
			if field.Name != names[i] || field.Label == "" || field.MaxLength < 1 || len(field.Name) > limit.FormFieldLength {
				t.Errorf("the field %q is described as %+v", names[i], field)
			}
		}
		// The document lets nothing else in.
		values := map[string]string{}
		if strictjson.Check([]byte(answered)) != nil || json.Unmarshal([]byte(answered), &values) != nil {
			return
		}
		pageURL = strings.ReplaceAll(strings.ToValidUTF8(pageURL, "?"), "\x00", "")
		l, err := form.lead(Answer{Values: values, PageURL: pageURL})
		if err != nil {
			var refused *fault.Fault
			if !errors.As(err, &refused) || refused.Code != fault.InvalidRequest || !said[refused.Message] {
				t.Fatalf("%q is refused with %+v", values, err)
			}
			name, ok := strings.CutPrefix(refused.Param, "fields.")
			isSent := false
			for sent := range values {
				isSent = isSent || strictjson.Clip(sent) == name
			}
			if !ok || !isSent && !slices.Contains(names, name) {
				t.Errorf("%q of the fields %q is refused for %q", values, names, refused.Param)
			}
			return
		}
		for name, value := range values {
			i := slices.Index(names, name)
			if i < 0 {
				t.Fatalf("%q is taken, which is not asked for", name)
			}
			if utf8.RuneCountInString(value) > form.Fields[i].MaxLength && contact.OneLine(value) != "" {
				t.Errorf("%q takes %d characters", name, utf8.RuneCountInString(value))
			}
			var kept string
			if raw, ok := l.Extra[name]; ok && (json.Unmarshal(raw, &kept) != nil || kept != value) {
				t.Errorf("%q is kept as %s", value, raw)
			}
			if _, known := ofALead[name]; known && l.Extra[name] != nil || !known && l.Extra[name] == nil && contact.OneLine(value) != "" {
				t.Errorf("%q of %q goes to %+v", value, name, l)
			}
		}
		if l.Email != values["email"] && contact.OneLine(values["email"]) != "" || l.Name != values["name"] && contact.OneLine(values["name"]) != "" {
			t.Errorf("%q is the lead %+v", values, l)
		}
		if len(l.Extra) > len(values)+1 {
			t.Errorf("%q leaves %d fields", values, len(l.Extra))
		}
	})
}

// said are all messages of refusals: none quotes what was sent.
var said = map[string]bool{
	"the field is required": true, "the form has no such field": true, "want at most 320 characters": true,
	"want at most 512 characters": true, "want at most 2048 characters": true,
	"want an e-mail address such as hank@globex.com": true, "A lead needs at least email or name.": true,
}
