package embed

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/embed/embedtest"
	"github.com/inletdev/inlet/impl/form"
)

const meetingPath = "/api/v1/meeting-forms/meet_1"

func intro(origins ...string) form.MeetingForm {
	return form.MeetingForm{Minutes: 30, TimeZone: "Europe/Berlin", Form: form.Form{
		PublicKey: "meet_1", Name: "Intro call", Origins: origins,
		Fields: []form.Field{
			{Name: "name", Label: "Name", Type: "text", Required: true, MaxLength: 512},
			{Name: "email", Label: "E-mail", Type: "email", Required: true, MaxLength: 320},
		},
	}}
}

// A calendar answers as the operations of a meeting form do. Its slots are at
// 08:00 and 22:30 UTC of every day that is asked for.
type calendar struct {
	taken  string
	refuse func(request) (int, any)
	asked  []map[string]string
}

func (c *calendar) answer(r request) (int, any) {
	if c.refuse != nil {
		return c.refuse(r)
	}
	if r.method == http.MethodPost {
		starts, _ := r.body["starts_at"].(string)
		if starts == c.taken {
			return refused(http.StatusConflict, "slot_unavailable", nil)(r)
		}
		return http.StatusCreated, map[string]any{"status": "booked", "starts_at": starts, "ends_at": later(starts)}
	}
	c.asked = append(c.asked, r.query)
	zone, err := time.LoadLocation(r.query["time_zone"])
	if err != nil {
		return refused(http.StatusBadRequest, "invalid_request", map[string]any{"param": "time_zone"})(r)
	}
	from, _ := time.ParseInLocation(time.DateOnly, r.query["from"], zone)
	to, _ := time.ParseInLocation(time.DateOnly, r.query["to"], zone)
	slots := []map[string]string{}
	for at := from.UTC().Truncate(24 * time.Hour); at.Before(to.AddDate(0, 0, 1)); at = at.Add(24 * time.Hour) {
		for _, slot := range []time.Time{at.Add(8 * time.Hour), at.Add(22*time.Hour + 30*time.Minute)} {
			starts := slot.Format(millis)
			if !slot.Before(from) && slot.Before(to.AddDate(0, 0, 1)) && starts != c.taken {
				slots = append(slots, map[string]string{"starts_at": starts, "ends_at": later(starts)})
			}
		}
	}
	return http.StatusOK, map[string]any{"time_zone": r.query["time_zone"], "slots": slots}
}

const millis = "2006-01-02T15:04:05.000Z"

func later(starts string) string {
	at, _ := time.Parse(millis, starts)
	return at.Add(30 * time.Minute).Format(millis)
}

// now is what the pages take for the present.
const now = "2026-03-02T10:00:00Z"

// picking opens the page of a meeting form, its browser in New York.
func picking(t *testing.T, i *inlet, c *calendar) *embedtest.Tab {
	t.Helper()
	i.answers(c.answer)
	tab := embedtest.Open(t)
	tab.In("en-US", "America/New_York")
	tab.Before(fmt.Sprintf(`Date.now = () => Date.parse('%s')`, now))
	tab.Go(i.base + meetingPath + "/page")
	return tab
}

func meeting(t *testing.T) *inlet {
	t.Helper()
	return newInlet(t, false, nil, map[string]form.MeetingForm{"meet_1": intro()})
}

// offered are the choices of a group, as they are shown.
func offered(tab *embedtest.Tab, group string) string {
	return strings.ReplaceAll(embedtest.Eval[string](tab, fmt.Sprintf(
		`[...document.querySelectorAll('#%s label')].map((l) => l.textContent.trim()).join(', ')`, group)), "\u202f", " ")
}

func pick(tab *embedtest.Tab, group string, n int) {
	tab.Click(fmt.Sprintf(`#%s label:nth-child(%d)`, group, n))
}

func TestAMeetingIsBooked(t *testing.T) {
	i := meeting(t)
	c := &calendar{}
	tab := picking(t, i, c)
	tab.Until(`document.querySelectorAll('#days label').length === 14`)
	if want := map[string]string{"from": "2026-03-02", "to": "2026-03-15", "time_zone": "America/New_York"}; !maps.Equal(c.asked[0], want) {
		t.Errorf("%v", c.asked)
	}
	if days, times := offered(tab, "days"), offered(tab, "times"); !strings.HasPrefix(days, "Mon Mar 2, Tue Mar 3, ") || times != "3:00 AM, 5:30 PM" {
		t.Errorf("%s; %s", days, times)
	}
	if !embedtest.Eval[bool](tab, `document.getElementById('details').hidden && document.querySelector('#days input').checked`) {
		t.Error("the form asks before there is a slot")
	}
	pick(tab, "days", 2)
	pick(tab, "times", 2)
	tab.Type(field("name"), "Hank Scorpio")
	tab.Type(field("email"), "hank@globex.com")
	tab.Click("#details button")
	tab.Until(`document.activeElement.id === 'done'`)
	want := "Your meeting is booked: Tuesday, March 3, 2026, 5:30 – 6:00 PM (America/New York)."
	said := embedtest.Eval[string](tab, `document.getElementById('done').textContent`)
	if strings.NewReplacer("\u202f", " ", "\u2009", " ", " at ", ", ").Replace(said) != want {
		t.Errorf("%q", said)
	}
	got := i.posts(1)[0]
	fields, _ := got.body["fields"].(map[string]any)
	if got.path != meetingPath || got.body["starts_at"] != "2026-03-03T22:30:00.000Z" || got.body["time_zone"] != "America/New_York" ||
		!maps.Equal(fields, map[string]any{"name": "Hank Scorpio", "email": "hank@globex.com"}) || len(got.body) != 3 {
		t.Errorf("%+v", got)
	}
}

func TestAMeetingInAPageSendsTheVisitor(t *testing.T) {
	meetings := make(map[string]form.MeetingForm)
	i := newInlet(t, false, nil, meetings)
	i.answers((&calendar{}).answer)
	page := embedtest.NewSite(t, "www.acme.example", strings.ReplaceAll(standing(i.base, site), formPath, meetingPath))
	meetings["meet_1"] = intro(page.Origin())
	tab := embedtest.Open(t)
	tab.Go(page.Origin() + "/call")
	frame := tab.Frame(meetingPath + "/page")
	frame.Until(`document.querySelector('#times input')`)
	frame.Do(fmt.Sprintf(`document.querySelector('#times input').click(); document.querySelector('%s').value = 'Hank';
		document.querySelector('%s').value = 'hank@globex.com'; document.querySelector('#details button').click()`, field("name"), field("email")))
	frame.Until(`document.activeElement.id === 'done'`)
	if got := i.posts(1)[0].body; got["visitor_id"] != visitorOf(tab) || got["page_url"] != page.Origin()+"/call" {
		t.Errorf("%v", got)
	}
}

func TestASlotThatIsTakenMeanwhileIsSaidAndTheOthersOffered(t *testing.T) {
	i := meeting(t)
	c := &calendar{}
	tab := picking(t, i, c)
	tab.Expect("status of 409")
	tab.Until(`document.querySelector('#days label')`)
	pick(tab, "days", 2)
	pick(tab, "times", 1)
	tab.Type(field("name"), "Hank")
	tab.Type(field("email"), "hank@globex.com")
	i.answers(func(r request) (int, any) {
		if r.method == http.MethodPost {
			c.taken = "2026-03-03T08:00:00.000Z"
		}
		return c.answer(r)
	})
	tab.Click("#details button")
	tab.Until(`document.getElementById('taken').textContent.includes('no longer free')`)
	tab.Until(`document.getElementById('details').hidden && document.activeElement.name === 'time'`)
	pick(tab, "days", 2)
	if times := offered(tab, "times"); times != "5:30 PM" {
		t.Errorf("%s", times)
	}
	pick(tab, "times", 1)
	if !embedtest.Eval[bool](tab, `document.getElementById('taken').hidden`) {
		t.Error("the complaint stays")
	}
	tab.Click("#details button") // what was typed is still there
	tab.Until(`document.activeElement.id === 'done'`)
	if got := i.posts(2)[1].body; got["starts_at"] != "2026-03-03T22:30:00.000Z" || got["fields"].(map[string]any)["name"] != "Hank" {
		t.Errorf("%v", got)
	}
}

func TestTheTimeZoneCanBeChanged(t *testing.T) {
	i := meeting(t)
	c := &calendar{}
	tab := picking(t, i, c)
	tab.Until(`document.querySelector('#days label')`)
	if zone := embedtest.Eval[string](tab, `document.getElementById('zone').value`); zone != "America/New_York" {
		t.Error(zone)
	}
	pick(tab, "days", 2)
	pick(tab, "times", 2)
	choose := func(zone string) {
		tab.Do(fmt.Sprintf(`document.getElementById('zone').value = '%s'; document.getElementById('zone').dispatchEvent(new Event('change'))`, zone))
	}
	choose("Europe/Berlin")
	tab.Until(`document.querySelector('#times input:checked') && document.getElementById('chosen').textContent.includes('Berlin')`)
	if times := offered(tab, "times"); times != "9:00 AM, 11:30 PM" {
		t.Errorf("%s", times)
	}
	if last := c.asked[len(c.asked)-1]; last["time_zone"] != "Europe/Berlin" || last["from"] != "2026-03-02" {
		t.Errorf("%v", last)
	}
	choose("Asia/Tokyo") // where it is the next day already
	tab.Until(`document.querySelector('#days input:checked').value === '2026-03-04'`)
	if times := offered(tab, "times"); times != "7:30 AM, 5:00 PM" {
		t.Errorf("%s", times)
	}
	if chosen := embedtest.Eval[string](tab, `document.querySelector('#times input:checked').value + document.getElementById('chosen').textContent`); !strings.HasPrefix(chosen, "2026-03-03T22:30:00.000Z") || !strings.HasSuffix(chosen, "(Asia/Tokyo)") {
		t.Errorf("%s", chosen)
	}
	tab.Type(field("name"), "Hank")
	tab.Type(field("email"), "hank@globex.com")
	tab.Click("#details button")
	if got := i.posts(1)[0].body; got["time_zone"] != "Asia/Tokyo" || got["starts_at"] != "2026-03-03T22:30:00.000Z" {
		t.Errorf("%v", got)
	}
}

func TestAZoneThatTheServerDoesNotKnowBecomesTheHosts(t *testing.T) {
	i := meeting(t)
	c := &calendar{}
	tab := picking(t, i, c)
	tab.Expect("status of 400")
	tab.Until(`document.querySelector('#days label')`)
	i.answers(func(r request) (int, any) {
		if r.query["time_zone"] == "Asia/Tokyo" {
			return refused(http.StatusBadRequest, "invalid_request", map[string]any{"param": "time_zone"})(r)
		}
		return c.answer(r)
	})
	tab.Do(`document.getElementById('zone').value = 'Asia/Tokyo'; document.getElementById('zone').dispatchEvent(new Event('change'))`)
	tab.Until(`document.getElementById('zone').value === 'Europe/Berlin' && document.querySelector('#days label')`)
}

func TestOtherWeeksCanBeSeen(t *testing.T) {
	i := meeting(t)
	c := &calendar{}
	tab := picking(t, i, c)
	tab.Until(`document.querySelector('#days label') && document.getElementById('earlier').disabled`)
	tab.Click("#later")
	tab.Until(`document.querySelector('#days input').value === '2026-03-16' && !document.getElementById('earlier').disabled`)
	if last := c.asked[len(c.asked)-1]; last["from"] != "2026-03-16" || last["to"] != "2026-03-29" {
		t.Errorf("%v", last)
	}
	tab.Click("#earlier")
	tab.Until(`document.querySelector('#days input').value === '2026-03-02' && document.getElementById('earlier').disabled`)

	none := func(request) (int, any) {
		return http.StatusOK, map[string]any{"time_zone": "UTC", "slots": []any{}}
	}
	i.answers(none)
	tab.Click("#later")
	tab.Until(`document.getElementById('none').textContent.includes('no free times') && document.getElementById('days').hidden &&
		document.getElementById('times').hidden && !document.getElementById('later').disabled`)
}

func TestSlotsThatDoNotComeCanBeAskedForAgain(t *testing.T) {
	i := meeting(t)
	c := &calendar{refuse: refused(http.StatusTooManyRequests, "rate_limited", map[string]any{"retry_after": 5})}
	tab := picking(t, i, c)
	tab.Expect("status of 429")
	tab.Until(`document.getElementById('none').textContent.includes('again in 5 seconds')`)
	i.answers((&calendar{}).answer)
	tab.Click("#again")
	tab.Until(`document.querySelector('#days label') && document.getElementById('again').hidden && document.getElementById('none').hidden`)
}

func TestABookingSaysWhatIsWrongAtTheField(t *testing.T) {
	i := meeting(t)
	c := &calendar{}
	tab := picking(t, i, c)
	tab.Expect("status of 400")
	tab.Until(`document.querySelector('#days label')`)
	pick(tab, "times", 1)
	tab.Click("#details button")
	tab.Until(`document.activeElement.name === 'fields.name' && document.querySelectorAll('.error:not([hidden])').length === 2`)
	i.quiet(0)
	tab.Type(field("name"), "Hank")
	tab.Type(field("email"), "hank@globex.com")
	i.answers(refused(http.StatusBadRequest, "invalid_request", map[string]any{"param": "fields.email"}))
	tab.DoubleClick("#details button")
	tab.Until(`document.activeElement.name === 'fields.email' && document.getElementById('error-1').textContent === 'want something else'`)
}
