package contract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/embed/embedtest"
)

// A customer's page in a real browser, all the way into the database: the
// tracker, a form by its script, a meeting, a signed token and the link of an
// e-mail.
func TestAPageWithEverythingEmbeddedReachesTheWorkspace(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	site, form, meeting := w.Sites["www"].SiteKey, w.Forms["demo"].PublicKey, w.MeetingForms["call"].PublicKey
	tag := fmt.Sprintf(`<!doctype html><title>Acme</title><script async src="%s/t/inlet.js" data-site="%s"></script><body>`, s.Base, site)
	page := embedtest.NewSite(t, "www.acme.example", tag+
		fmt.Sprintf(`<script async src="%[1]s/api/v1/forms/%[2]s/embed.js"></script>
			<script async src="%[1]s/api/v1/meeting-forms/%[3]s/embed.js"></script>`, s.Base, form, meeting))
	inlet(t, "", "site", "set", site, "--origin", page.Origin())

	open := func(path string) (*embedtest.Tab, string) {
		tab := embedtest.Open(t)
		tab.Go(page.Origin() + path)
		tab.Until(`window.inlet && inlet.getVisitorId && inlet.getVisitorId()`)
		return tab, embedtest.Eval[string](tab, `inlet.getVisitorId()`)
	}
	becomes := func(visitor string, contact int64) {
		t.Helper()
		for wait := 0; w.visitor(t, visitor) != contact; wait++ {
			if wait == 100 {
				t.Fatalf("the visitor is %d, want %d", w.visitor(t, visitor), contact)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}

	// An anonymous visitor's event waits; the form says who it was.
	tab, visitor := open("/demo")
	w.record(t, s, fmt.Sprintf(`{"id":"seen","name":"page_seen","visitor":{"id":%q}}`, visitor))
	frame := tab.Frame("/forms/" + form + "/page")
	frame.Until(`document.querySelector('[name="fields.email"]')`)
	frame.Do(`document.querySelector('[name="fields.email"]').value = 'hank@globex.com'; document.querySelector('button').click()`)
	becomes(visitor, w.Contacts["hank"])
	if got := dbtest.Query[string](t, dbtest.URL(t), `select extra ->> 'page_url' from leads where workspace_id = $1 and source = 'form'`, w.ID); got != page.Origin()+"/demo" {
		t.Errorf("the lead's page is %s", got)
	}
	if status := dbtest.Query[int](t, dbtest.URL(t), `select ts & 3 from events where workspace_id = $1 and id = 'seen'`, w.ID); status != 0 {
		t.Errorf("the event that waited has status %d", status)
	}

	// Another browser books a meeting, in a time zone of its own.
	tab, visitor = open("/meet")
	frame = tab.Frame("/meeting-forms/" + meeting + "/page")
	frame.Until(`document.querySelector('#days input')`)
	frame.Do(`(() => {
		const zone = document.getElementById('zone');
		zone.value = 'Asia/Tokyo';
		zone.dispatchEvent(new Event('change'));
	})()`)
	frame.Until(`document.querySelector('#days input')`)
	frame.Do(`document.querySelector('#days input').click()`)
	frame.Until(`document.querySelector('#times input')`)
	frame.Do(`document.querySelector('#times input').click()`)
	frame.Do(`document.querySelector('[name="fields.email"]').value = 'peter@initech.com';
		document.querySelector('[name="fields.name"]').value = 'Peter';
		document.querySelector('#details button').click()`)
	becomes(visitor, w.Contacts["peter"])
	if zone := dbtest.Query[string](t, dbtest.URL(t), `select time_zone from bookings where workspace_id = $1`, w.ID); zone != "Asia/Tokyo" {
		t.Errorf("the booking's time zone is %s", zone)
	}

	// A third is identified by a token that the site's server signed.
	tab, visitor = open("/account")
	tab.Do(fmt.Sprintf(`inlet.identify({token: %q, first_name: 'New'})`, w.token("new@newco.com", nil)))
	for wait := 0; w.visitor(t, visitor) == 0; wait++ {
		if wait == 100 {
			t.Fatal("the token identifies nobody")
		}
		time.Sleep(50 * time.Millisecond)
	}

	// A fourth comes by the link of an e-mail.
	link := strings.TrimSpace(inlet(t, "", "link", "create", site, "--contact", "hank@globex.com", "--page", page.Origin()+"/pricing?plan=pro", "--public-url", s.Base))
	tab = embedtest.Open(t)
	tab.Go(link)
	tab.Until(`window.inlet && inlet.getVisitorId && inlet.getVisitorId() && location.search === '?plan=pro'`)
	becomes(embedtest.Eval[string](tab, `inlet.getVisitorId()`), w.Contacts["hank"])
}
