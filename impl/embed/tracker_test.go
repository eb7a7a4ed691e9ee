package embed

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/inletdev/inlet/impl/embed/embedtest"
)

// tagged is a page with the tracker, its tag carrying attributes.
func tagged(base, attributes string) string {
	return fmt.Sprintf(`<!doctype html><link rel="icon" href="data:,"><title>Acme</title>
<script src="%s/t/inlet.js" %s></script>`, base, attributes)
}

const site = `data-site="site_acme_www"`

func visitorOf(tab *embedtest.Tab) string {
	return embedtest.Eval[string](tab, `inlet.getVisitorId()`)
}

var anID = regexp.MustCompile(`^[A-Za-z0-9-]{32,36}$`)

func TestAVisitorKeepsItsID(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	id := visitorOf(tab)
	cookie := tab.Cookies()["_svcvid"]
	if !anID.MatchString(id) || cookie == nil || cookie.Value != id {
		t.Fatalf("the id is %q, the cookie %+v", id, cookie)
	}
	if cookie.Path != "/" || cookie.SameSite != "Lax" || cookie.Secure || cookie.HTTPOnly || cookie.Domain != "www.acme.example" {
		t.Errorf("%+v", cookie)
	}
	tab.Do(`document.cookie = '_svcvid=' + inlet.getVisitorId() + '; path=/; max-age=60'`)
	tab.Reload()
	if again := visitorOf(tab); again != id {
		t.Errorf("%q became %q", id, again)
	}
	if left := embedtest.Eval[float64](tab, fmt.Sprintf(`%f - Date.now() / 1000`, float64(tab.Cookies()["_svcvid"].Expires))); left < 364*24*60*60 {
		t.Errorf("the cookie was not renewed: %.0f s are left", left)
	}
	other := embedtest.Open(t)
	other.Go(page.Origin())
	if theirs := visitorOf(other); theirs == id || !anID.MatchString(theirs) {
		t.Errorf("another visitor is %q", theirs)
	}
	i.quiet(0)
}

func TestOverTLSTheCookieIsSecure(t *testing.T) {
	i := newInlet(t, true, nil, nil)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(tagged(i.base, site)))
	}))
	defer server.Close()
	tab := embedtest.Open(t)
	tab.Go(embedtest.At(server.URL, "www.acme.example"))
	id := visitorOf(tab)
	if cookie := tab.Cookies()["_svcvid"]; !anID.MatchString(id) || strings.Count(id, "-") != 4 || cookie == nil || !cookie.Secure || cookie.Value != id {
		t.Errorf("%q, %+v", id, cookie)
	}
	tab.Do(`inlet.identify({token: 't'})`)
	i.posts(1)
}

func TestHostsOfADomainShareTheID(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	shared := site + ` data-cookie-domain="acme.example"`
	www := embedtest.NewSite(t, "www.acme.example", tagged(i.base, shared))
	shop := embedtest.NewSite(t, "shop.acme.example", tagged(i.base, shared))
	tab := embedtest.Open(t)
	tab.SetCookie(www.Origin(), "_svcvid", "from-before")
	tab.Go(www.Origin())
	if id := visitorOf(tab); id != "from-before" {
		t.Errorf("a domain costs the visitor its id: %q", id)
	}
	tab.Go(shop.Origin())
	if id := visitorOf(tab); id != "from-before" {
		t.Errorf("the other host has %q", id)
	}
	tab.Do(`inlet.consent(false)`)
	tab.Go(www.Origin())
	if id, cookies := visitorOf(tab), tab.Cookies(); id != "" || cookies["_svcvid"] != nil {
		t.Errorf("refused on one host, and the other has %q, %v", id, cookies)
	}
}

func TestWhoObjectsIsNotTracked(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	for name, script := range map[string]string{
		"Do Not Track":           `Object.defineProperty(Navigator.prototype, 'doNotTrack', {get: () => '1'})`,
		"Do Not Track of Safari": `window.doNotTrack = '1'`,
		"Global Privacy Control": `Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', {get: () => true})`,
	} {
		t.Run(name, func(t *testing.T) {
			tab := embedtest.Open(t)
			tab.SetCookie(page.Origin(), "_svcvid", "from-before")
			tab.Before(script)
			tab.Go(page.Origin() + "/?_svclink=l1")
			tab.Do(`inlet.consent(true); inlet.identify({token: 't'})`)
			if got := embedtest.Eval[bool](tab, `inlet.getVisitorId() === null`); !got || tab.Cookies()["_svcvid"] != nil {
				t.Errorf("%q, %v", visitorOf(tab), tab.Cookies())
			}
			if search := embedtest.Eval[string](tab, `location.search`); search != "" {
				t.Errorf("the address still has %s", search)
			}
		})
	}
	i.quiet(0)
}

func TestTrackingWaitsForConsentWhereItIsRequired(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site+` data-consent="required"`))
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	if id, cookies := visitorOf(tab), tab.Cookies(); id != "" || len(cookies) != 0 {
		t.Fatalf("before consent: %q, %v", id, cookies)
	}
	tab.Do(`inlet.identify({token: 't'})`)
	i.quiet(0)

	tab.Do(`inlet.consent(true)`)
	id := visitorOf(tab)
	if !anID.MatchString(id) || tab.Cookies()["_svcvid"] == nil {
		t.Fatalf("after consent: %q, %v", id, tab.Cookies())
	}
	tab.Reload()
	if again := visitorOf(tab); again != id {
		t.Errorf("consent was forgotten: %q became %q", id, again)
	}

	tab.Do(`inlet.consent(false)`)
	for range 2 {
		if id, cookie := visitorOf(tab), tab.Cookies()["_svcvid"]; id != "" || cookie != nil {
			t.Errorf("after withdrawal: %q, %v", id, cookie)
		}
		tab.Reload()
	}
	tab.Do(`inlet.consent(true)`)
	if again := visitorOf(tab); !anID.MatchString(again) || again == id {
		t.Errorf("after consent was given again: %q", again)
	}
}

func TestARefusalHoldsWhereConsentIsNotRequired(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	if visitorOf(tab) == "" {
		t.Fatal("no id")
	}
	tab.Do(`inlet.consent(false)`)
	tab.Reload()
	tab.Do(`inlet.identify({token: 't'})`)
	if id, cookie := visitorOf(tab), tab.Cookies()["_svcvid"]; id != "" || cookie != nil {
		t.Errorf("%q, %v", id, cookie)
	}
	i.quiet(0)
}

func TestATrackerWithoutSiteDoesNotStart(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	tab := embedtest.Open(t)
	tab.Go(embedtest.NewSite(t, "www.acme.example", tagged(i.base, "")).Origin() + "/?_svclink=l1")
	tab.Do(`inlet.consent(true); inlet.identify({token: 't'})`)
	if !embedtest.Eval[bool](tab, `inlet.getVisitorId() === null`) || len(tab.Cookies()) != 0 {
		t.Errorf("%v", tab.Cookies())
	}
	i.quiet(0)
}

func TestATamperedCookieIsReplaced(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	for _, value := range []string{"%3Cscript%3E", "a b", strings.Repeat("a", 65), "ä", "a_b"} {
		tab := embedtest.Open(t)
		tab.Go(page.Origin())
		tab.Do(fmt.Sprintf(`document.cookie = '_svcvid=%s; path=/'`, value))
		tab.Reload()
		if id := visitorOf(tab); !anID.MatchString(id) || tab.Cookies()["_svcvid"].Value != id {
			t.Errorf("%q became %q, %v", value, id, tab.Cookies())
		}
	}
}

func TestIdentifySendsWhoTheVisitorIs(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	tab.Do(`inlet.identify({token: 'h.p.s', email: 'hank@globex.com', first_name: 'Hank', last_name: 'Scorpio',
		company: 'Globex', plan: 'none of our business'})`)
	tab.Do(`inlet.identify({token: 't', email: '', company: undefined, first_name: null})`)
	id := visitorOf(tab)
	got := i.posts(2)
	want := map[string]any{
		"site": "site_acme_www", "visitor_id": id, "token": "h.p.s", "email": "hank@globex.com",
		"first_name": "Hank", "last_name": "Scorpio", "company": "Globex",
	}
	if !maps.Equal(got[0].body, want) || got[0].path != "/api/v1/visitors/identify" || got[0].origin != page.Origin() {
		t.Errorf("%+v", got[0])
	}
	if want := map[string]any{"site": "site_acme_www", "visitor_id": id, "token": "t"}; !maps.Equal(got[1].body, want) {
		t.Errorf("%+v", got[1])
	}
}

func TestIdentifyNeverThrowsIntoThePage(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	tab := embedtest.Open(t)
	tab.Go(page.Origin())
	tab.Expect("500")
	tab.Expect("ERR_")
	i.answers(refused(500, "internal_error", nil))
	for _, call := range []string{
		`inlet.identify()`, `inlet.identify(null)`, `inlet.identify({token: Symbol()})`, `inlet.identify('hank')`,
		`(window.fetch = () => { throw new Error('no') }, inlet.identify({token: 't'}))`,
		`(delete window.fetch, window.fetch = undefined, inlet.identify({token: 't'}))`,
	} {
		if got := embedtest.Eval[string](tab, call+`.then((v) => 'gave ' + v)`); got != "gave undefined" {
			t.Errorf("%s %s", call, got)
		}
	}
}

func TestTheLinkOfAnEmailIsSentOnceAndLeavesTheAddress(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site))
	tab := embedtest.Open(t)
	tab.Go(page.Origin() + "/a%20b?q=x%20y+z&_svclink=Zk3v%2B7&r=1#part")
	got := i.posts(1)[0].body
	if want := map[string]any{"site": "site_acme_www", "visitor_id": visitorOf(tab), "link": "Zk3v+7"}; !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if at := embedtest.Eval[string](tab, `location.href`); at != page.Origin()+"/a%20b?q=x%20y+z&r=1#part" {
		t.Error(at)
	}
	if n := embedtest.Eval[int](tab, `history.length`); n > 2 {
		t.Errorf("the address with the link is still in the history: %d entries", n)
	}
	tab.Do(`inlet.consent(true)`)
	tab.Reload()
	i.quiet(1)
}

func TestTheLinkWaitsForConsent(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	page := embedtest.NewSite(t, "www.acme.example", tagged(i.base, site+` data-consent="required"`))
	tab := embedtest.Open(t)
	tab.Go(page.Origin() + "/?_svclink=l1")
	if at := embedtest.Eval[string](tab, `location.href`); at != page.Origin()+"/" {
		t.Error(at)
	}
	i.quiet(0)
	tab.Do(`inlet.consent(true)`)
	if got := i.posts(1)[0].body; got["link"] != "l1" || got["visitor_id"] != visitorOf(tab) {
		t.Errorf("%v", got)
	}
	tab.Do(`inlet.consent(true)`)
	i.quiet(1)
}

func TestAPageMayCallBeforeTheTrackerIsThere(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	stub := `<!doctype html><link rel="icon" href="data:,"><script>
window.inlet = window.inlet || {queue: [], getVisitorId: () => null};
window.early = inlet.getVisitorId();
inlet.queue.push((inlet) => inlet.identify({token: 'queued'}));
inlet.queue.push(() => { throw new Error('of the page') });
inlet.queue.push((inlet) => { window.last = inlet.getVisitorId(); %s });
</script>` + tagged(i.base, site)
	tab := embedtest.Open(t)
	tab.Expect("of the page")
	tab.Go(embedtest.NewSite(t, "www.acme.example", fmt.Sprintf(stub, "")).Origin())
	if !embedtest.Eval[bool](tab, `early === null && last === inlet.getVisitorId()`) {
		t.Error("the queue was not worked through")
	}
	i.posts(1)
	tab.Do(`inlet.queue.push((inlet) => inlet.identify({token: 'at once'}))`)
	if got := i.posts(2); got[0].body["token"] != "queued" || got[1].body["token"] != "at once" {
		t.Errorf("%v", got)
	}

	// A refusal that waits comes before a link that could be sent.
	refusing := embedtest.Open(t)
	refusing.Expect("of the page")
	refusing.Go(embedtest.NewSite(t, "shop.acme.example", fmt.Sprintf(strings.Replace(stub, "identify({token: 'queued'})", "consent(false)", 1), "")).Origin() + "/?_svclink=l1")
	if id := visitorOf(refusing); id != "" {
		t.Error(id)
	}
	i.quiet(2)
}

func TestTheTrackerSurvivesItsPage(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	open := func(t *testing.T, html string, headers ...string) *embedtest.Tab {
		tab := embedtest.Open(t)
		tab.Go(embedtest.NewSite(t, "www.acme.example", html, headers...).Origin() + "/?_svclink=l1")
		return tab
	}
	before := 0
	t.Run("loaded twice", func(t *testing.T) {
		tab := open(t, tagged(i.base, site)+`<script>window.first = inlet</script>`+tagged(i.base, `data-site="site_other"`))
		if !embedtest.Eval[bool](tab, `inlet === first`) {
			t.Error("the second took the place of the first")
		}
		before++
		if got := i.posts(before); got[0].body["site"] != "site_acme_www" {
			t.Errorf("%v", got)
		}
	})
	t.Run("a first tag without site", func(t *testing.T) {
		if tab := open(t, tagged(i.base, "")+tagged(i.base, site)); visitorOf(tab) == "" {
			t.Error("no id")
		}
		before++
		i.posts(before)
	})
	t.Run("an element of the same name, no body", func(t *testing.T) {
		if tab := open(t, `<!doctype html><html><head><meta id="inlet">`+tagged(i.base, site)); visitorOf(tab) == "" {
			t.Error("no id")
		}
		before++
		i.posts(before)
	})
	t.Run("cookies that are not kept", func(t *testing.T) {
		tab := open(t, `<script>Object.defineProperty(Document.prototype, 'cookie', {get: () => '', set() {}})</script>`+tagged(i.base, site))
		tab.Do(`inlet.consent(true); inlet.identify({token: 't'})`)
		if id := visitorOf(tab); id != "" {
			t.Errorf("the id %q lasts for this page only", id)
		}
		i.quiet(before)
	})
	t.Run("a sandbox, where cookies throw", func(t *testing.T) {
		tab := open(t, tagged(i.base, site), "Content-Security-Policy: sandbox allow-scripts")
		tab.Do(`inlet.consent(true); inlet.identify({token: 't'})`)
		if id := visitorOf(tab); id != "" {
			t.Error(id)
		}
		i.quiet(before)
	})
	t.Run("a strict policy", func(t *testing.T) {
		tab := open(t, tagged(i.base, site), "Content-Security-Policy: default-src 'none'; img-src data:; script-src "+i.base+"; connect-src "+i.base)
		if visitorOf(tab) == "" {
			t.Error("no id")
		}
		before++
		i.posts(before)
	})
	t.Run("a policy that lets nothing out", func(t *testing.T) {
		tab := embedtest.Open(t)
		tab.Expect("Content Security Policy")
		tab.Go(embedtest.NewSite(t, "www.acme.example", tagged(i.base, site),
			"Content-Security-Policy: default-src 'none'; img-src data:; script-src "+i.base).Origin())
		if got := embedtest.Eval[string](tab, `inlet.identify({token: 't'}).then(() => 'fine', (e) => 'threw ' + e)`); got != "fine" || visitorOf(tab) == "" {
			t.Errorf("%s, %q", got, visitorOf(tab))
		}
		i.quiet(before)
	})
}

func TestAnAsynchronousTagStarts(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	tab := embedtest.Open(t)
	tab.Go(embedtest.NewSite(t, "www.acme.example", tagged(i.base, "async "+site)).Origin())
	tab.Until(`window.inlet && inlet.getVisitorId()`)
	// One that another script adds.
	added := embedtest.Open(t)
	quoted, _ := json.Marshal(i.base + "/t/inlet.js")
	added.Go(embedtest.NewSite(t, "www.acme.example", fmt.Sprintf(`<!doctype html><link rel="icon" href="data:,"><body><script>
const s = document.createElement('script'); s.src = %s; s.dataset.site = 'site_1'; document.body.append(s);</script>`, quoted)).Origin())
	added.Until(`window.inlet && inlet.getVisitorId()`)
}
