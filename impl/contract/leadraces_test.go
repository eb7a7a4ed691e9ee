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

// parallelLeads sends leads at one instant, in turn to two processes. Each has
// looked for its people before the first can add any: until then nobody may write.
func (w seeded) parallelLeads(t *testing.T, n int, of func(i int) (body string, headers []string)) []answer {
	t.Helper()
	both := []server{sharedServer(t), start(t, dbtest.URL(t))}
	defer both[1].Stop()
	release := dbtest.Hold(t, dbtest.URL(t), `lock table companies, contacts in share mode`)
	answers := make([]answer, n)
	var parallel sync.WaitGroup
	for i := range n {
		parallel.Go(func() {
			body, headers := of(i)
			answers[i] = w.lead(t, both[i%2], body, headers...)
		})
	}
	waiting(t, n)
	release()
	parallel.Wait()
	return answers
}

// one expects that all leads were saved and tied to the same company and the
// same contact, and that exactly one of them added those.
func one(t *testing.T, answers []answer) (company, contact any) {
	t.Helper()
	company, contact = answers[0].field("company_id"), answers[0].field("contact_id")
	first, ids := 0, map[any]bool{}
	for _, a := range answers {
		if a.status != 201 || a.field("company_id") != company || a.field("contact_id") != contact {
			t.Errorf("got %d %s, others %v and %v", a.status, a.body, company, contact)
		}
		if a.field("reconciled") == false {
			first++
		}
		ids[a.field("lead_id")] = true
	}
	if first != 1 || len(ids) != len(answers) {
		t.Errorf("%d of %d leads say that they were first", first, len(ids))
	}
	return company, contact
}

func TestThirtyParallelLeadsOfOneNewPersonMakeOnePerson(t *testing.T) {
	w := seed(t, leadWorkspace)
	before := w.people(t)
	company, contact := one(t, w.parallelLeads(t, 30, func(i int) (string, []string) {
		// However it is written, and with different fields to fill.
		email := []string{"Race@Mail.Race-Corp.com", "race@mail.race-corp.COM ", "RACE@MAIL.RACE-CORP.COM"}[i%3]
		return fmt.Sprintf(`{"email":%q,"company_name":"Race %d","phone":"ext %d"}`, email, i, i), nil
	}))
	if got, want := w.people(t), [4]int64{before[0] + 1, before[1] + 1, before[2] + 1, 30}; got != want {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, want)
	}
	if w.row(t, "contacts", contact)["company_id"] != company || w.domains(t, company) != "race-corp.com" {
		t.Errorf("the contact is %v", w.row(t, "contacts", contact))
	}
}

func TestParallelLeadsOfOneNewCompanyMakeOneCompany(t *testing.T) {
	w := seed(t, leadWorkspace)
	before := w.people(t)
	companies := map[any]bool{}
	for _, a := range w.parallelLeads(t, 30, func(i int) (string, []string) {
		switch i % 3 {
		case 0:
			return fmt.Sprintf(`{"email":"p%d@race-company.com"}`, i), nil
		case 1:
			return fmt.Sprintf(`{"email":"p%d@gmail.com","company_domain":"https://www.race-company.com/"}`, i), nil
		}
		return fmt.Sprintf(`{"name":"p%d","company_domain":"shop%d.race-company.com"}`, i, i), nil
	}) {
		if a.status != 201 {
			t.Errorf("got %d %s", a.status, a.body)
		}
		companies[a.field("company_id")] = true
	}
	if got, want := w.people(t), [4]int64{before[0] + 1, before[1] + 1, before[2] + 20, 30}; got != want || len(companies) != 1 {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, want)
	}
}

func TestParallelLeadsOfOneNewProfileMakeOnePerson(t *testing.T) {
	w := seed(t, leadWorkspace)
	before := w.people(t)
	_, contact := one(t, w.parallelLeads(t, 30, func(i int) (string, []string) {
		return fmt.Sprintf(`{"email":"p%d@gmail.com","linkedin_url":"https://www.linkedin.com/in/race%s"}`, i, strings.Repeat("/", i%2)), nil
	}))
	// No company of theirs is new, which would set them right.
	if got, want := w.people(t), [4]int64{before[0], before[1], before[2] + 1, 30}; got != want {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, want)
	}
	holds(t, "the contact", w.row(t, "contacts", contact), `{"linkedin_url":"https://www.linkedin.com/in/race"}`)
}

// Two contacts, and one new profile for both: one gets it, or it would find
// neither.
func TestOneProfileForTwoContactsAtOnceGoesToOne(t *testing.T) {
	w := seed(t, leadWorkspace)
	for _, a := range w.parallelLeads(t, 20, func(i int) (string, []string) {
		return fmt.Sprintf(`{"email":%q,"linkedin_url":"https://www.linkedin.com/in/contended"}`, []string{"milton@gmail.com", "alone@sole-trader.org"}[i/2%2]), nil
	}) {
		expectStatus(t, a, 201)
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from contacts where workspace_id = $1 and linkedin_url like '%contended'`, w.ID); n != 1 {
		t.Errorf("%d contacts have the profile", n)
	}
}

func TestOneAddressForAProfileWithoutOneGoesToOneContact(t *testing.T) {
	w := seed(t, leadWorkspace)
	before := w.people(t)
	for _, a := range w.parallelLeads(t, 20, func(i int) (string, []string) {
		if i/2%2 == 0 {
			return `{"email":"linked@initech.co.uk"}`, nil
		}
		return `{"email":"linked@initech.co.uk","linkedin_url":"https://www.linkedin.com/in/linked-one"}`, nil
	}) {
		expectStatus(t, a, 201)
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from contacts where workspace_id = $1 and email = 'linked@initech.co.uk'`, w.ID); n != 1 {
		t.Errorf("%d contacts have the address", n)
	}
	if got := w.people(t); got[0] != before[0] || got[2] > before[2]+1 || got[3] != 20 {
		t.Errorf("there are %v companies, domains, contacts and leads, were %v", got, before)
	}
}

func TestParallelLeadsFillAFieldOnce(t *testing.T) {
	w := seed(t, leadWorkspace)
	answers := w.parallelLeads(t, 30, func(i int) (string, []string) {
		return fmt.Sprintf(`{"email":"hank@globex.com","title":"Title %d","last_name":"Name %d"}`, i, i), nil
	})
	filled := w.row(t, "contacts", w.Contacts["hank"])
	for _, a := range answers {
		if a.status != 201 || a.field("contact_id") != float64(w.Contacts["hank"]) || a.field("reconciled") != true {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	// One lead filled both: it was the first that came.
	title, _ := filled["title"].(string)
	if name, _ := filled["last_name"].(string); title == "" || strings.TrimPrefix(title, "Title ") != strings.TrimPrefix(name, "Name ") {
		t.Errorf("the contact is a mixture: %v", filled)
	}
}

func TestParallelUsesOfOneIdempotencyKeyMakeOneLead(t *testing.T) {
	for _, n := range []int{2, 30} {
		w := seed(t, leadWorkspace)
		before := w.people(t)
		answers := w.parallelLeads(t, n, func(i int) (string, []string) {
			return fmt.Sprintf(`{"email":"p%d@race-key-%d.com"}`, i, i), []string{"Idempotency-Key: race"}
		})
		var first answer
		for _, a := range answers {
			if a.status == 201 {
				if first.status != 0 {
					t.Errorf("two were created: %s and %s", first.body, a.body)
				}
				first = a
			}
		}
		for _, a := range answers {
			if a.status != 201 {
				repeated(t, a, first)
			}
		}
		// The others left no trace of their people either.
		if got, want := w.people(t), [4]int64{before[0] + 1, before[1] + 1, before[2] + 1, 1}; got != want {
			t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, want)
		}
	}
}

// waiting waits until so many sessions of the database wait for a lock, or as
// many as two processes have for one workspace. Whose they are it cannot tell, so
// tests that call it run beside no others.
func waiting(t *testing.T, sessions int) {
	t.Helper()
	sessions = min(sessions, 2*6)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		n := dbtest.Query[int](t, dbtest.URL(t),
			`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		if n >= sessions {
			return
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("%d sessions wait for a lock, want %d", n, sessions)
		}
	}
}

// A seed file adds the same people meanwhile, and is not done when the leads
// come: they wait for it, and find who is there then.
func TestLeadsThatComeDuringASeedFindWhatItAdds(t *testing.T) {
	s, w := sharedServer(t), seed(t, leadWorkspace)
	before := w.people(t)
	// The seed is held up at its last contact.
	release := dbtest.Hold(t, dbtest.URL(t), `insert into contacts (workspace_id, email, source) values ($1, 'last@meet.com', 'x')`, w.ID)
	var parallel sync.WaitGroup
	var report string
	parallel.Go(func() {
		report = inlet(t, `
workspaces:
  - slug: `+w.Slug+`
    companies:
      - {ref: meet_0, name: Meet 0, domain: meet-0.com}
      - {ref: meet_1, name: Meet 1, domain: meet-1.com}
    contacts:
      - {ref: meet_0, email: x@meet-0.com, company: meet_0}
      - {ref: meet_1, email: x@meet-1.com, company: meet_1}
      - {ref: free, email: free.meeter@gmail.com, company: meet_1}
      - {ref: last, email: last@meet.com}
`, "seed", "-", "--json")
	})
	waiting(t, 1)
	sent := []struct{ body, company, contact string }{
		{`{"email":"x@meet-0.com"}`, "meet_0", "meet_0"},
		{`{"email":"free.meeter@gmail.com"}`, "meet_1", "free"},
		{`{"name":"x","company_domain":"www.meet-1.com"}`, "meet_1", ""},
	}
	answers := make([]answer, len(sent))
	for i, c := range sent {
		parallel.Go(func() { answers[i] = w.lead(t, s, c.body) })
	}
	waiting(t, 1+len(sent))
	release()
	parallel.Wait()
	var seeds struct{ Workspaces map[string]seeded }
	if err := json.Unmarshal([]byte(report), &seeds); err != nil {
		t.Fatal(err)
	}
	added := seeds.Workspaces[w.Slug]
	for i, c := range sent {
		a := answers[i]
		if a.status != 201 || a.field("company_id") != idOf(added.Companies[c.company]) || a.field("contact_id") != idOf(added.Contacts[c.contact]) ||
			a.field("reconciled") != true {
			t.Errorf("%s answers %d %s, want %s and %s of %s", c.body, a.status, a.body, c.company, c.contact, report)
		}
	}
	if got, want := w.people(t), [4]int64{before[0] + 2, before[1] + 2, before[2] + 4, 3}; got != want {
		t.Errorf("there are %v companies, domains, contacts and leads, want %v", got, want)
	}
}
