package event

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
	"github.com/inletdev/inlet/openapi"
)

const typical = `{"id":"evt-2026-000184467","name":"trial_started","occurred_at":"2026-11-21T02:15:30.123+01:00",` +
	`"company":{"domain":"shop.globex.com"},"contact":{"email":"hank.scorpio@globex.com"},` +
	`"properties":{"plan":"enterprise","seats":250,"amount":1249.50,"annual":true,"source":"pricing-page"}}`

func TestAnEventIsReadWhole(t *testing.T) {
	body := []byte(` { "visitor" : {"id":"1c5b-A"}, "properties" : { "plan" : "a \"b\" \u00fc/\ud83d\ude00" ,
		"seats":-2.50e1, "annual" :false }, "contact":{"id":12.0},"company":{"domain":"https://Globex.com/"},
		"occurred_at":"2026-11-21T02:15:30.1239+01:30","name":"order_2","id":"#1~" } `)
	want := Event{
		ID: "#1~", Name: "order_2", OccurredAt: time.Date(2026, 11, 21, 0, 45, 30, 123e6, time.UTC),
		Company: CompanyRef{Domain: "https://Globex.com/"}, Contact: ContactRef{ID: 12}, Visitor: "1c5b-A",
		Properties: []Property{
			{Key: "plan", Type: TypeString, Text: `a "b" ü/😀`},
			{Key: "seats", Type: TypeNumber, Text: "-2.50e1"},
			{Key: "annual", Type: TypeBool, Text: "false"},
		},
		PropertiesJSON: `{"plan":"a \"b\" \u00fc/\ud83d\ude00","seats":-2.50e1,"annual":false}`,
	}
	got, f := Parse(body)
	if f != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, f, want)
	}
	clear(body) // its memory is the caller's again
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the event changes with the body it came in: %+v", got)
	}
}

func TestWhatAnEventDoesNotSayIsZero(t *testing.T) {
	got, f := Parse([]byte(`{"id":"1","name":"a","company":{"id":9007199254740991}}`))
	want := Event{ID: "1", Name: "a", Company: CompanyRef{ID: 1<<53 - 1}}
	if f != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, f, want)
	}
}

// with gives an event with one field replaced, added, or left out where the
// value is empty.
func with(field, value string) string {
	fields := []string{"id", "name", "company"}
	values := map[string]string{"id": `"1"`, "name": `"a"`, "company": `{"id":1}`}
	if _, ok := values[field]; !ok {
		fields = append(fields, field)
	}
	values[field] = value
	var b strings.Builder
	for i, name := range fields {
		if values[name] == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", fields[i], values[name])
	}
	return "{" + b.String() + "}"
}

func TestARefusalNamesTheField(t *testing.T) {
	entries := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":%d`, i, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for body, param := range map[string]string{
		"": "", " ": "", "null": "", "[]": "", `"x"`: "", "12": "",
		"{}": "id", `{"id":"1"}`: "name", `{"id":"1","name":"a"}`: "company",

		with("id", ""):      "id",
		with("id", "null"):  "id",
		with("id", "1"):     "id",
		with("id", `""`):    "id",
		with("id", `"a b"`): "id",
		with("id", `"ü"`):   "id",
		with("id", `"`+strings.Repeat("x", 101)+`"`): "id",
		with("name", ""):                              "name",
		with("name", `"Signed"`):                      "name",
		with("name", `"_a"`):                          "name",
		with("name", `"a-b"`):                         "name",
		with("name", `"`+strings.Repeat("x", 49)+`"`): "name",
		with("occurred_at", "null"):                   "occurred_at",
		with("occurred_at", "1763690000"):             "occurred_at",
		with("occurred_at", `"2026-02-30T00:00:00Z"`): "occurred_at",
		with("occurred_at", `"2026-11-21T00:00:00"`):  "occurred_at",
		with("company", ""):                           "company",
		with("company", "null"):                       "company",
		with("company", `"globex.com"`):               "company",
		with("company", "{}"):                         "company",
		with("company", `{"id":1,"domain":"a.b"}`):    "company",
		with("company", `{"id":0}`):                   "company.id",
		with("company", `{"id":-1}`):                  "company.id",
		with("company", `{"id":"1"}`):                 "company.id",
		with("company", `{"id":1.5}`):                 "company.id",
		with("company", `{"id":9007199254740992}`):    "company.id",
		with("company", `{"id":1e400}`):               "company.id",
		with("company", `{"id":null,"domain":"a.b"}`): "company.id",
		with("company", `{"id":1,"name":"Globex"}`):   "company.name",
		with("company", `{"Id":1}`):                   "company.Id",
		with("company", `{"email":"a@b.cd"}`):         "company.email",
		with("company", `{"id":1,"id":1}`):            "company.id",
		with("company", `{"domain":7}`):               "company.domain",
		with("company", `{"domain":""}`):              "company.domain",
		with("company", `{"domain":"a\u0000.b"}`):     "company.domain",
		with("contact", `{"id":0}`):                   "contact.id",
		with("contact", `{"email":""}`):               "contact.email",
		with("contact", `{"email":["a@b.cd"]}`):       "contact.email",
		with("contact", `{"domain":"a.b"}`):           "contact.domain",
		with("contact", "[]"):                         "contact",
		with("visitor", "null"):                       "visitor",
		with("visitor", "{}"):                         "visitor.id",
		with("visitor", `{"id":""}`):                  "visitor.id",
		with("visitor", `{"id":"a_b"}`):               "visitor.id",
		with("visitor", `{"id":"a","id":"b"}`):        "visitor.id",
		with("visitor", `{"id":"a","site":1}`):        "visitor.site",
		with("properties", "null"):                    "properties",
		with("properties", "[]"):                      "properties",
		with("properties", entries(51)):               "properties",
		with("properties", `{"plan":null}`):           "properties.plan",
		with("properties", `{"plan":{"a":1}}`):        "properties.plan",
		with("properties", `{"plan":[1]}`):            "properties.plan",
		with("properties", `{"plan":"a\u0000b"}`):     "properties.plan",
		with("properties", `{"plan":1,"plan":1}`):     "properties.plan",
		with("properties", `{"plan":1e400}`):          "properties.plan",
		with("properties", `{"plan":1e-1000000}`):     "properties.plan",
		with("properties", `{"Plan":1}`):              "properties.Plan",
		with("properties", `{"":1}`):                  "properties.",
		with("organization_id", "7"):                  "organization_id",
		with("workspace", `{"id":{"id":[]}}`):         "workspace",
		with("Id", `"1"`):                             "Id",
		with("id", `"1","id":"1"`):                    "id",
		with("properties", `{},"properties":{}`):      "properties",
		with(strings.Repeat("ü", 65), "1"):            strings.Repeat("ü", 64) + "…",
		with("properties", `{"plan":"\ud83d"}`):       "properties.plan",
		with("properties", `{"plan":"\ud83dx"}`):      "properties.plan",
		with("properties", `{"plan":"\ude00\ud83d"}`): "properties.plan",
		with("properties", "{\"plan\":\"\xff\"}"):     "properties.plan",
		with("properties", "{\"plan\":\"\\n\xc3(\"}"): "properties.plan",
		with("properties", "{\"plan\":\"a\nb\"}"):     "properties.plan",
		with("company", "{\"id\":1}, \"\xff\":1"):     "",
		with("x", strings.Repeat("[", 10_000)):        "x",
		with("id", strings.Repeat(`{"a":`, 10_000)):   "id",
		with("properties", `{"plan":1e}`):             "",
		with("properties", `{"plan":01}`):             "",
		with("properties", `{"plan":tru}`):            "",
		with("properties", `{"plan":"\x"}`):           "",
		with("properties", `{"plan":"\u00g0"}`):       "",
		with("properties", `{"plan":"`):               "",
		with("properties", `{"plan":1,}`):             "",
		with("properties", `{"plan" 1}`):              "",
		with("properties", `{plan:1}`):                "",
		with("company", `{"id":1}}`):                  "",
		with("name", `"a"`) + "x":                     "",
		with("name", `"a"`) + "{}":                    "",
		with("name", `"a"`) + "\x00":                  "",
		"\ufeff" + with("name", `"a"`):                "",
		with("name", `"a"`)[:20]:                      "",
	} {
		_, f := Parse([]byte(body))
		switch {
		case f == nil:
			t.Errorf("taken: %.200s", body)
		case f.Param != param || f.Code != fault.InvalidBody || f.Message == "":
			t.Errorf("%.200s\nis refused for %q: %s, want %q", body, f.Param, f.Message, param)
		}
	}
}

func TestOfSeveralFaultsTheGravestIsReported(t *testing.T) {
	for body, param := range map[string]string{
		`{"id":"a b","name":"A"}`:                                          "id",
		`{"name":"A","id":"a b"}`:                                          "id",
		`{"zz":1,"aa":1}`:                                                  "aa",
		`{"nme":"a","id":"1","company":{"id":1}}`:                          "nme",
		`{"visitor":{},"id":"1","name":"A"}`:                               "name",
		`{"visitor":{},"name":"a"}`:                                        "id",
		`{"name":7}`:                                                       "name",
		`{"company":{"id":0,"x":1},"contact":{}}`:                          "company.id",
		`{"properties":{"b":null,"a":null}}`:                               "properties.a",
		`{"properties":{"b":null},"properties":7}`:                         "properties",
		`{"id":7,"name":"a","company":{"id":1},"properties":{"a":"\ud800`:  "properties.a",
		`{"id":7,"name":"a","company":{"id":1}`:                            "",
		`{"id":7,"name":"a","company":{"id":1}} {}`:                        "",
		`{"organization_id":1,"company":{"id":1,"domain":"a.b"},"id":"1"}`: "company",
	} {
		if _, f := Parse([]byte(body)); f == nil || f.Param != param {
			t.Errorf("%s\nis refused for %+v, want %q", body, f, param)
		}
	}
}

func TestTimesAreRFC3339WithAZone(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-21T02:15:30Z":            "2026-11-21T02:15:30.000Z",
		"2026-11-21t02:15:30z":            "2026-11-21T02:15:30.000Z",
		"2026-11-21T02:15:30.1Z":          "2026-11-21T02:15:30.100Z",
		"2026-11-21T02:15:30.12Z":         "2026-11-21T02:15:30.120Z",
		"2026-11-21T02:15:30.999999999Z":  "2026-11-21T02:15:30.999Z",
		"2026-11-21T02:15:30.0009Z":       "2026-11-21T02:15:30.000Z",
		"2026-11-21T02:15:30+05:45":       "2026-11-20T20:30:30.000Z",
		"2026-12-31T23:59:59.5-00:30":     "2027-01-01T00:29:59.500Z",
		"2026-11-21T02:15:30-00:00":       "2026-11-21T02:15:30.000Z",
		"2024-02-29T00:00:00+23:59":       "2024-02-28T00:01:00.000Z",
		"0001-01-01T00:00:00Z":            "0001-01-01T00:00:00.001Z", // the zero time is "not given"
		"2025-02-29T00:00:00Z":            "",
		"2026-04-31T00:00:00Z":            "",
		"2026-00-01T00:00:00Z":            "",
		"2026-13-01T00:00:00Z":            "",
		"2026-01-00T00:00:00Z":            "",
		"2026-11-21T24:00:00Z":            "",
		"2026-11-21T23:60:00Z":            "",
		"2026-12-31T23:59:60Z":            "",
		"2026-11-21T02:15:30":             "",
		"2026-11-21":                      "",
		"2026-11-21T02:15Z":               "",
		"2026-11-21 02:15:30Z":            "",
		"2026-11-21T02:15:30,5Z":          "",
		"2026-11-21T02:15:30.Z":           "",
		"2026-11-21T02:15:30.1234567890Z": "",
		"2026-11-21T02:15:30+24:00":       "",
		"2026-11-21T02:15:30+01:60":       "",
		"2026-11-21T02:15:30+0100":        "",
		"2026-11-21T02:15:30+01":          "",
		"2026-11-21T02:15:30Z ":           "",
		"+2026-11-21T02:15:30Z":           "",
		"20261121T021530Z":                "",
		"2026-W47-6T02:15:30Z":            "",
		"２０２６-11-21T02:15:30Z":            "",
		"1763690130":                      "",
		"":                                "",
	} {
		got, ok := instant(text)
		if ok != (want != "") || ok && got.Format("2006-01-02T15:04:05.000Z07:00") != want {
			t.Errorf("%q is %s, %t; want %q", text, got.Format(time.RFC3339Nano), ok, want)
		}
	}
}

func TestWholeNumbersAreWholeHoweverTheyAreWritten(t *testing.T) {
	for literal, want := range map[string]int64{
		"12": 12, "12.0": 12, "12.000": 12, "1e3": 1000, "1E+3": 1000, "1.2e1": 12, "120e-1": 12, "0.012e3": 12, "-7": -7,
		"9007199254740993": 9007199254740993, "9007199254740993.0": 9007199254740993, "90071992547409930e-1": 9007199254740993,
		"0": 0, "-0.0": 0, "0e99999999999999999999": 0, "0.0e-99999999999999999999": 0,
	} {
		if got, ok := whole(literal); !ok || got != want {
			t.Errorf("%s is %d, %t; want %d", literal, got, ok, want)
		}
	}
	for _, literal := range []string{"1.5", "125e-1", "1e-3", "1e400", "1e99999999999999999999", "1e-99999999999999999999",
		"1e-9223372036854775808", "1e9223372036854775807", "1180591620717411303424", "0." + strings.Repeat("0", 1000) + "1e1000"} {
		if got, ok := whole(literal); ok {
			t.Errorf("%s is the whole number %d", literal, got)
		}
	}
}

func TestABatchJudgesEachEventOnItsOwn(t *testing.T) {
	good := with("name", `"a"`)
	body := `{"events": [` + strings.Join([]string{
		good,
		with("company", `{"domain":7}`),
		`"x"`, `null`, `[[]]`,
		with("id", `"a b"`),
		with("id", `"1","id":"2"`),
		with("properties", `{"a":1,"a":2}`),
		with("properties", `{"a":"\u0000"}`),
		with("organization_id", `{"a":1,"a":2}`),
		`{}`,
		typical,
	}, " ,\n") + `] }`
	got, f := ParseBatch([]byte(body))
	if f != nil {
		t.Fatalf("refused as a whole: %s: %s", f.Param, f.Message)
	}
	want := []struct{ id, param string }{
		{"1", "-"}, {"1", "company.domain"}, {"", ""}, {"", ""}, {"", ""}, {"", "id"}, {"", "id"}, {"1", "properties.a"},
		{"1", "properties.a"}, {"1", "organization_id"}, {"", "id"}, {"evt-2026-000184467", "-"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i, p := range got {
		param := "-"
		if p.Fault != nil {
			param = p.Fault.Param
			if p.Fault.Code != fault.InvalidBody || !reflect.DeepEqual(p.Event, Event{ID: p.ID, Name: p.Name}) {
				t.Errorf("event %d is refused with %s, and says %+v", i, p.Fault.Code.Name, p.Event)
			}
		}
		if p.ID != want[i].id || param != want[i].param {
			t.Errorf("event %d has the id %q and is refused for %q; want %q and %q", i, p.ID, param, want[i].id, want[i].param)
		}
	}
	alone, _ := Parse([]byte(typical))
	if last := got[len(got)-1].Event; !reflect.DeepEqual(last, alone) {
		t.Errorf("in a batch: %+v\nalone: %+v", last, alone)
	}
}

func TestEventsOfABatchAreReadAsIfAlone(t *testing.T) {
	g := generator{seeded(1)}
	for range 300 {
		var bodies []string
		for range 1 + g.IntN(limit.BatchEvents) {
			if body := g.event(); json.Valid([]byte(body)) {
				if _, f := Parse([]byte(body)); f == nil || !strings.Contains(f.Message, "surrogate") && !strings.Contains(f.Message, "UTF-8") {
					bodies = append(bodies, body)
				}
			}
		}
		if len(bodies) == 0 {
			continue
		}
		got, f := ParseBatch([]byte(`{"events":[` + strings.Join(bodies, ",") + `]}`))
		if f != nil || len(got) != len(bodies) {
			t.Fatalf("%d of %d events: %+v", len(got), len(bodies), f)
		}
		for i, body := range bodies {
			e, f := Parse([]byte(body))
			if f != nil {
				e.ID = got[i].ID
			}
			if !reflect.DeepEqual(got[i], Parsed{e, f}) {
				t.Fatalf("%s\nin a batch: %+v\nalone: %+v, %+v", body, got[i], e, f)
			}
		}
	}
}

func TestABatchThatCannotBeReadIsRefusedWhole(t *testing.T) {
	good := with("name", `"a"`)
	batch := func(n int) string { return `{"events":[` + strings.Repeat(good+",", n-1) + good + `]` }
	for body, want := range map[string]struct {
		code  *fault.Code
		param string
	}{
		"":                                      {fault.InvalidBody, ""},
		"[]":                                    {fault.InvalidBody, ""},
		"[" + good + "]":                        {fault.InvalidBody, ""},
		"null":                                  {fault.InvalidBody, ""},
		"{}":                                    {fault.InvalidBody, "events"},
		`{"events":null}`:                       {fault.InvalidBody, "events"},
		`{"events":{}}`:                         {fault.InvalidBody, "events"},
		`{"events":[]}`:                         {fault.InvalidBody, "events"},
		batch(1) + `,"events":[` + good + `]}`:  {fault.InvalidBody, "events"},
		batch(1) + `,"test":true}`:              {fault.InvalidBody, "test"},
		`{"b":1,"a":1}`:                         {fault.InvalidBody, "a"},
		good:                                    {fault.InvalidBody, "company"},
		batch(1):                                {fault.InvalidBody, ""},
		batch(1) + "}}":                         {fault.InvalidBody, ""},
		batch(1) + "} x":                        {fault.InvalidBody, ""},
		`{"events":[` + good + `,]}`:            {fault.InvalidBody, ""},
		`{"events":[` + good + good + `]}`:      {fault.InvalidBody, ""},
		`{"events":[{"id":"1",}]}`:              {fault.InvalidBody, ""},
		`{"events":[{"id":"` + "\xff" + `"}]}`:  {fault.InvalidBody, "events"},
		`{"events":[{"id":"\ud800"}]}`:          {fault.InvalidBody, "events"},
		`{"events":[{"id":"1"},"` + "\xff\"]}":  {fault.InvalidBody, "events"},
		`{"events":[],"a":"` + "\xff" + `"}`:    {fault.InvalidBody, "a"},
		`{"events":` + strings.Repeat("[", 1e4): {fault.InvalidBody, "events"},
		batch(101) + "}":                        {fault.BatchTooLarge, "events"},
		batch(101) + `,"a":1}`:                  {fault.BatchTooLarge, "events"},
		batch(101):                              {fault.InvalidBody, ""},
	} {
		got, f := ParseBatch([]byte(body))
		if got != nil || f == nil || f.Code != want.code || f.Param != want.param || f.Message == "" {
			t.Errorf("%.300s\ngives %d events and %+v, want %s for %q", body, len(got), f, want.code.Name, want.param)
		}
	}
	if got, f := ParseBatch([]byte(batch(100) + "}")); len(got) != 100 || f != nil {
		t.Errorf("a batch of 100 gives %d events and %+v", len(got), f)
	}
}

func TestParsingAllocatesNoMoreForMoreFields(t *testing.T) {
	body := []byte(typical)
	// One copy of the body, one list of properties.
	if n := testing.AllocsPerRun(100, func() { _, _ = Parse(body) }); n > 2 {
		t.Errorf("%v allocations for an event", n)
	}
}

// encode writes an event as a client would.
func encode(e Event) []byte {
	body := map[string]any{"id": e.ID, "name": e.Name}
	if !e.OccurredAt.IsZero() {
		body["occurred_at"] = e.OccurredAt.Format("2006-01-02T15:04:05.000Z07:00")
	}
	switch {
	case e.Company.ID != 0:
		body["company"] = map[string]any{"id": e.Company.ID}
	case e.Company.Domain != "":
		body["company"] = map[string]any{"domain": e.Company.Domain}
	}
	switch {
	case e.Contact.ID != 0:
		body["contact"] = map[string]any{"id": e.Contact.ID}
	case e.Contact.Email != "":
		body["contact"] = map[string]any{"email": e.Contact.Email}
	}
	if e.Visitor != "" {
		body["visitor"] = map[string]any{"id": e.Visitor}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if e.PropertiesJSON != "" { // apart, because Marshal would write its escapes anew
		raw = append(raw[:len(raw)-1], `,"properties":`+e.PropertiesJSON+"}"...)
	}
	return raw
}

// FuzzParse holds Parse to the schema of the document in both directions, to
// encoding/json, and to itself: an event that is written anew is read as the same.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		compare(t, body)
		e, fault := Parse(body)
		if fault != nil {
			if !said.MatchString(fault.Message) {
				t.Errorf("%q is refused with %q", body, fault.Message)
			}
			isBroken := slices.Contains([]string{nestedDeep, notUTF8, halfPair}, fault.Message)
			if json.Valid(body) && !isBroken && levels(body) > maxDepth+2 { // an event has two of its own
				t.Errorf("%q is refused with %q, and not for its nesting", body, fault.Message)
			}
			if !reflect.DeepEqual(e, e.named()) {
				t.Errorf("%q is refused, and says %+v", body, e)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("taken, though no JSON: %q", body)
		}
		if e.PropertiesJSON != "" {
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(e.PropertiesJSON)); err != nil || compact.String() != e.PropertiesJSON {
				t.Errorf("the properties are not compact: %s, %v", e.PropertiesJSON, err)
			}
		}
		if year := e.OccurredAt.Year(); year < 0 || year > 9999 {
			return // a client cannot write it in UTC
		}
		again, fault := Parse(encode(e))
		if fault != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%q gives %+v, which comes back as %+v, %+v", body, e, again, fault)
		}
	})
}

// levels are how many objects and arrays of a body stand inside each other.
func levels(body []byte) (deepest int) {
	level := 0
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		switch token, err := d.Token(); {
		case err != nil:
			return deepest
		case token == json.Delim('{'), token == json.Delim('['):
			level++
			deepest = max(deepest, level)
		case token == json.Delim('}'), token == json.Delim(']'):
			level--
		}
	}
}

// said are all messages of refusals: none quotes what was sent.
var said = regexp.MustCompile(`^(want (a JSON object|a string|an object|text without U\+0000|a whole number from 1 to 9007199254740991` +
	`|1 to \d+ (visible ASCII characters|characters|letters, digits and dashes)|at most \d+ (characters|entries, not \d+|events, not \d+)` +
	`|a (key of a )?lower-case letter, then a-z, 0-9 and underscore, at most \d+ characters` +
	`|a date and time with its zone, such as 2026-01-31T08:30:00.000Z|a number that a double-precision float can hold` +
	`|a string, a number or a boolean|exactly one of id and (domain|email)|an array of 1 to 100 events)` +
	`|no such field; compare its spelling with the reference|the field stands twice; send it once|the field is required` +
	`|name at least one of company, contact and visitor, to say who the event is about` +
	`|the body is not valid (UTF-8|JSON)|a string holds (half of a surrogate pair|a control character; write it as an escape)` +
	`|the value is nested too deeply|something follows the JSON value; want one value alone)$`)

// FuzzParseBatch holds ParseBatch to encoding/json and to Parse: what is taken is
// an object with nothing but 1 to 100 events, each read as if it had come alone,
// and whatever is such an object is taken. A body of the largest size made of the
// input is read in no time.
func FuzzParseBatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		got, refusal := ParseBatch(body)
		var envelope map[string]json.RawMessage
		var alone []json.RawMessage
		isBatch := json.Unmarshal(body, &envelope) == nil && len(envelope) == 1 && json.Unmarshal(envelope["events"], &alone) == nil &&
			1 <= len(alone) && len(alone) <= limit.BatchEvents
		switch {
		case refusal != nil:
			if isBatch && strictjson.Check(body) == nil {
				t.Errorf("%q is refused for %q: %s", body, refusal.Param, refusal.Message)
			}
			if got != nil || !said.MatchString(refusal.Message) || refusal.Code != fault.InvalidBody && refusal.Code != fault.BatchTooLarge {
				t.Errorf("%q gives %d events and is refused with %s: %q", body, len(got), refusal.Code.Name, refusal.Message)
			}
		case !isBatch || len(got) != len(alone):
			t.Errorf("%q is taken as %d events of %d", body, len(got), len(alone))
		default:
			for i, one := range alone {
				e, f := Parse(one)
				if !reflect.DeepEqual(got[i], Parsed{e, f}) {
					t.Errorf("%q\nin a batch: %+v\nalone: %+v, %+v", one, got[i], e, f)
				}
			}
		}
		if len(body) > 0 && (len(body) <= 16 || crc32.ChecksumIEEE(body)%256 == 0) {
			const largest = 256 << 10
			begun := time.Now()
			for _, start := range []string{"", `{"events":[`, `{"events":[{"properties":{`, `{"events":[{"x":`} {
				_, _ = ParseBatch([]byte(start + strings.Repeat(string(body), (largest-len(start))/len(body))))
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("%q, as often as it fits a body, takes %v", body, took)
			}
		}
	})
}

// pattern of occurred_at, as the document has it.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	var document struct {
		Components struct {
			Schemas struct {
				EventInput struct {
					Properties map[string]struct{ Pattern string }
				}
			}
		}
	}
	if err := json.Unmarshal(openapi.JSON(), &document); err != nil {
		panic(err)
	}
	return regexp.MustCompile(document.Components.Schemas.EventInput.Properties["occurred_at"].Pattern)
})

// FuzzLiterals holds times to the document's pattern and to package time, and
// numbers to math/big and strconv.
func FuzzLiterals(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := instant(text)
		if want := pattern().MatchString(text); ok != want {
			t.Errorf("%q is a time: %t, and for the document %t", text, ok, want)
		}
		if ok {
			want, err := time.Parse(time.RFC3339, strings.ToUpper(text))
			if want = want.Truncate(time.Millisecond).UTC(); want.IsZero() {
				want = want.Add(time.Millisecond)
			}
			if err != nil || !at.Equal(want) || at.Location() != time.UTC {
				t.Errorf("%q is %v, want %v, %v", text, at, want, err)
			}
		}

		s := scanner{text: text}
		if text == "" || !isNumber(text[0]) {
			return
		}
		literal := s.number()
		if valid := json.Valid([]byte(text)); valid != (s.broken == "" && strings.Trim(text[s.pos:], " \t\r\n") == "") {
			t.Errorf("%q is read as the number %q: %s", text, literal, s.broken)
		}
		if s.broken != "" {
			return
		}
		_, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
		n, err := strconv.Atoi(cmp.Or(exponent, "0"))
		bounded := err == nil && n <= 400 && n >= -400
		if _, err := strconv.ParseFloat(literal, 64); strictjson.IsFinite(literal) != (err == nil && bounded) {
			t.Errorf("%s is finite: %t", literal, err != nil)
		}
		if !strictjson.IsFinite(literal) {
			return // too large to be written out
		}
		exact, _ := new(big.Rat).SetString(literal)
		integer, isWhole := whole(literal)
		most := new(big.Int).SetInt64(math.MaxInt64)
		if want := exact.IsInt() && exact.Num().CmpAbs(most) <= 0; isWhole != want || want && exact.Num().Int64() != integer {
			t.Errorf("%s is the whole number %d, %t; want %s, %t", literal, integer, isWhole, exact.Num(), want)
		}
		if digits, ok := wholeDigits(literal); ok != (exact.IsInt() && len(strings.TrimPrefix(exact.Num().String(), "-")) <= 40) ||
			ok && digits != strings.TrimPrefix(exact.Num().String(), "-") {
			t.Errorf("%s has the digits %s, %t; want %s", literal, digits, ok, exact)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	body := []byte(typical)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := Parse(body); f != nil {
			b.Fatal(f.Message)
		}
	}
}

func BenchmarkParseBatchOf100(b *testing.B) {
	body := []byte(`{"events":[` + strings.Repeat(typical+",", 99) + typical + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := ParseBatch(body); f != nil {
			b.Fatal(f.Message)
		}
	}
}
