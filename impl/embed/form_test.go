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

const formPath = "/api/v1/forms/form_1"

// standing is a customer's page with the tracker and a form's script.
func standing(base, attributes string) string {
	return tagged(base, attributes) + fmt.Sprintf(`<meta name="viewport" content="width=device-width">
<body><p id="above">Above</p><script async src="%s%s/embed.js"></script><p id="below">Below</p>`, base, formPath)
}

// filled opens a form's page and fills in what is required.
func filled(t *testing.T, i *inlet) *embedtest.Tab {
	t.Helper()
	tab := embedtest.Open(t)
	tab.Go(i.base + formPath + "/page")
	tab.Type(field("email"), "hank@globex.com")
	tab.Type(field("company_name"), "Globex")
	return tab
}

func kept(tab *embedtest.Tab) bool {
	return embedtest.Eval[string](tab, `[...document.querySelectorAll('[name^="fields."]')].map((i) => i.value).join('|')`) ==
		"|hank@globex.com|Globex||"
}

func TestAFormInAPageSendsItsFieldsTheVisitorAndThePage(t *testing.T) {
	forms := make(map[string]form.Form)
	i := newInlet(t, false, forms, nil)
	page := embedtest.NewSite(t, "www.acme.example", standing(i.base, site))
	forms["form_1"] = demo(page.Origin())
	tab := embedtest.Open(t)
	tab.Go(page.Origin() + "/demo?utm_source=x")

	// It stands where its script does.
	tab.Until(`document.querySelector('#above ~ iframe + #below') && document.querySelector('iframe').title === 'Request a demo'`)
	frame := tab.Frame(formPath + "/page")
	frame.Until(`document.querySelector('button')`)
	tab.Until(`document.querySelector('iframe').clientHeight > 300`)
	inside := embedtest.Eval[float64](frame, `document.documentElement.getBoundingClientRect().height`)
	if outside := embedtest.Eval[float64](tab, `document.querySelector('iframe').clientHeight`); outside < inside || outside > inside+1 {
		t.Errorf("the frame is %.0f high, the form %.0f", outside, inside)
	}

	frame.Do(fmt.Sprintf(`document.querySelector('%s').value = 'hank@globex.com'; document.querySelector('%s').value = ' Globex '`,
		field("email"), field("company_name")))
	frame.Do(`document.querySelector('button').click()`)
	frame.Until(`document.activeElement.textContent.startsWith('Thank you')`)
	got := i.posts(1)[0]
	if got.path != formPath || got.origin != i.base {
		t.Errorf("%+v", got)
	}
	fields, _ := got.body["fields"].(map[string]any)
	if want := map[string]any{"email": "hank@globex.com", "company_name": " Globex "}; !maps.Equal(fields, want) {
		t.Errorf("%v", fields)
	}
	if id := visitorOf(tab); got.body["visitor_id"] != id || got.body["page_url"] != page.Origin()+"/demo?utm_source=x" || len(got.body) != 3 {
		t.Errorf("%v, and the visitor is %s", got.body, id)
	}
	tab.Until(`document.querySelector('iframe').clientHeight < 300`)
}

func TestAVisitorWhoIsNotTrackedSendsNoID(t *testing.T) {
	forms := make(map[string]form.Form)
	i := newInlet(t, false, forms, nil)
	page := embedtest.NewSite(t, "www.acme.example", standing(i.base, site+` data-consent="required"`))
	forms["form_1"] = demo(page.Origin())
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	frame := tab.Frame(formPath + "/page")
	send := fmt.Sprintf(`document.querySelector('%s').value = 'hank@globex.com'; document.querySelector('%s').value = 'Globex';
		document.querySelector('button').click()`, field("email"), field("company_name"))
	frame.Until(`document.querySelector('button')`)
	frame.Do(send)
	if got := i.posts(1)[0].body; got["visitor_id"] != nil || got["page_url"] != page.Origin()+"/" {
		t.Errorf("%v", got)
	}
}

func TestAFrameWithoutTheScriptSendsNoVisitorButThatOfItsAddress(t *testing.T) {
	forms := make(map[string]form.Form)
	i := newInlet(t, false, forms, nil)
	for n, c := range []struct{ query, visitor string }{{"", ""}, {"?visitor=v-1", "v-1"}, {"?visitor=%3Cb%3E", ""}} {
		page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site)+
			fmt.Sprintf(`<body><iframe src="%s%s/page%s"></iframe>`, i.base, formPath, c.query))
		forms["form_1"] = demo(page.Origin())
		tab := embedtest.Open(t)
		tab.Go(page.Origin() + "/demo")
		frame := tab.Frame(formPath + "/page")
		frame.Until(`document.querySelector('button')`)
		frame.Do(fmt.Sprintf(`document.querySelector('%s').value = 'hank@globex.com'; document.querySelector('%s').value = 'Globex';
			document.querySelector('button').click()`, field("email"), field("company_name")))
		frame.Until(`document.activeElement.textContent.startsWith('Thank you')`)
		body := i.posts(n + 1)[n].body
		if visitor, _ := body["visitor_id"].(string); visitor != c.visitor || body["page_url"] != page.Origin()+"/" {
			t.Errorf("%s: %v", c.query, body)
		}
	}
}

func TestTheScriptAnswersItsOwnFrameOnly(t *testing.T) {
	forms := make(map[string]form.Form)
	i := newInlet(t, false, forms, nil)
	// A page of somebody else, in a frame of the same page, asks for the visitor.
	asking := embedtest.NewSite(t, "ads.example", `<!doctype html><script>
addEventListener('message', (e) => { window.told = e.data });
parent.postMessage({inlet: 'visitor'}, '*');
parent.postMessage({inlet: 'size', height: 5, title: 'mine'}, '*');</script>`)
	page := embedtest.NewSite(t, "www.acme.example", standing(i.base, site)+`<iframe src="`+asking.Origin()+`/ask"></iframe>`)
	forms["form_1"] = demo(page.Origin())
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	tab.Until(`document.querySelector('iframe').title === 'Request a demo'`)
	ads := tab.Frame("/ask")
	ads.Do(`parent.postMessage({inlet: 'visitor'}, '*'); parent.postMessage({inlet: 'size', height: 5, title: 'mine'}, '*')`)
	time.Sleep(200 * time.Millisecond)
	if embedtest.Eval[bool](ads, `'told' in window`) {
		t.Error("a stranger was told of the visitor")
	}
	if embedtest.Eval[bool](tab, `document.querySelector('iframe').clientHeight < 10`) {
		t.Error("a stranger changed the frame")
	}
	// The frame itself gone elsewhere is a stranger too.
	tab.Do(fmt.Sprintf(`document.querySelector('iframe').src = '%s/moved'`, asking.Origin()))
	moved := tab.Frame("/moved")
	time.Sleep(200 * time.Millisecond)
	if embedtest.Eval[bool](moved, `'told' in window`) {
		t.Error("what took the form's place was told of the visitor")
	}
}

func TestOnlyPagesOfItsOriginsShowAForm(t *testing.T) {
	forms := make(map[string]form.Form)
	i := newInlet(t, false, forms, nil)
	page := embedtest.NewSite(t, "www.acme.example", standing(i.base, site))
	other := embedtest.NewSite(t, "evil.example", standing(i.base, site))
	forms["form_1"] = demo(page.Origin())
	tab := embedtest.Open(t)
	tab.Expect("frame-ancestors")
	tab.Go(other.Origin())
	tab.Until(`document.querySelector('iframe')`)
	for deadline := time.Now().Add(5 * time.Second); !strings.Contains(strings.Join(tab.Problems(), "\n"), "frame-ancestors"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the browser shows the form: %q", tab.Problems())
		}
	}
	if title := embedtest.Eval[string](tab, `document.querySelector('iframe').title`); title != "Form" {
		t.Errorf("the form ran, and said %q", title)
	}
	r, _ := get(t, i.base+formPath+"/page")
	want := "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self' " + page.Origin()
	if got := r.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}

func TestPeopleDoNotMeetTheTrapAndProgramsDo(t *testing.T) {
	i := newInlet(t, false, map[string]form.Form{"form_1": demo()}, nil)
	tab := filled(t, i)
	if !embedtest.Eval[bool](tab, `(() => {
		const trap = document.getElementById('trap'), box = trap.getBoundingClientRect();
		return box.right < 0 && trap.tabIndex === -1 && trap.autocomplete === 'off' && trap.closest('[aria-hidden=true]') !== null &&
			document.documentElement.scrollWidth <= innerWidth;
	})()`) {
		t.Error("people meet the trap")
	}
	tab.Do(`document.getElementById('trap').value = 'https://spam.example'`)
	tab.Click("button")
	tab.Until(`document.activeElement.id === 'done'`)
	if got := i.posts(1)[0].body; got["trap"] != "https://spam.example" {
		t.Errorf("%v", got)
	}
}

func TestTheKeyboardIsEnough(t *testing.T) {
	i := newInlet(t, false, map[string]form.Form{"form_1": demo()}, nil)
	tab := embedtest.Open(t)
	tab.Go(i.base + formPath + "/page")
	tab.Press("\tHank\thank@globex.com\tGlobex\t\t\t")
	if on := embedtest.Eval[string](tab, `document.activeElement.tagName`); on != "BUTTON" {
		t.Errorf("the focus is on %s", on)
	}
	tab.Press("\r")
	tab.Until(`document.activeElement.id === 'done'`)
	fields, _ := i.posts(1)[0].body["fields"].(map[string]any)
	if want := map[string]any{"first_name": "Hank", "email": "hank@globex.com", "company_name": "Globex"}; !maps.Equal(fields, want) {
		t.Errorf("%v", fields)
	}
}

func TestWhatIsMissingIsSaidAtItsField(t *testing.T) {
	i := newInlet(t, false, map[string]form.Form{"form_1": demo()}, nil)
	tab := embedtest.Open(t)
	tab.Go(i.base + formPath + "/page")
	tab.Type(field("email"), "hank")
	tab.Type(field("company_name"), "  ")
	tab.Click("button")
	said := func(name string) string {
		return embedtest.Eval[string](tab, fmt.Sprintf(`(() => {
			const input = document.querySelector('%s'), error = document.getElementById(input.getAttribute('aria-describedby'));
			return (input.getAttribute('aria-invalid') || '-') + ' ' + (error.hidden ? '' : error.textContent);
		})()`, field(name)))
	}
	if e, c, p := said("email"), said("company_name"), said("phone"); !strings.HasPrefix(e, "true Please give an e-mail address") ||
		c != "true Please fill this in." || p != "- " {
		t.Errorf("%q %q %q", e, c, p)
	}
	if on := embedtest.Eval[string](tab, `document.activeElement.name`); on != "fields.email" {
		t.Errorf("the focus is on %s", on)
	}
	tab.Press("@globex.com")
	if e := said("email"); e != "- " {
		t.Errorf("still %q", e)
	}
	i.quiet(0)

	tab.Type(field("company_name"), "Globex")
	tab.Expect("status of 400")
	i.answers(refused(http.StatusBadRequest, "invalid_request", map[string]any{"param": "fields.email", "message": "want <b>another</b> address"}))
	tab.Click("button")
	tab.Until(`document.querySelector('[aria-invalid]')`)
	if e := said("email"); e != "true want <b>another</b> address" || embedtest.Eval[string](tab, `document.activeElement.name`) != "fields.email" {
		t.Errorf("%q", e)
	}
	i.answers(received)
	tab.Click("button")
	tab.Until(`document.activeElement.id === 'done'`)
}

func TestWhatDoesNotWorkIsSaidAndWhatWasTypedIsKept(t *testing.T) {
	i := newInlet(t, false, map[string]form.Form{"form_1": demo()}, nil)
	tab := filled(t, i)
	tab.Expect("status of")
	for _, c := range []struct {
		answer func(request) (int, any)
		says   string
	}{
		{refused(http.StatusTooManyRequests, "rate_limited", map[string]any{"retry_after": 17}), "again in 17 seconds"},
		{refused(http.StatusServiceUnavailable, "service_unavailable", nil), "again in a minute"},
		{refused(http.StatusInternalServerError, "internal_error", nil), "again in a minute"},
		{func(request) (int, any) { return http.StatusBadGateway, "no JSON of ours" }, "again in a minute"},
		{refused(http.StatusForbidden, "origin_not_allowed", nil), "another way"},
		{refused(http.StatusNotFound, "form_not_found", nil), "another way"},
		{refused(http.StatusBadRequest, "invalid_request", map[string]any{"param": "page_url"}), "want something else"},
	} {
		i.answers(c.answer)
		tab.Click("button")
		tab.Until(fmt.Sprintf(`!document.getElementById('alert').hidden && document.getElementById('alert').textContent.includes('%s')`, c.says))
		tab.Until(`!document.querySelector('button').hasAttribute('aria-disabled')`)
		if !kept(tab) || embedtest.Eval[string](tab, `document.querySelector('button').textContent`) != "Send" {
			t.Errorf("after %q: %s", c.says, embedtest.Eval[string](tab, `document.body.innerText`))
		}
	}
	tab.Expect("ERR_")
	tab.Do(`window.fetch = () => Promise.reject(new TypeError('no network'))`)
	tab.Click("button")
	tab.Until(`document.getElementById('alert').textContent.includes('no connection')`)
	if !kept(tab) {
		t.Error("what was typed is gone")
	}
}

func TestADoubleClickSendsOnce(t *testing.T) {
	i := newInlet(t, false, map[string]form.Form{"form_1": demo()}, nil)
	i.answers(func(r request) (int, any) {
		time.Sleep(200 * time.Millisecond)
		return received(r)
	})
	tab := filled(t, i)
	tab.DoubleClick("button")
	tab.Until(`document.activeElement.id === 'done'`)
	i.quiet(1)
}

func TestAFormMaySayAnything(t *testing.T) {
	hostile := form.Form{
		PublicKey: "form_1", Name: `</title><script>alert(1)</script>"'`,
		Fields: []form.Field{
			{Name: "email", Label: `<img src=x onerror=alert(1)>`, Type: "email", Required: true, MaxLength: 320},
			{Name: "action", Label: "שם החברה", Type: "text", MaxLength: 5},
		},
	}
	i := newInlet(t, false, map[string]form.Form{"form_1": hostile}, nil)
	tab := embedtest.Open(t)
	tab.Go(i.base + formPath + "/page")
	if title := embedtest.Eval[string](tab, `document.title + document.querySelector('h1').textContent`); title != hostile.Name+hostile.Name {
		t.Error(title)
	}
	if !embedtest.Eval[bool](tab, `document.querySelectorAll('script').length === 1 && document.querySelector('main img') === null &&
		getComputedStyle(document.querySelectorAll('.field label')[1]).direction === 'rtl'`) {
		t.Error(embedtest.Eval[string](tab, `document.documentElement.outerHTML`))
	}
	tab.Type(field("email"), "a@b.example")
	tab.Type(field("action"), "seven77")
	tab.Click("button")
	tab.Until(`document.activeElement.id === 'done'`)
	fields, _ := i.posts(1)[0].body["fields"].(map[string]any)
	if want := map[string]any{"email": "a@b.example", "action": "seven"}; !maps.Equal(fields, want) {
		t.Errorf("%v", fields)
	}
}
