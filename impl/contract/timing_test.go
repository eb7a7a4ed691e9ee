package contract

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/limit"
)

// slower tells how often, of pairs of neighbours, the second took longer than the
// first: half of the time where nothing tells them apart, whatever the machine is
// busy with, for that meets both alike.
func slower(first, second []time.Duration) float64 {
	longer := 0.0
	for i := range first {
		switch {
		case second[i] > first[i]:
			longer++
		case second[i] == first[i]:
			longer += 0.5
		}
	}
	return longer / float64(len(first))
}

const (
	pairsTimed = 150
	// Of 150 pairs, as many as three in four that go one way come by chance once in a
	// billion; an extra statement makes nearly all of them go one way.
	toldApart = 0.75
)

// tells whether somebody who measures can tell two requests apart. What seems so is
// measured twice more: a machine may have had something else to do.
func tells(first, second func()) (share float64, apart bool) {
	timed := func(request func()) time.Duration {
		began := time.Now()
		request()
		return time.Since(began)
	}
	for range 5 { // connections, plans and caches
		first()
		second()
	}
	for range 3 {
		var ones, others []time.Duration
		for range pairsTimed {
			// Neither is always the one that comes after a pause.
			if rand.IntN(2) == 0 {
				ones = append(ones, timed(first))
				others = append(others, timed(second))
			} else {
				other := timed(second)
				ones = append(ones, timed(first))
				others = append(others, other)
			}
		}
		if share = slower(ones, others); share < toldApart && share > 1-toldApart {
			return share, false
		}
	}
	return share, true
}

// A measure that sees nothing would let everything pass.
func TestTwoMillisecondsAreTold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noisy := func() time.Duration { // as on a busy machine: 3 ms, and often much more
		took := 3*time.Millisecond + time.Duration(random.ExpFloat64()*float64(2*time.Millisecond))
		if random.IntN(20) == 0 {
			took += 30 * time.Millisecond
		}
		return took
	}
	for extra, want := range map[time.Duration]bool{0: false, 20 * time.Microsecond: false, 2 * time.Millisecond: true, 10 * time.Millisecond: true} {
		var ones, others []time.Duration
		for range pairsTimed {
			ones, others = append(ones, noisy()), append(others, noisy()+extra)
		}
		if share := slower(ones, others); share >= toldApart != want {
			t.Errorf("%v more is seen in %.2f of the pairs", extra, share)
		}
	}
}

// What belongs to somebody else, and what is a credential no more, takes as long to
// refuse as what never was.
func TestTimeDoesNotTellWhatIsForeignFromWhatIsNowhere(t *testing.T) {
	address := dbtest.URL(t)
	s := startReleased(t, address)
	defer s.Stop()
	theirs, mine := seed(t, strings.ReplaceAll(standard, "v-nobody", "v-theirs")), seed(t, standard)
	pages := seed(t, onPages)
	n := 0
	event := func(about string) func() {
		return func() {
			n++
			if a := s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"e%d","name":"n",%s}`, n, about), mine.Key("all")); a.status != 202 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	inlet(t, "", "workspace", "set", mine.Slug, "--events-per-minute=1000000")
	lists := func(credential string) func() {
		return func() {
			if a := s.send(t, "GET", "/api/v1/events", "", "Authorization: Bearer "+credential); a.status != 401 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	sends := func(credential string) func() {
		return func() {
			if a := s.send(t, "POST", "/api/v1/events", `{"id":"e","name":"n","visitor":{"id":"v"}}`, "Authorization: Bearer "+credential); a.status != 401 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	starts := func(motion, company int64) func() {
		return func() {
			n++
			a := s.send(t, "POST", fmt.Sprintf("/api/v1/motions/%d/start", motion), fmt.Sprintf(`{"companyId":%d}`, company), mine.Key("all"), fmt.Sprintf("Idempotency-Key: k%d", n))
			if a.status != 404 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	asks := func(path string) func() {
		return func() {
			if a := s.send(t, "GET", path, ""); a.status != 404 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	const nowhere = 9_000_000_000_000_000
	for name, pair := range map[string][2]func(){
		"a motion":              {starts(nowhere, mine.Companies["globex"]), starts(theirs.Motions["outbound"], mine.Companies["globex"])},
		"a company":             {starts(mine.Motions["outbound"], nowhere), starts(mine.Motions["outbound"], theirs.Companies["globex"])},
		"a company of an event": {event(fmt.Sprintf(`"company":{"id":%d}`, int64(nowhere))), event(fmt.Sprintf(`"company":{"id":%d}`, theirs.Companies["globex"]))},
		"a contact of an event": {event(fmt.Sprintf(`"contact":{"id":%d}`, int64(nowhere))), event(fmt.Sprintf(`"contact":{"id":%d}`, theirs.Contacts["hank"]))},
		"a visitor":             {event(`"visitor":{"id":"v-nowhere"}`), event(`"visitor":{"id":"v-theirs"}`)},
		"a revoked key":         {lists(auth.NewToken(auth.APIKey)), lists(theirs.APIKeys["revoked"].Token)},
		"an expired key":        {lists(auth.NewToken(auth.APIKey)), lists(theirs.APIKeys["expired"].Token)},
		"a suspended key":       {lists(auth.NewToken(auth.ServiceKey)), lists(theirs.APIKeys["service_left"].Token)},
		"a revoked sender":      {sends(auth.NewToken(auth.APIKey)), sends(theirs.APIKeys["revoked"].Token)},
		"a form":                {asks("/api/v1/forms/meet_" + strings.Repeat("a", 26)), asks("/api/v1/forms/" + pages.MeetingForms["call"].PublicKey)},
	} {
		t.Run(name, func(t *testing.T) {
			share, apart := tells(pair[0], pair[1])
			t.Logf("the foreign one is slower in %.2f of the pairs", share)
			if apart {
				t.Errorf("time tells it apart: the foreign one is slower in %.2f of the pairs", share)
			}
		})
	}
}

// Adding a person takes longer than finding one; an answer that took as long as it
// takes would tell anybody whom the workspace knows.
func TestAFormsAnswerDoesNotHurryForThoseWhoAreKnown(t *testing.T) {
	s := startReleased(t, dbtest.URL(t))
	defer s.Stop()
	w := seed(t, onPages)
	n := 0
	submit := func(email string) time.Duration {
		t.Helper()
		began := time.Now()
		if a := s.send(t, "POST", "/api/v1/forms/"+w.Forms["demo"].PublicKey, fmt.Sprintf(`{"fields":{"email":%q}}`, email)); a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return time.Since(began)
	}
	var known, unknown []time.Duration
	for range 40 {
		n++
		known = append(known, submit("hank@globex.com"))
		unknown = append(unknown, submit(fmt.Sprintf("p%d@newco%d.com", n, n)))
	}
	slices.Sort(known)
	slices.Sort(unknown)
	t.Logf("median for the known %v, for the unknown %v", known[20], unknown[20])
	trapped := s.send(t, "POST", "/api/v1/forms/"+w.Forms["demo"].PublicKey, `{"fields":{"email":"a@newco.com"},"trap":"x"}`)
	began := time.Now()
	booked := w.book(t, s, w.slots(t, s, "")[0], "hank@globex.com", "v")
	if trapped.status != 201 || booked.status != 201 || time.Since(began) < limit.FormAnswer {
		t.Errorf("a booking is answered with %d after %v", booked.status, time.Since(began))
	}
	for _, took := range []time.Duration{known[0], unknown[0]} {
		if took < limit.FormAnswer {
			t.Errorf("an answer comes after %v, before anybody is sure to have been added", took)
		}
	}
}
