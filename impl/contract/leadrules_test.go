package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/inletdev/inlet/db/dbtest"
)

// What a lead cannot be: nothing of it is saved, and the field is named.
func TestAnInvalidLeadNamesItsFieldAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	x := func(n int) string { return strings.Repeat("x", n) }
	before := w.people(t)
	for body, param := range map[string]string{
		``:                        "",
		`{`:                       "",
		`[]`:                      "",
		`"hank@globex.com"`:       "",
		`null`:                    "",
		`{"name":"a"} {}`:         "",
		`{"name":"a"}x`:           "",
		`{}`:                      "email",
		`{"email":null}`:          "email",
		`{"email":"","name":""}`:  "email",
		`{"name":"\u200b\ufeff"}`: "email",
		`{"email":" \u00a0\t\r\n\u2003","name":" "}`:                 "email",
		`{"first_name":"Hank","last_name":"Scorpio"}`:                "email",
		`{"company_domain":"globex.com","phone":"+1"}`:               "email",
		`{"linkedin_url":"linkedin.com/in/hank-scorpio"}`:            "email",
		`{"Email":"hank@globex.com"}`:                                "email",
		`{"name":"a","name":"b"}`:                                    "name",
		`{"name":"a","company":{"domain":"a.com","domain":"b.com"}}`: "company.domain",
		`{"name":"a\u0000b"}`:                                        "name",
		`{"name":"a","x":"\u0000"}`:                                  "x",
		`{"name":"\ud800"}`:                                          "name",
		`{"name":5}`:                                                 "name",
		`{"name":true}`:                                              "name",
		`{"name":["a"]}`:                                             "name",
		`{"name":{"first":"a"}}`:                                     "name",
		`{"email":5,"name":"a"}`:                                     "email",
		`{"email":["hank@globex.com"]}`:                              "email",
		`{"name":"a","company":"Globex"}`:                            "company",
		`{"name":"a","company":[]}`:                                  "company",
		`{"name":"a","company":{"name":1}}`:                          "company.name",
		`{"name":"a","company":{"domain":false}}`:                    "company.domain",
		`{"name":"a","utm":"x"}`:                                     "utm",
		`{"name":"a","utm":{"medium":1}}`:                            "utm.medium",
		`{"name":"a","utm":{"source":{}}}`:                           "utm.source",
		`{"name":"a","utm":{"campaign":[]}}`:                         "utm.campaign",
		// A wrong type behind a blank one, and behind the spelling that wins.
		`{"name":"a","company":{"name":"b"},"company_name":1}`: "company_name",
		`{"email":"` + x(310) + `@globex.com"}`:                "email",
		`{"name":"a","linkedin_url":"` + x(2049) + `"}`:        "linkedin_url",
		`{"name":"a","company":{"domain":"` + x(513) + `"}}`:   "company.domain",
		`{"name":"a","company":{"name":"` + x(513) + `"}}`:     "company.name",
		`{"name":"a","utm":{"source":"` + x(513) + `"}}`:       "utm.source",
		`{"name":"` + strings.Repeat("界", 513) + `"}`:          "name",
	} {
		expect(t, w.lead(t, s, body), 400, "invalid_lead", param)
	}
	flat := []string{"first_name", "last_name", "title", "seniority", "department", "phone", "company_domain", "company_name",
		"utm_source", "utm_medium", "utm_campaign"}
	for _, name := range flat {
		expect(t, w.lead(t, s, fmt.Sprintf(`{"name":"a",%q:"%s"}`, name, x(513))), 400, "invalid_lead", name)
		expect(t, w.lead(t, s, fmt.Sprintf(`{"name":"a",%q:5}`, name)), 400, "invalid_lead", name)
		expect(t, w.lead(t, s, fmt.Sprintf(`{"name":"a",%q:{}}`, name)), 400, "invalid_lead", name)
	}
	if got := w.people(t); got != before {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, before)
	}
}

func TestAMalformedAddressIsRefusedAndNotGuessedAt(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	before := w.people(t)
	for _, email := range []string{
		"hank", "hank@", "@globex.com", "@", "hank@globex", "hank@localhost", "hank@@globex.com", "hank@globex@globex.com",
		"hank@globex..com", "hank..scorpio@globex.com", ".hank@globex.com", "hank@.globex.com", "hank@-globex.com", "hank@globex_x.com",
		"hank scorpio@globex.com", "hank@ globex.com", "hank@globex .com", "hank @globex.com", "hank@globex,com", "hank(at)globex.com",
		"hank at globex.com", "hank@globex.com,milton@gmail.com", "hank@globex.com; milton@gmail.com", "hank@globex.com milton@gmail.com",
		"hank@globex.com\r\nBcc: all@globex.com", "hank\r\n@globex.com", "hank@globex.com\tx", "hank\u200b@globex.com", "han\u202ek@globex.com",
		"Hank <hank@globex.com>", "<hank@globex.com>", "hank@globex.com (Hank)", "mailto:hank@globex.com", "mailto:hank@globex.com?subject=x",
		"hank@globex.com/x", "hank@globex.com:25", "hank@globex.com?x", "hank@globex.com#x", "https://hank@globex.com", "hank＠globex.com",
		"hank@[127.0.0.1]", "hank@127.0.0.1", "hank@[IPv6:::1]", "hank@xn--.com", "hank@" + strings.Repeat("a", 64) + ".com",
		"hank%40globex.com", "n/a", "none", "-", "test", "null", "\"hank@globex.com", "hank\\@globex.com", "hank@globex.com\x7f.",
	} {
		body, _ := json.Marshal(map[string]string{"email": email, "name": "Hank"})
		expect(t, w.lead(t, s, string(body)), 400, "invalid_lead", "email")
	}
	if got := w.people(t); got != before {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, before)
	}
}

func TestLeadFieldsMayBeAsLongAsTheirLimits(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	text := strings.Repeat("界", 512)
	host := strings.Repeat(strings.Repeat("d", 49)+".", 5) + "com" // 253 characters
	email := strings.Repeat("ü", 320-1-len(host)) + "@" + host
	body, _ := json.Marshal(map[string]any{
		"email": email, "name": text, "first_name": text, "last_name": text, "title": text, "seniority": text, "department": text,
		"phone": text, "linkedin_url": "https://www.linkedin.com/in/" + strings.Repeat("x", 2048-28),
		"company": map[string]string{"domain": text, "name": text},
		"utm":     map[string]string{"source": text, "medium": text, "campaign": text},
	})
	a := w.lead(t, s, string(body))
	if a.status != 201 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	for _, row := range []map[string]any{w.row(t, "leads", a.field("lead_id")), w.row(t, "contacts", a.field("contact_id"))} {
		for _, name := range []string{"name", "first_name", "last_name", "title", "seniority", "department", "phone"} {
			if row[name] != text {
				t.Errorf("%s is stored as %v", name, row[name])
			}
		}
		if row["email"] != email || len(row["linkedin_url"].(string)) != 2048 {
			t.Errorf("stored as %v, %v", row["email"], row["linkedin_url"])
		}
	}
	if lead := w.row(t, "leads", a.field("lead_id")); lead["company_name"] != text || lead["company_domain"] != text || lead["utm_campaign"] != text {
		t.Errorf("stored as %v", lead)
	}
}

// What is within every limit is saved, however little it compresses or however
// much it grows when it is normalized.
func TestALeadWithinItsLimitsIsNeverTooMuchForTheDatabase(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	var chinese strings.Builder
	for i := range 2000 {
		chinese.WriteRune(rune(0x4e00 + i*7919%20000))
	}
	// Characters that stand for several, those that stand for most first.
	var expanding []rune
	for r := rune(0x80); r < 0x20000; r++ {
		if len(norm.NFKC.String(string(r))) > len(string(r)) {
			expanding = append(expanding, r)
		}
	}
	slices.SortStableFunc(expanding, func(a, b rune) int {
		return len(norm.NFKC.String(string(b))) - len(norm.NFKC.String(string(a)))
	})
	wide := string(expanding[:512])
	for what, body := range map[string]map[string]any{
		"a LinkedIn profile":          {"email": "long@profile-of-linkedin.com", "linkedin_url": "https://www.linkedin.com/in/" + chinese.String()},
		"a company's name":            {"email": "x@long-name-of-company.com", "company_name": wide},
		"a company's name in Chinese": {"email": "x@chinese-name-of-company.com", "company_name": string([]rune(chinese.String())[:512])},
		"a number of many digits":     {"name": "n", "score": json.Number("0." + strings.Repeat("1234567890", 2000))},
		"a number of many zeros":      {"name": "n", "score": json.Number("1." + strings.Repeat("0", 20000) + "1")},
		"a tiny number":               {"name": "n", "score": json.Number("1e-300")},
		"a large number":              {"name": "n", "score": json.Number("1.5e300")},
		"a long text":                 {"name": "n", "message": strings.Repeat("x ", 100000)},
		"a long name of a field":      {"name": "n", strings.Repeat("x", 100000): 1},
		"a field without a name":      {"name": "n", "": 1},
	} {
		raw, _ := json.Marshal(body)
		if a := w.lead(t, s, string(raw)); a.status != 201 {
			t.Errorf("%s answers %d %s", what, a.status, a.body)
		}
	}
}

func TestAtMostFiftyExtraFieldsAreKept(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	fields := map[string]any{"name": "Extra"}
	for i := range 60 {
		fields[fmt.Sprintf("answer_%02d", i)] = i
		fields[fmt.Sprintf("aaa_object_%02d", i)] = map[string]any{"a": 1}
		fields[fmt.Sprintf("aaa_list_%02d", i)] = []int{1}
		fields[fmt.Sprintf("aaa_null_%02d", i)] = nil
	}
	body, _ := json.Marshal(fields)
	a := w.lead(t, s, string(body))
	extra, _ := w.row(t, "leads", a.field("lead_id"))["extra"].(map[string]any)
	if len(extra) != 50 {
		t.Errorf("%d fields are kept: %v", len(extra), slices.Sorted(maps.Keys(extra)))
	}
	for name, value := range extra {
		if value != fields[name] && value != float64(fields[name].(int)) {
			t.Errorf("%s is kept as %v", name, value)
		}
	}
	// Values are kept as they are, digits and space included.
	a = w.lead(t, s, `{"name":"Values","text":" a\u00a0b ","blank":"","big":12345678901234567890123,"fraction":0.10,"whole":7.0,"exponent":12e2,"no":false,"html":"<a href='x'>&</a>","Ünï cødé":"✓"}`)
	got := dbtest.Query[string](t, dbtest.URL(t), `select extra::text from leads where workspace_id = $1 and lead_id = $2`, w.ID, a.field("lead_id"))
	want := dbtest.Query[string](t, dbtest.URL(t), `select '{"text":" a\u00a0b ","blank":"","big":12345678901234567890123,"fraction":0.10,"whole":7,"exponent":1200,"no":false,"html":"<a href=''x''>&</a>","Ünï cødé":"✓"}'::jsonb::text`)
	if got != want {
		t.Errorf("kept as %s, want %s", got, want)
	}
}

// Each pair of ways to find a contact or a company, pointing at two of them.
func TestWhatFindsAContactOrCompanyFirstWins(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	for _, c := range []struct{ what, body, company, contact string }{
		{"e-mail before LinkedIn", `{"email":"milton@gmail.com","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`, "initech", "milton"},
		{"LinkedIn where the e-mail is unknown", `{"email":"hank@new-employer.com","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`, "globex", "hank"},
		{"named domain before the contact's company", `{"email":"hank@globex.com","company_domain":"initech.co.uk"}`, "initech", "hank"},
		{"named domain before the e-mail's", `{"email":"new1@globex.com","company_domain":"initech.co.uk"}`, "initech", "+new1@globex.com"},
		{"named domain before a name", `{"name":"x","company":{"domain":"initech.co.uk","name":"Hooli"}}`, "initech", ""},
		{"contact's company before the e-mail's domain", `{"email":"x@initech.co.uk","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`, "globex", "hank"},
		{"contact's company before a name", `{"email":"milton@gmail.com","company_name":"Hooli"}`, "initech", "milton"},
		{"e-mail's domain before a name", `{"email":"new2@globex.com","company_name":"Hooli"}`, "globex", "+new2@globex.com"},
		{"contact's company before a new domain that is named", `{"email":"milton@gmail.com","company_domain":"unknown-one.com"}`, "initech", "milton"},
		{"e-mail's domain before a new domain that is named", `{"email":"new3@globex.com","company_domain":"unknown-two.com"}`, "globex", "+new3@globex.com"},
		{"new domain that is named before the e-mail's", `{"email":"new4@unknown-three.com","company_domain":"www.unknown-four.com"}`, "+unknown-four.com", "+new4@unknown-three.com"},
		{"e-mail's new domain where the named one is free mail", `{"email":"new5@unknown-five.com","company_domain":"gmail.com"}`, "+unknown-five.com", "+new5@unknown-five.com"},
		{"name before a new company", `{"email":"new6@unknown-six.com","company_name":"Hooli"}`, "hooli", "+new6@unknown-six.com"},
		{"exact domain before a registrable one, named", `{"name":"x","company_domain":"eu.globex.com"}`, "europe", ""},
		{"contact without a company, e-mail's domain new", `{"email":"alone@sole-trader.org"}`, "+sole-trader.org", "alone"},
	} {
		t.Run(c.what, func(t *testing.T) {
			before := w.people(t)
			w.reaches(t, w.lead(t, s, c.body), c.company, c.contact, before)
		})
	}
}

func TestAFieldOfAContactIsFilledAndNeverOverwritten(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	contact := func(ref string) map[string]any { return w.row(t, "contacts", w.Contacts[ref]) }
	full := contact("full")
	const other = `"name":"Other Name","first_name":"Other","last_name":"Person","title":"CFO","seniority":"vp","department":"Money","phone":"+49 30 901820","linkedin_url":"https://www.linkedin.com/in/other","company_domain":"initech.co.uk"}`
	w.lead(t, s, `{"email":"full@globex.com",`+other)
	full["name"] = "Other Name" // it had none
	if got := contact("full"); fmt.Sprint(got) != fmt.Sprint(full) {
		t.Errorf("overwritten:\n%v\nwant\n%v", got, full)
	}
	// What is there stays, what is not is filled, and what a lead leaves blank
	// takes nothing away.
	w.lead(t, s, `{"email":"hank@globex.com","first_name":"Henry","last_name":" Scorpio ","title":"","phone":null}`)
	holds(t, "the contact", contact("hank"), `{"first_name":"Hank","last_name":"Scorpio","title":null,"phone":null}`)
	w.lead(t, s, `{"email":"hank@globex.com","last_name":"Another","title":"CEO","phone":"+1 (415) 555-2671","seniority":"top","department":"all"}`)
	holds(t, "the contact", contact("hank"), `{"first_name":"Hank","last_name":"Scorpio","title":"CEO","phone":"+14155552671","seniority":"top","department":"all"}`)
	w.lead(t, s, `{"email":"hank@globex.com"}`)
	holds(t, "the contact", contact("hank"), `{"last_name":"Scorpio","title":"CEO"}`)

	// A contact that LinkedIn found gets the address and keeps it; from then on it
	// finds the contact.
	w.lead(t, s, `{"email":"Linked@Initech.co.uk","linkedin_url":"https://www.linkedin.com/in/linked-one","first_name":"Lin"}`)
	holds(t, "the contact", contact("linked"), `{"email":"linked@initech.co.uk","first_name":"Lin","last_name":"Waddams"}`)
	w.lead(t, s, `{"email":"second@initech.co.uk","linkedin_url":"https://www.linkedin.com/in/linked-one","title":"CEO"}`)
	holds(t, "the contact", contact("linked"), `{"email":"linked@initech.co.uk","title":"CEO"}`)
	if a := w.lead(t, s, `{"email":"linked@initech.co.uk"}`); a.field("contact_id") != float64(w.Contacts["linked"]) {
		t.Errorf("the address that was filled finds %s", a.body)
	}

	// A profile goes to one contact only.
	w.lead(t, s, `{"email":"milton@gmail.com","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`)
	holds(t, "the contact", contact("milton"), `{"linkedin_url":null}`)
	w.lead(t, s, `{"email":"milton@gmail.com","linkedin_url":"https://www.linkedin.com/in/milton-waddams"}`)
	holds(t, "the contact", contact("milton"), `{"linkedin_url":"https://www.linkedin.com/in/milton-waddams"}`)

	// Whichever field is filled, the others stay.
	fields := []string{"first_name", "last_name", "title", "seniority", "department", "phone", "linkedin_url"}
	for i, empty := range fields {
		email := fmt.Sprintf("all-but-%d@globex.com", i)
		value := func(kind, field string) string {
			if field == "linkedin_url" {
				return fmt.Sprintf("https://www.linkedin.com/in/%s-%d", kind, i)
			}
			return kind + " " + field
		}
		first, second, want := map[string]string{"email": email}, map[string]string{"email": email}, map[string]any{}
		for _, field := range fields {
			if field != empty {
				first[field] = value("first", field)
			}
			second[field], want[field] = value("second", field), value("first", field)
		}
		want[empty] = value("second", empty)
		for _, sent := range []map[string]string{first, second} {
			body, _ := json.Marshal(sent)
			expectStatus(t, w.lead(t, s, string(body)), 201)
		}
		id := dbtest.Query[int64](t, dbtest.URL(t), `select contact_id from contacts where workspace_id = $1 and email = $2`, w.ID, email)
		wanted, _ := json.Marshal(want)
		holds(t, "the contact without "+empty, w.row(t, "contacts", id), string(wanted))
	}

	// The company too: filled once, and other leads name theirs.
	for _, company := range []string{"globex", "initech"} {
		a := w.lead(t, s, fmt.Sprintf(`{"email":"alone@sole-trader.org","company_name":%q}`, company))
		if contact("alone")["company_id"] != idOf(w.Companies["globex"]) || a.field("company_id") != idOf(w.Companies["globex"]) {
			t.Errorf("the company is %v; %s", contact("alone")["company_id"], a.body)
		}
	}
	w.lead(t, s, `{"email":"alone@sole-trader.org","company_domain":"initech.co.uk"}`)
	if got := contact("alone")["company_id"]; got != idOf(w.Companies["globex"]) {
		t.Errorf("the company is overwritten with %v", got)
	}
	// A company that is there is left as it is.
	globex := w.row(t, "companies", w.Companies["globex"])
	if globex["name"] != "Globex" || w.domains(t, w.Companies["globex"]) != "globex.com globex.de xn--bcher-globex-dlb.de" {
		t.Errorf("the company is %v", globex)
	}
}

func TestLeadsCreateWhatTheWorkspaceLetsThem(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	set := func(companies, contacts bool) {
		t.Helper()
		inlet(t, fmt.Sprintf("workspaces: [{slug: %s, leads: {create_companies: %t, create_contacts: %t}}]", w.Slug, companies, contacts), "seed", "-")
	}
	n := 0
	for _, companies := range []bool{true, false} {
		for _, contacts := range []bool{true, false} {
			set(companies, contacts)
			n++
			domain := fmt.Sprintf("settings-%d.com", n)
			company, contact := "", ""
			if companies {
				company = "+" + domain
			}
			if contacts {
				contact = "+x@" + domain
			}
			before := w.people(t)
			w.reaches(t, w.lead(t, s, `{"email":"x@`+domain+`","company_name":"Settings `+domain+`"}`), company, contact, before)
			// What is there is found and filled all the same.
			before = w.people(t)
			w.reaches(t, w.lead(t, s, fmt.Sprintf(`{"email":"hank@globex.com","title":"Title %d"}`, n)), "globex", "hank", before)
			before = w.people(t)
			w.reaches(t, w.lead(t, s, `{"name":"x","company_domain":"initech.co.uk"}`), "initech", "", before)
			if contacts {
				before = w.people(t)
				w.reaches(t, w.lead(t, s, fmt.Sprintf(`{"email":"x%d@globex.com"}`, n)), "globex", fmt.Sprintf("+x%d@globex.com", n), before)
			} else {
				before = w.people(t)
				w.reaches(t, w.lead(t, s, fmt.Sprintf(`{"email":"x%d@globex.com"}`, n)), "globex", "", before)
			}
		}
	}
	holds(t, "the contact", w.row(t, "contacts", w.Contacts["hank"]), `{"title":"Title 1"}`)
	// Both are on where nobody said anything.
	plain := seed(t, "workspaces: [{slug: SLUG, api_keys: [{ref: all, scopes: [leads.manage]}]}]")
	before := plain.people(t)
	plain.reaches(t, plain.lead(t, s, `{"email":"x@by-default.com"}`), "+by-default.com", "+x@by-default.com", before)
}

func TestALeadOfATestKeyTouchesNothing(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	hank, before := w.row(t, "contacts", w.Contacts["hank"]), w.people(t)
	for i, body := range []string{
		`{"email":"hank@globex.com","last_name":"Scorpio","title":"CEO"}`,
		`{"email":"x@new-by-a-test-key.com","company_name":"Globex"}`,
		`{"name":"x","company_domain":"globex.com","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`,
	} {
		a := s.send(t, "POST", "/api/v1/leads", body, w.Key("test"))
		if a.status != 201 || a.field("is_test") != true || a.field("reconciled") != false || a.field("company_id") != nil || a.field("contact_id") != nil {
			t.Errorf("%s answers %d %s", body, a.status, a.body)
		}
		row := w.row(t, "leads", a.field("lead_id"))
		if row["is_test"] != true || row["contact_id"] != nil || row["company_id"] != nil {
			t.Errorf("stored as %v", row)
		}
		if want := [4]int64{before[0], before[1], before[2], int64(i + 1)}; w.people(t) != want {
			t.Errorf("there are %v companies, domains, contacts and leads, want %v", w.people(t), want)
		}
	}
	if got := w.row(t, "contacts", w.Contacts["hank"]); fmt.Sprint(got) != fmt.Sprint(hank) {
		t.Errorf("the contact is changed: %v", got)
	}
	expect(t, s.send(t, "POST", "/api/v1/leads", `{"title":"x"}`, w.Key("test")), 400, "invalid_lead", "email")
}

// repeated expects a lead to be refused because its key created the first.
func repeated(t *testing.T, a, first answer) {
	t.Helper()
	expect(t, a, 409, "duplicate_request", "")
	if a.field("lead_id") != first.field("lead_id") || first.field("lead_id") == nil {
		t.Errorf("the first lead is %s, the refusal says %s", first.body, a.body)
	}
}

func TestAnIdempotencyKeyMakesOneLead(t *testing.T) {
	t.Parallel()
	s, w, foreign := sharedServer(t), seed(t, leadWorkspace), seed(t, leadWorkspace)
	alias := func(body string, headers ...string) answer {
		t.Helper()
		return s.send(t, "POST", "/api/v1/lead", body, append([]string{w.Key("all")}, headers...)...)
	}
	created := func(a answer) answer {
		t.Helper()
		if a.status != 201 {
			t.Errorf("got %d %s", a.status, a.body)
		}
		return a
	}
	// A failed create does not use a key up, whatever was wrong.
	for _, body := range []string{`{`, `{}`, `{"email":"x"}`, `{"name":"x","title":5}`} {
		expectStatus(t, w.lead(t, s, body, "Idempotency-Key: k"), 400)
	}
	first := created(w.lead(t, s, `{"email":"x@keyed-one.com"}`, "Idempotency-Key: k"))
	before := w.people(t)
	// A repeat is one whatever it says, by whichever path and key of the
	// workspace it comes.
	repeated(t, w.lead(t, s, `{"email":"x@keyed-one.com"}`, "Idempotency-Key: k"), first)
	repeated(t, w.lead(t, s, `{"email":"y@keyed-two.com","company_name":"Hooli"}`, "Idempotency-Key: k"), first)
	repeated(t, w.lead(t, s, `{"email":"y@example.com"}`, "Idempotency-Key: k"), first)
	repeated(t, alias(`{"email":"hank@globex.com","title":"No"}`, "Idempotency-Key: k"), first)
	repeated(t, s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("second"), "Idempotency-Key: k"), first)
	repeated(t, s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("test"), "Idempotency-Key: k"), first)
	if got := w.people(t); got != before {
		t.Errorf("repeats left %v, want %v", got, before)
	}
	if title := w.row(t, "contacts", w.Contacts["hank"])["title"]; title != nil {
		t.Errorf("a repeat filled a title: %v", title)
	}
	// Keys are their letters, and other workspaces have their own.
	created(w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: K"))
	repeated(t, w.lead(t, s, `{"name":"x"}`, "Idempotency-Key:   k"), first) // space around a header is none of its value
	if a := created(foreign.lead(t, s, `{"name":"x"}`, "Idempotency-Key: k")); a.field("lead_id") == first.field("lead_id") {
		t.Errorf("another workspace's lead is answered: %s", a.body)
	}
	// By the other path first; a test lead's key counts like any other.
	second := created(alias(`{"name":"x"}`, "Idempotency-Key: by alias"))
	repeated(t, w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: by alias"), second)
	third := created(w.lead(t, s, `{"email":"x@example.com"}`, "Idempotency-Key: of a test"))
	repeated(t, w.lead(t, s, `{"email":"hank@globex.com"}`, "Idempotency-Key: of a test"), third)

	// The first 128 characters count, whatever a character is.
	for name, letter := range map[string]string{"ascii": "a", "two bytes": "ü", "four bytes": "😀", "no UTF-8": "\xff"} {
		long := strings.Repeat(letter, 127)
		a := created(w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: "+long+"1"))
		repeated(t, w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: "+long+"1x"), a)
		repeated(t, w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: "+long+"1"+strings.Repeat("y", 4000)), a)
		if b := created(w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: "+long+"2")); b.field("lead_id") == a.field("lead_id") {
			t.Errorf("%s: the 128th character does not count", name)
		}
		created(w.lead(t, s, `{"name":"x"}`, "Idempotency-Key: "+long))
	}
	// Without one, or with one of nothing, each lead is a new one.
	before = w.people(t)
	for range 2 {
		created(w.lead(t, s, `{"name":"x"}`))
		created(w.lead(t, s, `{"name":"x"}`, "Idempotency-Key:   "))
		created(w.emptyKey(t, s))
	}
	if got := w.people(t); got[3] != before[3]+6 {
		t.Errorf("%d leads are saved, want 6", got[3]-before[3])
	}
}

func expectStatus(t *testing.T, a answer, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("got %d %s, want %d", a.status, a.body, status)
	}
}

func TestALeadFindsNothingOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	s, w, foreign := sharedServer(t), seed(t, leadWorkspace), seed(t, leadWorkspace)
	empty := seed(t, "workspaces: [{slug: SLUG, leads: {create_companies: false, create_contacts: false}, api_keys: [{ref: all, scopes: [leads.manage], requests_per_minute: 100000}]}]")
	snapshot := func() string {
		return dbtest.Query[string](t, dbtest.URL(t), `select coalesce(string_agg(c::text, ' ' order by contact_id), '') from contacts c where workspace_id = $1`, foreign.ID)
	}
	others, counts := snapshot(), foreign.people(t)
	for _, body := range []string{
		`{"email":"hank@globex.com","last_name":"Scorpio","title":"CEO"}`,
		`{"email":"new@globex.com","linkedin_url":"https://www.linkedin.com/in/linked-one","first_name":"x"}`,
		`{"name":"x","linkedin_url":"https://www.linkedin.com/in/linked-one","email":"linked@initech.co.uk"}`,
		`{"name":"x","company":{"domain":"globex.de","name":"Hooli"}}`,
		`{"name":"x","company_name":"Hooli"}`,
		// Ids are fields like any other, whose they may be.
		fmt.Sprintf(`{"name":"x","company_id":%d,"contact_id":%d,"workspace_id":%d,"company":{"id":%[1]d}}`, foreign.Companies["globex"], foreign.Contacts["hank"], foreign.ID),
	} {
		before := empty.people(t)
		empty.reaches(t, empty.lead(t, s, body), "", "", before)
		// The same names lead to the workspace's own records.
		a := w.lead(t, s, body)
		for id, field := range map[any]string{a.field("company_id"): "companies", a.field("contact_id"): "contacts"} {
			if id != nil && len(w.row(t, field, id)) == 0 {
				t.Errorf("%s is tied to %v of %s, which the workspace does not have", body, id, field)
			}
		}
	}
	if snapshot() != others || foreign.people(t) != counts {
		t.Errorf("the other workspace is changed:\n%s\nwas\n%s", snapshot(), others)
	}
	// Two that have one profile in two workspaces are one each.
	if a := w.lead(t, s, `{"name":"x","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`); a.field("contact_id") != float64(w.Contacts["hank"]) {
		t.Errorf("got %s", a.body)
	}
	if a := w.lead(t, s, `{"name":"x","company_name":"Hooli"}`); a.field("company_id") != float64(w.Companies["hooli"]) {
		t.Errorf("got %s", a.body)
	}
}

// emptyKey sends a lead with a header that says nothing.
func (w seeded) emptyKey(t testing.TB, s server) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+"/api/v1/leads", strings.NewReader(`{"name":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", strings.TrimPrefix(w.Key("all"), "Authorization: "))
	r.Header["Idempotency-Key"] = []string{""}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return answer{status: response.StatusCode}
}
