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

// leads gives how many leads the workspace has.
func (w seeded) leads(t *testing.T) int {
	t.Helper()
	return dbtest.Query[int](t, dbtest.URL(t), `select count(*) from leads where workspace_id = $1`, w.ID)
}

func TestAFormTellsWhatItAsksFor(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	var form struct {
		Name   string
		Fields []struct {
			Name, Label, Type string
			Required          bool
			MaxLength         int `json:"max_length"`
		}
	}
	json.Unmarshal(s.send(t, "GET", "/api/v1/forms/"+w.Forms["demo"].PublicKey, "").body, &form)
	const want = "{Request a demo [{email E-mail email true 320} {first_name First name text false 512} " +
		"{company_name Company text false 512} {team_size Team size text false 512}]}"
	if got := fmt.Sprint(form); got != want {
		t.Errorf("the form is\n%s, want\n%s", got, want)
	}
}

func TestASubmissionIsALeadAndItsAnswerTellsNothing(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	path := "/api/v1/forms/" + w.Forms["demo"].PublicKey
	for _, c := range []struct{ name, body, want string }{
		{"somebody known", `{"fields":{"email":"Hank@Globex.com","team_size":"20","first_name":"Henry"},"visitor_id":"v1","page_url":"https://www.example.com/demo"}`,
			`hank@globex.com known Globex {"page_url": "https://www.example.com/demo", "team_size": "20"} v1`},
		{"somebody new", `{"fields":{"email":"ann@newco.com","company_name":"NewCo","first_name":null,"team_size":"  "},"visitor_id":"v2"}`,
			`ann@newco.com new NewCo {} v2`},
		{"a test", `{"fields":{"email":"x@example.com"},"visitor_id":"v3"}`, `x@example.com test - {} -`},
		{"no visitor", `{"fields":{"email":"bob@newco.com"}}`, `bob@newco.com new NewCo {} -`},
	} {
		a := s.send(t, "POST", path, c.body)
		if a.status != 201 || strings.TrimSpace(string(a.body)) != `{"status":"received"}` {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		got := dbtest.Query[string](t, dbtest.URL(t), `
			select concat_ws(' ', l.email, case when l.is_test then 'test' when c.source = 'seed' then 'known' else 'new' end,
				coalesce(o.name, '-'), l.extra, coalesce(v.visitor_id, '-'))
			from leads l
			left join contacts c on c.workspace_id = l.workspace_id and c.contact_id = l.contact_id
			left join companies o on o.workspace_id = l.workspace_id and o.company_id = l.company_id
			left join visitors v on v.workspace_id = l.workspace_id and v.contact_id = l.contact_id
			where l.workspace_id = $1 and l.source = 'form' and l.form_id = $2 order by l.lead_id desc limit 1`, w.ID, w.Forms["demo"].ID)
		if got != c.want {
			t.Errorf("%s is kept as\n%s, want\n%s", c.name, got, c.want)
		}
	}
	if first := dbtest.Query[string](t, dbtest.URL(t), `select first_name from contacts where workspace_id = $1 and contact_id = $2`, w.ID, w.Contacts["hank"]); first != "Hank" {
		t.Errorf("the contact's name became %s", first)
	}
	before := w.leads(t)
	for name, trapped := range map[string]string{
		path: `{"fields":{"email":"spam@spam.com"},"visitor_id":"v9","trap":"http://spam.example"}`,
		"/api/v1/meeting-forms/" + w.MeetingForms["call"].PublicKey: fmt.Sprintf(
			`{"starts_at":%q,"fields":{"email":"spam@spam.com","name":"S"},"visitor_id":"v9","trap":"x"}`, w.slots(t, s, "")[0]),
	} {
		if a := s.send(t, "POST", name, trapped); a.status != 201 {
			t.Errorf("a program learns that it is one: %d %s", a.status, a.body)
		}
	}
	if w.leads(t) != before || w.visitor(t, "v9") != 0 {
		t.Error("what a program filled in is recorded")
	}
}

func TestASubmissionIsRefusedWithTheFieldAtFault(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	path := "/api/v1/forms/" + w.Forms["demo"].PublicKey
	for body, param := range map[string]string{
		`{}`:                          "fields",
		`{"fields":null}`:             "fields",
		`{"fields":{}}`:               "fields.email",
		`{"fields":{"email":" "}}`:    "fields.email",
		`{"fields":{"email":null}}`:   "fields.email",
		`{"fields":{"email":"hank"}}`: "fields.email",
		`{"fields":{"email":"a@b.co\r\nBcc: c@d.co"}}`:                                  "fields.email",
		`{"fields":{"email":"` + strings.Repeat("a", 313) + `@ab.co.uk"}}`:              "fields.email",
		`{"fields":{"email":7}}`:                                                        "fields.email",
		`{"fields":{"email":"a@b.co","first_name":"` + strings.Repeat("ü", 513) + `"}}`: "fields.first_name",
		`{"fields":{"email":"a@b.co","team_size":"` + strings.Repeat("9", 513) + `"}}`:  "fields.team_size",
		`{"fields":{"email":"a@b.co","is_admin":"1"}}`:                                  "fields.is_admin",
		`{"fields":{"email":"a@b.co"},"visitor_id":"not an id"}`:                        "visitor_id",
		`{"fields":{"email":"a@b.co"},"workspace":1}`:                                   "workspace",
		`{"fields":{"email":"a@b.co"},"page_url":"` + strings.Repeat("x", 2049) + `"}`:  "page_url",
	} {
		a := s.send(t, "POST", path, body)
		if code, got := a.refusal(); a.status != 400 || code != "invalid_request" || got != param {
			t.Errorf("%.60s answers %d %s at %q, want invalid_request at %q", body, a.status, code, got, param)
		}
	}
	if n := w.leads(t); n != 0 {
		t.Errorf("%d leads are kept all the same", n)
	}
}

// What is wrong with an answer is told before anything is made of it: to a
// program as to a person, and of a slot that is taken as of a free one.
func TestWhatIsWrongWithAnAnswerIsToldFirst(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	wrong := `"fields":{"email":"hank","name":"Hank"}`
	a := s.send(t, "POST", "/api/v1/forms/"+w.Forms["demo"].PublicKey, `{"fields":{"email":"hank"},"trap":"x"}`)
	expect(t, a, 400, "invalid_request", "fields.email")
	slot := w.slots(t, s, "")[0]
	meeting := "/api/v1/meeting-forms/" + w.MeetingForms["call"].PublicKey
	for range 2 {
		expect(t, s.send(t, "POST", meeting, fmt.Sprintf(`{"starts_at":%q,%s,"trap":"x"}`, slot, wrong)), 400, "invalid_request", "fields.email")
		expect(t, s.send(t, "POST", meeting, fmt.Sprintf(`{"starts_at":%q,%s}`, slot, wrong)), 400, "invalid_request", "fields.email")
		w.book(t, s, slot, "ann@newco.com", "v")
	}
}

func TestAFormHasANameThatTheDocumentTakes(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	for _, kind := range []string{"form", "meeting"} {
		for _, name := range []string{" ", strings.Repeat("ü", 513)} {
			if _, err := tryInlet(t, "", kind, "create", name, "--workspace", w.Slug); err == nil {
				t.Errorf("%s create takes a name of %d characters", kind, len(name))
			}
		}
		key := strings.TrimSpace(inlet(t, "", kind, "create", strings.Repeat("ü", 512), "--workspace", w.Slug))
		if a := s.send(t, "GET", "/api/v1/"+map[string]string{"form": "forms/", "meeting": "meeting-forms/"}[kind]+key, ""); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

func TestAnAnswerToAFormIsKeptBesideThePageItCameFrom(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, strings.Replace(onPages, "team_size]", "page_url]", 1))
	s.send(t, "POST", "/api/v1/forms/"+w.Forms["demo"].PublicKey, `{"fields":{"email":"ann@newco.com","page_url":"mine"},"page_url":"https://www.example.com/"}`)
	if got := dbtest.Query[string](t, dbtest.URL(t), `select extra ->> 'page_url' from leads where workspace_id = $1`, w.ID); got != "mine" {
		t.Errorf("the answer is kept as %s", got)
	}
}

// Whatever fits its field is taken, however long it becomes when it is compared.
func TestALongLinkedInAddressIsKeptAndFindsNobody(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, strings.Replace(onPages, "[email, first_name,", "[email, linkedin_url,", 1))
	profile := []rune("https://www.linkedin.com/in/")
	for n := 0; len(profile) < 2048; n++ {
		profile = append(profile, rune(0x4e00+n*7919%0x5000)) // percent-encoded, nine characters each
	}
	body, _ := json.Marshal(map[string]any{"fields": map[string]any{"email": "ann@newco.com", "linkedin_url": string(profile)}})
	if a := s.send(t, "POST", "/api/v1/forms/"+w.Forms["demo"].PublicKey, string(body)); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
	kept := dbtest.Query[string](t, dbtest.URL(t), `
		select l.linkedin_url || coalesce(c.linkedin_url, '') from leads l
		join contacts c on c.workspace_id = l.workspace_id and c.contact_id = l.contact_id where l.workspace_id = $1`, w.ID)
	if kept != string(profile) {
		t.Errorf("kept is %s", kept)
	}
}

// slots lists the free slots of the form call.
func (w seeded) slots(t *testing.T, s server, query string) []string {
	t.Helper()
	a := s.send(t, "GET", "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey+"/slots"+query, "")
	var list struct {
		Slots []struct {
			StartsAt time.Time `json:"starts_at"`
			EndsAt   time.Time `json:"ends_at"`
		}
	}
	if err := json.Unmarshal(a.body, &list); err != nil || a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var starts []string
	for _, slot := range list.Slots {
		starts = append(starts, slot.StartsAt.Format(time.RFC3339))
	}
	return starts
}

func (w seeded) book(t *testing.T, s server, starts, email, visitor string) answer {
	t.Helper()
	return s.send(t, "POST", "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey, fmt.Sprintf(
		`{"starts_at":%q,"fields":{"email":%q,"name":"Some Body"},"time_zone":"Asia/Tokyo","visitor_id":%q}`, starts, email, visitor))
}

func TestOfManyWhoBookOneSlotAtOnceOneGetsIt(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	slot := w.slots(t, s, "")[0]
	statuses := make(map[int]int)
	var mu sync.Mutex
	var parallel sync.WaitGroup
	for i := range 30 {
		parallel.Go(func() {
			// Who waits for too long behind the others is told to come again.
			a := answer{status: 503}
			for try := 0; a.status == 503 && try < 30; try++ {
				time.Sleep(time.Duration(min(try, 1)) * time.Second)
				a = w.book(t, []server{s, other}[i%2], slot, fmt.Sprintf("p%d@newco.com", i), "v")
			}
			if a.status == 409 {
				expect(t, a, 409, "slot_unavailable", "")
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	parallel.Wait()
	if statuses[201] != 1 || statuses[409] != 29 {
		t.Errorf("the answers are %v", statuses)
	}
	// Who did not get it left no lead and no contact.
	if leads, contacts := w.leads(t), w.contacts(t); leads != 1 || contacts != 3 {
		t.Errorf("%d leads and %d contacts, want 1 and 3", leads, contacts)
	}
	for _, free := range w.slots(t, s, "") {
		if free == slot {
			t.Error("the slot is listed as free")
		}
	}
	if list := inlet(t, "", "meeting", "bookings", "--workspace", w.Slug); !strings.Contains(list, "Asia/Tokyo") || !strings.Contains(list, slot) {
		t.Errorf("the bookings are\n%s", list)
	}
}

func TestOnlyOfferedSlotsCanBeBookedAndNoneThatOverlaps(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	key := w.MeetingForms["call"].PublicKey
	slots := w.slots(t, s, "")
	first, err := time.Parse(time.RFC3339, slots[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"off the grid": first.Add(10 * time.Minute),
		"in the past":  first.AddDate(0, 0, -28),
		"too far":      first.AddDate(0, 0, 70),
		"at night":     time.Date(first.Year(), first.Month(), first.Day(), 2, 0, 0, 0, time.UTC).AddDate(0, 0, 1),
	} {
		if a := w.book(t, s, at.Format(time.RFC3339), "a@newco.com", "v"); a.status != 409 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// By any offset, and with the t that RFC 3339 allows in lower case.
	a := w.book(t, s, strings.Replace(first.In(time.FixedZone("", 5400)).Format(time.RFC3339), "T", "t", 1), "a@newco.com", "v")
	if a.status != 201 || a.field("starts_at") != first.Format("2006-01-02T15:04:05.000Z") ||
		a.field("ends_at") != first.Add(30*time.Minute).Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("%d %s", a.status, a.body)
	}
	// Longer meetings do not overlap what is booked.
	inlet(t, "", "meeting", "set", key, "--workspace", w.Slug, "--minutes", "60")
	for _, slot := range w.slots(t, s, "") {
		at, _ := time.Parse(time.RFC3339, slot)
		if at.Before(first.Add(30*time.Minute)) && at.Add(time.Hour).After(first) {
			t.Errorf("%s is free beside the booking of %s", slot, first)
		}
	}
	if a := w.book(t, s, first.Truncate(time.Hour).Format(time.RFC3339), "b@newco.com", "v"); a.status != 409 {
		t.Errorf("a longer meeting overlaps: %d", a.status)
	}
	for body, param := range map[string]string{
		`{"fields":{"email":"a@newco.com","name":"A"}}`:                                                              "starts_at",
		`{"starts_at":"tomorrow","fields":{"email":"a@newco.com","name":"A"}}`:                                       "starts_at",
		`{"starts_at":"2026-02-30T09:00:00Z","fields":{"email":"a@newco.com","name":"A"}}`:                           "starts_at",
		`{"starts_at":"2026-03-03T09:00:00","fields":{"email":"a@newco.com","name":"A"}}`:                            "starts_at",
		`{"starts_at":"2026-03-03T09:00:00Z","fields":{"email":"a@newco.com"}}`:                                      "fields.name",
		`{"starts_at":"2026-03-03T09:00:00Z","fields":{"name":"A"}}`:                                                 "fields.email",
		`{"starts_at":"2026-03-03T09:00:00Z","fields":{"email":"a@newco.com","name":"A"},"time_zone":"Mars/Phobos"}`: "time_zone",
		`{"starts_at":"2026-03-03T09:00:00Z","fields":{"email":"a@newco.com","name":"A"},"time_zone":"Local"}`:       "time_zone",
		`{"starts_at":"2026-03-03T09:00:00Z","fields":{"email":"a@newco.com","name":"A"},"time_zone":"../../etc"}`:   "time_zone",
	} {
		a := s.send(t, "POST", "/api/v1/meeting-forms/"+key, body)
		if code, got := a.refusal(); a.status != 400 || code != "invalid_request" || got != param {
			t.Errorf("%.90s answers %d %s at %q, want invalid_request at %q", body, a.status, code, got, param)
		}
	}
}

func TestSlotsAreListedByTheDaysOfTheVisitor(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	key := w.MeetingForms["call"].PublicKey
	inlet(t, "", "meeting", "set", key, "--workspace", w.Slug, "--time-zone", "America/New_York", "--weekdays", "mon,tue,wed,thu,fri,sat,sun",
		"--opens", "20:00", "--closes", "24:00", "--minutes", "60", "--notice", "0", "--days-ahead", "40")
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Now().In(tokyo).AddDate(0, 0, 3).Format("2006-01-02")
	slots := w.slots(t, s, "?time_zone=Asia/Tokyo&from="+day+"&to="+day)
	if len(slots) != 4 {
		t.Errorf("the slots of a day in Tokyo are %v, want 4", slots)
	}
	for _, slot := range slots {
		at, _ := time.Parse(time.RFC3339, slot)
		if at.In(tokyo).Format("2006-01-02") != day {
			t.Errorf("%s is not on %s", slot, day)
		}
	}
	for query, param := range map[string]string{
		"?from=2026-02-30":                 "from",
		"?from=tomorrow":                   "from",
		"?to=2020-01-01":                   "to",
		"?from=2026-01-01&to=2026-02-01":   "to",
		"?from=2026-01-02&to=2026-01-01":   "to",
		"?time_zone=Mars":                  "time_zone",
		"?time_zone=Local":                 "time_zone",
		"?time_zone=localtime":             "time_zone",
		"?time_zone=posixrules":            "time_zone",
		"?time_zone=right/Europe/Berlin":   "time_zone",
		"?from=2026-01-01&from=2026-01-01": "from",
	} {
		expect(t, s.send(t, "GET", "/api/v1/meeting-forms/"+key+"/slots"+query, ""), 400, "invalid_request", param)
	}
	if past := w.slots(t, s, "?from=2020-01-01&to=2020-01-31"); len(past) != 0 {
		t.Errorf("%d slots are offered in the past", len(past))
	}
	for _, wrong := range [][]string{{"--time-zone=Mars"}, {"--weekdays=someday"}, {"--opens=9"}, {"--opens=23:30"}, {"--minutes=300"}} {
		if _, err := tryInlet(t, "", append([]string{"meeting", "set", key, "--workspace", w.Slug}, wrong...)...); err == nil {
			t.Errorf("meeting set takes %s", wrong)
		}
	}
}
