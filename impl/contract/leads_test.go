package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
)

// leadWorkspace is one whose records are hard to tell apart for a matcher that
// guesses.
const leadWorkspace = `
workspaces:
  - slug: SLUG
    leads: {create_companies: true, create_contacts: true}
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage], requests_per_minute: 100000}
      - {ref: second, owner: ada, scopes: [leads.manage], requests_per_minute: 100000}
      - {ref: test, owner: ada, scopes: [leads.manage], requests_per_minute: 100000, test: true}
    companies:
      - {ref: globex, name: Globex, domain: globex.com, other_domains: [globex.de, bücher-globex.de]}
      - {ref: europe, name: Globex Europe, domain: eu.globex.com, other_domains: [west.globex.com]}
      - {ref: initech, name: Initech, domain: initech.co.uk}
      - {ref: pages, name: Pages, domain: pages-inc.github.io}
      - {ref: google, name: Google, domain: gmail.com, other_domains: [mailinator.com, yourcompany.com, github.io]}
      - {ref: umbrella_1, name: Umbrella, domain: umbrella-one.io}
      - {ref: umbrella_2, name: umbrella, domain: umbrella-two.io}
      - {ref: strasse, name: Straße & Söhne}
      - {ref: hooli, name: Hooli}
      - {ref: liangzi, name: 例子公司, domain: 例子.公司}
      - {ref: amthal, name: شركة الأمثال, domain: مثال.السعودية}
      - {ref: intranet, name: Intranet, domain: corp.internal}
      - {ref: reserved, name: Reserved, domain: reserved-corp.example}
    contacts:
      - {ref: hank, email: Hank@Globex.com, first_name: Hank, company: globex, linkedin_url: "https://www.linkedin.com/in/hank-scorpio"}
      - {ref: milton, email: milton@gmail.com, company: initech}
      - {ref: alone, email: alone@sole-trader.org}
      - {ref: linked, last_name: Waddams, linkedin_url: "https://www.linkedin.com/in/linked-one", company: initech}
      - {ref: twin_1, email: twin1@globex.com, linkedin_url: "https://www.linkedin.com/in/twins", company: globex}
      - {ref: twin_2, email: twin2@globex.com, linkedin_url: "https://www.linkedin.com/in/twins", company: globex}
      - {ref: zhang, email: zhang@例子.公司, linkedin_url: "https://www.linkedin.com/in/张伟", company: liangzi}
      - {ref: rita, email: rita@reserved-corp.example, company: reserved}
      - {ref: full, email: full@globex.com, first_name: Full, last_name: Contact, title: CEO, seniority: c_level, department: Board, phone: "+14155552671", linkedin_url: "https://www.linkedin.com/in/full-contact", company: globex}
`

// lead sends a lead with the key "all".
func (w seeded) lead(t testing.TB, s server, body string, headers ...string) answer {
	t.Helper()
	return s.send(t, "POST", "/api/v1/leads", body, append([]string{w.Key("all")}, headers...)...)
}

// row gives a record as the database has it; what is null in it is left out.
func (w seeded) row(t testing.TB, table string, id any) map[string]any {
	t.Helper()
	key := map[string]string{"leads": "lead_id", "contacts": "contact_id", "companies": "company_id"}[table]
	return object(t, dbtest.Query[string](t, dbtest.URL(t), fmt.Sprintf(
		`select coalesce(max(jsonb_strip_nulls(to_jsonb(r))::text), '{}') from %s r where workspace_id = $1 and %s = $2`, table, key), w.ID, id))
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// domains gives what a company is known by, the main one first.
func (w seeded) domains(t testing.TB, company any) string {
	t.Helper()
	return dbtest.Query[string](t, dbtest.URL(t), `select coalesce(string_agg(domain, ' ' order by not main, domain), '')
		from company_domains where workspace_id = $1 and company_id = $2`, w.ID, company)
}

// people counts companies, their domains, contacts and leads of a workspace.
func (w seeded) people(t testing.TB) [4]int64 {
	t.Helper()
	var n [4]int64
	for i, table := range []string{"companies", "company_domains", "contacts", "leads"} {
		n[i] = dbtest.Query[int64](t, dbtest.URL(t), `select count(*) from `+table+` where workspace_id = $1`, w.ID)
	}
	return n
}

// reaches tells whether a lead of an answer was tied to the company and the
// contact that are wanted: a ref of the seed, "+domain" or "+address" for one
// that the lead added, or nothing.
func (w seeded) reaches(t testing.TB, a answer, company, contact string, before [4]int64) {
	t.Helper()
	if a.status != 201 {
		t.Errorf("got %d %s", a.status, a.body)
		return
	}
	want := [4]int64{before[0], before[1], before[2], before[3] + 1}
	companyID, contactID := a.field("company_id"), a.field("contact_id")
	if domain, added := strings.CutPrefix(company, "+"); added {
		want[0], want[1] = want[0]+1, want[1]+1
		if got := w.domains(t, companyID); got != domain {
			t.Errorf("the company that was added has the domains %q, want %q", got, domain)
		}
		if source := w.row(t, "companies", companyID)["source"]; source != "lead" {
			t.Errorf("the company that was added has the source %v", source)
		}
	} else if companyID != idOf(w.Companies[company]) {
		t.Errorf("the company is %v %v, want %s", companyID, w.row(t, "companies", companyID)["name"], company)
	}
	if email, added := strings.CutPrefix(contact, "+"); added {
		want[2]++
		row := w.row(t, "contacts", contactID)
		if row["email"] != email || row["source"] != "lead" || row["company_id"] != companyID {
			t.Errorf("the contact that was added is %v, want %s of company %v", row, email, companyID)
		}
	} else if contactID != idOf(w.Contacts[contact]) {
		t.Errorf("the contact is %v %v, want %s", contactID, w.row(t, "contacts", contactID)["email"], contact)
	}
	if got := w.people(t); got != want {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, want)
	}
	_, newCompany := strings.CutPrefix(company, "+")
	_, newContact := strings.CutPrefix(contact, "+")
	existed := company != "" && !newCompany || contact != "" && !newContact
	if a.field("reconciled") != existed || a.field("status") != "new" {
		t.Errorf("reconciled is %v, want %v: %s", a.field("reconciled"), existed, a.body)
	}
	row := w.row(t, "leads", a.field("lead_id"))
	if row["company_id"] != companyID || row["contact_id"] != contactID || row["is_test"] != a.field("is_test") ||
		row["reconciled"] != a.field("reconciled") || row["status"] != "new" || row["source"] != "api" {
		t.Errorf("the lead is stored as %v, answered as %s", row, a.body)
	}
}

// idOf is an id as JSON has it, nil for none.
func idOf(id int64) any {
	if id == 0 {
		return nil
	}
	return float64(id)
}

// holds tells whether a record has these values, and none for those that are
// wanted nil.
func holds(t testing.TB, what string, got map[string]any, want string) {
	t.Helper()
	if want == "" {
		return
	}
	for name, value := range object(t, want) {
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s has %s %#v, want %#v", what, name, got[name], value)
		}
	}
}

// Leads as tools send them, or the mappings that people make of their webhooks.
// Rows come one after the other into one workspace: each adds a company or a
// contact of its own or none.
var sentLeads = []struct {
	from, body       string
	company, contact string
	test             bool
	stored           string // columns of the lead
	kept             string // columns of the contact
}{
	// Plain requests.
	{from: "curl, the least", body: `{"email":"hank@globex.com"}`, company: "globex", contact: "hank",
		stored: `{"email":"hank@globex.com","name":null,"extra":{}}`},
	{from: "curl, a name alone", body: `{"name":"Somebody"}`, stored: `{"name":"Somebody","email":null}`},
	{from: "curl, all fields nested", body: `{"email":"all@nested-fields.com","first_name":"All","last_name":"Fields","name":"All Fields","title":"CTO",
		"seniority":"c_level","department":"IT","phone":"+1 (415) 555-2671","linkedin_url":"https://linkedin.com/in/all-fields",
		"company":{"domain":"nested-fields.com","name":"Nested Inc."},"utm":{"source":"s","medium":"m","campaign":"c"}}`,
		company: "+nested-fields.com", contact: "+all@nested-fields.com",
		stored: `{"email":"all@nested-fields.com","first_name":"All","last_name":"Fields","name":"All Fields","title":"CTO","seniority":"c_level",
			"department":"IT","phone":"+14155552671","linkedin_url":"https://www.linkedin.com/in/all-fields","company_domain":"nested-fields.com",
			"company_name":"Nested Inc.","utm_source":"s","utm_medium":"m","utm_campaign":"c","extra":{}}`,
		kept: `{"first_name":"All","last_name":"Fields","name":"All Fields","title":"CTO","seniority":"c_level","department":"IT",
			"phone":"+14155552671","linkedin_url":"https://www.linkedin.com/in/all-fields"}`},
	{from: "curl, all fields flat", body: `{"email":"all@flat-fields.com","company_domain":"flat-fields.com","company_name":"Flat Inc.",
		"utm_source":"s","utm_medium":"m","utm_campaign":"c"}`,
		company: "+flat-fields.com", contact: "+all@flat-fields.com",
		stored: `{"company_domain":"flat-fields.com","company_name":"Flat Inc.","utm_source":"s","utm_medium":"m","utm_campaign":"c","extra":{}}`},
	{from: "curl, names in other letters are other fields", body: `{"email":"hank@globex.com","Email":"other@initech.co.uk","NAME":"X","company":{"Domain":"initech.co.uk"}}`,
		company: "globex", contact: "hank", stored: `{"email":"hank@globex.com","name":null,"company_domain":null,
			"extra":{"Email":"other@initech.co.uk","NAME":"X","company.Domain":"initech.co.uk"}}`},
	{from: "curl, everything but the name null", body: `{"name":"Nulls","email":null,"first_name":null,"company":null,"utm":null,"company_domain":null,"phone":null,"linkedin_url":null,"x":null}`,
		stored: `{"name":"Nulls","email":null,"extra":{}}`},

	// Typeform, by a mapping: answers, hidden fields, a token.
	{from: "Typeform", body: `{"email":"typeform@typed-form.io","first_name":"Tina","event_id":"01HX","form_id":"lT4Z3j","token":"a3a12ec67a1365927098a606107fac15",
		"submitted_at":"2026-03-01T10:00:00Z","hidden":{"utm_source":"ads"},"score":17,"opted_in":true,"answers":[{"type":"text"}],"utm_source":"typeform"}`,
		company: "+typed-form.io", contact: "+typeform@typed-form.io",
		stored: `{"utm_source":"typeform","extra":{"event_id":"01HX","form_id":"lT4Z3j","token":"a3a12ec67a1365927098a606107fac15","submitted_at":"2026-03-01T10:00:00Z","score":17,"opted_in":true}}`,
		kept:   `{"first_name":"Tina"}`},
	{from: "Typeform, an empty answer", body: `{"email":"","name":"No Mail","company_name":"","phone":""}`, stored: `{"email":null,"name":"No Mail","company_name":null,"phone":null}`},
	{from: "Typeform, hidden fields left as placeholders", body: `{"name":"Placeholder","utm_source":"xxxxx","utm_medium":"hidden_value"}`, stored: `{"utm_source":"xxxxx"}`},

	// HubSpot.
	{from: "HubSpot form", body: `{"email":"Sales.Person@HubForm.Io","firstname":"Sal","lastname":"Es","first_name":"Sal","last_name":"Es",
		"hs_context":"{\"hutk\":\"60c2ccdfe4892f0fa0593940b12c11aa\",\"pageUri\":\"https://www.hubform.io/?a=<b>&c\"}","hs_persona":null,"num_employees":"11-50"}`,
		company: "+hubform.io", contact: "+sales.person@hubform.io",
		stored: `{"email":"sales.person@hubform.io","extra":{"firstname":"Sal","lastname":"Es","num_employees":"11-50",
			"hs_context":"{\"hutk\":\"60c2ccdfe4892f0fa0593940b12c11aa\",\"pageUri\":\"https://www.hubform.io/?a=<b>&c\"}"}}`},
	{from: "HubSpot workflow, nested properties", body: `{"email":"milton@gmail.com","properties":{"hs_lead_status":"NEW"},"vid":3234574,"is-contact":true}`,
		company: "initech", contact: "milton", stored: `{"extra":{"vid":3234574,"is-contact":true}}`},
	{from: "HubSpot, surrounding space", body: `{"email":"  hank@globex.com\t","first_name":"  Hank  ","last_name":" Scorpio "}`, company: "globex", contact: "hank",
		stored: `{"email":"hank@globex.com","first_name":"Hank"}`, kept: `{"first_name":"Hank","last_name":"Scorpio"}`},

	// Webflow: the visible labels of the fields are their names.
	{from: "Webflow", body: `{"name":"Contact Form","email":"web@flow-site.co","Full Name":"Wes Flow","Your message":"Hi!\nWe need 20 seats.","_wf_site":"5f1","data":{"x":1}}`,
		company: "+flow-site.co", contact: "+web@flow-site.co",
		stored: `{"name":"Contact Form","extra":{"Full Name":"Wes Flow","Your message":"Hi!\nWe need 20 seats.","_wf_site":"5f1"}}`},
	{from: "Webflow, www. and a path as the company", body: `{"email":"someone@gmail.com","company_domain":"https://www.webflow-customer.com/pricing?x=1#top"}`,
		company: "+webflow-customer.com", contact: "+someone@gmail.com", stored: `{"company_domain":"webflow-customer.com"}`},

	// Calendly.
	{from: "Calendly invitee.created", body: `{"email":"invitee@calend-corp.com","name":"Cal Invitee","timezone":"Europe/Berlin","cancel_url":"https://calendly.com/cancellations/x",
		"rescheduled":false,"questions_and_answers":[{"answer":"Yes","position":0}],"tracking":{"utm_source":null},"utm":{"source":null,"medium":"","campaign":"  "},"text_reminder_number":null}`,
		company: "+calend-corp.com", contact: "+invitee@calend-corp.com",
		stored: `{"name":"Cal Invitee","utm_source":null,"utm_medium":null,"utm_campaign":null,
			"extra":{"timezone":"Europe/Berlin","cancel_url":"https://calendly.com/cancellations/x","rescheduled":false}}`,
		kept: `{"name":"Cal Invitee","first_name":null}`},
	{from: "Calendly, a guest by a plus address", body: `{"email":"hank+calendly@globex.com","name":"Hank"}`, company: "globex", contact: "+hank+calendly@globex.com"},

	// LinkedIn lead gen forms.
	{from: "LinkedIn lead gen", body: `{"email":"lead@gen-forms.com","first_name":"Lea","last_name":"Dgen","linkedin_url":"https://www.linkedin.com/in/ACoAAAExample/","title":"VP, Sales",
		"company_name":"Gen Forms GmbH","seniority":"VP","form_urn":"urn:li:leadGenForm:123","submitted_at":1767225600000,"test_lead":false}`,
		company: "+gen-forms.com", contact: "+lead@gen-forms.com",
		stored: `{"extra":{"form_urn":"urn:li:leadGenForm:123","submitted_at":1767225600000,"test_lead":false}}`,
		kept:   `{"linkedin_url":"https://www.linkedin.com/in/acoaaaexample","title":"VP, Sales"}`},
	{from: "LinkedIn, a profile that is known under a private address", body: `{"email":"hank.private@yahoo.com","linkedin_url":"HTTPS://de.linkedin.com/in/Hank-Scorpio/?trk=nav"}`,
		company: "globex", contact: "hank", kept: `{"email":"hank@globex.com"}`},
	{from: "LinkedIn, a profile without scheme", body: `{"name":"H","linkedin_url":"linkedin.com/in/hank-scorpio"}`, company: "globex", contact: "hank",
		stored: `{"linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`},
	{from: "LinkedIn, a profile in another language", body: `{"name":"H","linkedin_url":"www.linkedin.com/in/hank-scorpio/fr#about"}`, company: "globex", contact: "hank"},
	{from: "LinkedIn, a Chinese profile, encoded", body: `{"name":"张伟","linkedin_url":"https://cn.linkedin.com/in/%E5%BC%A0%E4%BC%9F"}`, company: "liangzi", contact: "zhang"},
	{from: "LinkedIn, a profile of two", body: `{"name":"A twin","linkedin_url":"https://www.linkedin.com/in/twins"}`},
	{from: "LinkedIn, a profile of two with a new address", body: `{"email":"twin3@globex.com","linkedin_url":"https://www.linkedin.com/in/twins"}`, company: "globex", contact: "+twin3@globex.com",
		kept: `{"linkedin_url":null}`},
	{from: "LinkedIn, everybody's own profile", body: `{"email":"first@own-profile.com","linkedin_url":"https://www.linkedin.com/in/me/"}`, company: "+own-profile.com", contact: "+first@own-profile.com",
		stored: `{"linkedin_url":"https://www.linkedin.com/in/me/"}`, kept: `{"linkedin_url":null}`},
	{from: "LinkedIn, everybody's own profile again", body: `{"email":"second@other-profile.com","linkedin_url":"linkedin.com/in/me"}`, company: "+other-profile.com", contact: "+second@other-profile.com"},
	{from: "LinkedIn, a company's page", body: `{"name":"P","linkedin_url":"https://www.linkedin.com/company/globex"}`, stored: `{"linkedin_url":"https://www.linkedin.com/company/globex"}`},
	{from: "LinkedIn, somebody else's host", body: `{"name":"P","linkedin_url":"https://www.linkedin.com.evil.io/in/hank-scorpio"}`},
	{from: "LinkedIn, a user part", body: `{"name":"P","linkedin_url":"https://www.linkedin.com@evil.io/in/hank-scorpio"}`},
	{from: "LinkedIn, no address at all", body: `{"name":"P","linkedin_url":"hank-scorpio"}`, stored: `{"linkedin_url":"hank-scorpio"}`},

	// E-mail addresses.
	{from: "shouted", body: `{"email":"HANK@GLOBEX.COM"}`, company: "globex", contact: "hank", stored: `{"email":"hank@globex.com"}`},
	{from: "no-break spaces around", body: `{"email":"\u00a0hank@globex.com\u00a0"}`, company: "globex", contact: "hank"},
	{from: "zero-width space behind", body: `{"email":"hank@globex.com\u200b"}`, company: "globex", contact: "hank"},
	{from: "byte order mark before", body: `{"email":"\ufeffhank@globex.com"}`, company: "globex", contact: "hank"},
	{from: "direction marks around", body: `{"email":"\u202ahank@globex.com\u202c"}`, company: "globex", contact: "hank"},
	{from: "line break behind", body: `{"email":"hank@globex.com\r\n"}`, company: "globex", contact: "hank"},
	{from: "full stop behind", body: `{"email":"hank@globex.com."}`, company: "globex", contact: "hank", stored: `{"email":"hank@globex.com"}`},
	{from: "www. before the host", body: `{"email":"info@WWW.globex.com"}`, company: "globex", contact: "+info@www.globex.com"},
	{from: "name of nothing that can be seen", body: `{"email":"hank@globex.com","name":"\u200b\ufeff","last_name":" \u2060 "}`, company: "globex", contact: "hank",
		stored: `{"name":null,"last_name":null}`},
	{from: "apostrophe", body: `{"email":"o'brien@globex.com","last_name":"O'Brien","first_name":"Seán"}`, company: "globex", contact: "+o'brien@globex.com",
		kept: `{"last_name":"O'Brien","first_name":"Seán"}`},
	{from: "quote and semicolon", body: `{"name":"Robert'); drop table leads;--","email":"bobby@globex.com"}`, company: "globex", contact: "+bobby@globex.com",
		kept: `{"name":"Robert'); drop table leads;--"}`},
	{from: "role address", body: `{"email":"info@globex.com"}`, company: "globex", contact: "+info@globex.com"},
	{from: "role address of a new company", body: `{"email":"sales@role-only.com"}`, company: "+role-only.com", contact: "+sales@role-only.com"},
	{from: "misspelt host of a known company", body: `{"email":"hank@globexx.com"}`, company: "+globexx.com", contact: "+hank@globexx.com"},
	{from: "misspelt free mail", body: `{"email":"hank@gmial.com"}`, contact: "+hank@gmial.com"},
	{from: "free mail", body: `{"email":"new.person@gmail.com"}`, contact: "+new.person@gmail.com"},
	{from: "free mail of another country", body: `{"email":"neue.person@gmx.de"}`, contact: "+neue.person@gmx.de"},
	{from: "free mail below a domain", body: `{"email":"kai@yahoo.co.jp"}`, contact: "+kai@yahoo.co.jp"},
	{from: "disposable mail", body: `{"email":"x@mailinator.com"}`, contact: "+x@mailinator.com"},
	{from: "disposable mail that is not free mail", body: `{"email":"x@discardmail.live"}`, contact: "+x@discardmail.live"},
	{from: "disposable mail that is not free mail, a name below", body: `{"email":"x@sub.discardmail.ninja"}`, contact: "+x@sub.discardmail.ninja"},
	{from: "disposable mail, a name below", body: `{"email":"x@sub.mailinator.com"}`, contact: "+x@sub.mailinator.com"},
	{from: "free mail misspelt", body: `{"email":"hank@gmail.co"}`, contact: "+hank@gmail.co"},
	{from: "top-level domain misspelt", body: `{"email":"hank@gmail.con"}`, contact: "+hank@gmail.con"},
	{from: "top-level domain misspelt, of a company", body: `{"email":"hank@globex.cmo","company_name":"Globex"}`, company: "globex", contact: "+hank@globex.cmo"},
	{from: "host of an office's own network", body: `{"name":"G","company_domain":"http://fileserver.local/"}`},
	{from: "host of an office's own network that is there", body: `{"email":"it@mail.corp.internal"}`, company: "intranet", contact: "+it@mail.corp.internal"},
	{from: "forwarded, Hide My Email", body: `{"email":"x7k2m@privaterelay.appleid.com"}`, contact: "+x7k2m@privaterelay.appleid.com"},
	{from: "forwarded, Firefox Relay", body: `{"email":"x7k2m@mozmail.com"}`, contact: "+x7k2m@mozmail.com"},
	{from: "placeholder domain", body: `{"email":"me@yourcompany.com"}`, contact: "+me@yourcompany.com"},
	{from: "mail at a public suffix", body: `{"email":"x@github.io"}`, contact: "+x@github.io"},
	{from: "mail below a public suffix", body: `{"email":"x@mail.pages-inc.github.io"}`, company: "pages", contact: "+x@mail.pages-inc.github.io"},
	{from: "mail of a sibling below a public suffix", body: `{"email":"x@sibling.github.io"}`, company: "+sibling.github.io", contact: "+x@sibling.github.io"},
	{from: "mail of a sibling below co.uk", body: `{"email":"x@mail.sibling.co.uk"}`, company: "+sibling.co.uk", contact: "+x@mail.sibling.co.uk"},
	{from: "mail host of a company", body: `{"email":"peter@mail.initech.co.uk"}`, company: "initech", contact: "+peter@mail.initech.co.uk"},
	{from: "other domain of a company", body: `{"email":"heidi@globex.de"}`, company: "globex", contact: "+heidi@globex.de"},
	{from: "subdomain of another domain", body: `{"email":"ute@mail.globex.de"}`, company: "globex", contact: "+ute@mail.globex.de"},
	{from: "exact domain before its registrable one", body: `{"email":"uli@eu.globex.com"}`, company: "europe", contact: "+uli@eu.globex.com"},
	{from: "exact other domain before its registrable one", body: `{"email":"udo@west.globex.com"}`, company: "europe", contact: "+udo@west.globex.com"},
	{from: "exact other domain before its registrable one, named", body: `{"name":"G","company_domain":"west.globex.com"}`, company: "europe"},
	{from: "another subdomain", body: `{"email":"uma@us.globex.com"}`, company: "globex", contact: "+uma@us.globex.com"},
	{from: "subdomain of a new company", body: `{"email":"x@mx1.mail.deep-company.com"}`, company: "+deep-company.com", contact: "+x@mx1.mail.deep-company.com",
		stored: `{"email":"x@mx1.mail.deep-company.com","company_domain":null}`},
	{from: "IDN", body: `{"email":"gerd@BÜCHER-globex.de"}`, company: "globex", contact: "+gerd@xn--bcher-globex-dlb.de"},
	{from: "IDN, decomposed", body: `{"email":"gitta@bu\u0308cher-globex.de"}`, company: "globex", contact: "+gitta@xn--bcher-globex-dlb.de"},
	{from: "IDN, encoded", body: `{"email":"gabi@xn--bcher-globex-dlb.de"}`, company: "globex", contact: "+gabi@xn--bcher-globex-dlb.de"},
	{from: "IDN of a new company", body: `{"email":"kim@münchen-werke.de"}`, company: "+xn--mnchen-werke-dlb.de", contact: "+kim@xn--mnchen-werke-dlb.de"},
	{from: "Chinese", body: `{"email":"王芳@例子.公司","name":"王芳","company_name":"例子公司"}`, company: "liangzi", contact: "+王芳@xn--fsqu00a.xn--55qx5d", kept: `{"name":"王芳"}`},
	{from: "Chinese, ideographic full stop", body: `{"email":"zhang@例子。公司","first_name":"伟"}`, company: "liangzi", contact: "zhang", kept: `{"first_name":"伟"}`},
	{from: "Arabic", body: `{"email":"layla@مثال.السعودية","name":"ليلى العامري","company_name":"شركة الأمثال"}`, company: "amthal", contact: "+layla@xn--mgbh0fb.xn--mgberp4a5d4ar",
		kept: `{"name":"ليلى العامري"}`},
	{from: "Arabic, by the company's name", body: `{"name":"عمر","company_name":" شركة  الأمثال "}`, company: "amthal"},
	{from: "emoji", body: `{"name":"Zoë 👩‍💻","email":"zoe@globex.com"}`, company: "globex", contact: "+zoe@globex.com", kept: `{"name":"Zoë 👩‍💻"}`},

	// Line breaks where a header could be made of them.
	{from: "CRLF in the name", body: `{"name":"Eve\r\nBcc: all@globex.com","email":"eve@globex.com"}`, company: "globex", contact: "+eve@globex.com",
		stored: `{"name":"Eve Bcc: all@globex.com"}`, kept: `{"name":"Eve Bcc: all@globex.com"}`},
	{from: "CRLF and controls in the others", body: `{"name":"Eve","title":"a\r\n\r\nb\u2028c\u0085d\u001be","phone":"1\n2","company_name":"x\ty"}`,
		stored: `{"title":"a b c d e","phone":"1 2","company_name":"x y"}`},

	// Companies.
	{from: "company by name", body: `{"name":"G","company":{"name":"hOOLI"}}`, company: "hooli"},
	{from: "company by name, space and width", body: `{"name":"G","company_name":"\u00a0Ｈｏｏｌｉ "}`, company: "hooli"},
	{from: "company by name, sharp s", body: `{"name":"G","company_name":"STRASSE & SÖHNE"}`, company: "strasse"},
	{from: "company by name, decomposed", body: `{"name":"G","company_name":"straße & so\u0308hne"}`, company: "strasse"},
	{from: "company by a name that two have", body: `{"name":"G","company_name":"UMBRELLA"}`},
	{from: "company by a name that nobody has", body: `{"name":"G","company_name":"Wayne"}`, stored: `{"company_name":"Wayne"}`},
	{from: "company by a part of a name", body: `{"name":"G","company_name":"Glob%"}`},
	{from: "company by a name that two have, and domain", body: `{"name":"G","company":{"name":"Umbrella","domain":"umbrella-two.io"}}`, company: "umbrella_2"},
	{from: "company by a name, free mail", body: `{"email":"gilfoyle@gmail.com","company_name":"Hooli"}`, company: "hooli", contact: "+gilfoyle@gmail.com"},
	{from: "company by its domain with a port", body: `{"name":"G","company_domain":"WWW.GLOBEX.COM:8080"}`, company: "globex"},
	{from: "company by its domain, a subdomain", body: `{"name":"G","company_domain":"shop.us.globex.com."}`, company: "globex"},
	{from: "company by no domain", body: `{"name":"G","company_domain":"n/a"}`, stored: `{"company_domain":"n/a"}`},
	{from: "company by an e-mail address", body: `{"name":"G","company_domain":"hank@globex.com"}`, stored: `{"company_domain":"hank@globex.com"}`},
	{from: "company by an IP address", body: `{"name":"G","company_domain":"192.168.0.1"}`},
	{from: "company by a domain of free mail", body: `{"name":"G","company_domain":"gmail.com"}`},
	{from: "company by a reserved domain that is there", body: `{"name":"G","company_domain":"www.reserved-corp.example"}`, company: "reserved"},
	{from: "company by a reserved domain that is not", body: `{"name":"G","company_domain":"nobodys-corp.example"}`},
	{from: "company by a new domain", body: `{"name":"G","company":{"domain":"http://www.brand-new.dev/","name":"  Brand\n New "}}`, company: "+brand-new.dev",
		stored: `{"company_name":"Brand New","company_domain":"brand-new.dev"}`},
	{from: "nested before flat", body: `{"name":"G","company":{"domain":"initech.co.uk"},"company_domain":"globex.com","utm":{"source":"nested"},"utm_source":"flat"}`, company: "initech",
		stored: `{"company_domain":"initech.co.uk","utm_source":"nested"}`},
	{from: "flat where nested is blank", body: `{"name":"G","company":{"domain":" \u00a0","name":null},"company_domain":"globex.com","company_name":"Flat","utm":{"source":""},"utm_source":"flat"}`, company: "globex",
		stored: `{"company_domain":"globex.com","company_name":"Flat","utm_source":"flat"}`},
	{from: "flat where nested cannot be seen", body: `{"name":"G","company":{"domain":"\u200b","name":"\u0001"},"company_domain":"initech.co.uk","company_name":"Seen"}`, company: "initech",
		stored: `{"company_domain":"initech.co.uk","company_name":"Seen"}`},
	{from: "more about the company than there are fields", body: `{"name":"G","company":{"domain":"globex.com","size":50,"hq":{"city":"Ulm"},"public":true},"utm":{"term":"crm"}}`, company: "globex",
		stored: `{"extra":{"company.size":50,"company.public":true,"utm.term":"crm"}}`},
	{from: "person without a company, company named", body: `{"email":"alone@sole-trader.org","company_domain":"globex.de"}`, company: "globex", contact: "alone",
		kept: `{"email":"alone@sole-trader.org"}`},

	// Tests.
	{from: "example.com", body: `{"email":"jane@example.com","company_domain":"globex.com","linkedin_url":"https://www.linkedin.com/in/hank-scorpio"}`, test: true,
		stored: `{"email":"jane@example.com","company_domain":"globex.com"}`},
	{from: "below example.org", body: `{"email":"jane@mail.example.org","company_name":"Hooli"}`, test: true},
	{from: "example.net", body: `{"email":"JANE@EXAMPLE.NET"}`, test: true},
	{from: ".test", body: `{"email":"a@company.test"}`, test: true},
	{from: ".example, a person who is there", body: `{"email":"rita@reserved-corp.example"}`, test: true},
	{from: ".invalid", body: `{"email":"a@b.invalid"}`, test: true},
	{from: ".localhost", body: `{"email":"a@b.localhost"}`, test: true},
	{from: "not quite example.com", body: `{"email":"a@my-example.com"}`, company: "+my-example.com", contact: "+a@my-example.com"},
	{from: "not quite .test", body: `{"email":"a@test.company"}`, company: "+test.company", contact: "+a@test.company"},
}

func TestALeadReachesItsCompanyAndPerson(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, leadWorkspace)
	for _, c := range sentLeads {
		t.Run(c.from, func(t *testing.T) {
			before := w.people(t)
			a := w.lead(t, s, c.body)
			w.reaches(t, a, c.company, c.contact, before)
			if a.field("is_test") != c.test {
				t.Errorf("is_test is %v: %s", a.field("is_test"), a.body)
			}
			holds(t, "the lead", w.row(t, "leads", a.field("lead_id")), c.stored)
			if c.kept != "" {
				holds(t, "the contact", w.row(t, "contacts", a.field("contact_id")), c.kept)
			}
		})
	}
	if name := w.row(t, "companies", companyOf(t, w, "brand-new.dev"))["name"]; name != "Brand New" {
		t.Errorf("a company is named %q", name)
	}
	if name := w.row(t, "companies", companyOf(t, w, "role-only.com"))["name"]; name != "role-only.com" {
		t.Errorf("a company whose name nobody told is named %q", name)
	}
}

// companyOf finds a company by a domain in the database.
func companyOf(t testing.TB, w seeded, domain string) int64 {
	t.Helper()
	return dbtest.Query[int64](t, dbtest.URL(t), `select coalesce(max(company_id), 0) from company_domains where workspace_id = $1 and domain = $2`, w.ID, domain)
}
