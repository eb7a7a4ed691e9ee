package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

func (w seeded) record(t testing.TB, s server, event string) answer {
	t.Helper()
	return s.send(t, "POST", "/api/v1/events", event, w.Key("all"))
}

// stored gives a column of an event as the database has it.
func (w seeded) stored(t testing.TB, id, column string) *string {
	t.Helper()
	return dbtest.Query[*string](t, dbtest.URL(t),
		`select (`+column+`)::text from events where workspace_id = $1 and id = $2`, w.ID, id)
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func TestAnEventIsMatchedToWhoItNames(t *testing.T) {
	t.Parallel()
	s, w, foreign := sharedServer(t), workspace(t), workspace(t)
	globex, initech := w.Companies["globex"], w.Companies["initech"]
	hank, milton, alone := w.Contacts["hank"], w.Contacts["milton"], w.Contacts["alone"]
	none := int64(0)
	for i, c := range []struct {
		about            string
		status           string
		company, contact int64
	}{
		{`"company":{"domain":"globex.com"}`, "accepted", globex, none},
		{`"company":{"domain":"HTTPS://www.Globex.com:443/pricing?x=1"}`, "accepted", globex, none},
		{`"company":{"domain":"shop.eu.globex.com"}`, "accepted", globex, none},
		{`"company":{"domain":"globex.de."}`, "accepted", globex, none},
		{`"company":{"domain":"BÜCHER.example"}`, "accepted", globex, none},
		{`"company":{"domain":"xn--bcher-kva.example"}`, "accepted", globex, none},
		{`"company":{"domain":"mail.initech.co.uk"}`, "accepted", initech, none},
		{`"company":{"domain":"other.co.uk"}`, "unmatched", none, none},
		{`"company":{"domain":"globex.org"}`, "unmatched", none, none},
		{fmt.Sprintf(`"company":{"id":%d}`, globex), "accepted", globex, none},
		{fmt.Sprintf(`"company":{"id":%d.0}`, globex), "accepted", globex, none},
		{fmt.Sprintf(`"company":{"id":%d}`, foreign.Companies["globex"]), "unmatched", none, none},
		{`"company":{"id":9007199254740991}`, "unmatched", none, none},
		{`"contact":{"email":"hank@globex.com"}`, "accepted", globex, hank},
		{`"contact":{"email":"HANK@GLOBEX.COM"}`, "accepted", globex, hank},
		{`"contact":{"email":"milton@gmail.com"}`, "accepted", initech, milton},
		{`"contact":{"email":"alone@example.org"}`, "accepted", none, alone},
		{`"contact":{"email":"nobody@globex.com"}`, "unmatched", none, none},
		{`"contact":{"email":"not an address"}`, "unmatched", none, none},
		{fmt.Sprintf(`"contact":{"id":%d}`, hank), "accepted", globex, hank},
		{fmt.Sprintf(`"contact":{"id":%d}`, foreign.Contacts["hank"]), "unmatched", none, none},
		{`"visitor":{"id":"v-hank"}`, "accepted", globex, hank},
		{`"visitor":{"id":"v-nobody"}`, "pending_identity", none, none},
		{`"visitor":{"id":"never-seen"}`, "pending_identity", none, none},
		// A company and a contact are both recorded as named.
		{fmt.Sprintf(`"company":{"id":%d},"contact":{"id":%d}`, initech, hank), "accepted", initech, hank},
		// One that is absent makes the event unmatched, whatever else is named.
		{fmt.Sprintf(`"company":{"domain":"nobody.example"},"contact":{"id":%d}`, hank), "unmatched", none, none},
		{fmt.Sprintf(`"company":{"id":%d},"contact":{"email":"no@globex.com"}`, globex), "unmatched", none, none},
		{`"company":{"domain":"nobody.example"},"visitor":{"id":"v-hank"}`, "unmatched", none, none},
		{`"contact":{"email":"no@globex.com"},"visitor":{"id":"v-hank"}`, "unmatched", none, none},
		// A visitor supplies the person only if that person works at the company.
		{`"company":{"domain":"globex.com"},"visitor":{"id":"v-hank"}`, "accepted", globex, hank},
		{`"company":{"domain":"initech.co.uk"},"visitor":{"id":"v-hank"}`, "accepted", initech, none},
		{`"company":{"domain":"globex.com"},"visitor":{"id":"v-nobody"}`, "accepted", globex, none},
		{fmt.Sprintf(`"contact":{"id":%d},"visitor":{"id":"v-hank"}`, milton), "accepted", initech, milton},
	} {
		id := fmt.Sprintf("m%d", i)
		a := w.record(t, s, fmt.Sprintf(`{"id":%q,"name":"signed_up",%s}`, id, c.about))
		if a.status != 202 || a.field("status") != c.status || a.field("id") != id {
			t.Errorf("%s answers %d %s, want %s", c.about, a.status, a.body, c.status)
			continue
		}
		want := func(id int64) string {
			if id == none {
				return "null"
			}
			return fmt.Sprint(id)
		}
		if got := text(w.stored(t, id, "company_id")); got != want(c.company) {
			t.Errorf("%s has the company %s, want %s", c.about, got, want(c.company))
		}
		if got := text(w.stored(t, id, "contact_id")); got != want(c.contact) {
			t.Errorf("%s has the contact %s, want %s", c.about, got, want(c.contact))
		}
		if visitor := w.stored(t, id, "visitor_id"); (visitor != nil) != (c.status == "pending_identity") {
			t.Errorf("%s keeps the visitor %s", c.about, text(visitor))
		}
	}
	if hint := text(w.stored(t, "m1", "domain_hint")); hint != "globex.com" {
		t.Errorf("the domain hint is %s", hint)
	}
}

func TestAnIDIsRecordedOnce(t *testing.T) {
	t.Parallel()
	s, w, foreign := sharedServer(t), workspace(t), workspace(t)
	const event = `{"id":"once","name":"signed_up","company":{"domain":"globex.com"}}`
	first := w.record(t, s, event)
	if first.field("status") != "accepted" {
		t.Fatalf("%s", first.body)
	}
	for _, repeat := range []string{
		event,
		`{"id":"once","name":"other","visitor":{"id":"v"}}`,
		// What breaks a rule is a repeat all the same.
		`{"id":"once","name":"signed_up","company":{"domain":"globex"}}`,
		`{"id":"once","name":"legacy_event","company":{"domain":"globex.com"}}`,
		`{"id":"once","name":"signed_up","occurred_at":"2001-01-01T00:00:00Z","company":{"domain":"globex.com"}}`,
		`{"id":"once","name":"signed_up","company":{"domain":"globex.com"},"properties":{"email":"x"}}`,
	} {
		a := w.record(t, s, repeat)
		if a.status != 202 || a.field("status") != "duplicate" || a.field("event_id") != first.field("event_id") {
			t.Errorf("%s answers %d %s", repeat, a.status, a.body)
		}
	}
	// Its shape comes first.
	expect(t, w.record(t, s, `{"id":"once"}`), 400, "invalid_body", "name")
	if a := foreign.record(t, s, event); a.field("status") != "accepted" || a.field("event_id") == first.field("event_id") {
		t.Errorf("another workspace's id counts: %s", a.body)
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from events where workspace_id = $1`, w.ID); n != 1 {
		t.Errorf("%d events are recorded", n)
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from event_types where workspace_id = $1 and name = 'other'`, w.ID); n != 0 {
		t.Error("a duplicate registered its name")
	}
}

func TestFiftyParallelSendsOfOneIDRecordOne(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	var mu sync.Mutex
	statuses, ids := map[any]int{}, map[any]bool{}
	var parallel sync.WaitGroup
	for i := range 50 {
		parallel.Go(func() {
			// Each names another property, so that every one would register.
			a := w.record(t, []server{s, other}[i%2],
				fmt.Sprintf(`{"id":"race","name":"new_name","visitor":{"id":"v"},"properties":{"p%d":1}}`, i))
			if a.status != 202 {
				t.Errorf("%d %s", a.status, a.body)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[a.field("status")]++
			ids[a.field("event_id")] = true
		})
	}
	parallel.Wait()
	if statuses["pending_identity"] != 1 || statuses["duplicate"] != 49 || len(ids) != 1 {
		t.Errorf("got %v with %d ids", statuses, len(ids))
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from event_types, jsonb_object_keys(properties)
		where workspace_id = $1 and name = 'new_name'`, w.ID); n != 1 {
		t.Errorf("%d properties are registered by one event", n)
	}
}

func TestParallelFirstUsesOfAPropertyKeepOneType(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	var mu sync.Mutex
	recorded := map[string]int{}
	var parallel sync.WaitGroup
	for i := range 30 {
		parallel.Go(func() {
			value := []string{`"x"`, `1`, `true`}[i%3]
			a := w.record(t, []server{s, other}[i%2],
				fmt.Sprintf(`{"id":"t%d","name":"typed","visitor":{"id":"v"},"properties":{"plan":%s}}`, i, value))
			if a.status == 202 {
				mu.Lock()
				defer mu.Unlock()
				recorded[value]++
				return
			}
			expect(t, a, 422, "property_type_mismatch", "properties.plan")
		})
	}
	parallel.Wait()
	if len(recorded) != 1 {
		t.Errorf("events of several types are recorded: %v", recorded)
	}
}

func TestWhatOneProcessRegistersHoldsInTheOthersAtOnce(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	// Both know the name.
	w.record(t, s, `{"id":"1","name":"shared","visitor":{"id":"v"}}`)
	w.record(t, other, `{"id":"2","name":"shared","visitor":{"id":"v"}}`)
	w.record(t, s, `{"id":"3","name":"shared","visitor":{"id":"v"},"properties":{"plan":"pro"}}`)
	expect(t, w.record(t, other, `{"id":"4","name":"shared","visitor":{"id":"v"},"properties":{"plan":1}}`),
		422, "property_type_mismatch", "properties.plan")
	// And so does a name that is blocked meanwhile.
	inlet(t, "workspaces: [{slug: "+w.Slug+", event_types: [{name: shared, status: blocked}]}]", "seed", "-")
	for i, server := range []server{s, other} {
		expect(t, w.record(t, server, fmt.Sprintf(`{"id":"b%d","name":"shared","visitor":{"id":"v"}}`, i)), 422, "event_blocked", "name")
	}
}

func TestRulesAnswerInTheirOrder(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	old := time.Now().Add(-30*24*time.Hour - time.Minute).UTC().Format(time.RFC3339)
	soon := time.Now().Add(6 * time.Minute).UTC().Format(time.RFC3339)
	long := `"` + strings.Repeat("x", 500) + `"`
	var big strings.Builder
	for i := range 9 {
		fmt.Fprintf(&big, `,"big%d":%s`, i, long)
	}
	w.record(t, s, `{"id":"typed","name":"typed","visitor":{"id":"v"},"properties":{"plan":"pro"}}`)
	// Each event breaks the rule it answers with and those behind it.
	for i, c := range []struct{ event, code, param string }{
		{`"name":"legacy_event","occurred_at":"` + old + `","company":{"domain":"x"},"properties":{"email":"a@b.co"}`, "event_too_old", "occurred_at"},
		{`"name":"legacy_event","occurred_at":"` + soon + `","company":{"domain":"x"},"properties":{"email":"a@b.co"}`, "event_in_future", "occurred_at"},
		{`"name":"legacy_event","company":{"domain":"x"},"properties":{"email":"a@b.co"}`, "event_blocked", "name"},
		{`"name":"typed","company":{"domain":"x"},"properties":{"note":"a@b.co","iban":"x","plan":1}`, "pii_property", "properties.iban"},
		{`"name":"typed","company":{"domain":"x"},"properties":{"plan":1,"note":"mail a@b.co"` + big.String() + `}`, "pii_value", "properties.note"},
		{`"name":"typed","company":{"domain":"x"},"properties":{"plan":1,"n":4111111111111111}`, "pii_value", "properties.n"},
		{`"name":"typed","company":{"domain":"x"},"properties":{"plan":1` + big.String() + `}`, "invalid_request", "properties"},
		{`"name":"typed","company":{"domain":"x"},"properties":{"plan":1}`, "invalid_request", "company.domain"},
		{`"name":"typed","company":{"domain":"globex.com"},"properties":{"plan":1}`, "property_type_mismatch", "properties.plan"},
		{`"name":"typed","company":{"domain":"10.0.0.1"}`, "invalid_request", "company.domain"},
		{`"name":"typed","company":{"domain":"a_b.example"}`, "invalid_request", "company.domain"},
		{`"name":"typed","company":{"domain":"` + strings.Repeat("a.", 130) + `com"}`, "invalid_request", "company.domain"},
	} {
		expect(t, w.record(t, s, fmt.Sprintf(`{"id":"r%d",%s}`, i, c.event)), 422, c.code, c.param)
	}
	// A refused event leaves no trace: its id may be used again.
	if a := w.record(t, s, `{"id":"r0","name":"typed","visitor":{"id":"v"}}`); a.field("status") != "pending_identity" {
		t.Errorf("a refused id is taken: %s", a.body)
	}
	for _, fine := range []string{
		time.Now().Add(-30*24*time.Hour + time.Minute).UTC().Format(time.RFC3339),
		time.Now().Add(4 * time.Minute).In(time.FixedZone("", 5*3600+1800)).Format("2006-01-02T15:04:05.000000000Z07:00"),
	} {
		if a := w.record(t, s, fmt.Sprintf(`{"id":%q,"name":"old_event","occurred_at":%q,"visitor":{"id":"v"}}`, fine, fine)); a.status != 202 {
			t.Errorf("%s: %s", fine, a.body)
		}
	}
}

func TestPropertiesOfANameAreLimited(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	fifty := make([]string, 50)
	for i := range fifty {
		fifty[i] = fmt.Sprintf(`"p%d":%d`, i, i)
	}
	if a := w.record(t, s, `{"id":"fifty","name":"wide","visitor":{"id":"v"},"properties":{`+strings.Join(fifty, ",")+`}}`); a.status != 202 {
		t.Fatalf("%s", a.body)
	}
	expect(t, w.record(t, s, `{"id":"more","name":"wide","visitor":{"id":"v"},"properties":{"p0":"x","p50":1}}`), 422, "too_many_properties", "properties")
	expect(t, w.record(t, s, `{"id":"less","name":"wide","visitor":{"id":"v"},"properties":{"p0":"x"}}`), 422, "property_type_mismatch", "properties.p0")

}

func TestFortyParallelClientsWithNewNamesNeverPassTwoHundred(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	// 198 names are left beside the two of the seed.
	var mu sync.Mutex
	recorded, refused := 0, 0
	var parallel sync.WaitGroup
	names := make(chan int, 238)
	for i := range 238 {
		names <- i
	}
	close(names)
	for range 40 {
		parallel.Go(func() {
			for i := range names {
				a := w.record(t, s, fmt.Sprintf(`{"id":"n%d","name":"name_%d","visitor":{"id":"v"}}`, i, i))
				mu.Lock()
				if a.status == 202 {
					recorded++
				} else {
					refused++
					expect(t, a, 422, "event_type_limit", "name")
				}
				mu.Unlock()
			}
		})
	}
	parallel.Wait()
	if recorded != 198 || refused != 40 {
		t.Errorf("%d names are recorded and %d refused, want 198 and 40", recorded, refused)
	}
}

func TestShapesAreCheckedWithTheFieldAtFault(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for body, param := range map[string]string{
		`[]`: "", `"x"`: "", `null`: "", `7`: "",
		`{"name":"n","visitor":{"id":"v"}}`:                                                                   "id",
		`{"id":"","name":"n","visitor":{"id":"v"}}`:                                                           "id",
		`{"id":"` + strings.Repeat("x", 101) + `","name":"n","visitor":{"id":"v"}}`:                           "id",
		`{"id":"a b","name":"n","visitor":{"id":"v"}}`:                                                        "id",
		`{"id":"ü","name":"n","visitor":{"id":"v"}}`:                                                          "id",
		`{"id":7,"name":"n","visitor":{"id":"v"}}`:                                                            "id",
		`{"id":null,"name":"n","visitor":{"id":"v"}}`:                                                         "id",
		`{"id":"e","visitor":{"id":"v"}}`:                                                                     "name",
		`{"id":"e","name":"Bad","visitor":{"id":"v"}}`:                                                        "name",
		`{"id":"e","name":"1bad","visitor":{"id":"v"}}`:                                                       "name",
		`{"id":"e","name":"` + strings.Repeat("x", 49) + `","visitor":{"id":"v"}}`:                            "name",
		`{"id":"e","name":"n"}`:                                                                               "company",
		`{"id":"e","name":"n","visitor":{"id":"v"},"organization_id":1}`:                                      "organization_id",
		`{"id":"e","name":"n","visitor":{"id":"v"},"occurred_at":"yesterday"}`:                                "occurred_at",
		`{"id":"e","name":"n","visitor":{"id":"v"},"occurred_at":"2026-02-30T00:00:00Z"}`:                     "occurred_at",
		`{"id":"e","name":"n","visitor":{"id":"v"},"occurred_at":"2026-02-03T00:00:00"}`:                      "occurred_at",
		`{"id":"e","name":"n","visitor":{"id":"v"},"occurred_at":1700000000}`:                                 "occurred_at",
		`{"id":"e","name":"n","visitor":{"id":"v"},"occurred_at":null}`:                                       "occurred_at",
		`{"id":"e","name":"n","company":{}}`:                                                                  "company",
		`{"id":"e","name":"n","company":{"id":1,"domain":"x.com"}}`:                                           "company",
		`{"id":"e","name":"n","company":"globex.com"}`:                                                        "company",
		`{"id":"e","name":"n","company":{"id":"1"}}`:                                                          "company.id",
		`{"id":"e","name":"n","company":{"id":1.5}}`:                                                          "company.id",
		`{"id":"e","name":"n","company":{"id":0}}`:                                                            "company.id",
		`{"id":"e","name":"n","company":{"id":9007199254740992}}`:                                             "company.id",
		`{"id":"e","name":"n","company":{"domain":""}}`:                                                       "company.domain",
		`{"id":"e","name":"n","company":{"domain":7}}`:                                                        "company.domain",
		`{"id":"e","name":"n","company":{"name":"x"}}`:                                                        "company.name",
		`{"id":"e","name":"n","contact":{}}`:                                                                  "contact",
		`{"id":"e","name":"n","contact":{"email":"` + strings.Repeat("x", 321) + `"}}`:                        "contact.email",
		`{"id":"e","name":"n","contact":{"email":"a","phone":"1"}}`:                                           "contact.phone",
		`{"id":"e","name":"n","visitor":{}}`:                                                                  "visitor.id",
		`{"id":"e","name":"n","visitor":{"id":"a_b"}}`:                                                        "visitor.id",
		`{"id":"e","name":"n","visitor":{"id":"` + strings.Repeat("x", 65) + `"}}`:                            "visitor.id",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":[]}`:                                          "properties",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"Plan":1}}`:                                  "properties.Plan",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"` + strings.Repeat("x", 41) + `":1}}`:       "properties." + strings.Repeat("x", 41),
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"plan":null}}`:                               "properties.plan",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"plan":{}}}`:                                 "properties.plan",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"plan":["x"]}}`:                              "properties.plan",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"plan":"` + strings.Repeat("ü", 513) + `"}}`: "properties.plan",
		`{"id":"e","name":"n","visitor":{"id":"v"},"properties":{` + manyProperties(51) + `}}`:                "properties",
	} {
		expect(t, w.record(t, s, body), 400, "invalid_body", param)
	}
	if a := w.record(t, s, `{"id":"e","name":"n","visitor":{"id":"v"},"properties":{"plan":"`+strings.Repeat("ü", 512)+`"}}`); a.status != 202 {
		t.Errorf("512 characters: %s", a.body)
	}
}

func manyProperties(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"p%d":1`, i)
	}
	return strings.Join(all, ",")
}

func TestJSONIsReadStrictly(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	event := func(properties string) string {
		return `{"id":"strict","name":"n","visitor":{"id":"v"},"properties":{"a":` + properties + `}}`
	}
	for body, param := range map[string]string{
		event("\"\xff\""):           "properties.a", // invalid UTF-8
		event("\"\xed\xa0\x80\""):   "properties.a", // a surrogate in UTF-8
		event(`"\ud800"`):           "properties.a", // half a pair
		event(`"\ud800\ud800"`):     "properties.a",
		event(`"\udc00\ud800"`):     "properties.a",
		event(`"\u0000"`):           "properties.a",
		event(`"a` + "\x00" + `b"`): "properties.a",
		event(`1e400`):              "properties.a",
		event(`-1e400`):             "properties.a",
		event(`1,"a":2`):            "properties.a",
		event(`01`):                 "",
		event(`+1`):                 "",
		event(`.5`):                 "",
		event(`NaN`):                "",
		event(`'x'`):                "",
		event(`1,`):                 "",
		event(`1`) + `{}`:           "",
		event(`1`) + `x`:            "",
		`{"id":"a","id":"b","name":"n","visitor":{"id":"v"}}`:                  "id",
		`{"id":"a","name":"n","visitor":{"id":"v","id":"w"}}`:                  "visitor.id",
		`{"id":"a\u0000","name":"n","visitor":{"id":"v"}}`:                     "id",
		`{"id":"a","name":"n","company":{"domain":"x\u0000.com"}}`:             "company.domain",
		event(strings.Repeat("[", 10000) + strings.Repeat("]", 10000)):         "properties.a",
		event(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)): "properties.a",
		strings.Repeat("[", 10000):                                             "",
		"\xef\xbb\xbf" + event(`1`):                                            "", // a byte-order mark
	} {
		a := w.record(t, s, body)
		code, got := a.refusal()
		if a.status != 400 || code != "invalid_body" || (param != "" && got != param) {
			t.Errorf("%.80q answers %d %s at %q, want invalid_body at %q", body, a.status, code, got, param)
		}
	}
	// The same strictness before a schema.
	for body, param := range map[string]string{
		`{"email":"a@b.co","email":"c@d.co"}`:                          "email",
		"{\"email\":\"\xff\"}":                                         "",
		`{"email":"\ud800"}`:                                           "",
		`{"name":"a\u0000b"}`:                                          "name",
		`{"name":"a","x":1e400}`:                                       "x",
		`{"name":"a","x":1e-1000000}`:                                  "x",
		`{"name":"a","x":[` + strings.Repeat(`1e1000000,`, 50) + `1]}`: "x[0]",
		`{"name":"a"} x`:                                               "",
		`{"name":"a","x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`: "",
	} {
		a := s.send(t, "POST", "/api/v1/leads", body, w.Key("all"))
		code, got := a.refusal()
		if a.status != 400 || code != "invalid_lead" || (param != "" && got != param) {
			t.Errorf("%.80q answers %d %s at %q, want invalid_lead at %q", body, a.status, code, got, param)
		}
	}
}

func TestPropertiesAreKeptAsReceivedWithoutWhiteSpace(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	w.record(t, s, `{"id":"p","name":"n","visitor":{"id":"v"},"properties": { "b" : "x \" y\\" , "a" : 1.50 , "c" : true } }`)
	if got, want := text(w.stored(t, "p", "properties")), `{"b":"x \" y\\","a":1.50,"c":true}`; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	// 4,096 bytes are the most.
	fill := func(n int) string {
		rest := n - len(`{}`)
		var entries []string
		for i := 0; rest > 0; i++ {
			size := min(rest, 420)
			if left := rest - size; left > 0 && left < 30 {
				size -= 30
			}
			frame := len(fmt.Sprintf(`"k%02d":"",`, i))
			if rest == size {
				frame-- // no comma behind the last
			}
			entries = append(entries, fmt.Sprintf(`"k%02d":"%s"`, i, strings.Repeat("x", size-frame)))
			rest -= size
		}
		return "{" + strings.Join(entries, ",") + "}"
	}
	for n, status := range map[int]int{4096: 202, 4097: 422} {
		properties := fill(n)
		if len(properties) != n || !json.Valid([]byte(properties)) {
			t.Fatalf("made %d bytes, want %d", len(properties), n)
		}
		a := w.record(t, s, fmt.Sprintf(`{"id":"size%d","name":"sized","visitor":{"id":"v"},"properties":%s}`, n, properties))
		if a.status != status {
			t.Errorf("%d bytes answer %d %s", n, a.status, a.body)
		}
	}
}

func TestNoEmailAddressIsKeptOrLogged(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	// No id that is made at random can hold it: those have no hyphens.
	const secret = "leaky.person@secret-mail.example"
	for i, event := range []string{
		`"name":"n","contact":{"email":"` + secret + `"}`,
		`"name":"n","visitor":{"id":"v"},"properties":{"note":"` + secret + `"}`,
		`"name":"n","visitor":{"id":"v"},"properties":{"` + secret + `":1}`,
		`"name":"` + secret + `","visitor":{"id":"v"}`,
		`"name":"n","visitor":{"id":"v"},"` + secret + `":1`,
		`"name":"n","company":{"domain":"` + secret + `","x":1}`,
	} {
		w.record(t, s, fmt.Sprintf(`{"id":"leak%d",%s}`, i, event))
	}
	s.send(t, "GET", "/api/v1/events?name="+secret, "", w.Key("all"))
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, "secret-mail") {
			t.Errorf("the log holds it: %s", line)
		}
	}
	if a := s.send(t, "GET", "/metrics", ""); strings.Contains(string(a.body), "secret-mail") {
		t.Error("the metrics hold it")
	}
	w.refused(t, 5)
	tables := strings.Fields(dbtest.Query[string](t, dbtest.URL(t),
		`select string_agg(relname, ' ') from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`))
	if len(tables) < 20 {
		t.Errorf("only %d tables are searched", len(tables))
	}
	for _, table := range tables {
		if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from `+table+` x where x::text like '%secret-mail%'`); n != 0 {
			t.Errorf("%s holds it", table)
		}
	}
	if strings.Contains(s.Log(), w.APIKeys["all"].Token) {
		t.Error("the log holds a credential")
	}
}

func TestAWorkspaceSendsSoManyEventsAMinuteAndADay(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, limit := range []string{"--events-per-minute=5", "--events-per-day=5"} {
		w = workspace(t)
		inlet(t, "", "workspace", "set", w.Slug, limit)
		passed, refused := 0, 0
		var mu sync.Mutex
		var parallel sync.WaitGroup
		for i := range 12 {
			parallel.Go(func() {
				a := w.record(t, s, fmt.Sprintf(`{"id":"l%d","name":"n","visitor":{"id":"v"}}`, i))
				mu.Lock()
				defer mu.Unlock()
				if a.status == 202 {
					passed++
					return
				}
				refused++
				expect(t, a, 429, "events_rate_limited", "")
			})
		}
		parallel.Wait()
		if passed+refused != 12 || passed < 5 || limit == "--events-per-day=5" && passed != 5 && time.Now().UTC().Hour() > 0 || passed > 10 {
			t.Errorf("%s: %d passed, %d were refused", limit, passed, refused)
		}
		if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from events where workspace_id = $1`, w.ID); n != passed {
			t.Errorf("%s: %d passed, %d are recorded", limit, passed, n)
		}
	}
}
