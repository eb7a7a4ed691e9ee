package overload

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/client"
)

// long is for a night: the same with more time, on a database as fast as it is.
var long = flag.Bool("long", false, "drive the server for longer")

// roundTrip is what the database takes to say anything: a lead then takes a
// third of a second, and ten times as many as can be served are a few hundred.
const roundTrip = 30 * time.Millisecond

// kinds are the requests that work on the database, what those that are served are
// told, and those that are too many, as the document says.
var kinds = []struct {
	name   string
	next   func([]tenant) func() request
	served []string
	shed   []string
}{
	{"leads", func(w []tenant) func() request { return inTurn(w, tenant.lead) }, []string{"201 "}, []string{"503 service_unavailable"}},
	{"motion starts", func(w []tenant) func() request { return inTurn(w, tenant.start) }, []string{"202 "}, []string{"503 service_unavailable"}},
	{"lists", func(w []tenant) func() request { return inTurn(w, tenant.list) }, []string{"200 "}, []string{"503 events_unavailable"}},
	{"submissions", func(w []tenant) func() request { return inTurn(w, tenant.submission) }, []string{"201 "}, []string{"503 service_unavailable", "429 rate_limited"}},
	{"unknown keys", func([]tenant) func() request { return stranger }, []string{"401 invalid_api_key"}, []string{"503 events_unavailable"}},
	{"everything at once", func(w []tenant) func() request {
		all := []func(tenant) request{tenant.lead, tenant.start, tenant.list, tenant.types, tenant.event, tenant.form, tenant.submission, tenant.page}
		return func() request { return all[rand.IntN(len(all))](w[rand.IntN(len(w))]) }
	}, []string{"200 ", "201 ", "202 "}, []string{"503 service_unavailable", "503 events_unavailable", "429 rate_limited", "503 ", "429 "}}, // pages are no JSON
}

func TestAtTenTimesWhatItCanServeTheServerServesWhatItCanAndShedsTheRest(t *testing.T) {
	t.Parallel()
	s := start(t)
	tenants := s.tenants(t, 6)
	for _, w := range tenants {
		s.one(t, w.list(), 200) // their keys are known
	}
	before := s.state(t)
	length := 2 * time.Second
	if *long {
		length = 20 * time.Second
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			next := kind.next(tenants)
			s.slow.by(roundTrip)
			defer s.slow.by(0)
			// What is said is right each time; how fast, on a machine that others
			// use too, one time in three.
			var wrong string
			for range 3 {
				alone := s.closed(1, length/2, next)
				most := s.closed(10, length/2, next)
				stop := s.watched(t)
				over := s.open(10*most.rate(), length, next)
				stop()
				again := s.closed(10, length/2, next)
				t.Logf("alone %v\nat its most %v\nat ten times %v\nafterwards %v", alone, most, over, again)
				over.only(t, append(kind.shed, kind.served...)...)
				if wrong = compared(alone, most, over, again); wrong == "" {
					break
				}
			}
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
	s.givesBack(t, before)
}

// compared says what is wrong with what a server does while there is too much to
// do, and afterwards.
func compared(alone, most, over, again *load) string {
	switch {
	case over.rate() < most.rate()/2:
		return fmt.Sprintf("of %.1f/s that it can serve it serves %.1f/s", most.rate(), over.rate())
	case again.rate() < most.rate()/2:
		return fmt.Sprintf("afterwards it serves %.1f/s, %.1f/s before", again.rate(), most.rate())
	// Whoever is served has waited for a moment, or at the beginning for a
	// second or so, and then works beside others.
	case over.p(99) > 12*alone.p(99)+2*time.Second:
		return fmt.Sprintf("those who are served wait for %v, %v alone", over.p(99), alone.p(99))
	}
	return ""
}

// besideAFlood sends so many times as many requests as can be served, and sees that a
// lone client is served meanwhile whatever it asks for, a second each.
func (s server) besideAFlood(t *testing.T, times float64, flood func() request, lone ...func() request) *load {
	t.Helper()
	most := s.closed(10, time.Second, flood)
	var meanwhile sync.WaitGroup
	var came *load
	meanwhile.Go(func() { came = s.open(times*most.rate(), 4*time.Second, flood) })
	time.Sleep(time.Second)
	for _, next := range lone {
		l := s.closed(1, time.Second, next)
		t.Logf("the lone client %v", l)
		if len(l.served) == 0 || len(l.answers) != 1 || l.problems != nil {
			t.Errorf("the lone client is answered %v %v", l.answers, l.problems)
		}
	}
	meanwhile.Wait()
	t.Logf("the flood %v", came)
	return came
}

func TestAWorkspaceThatFloodsDoesNotStarveTheOthers(t *testing.T) {
	t.Parallel()
	s := start(t)
	flooding, polite := s.tenant(t), s.tenant(t)
	s.one(t, polite.lead(), 201) // its key is known
	s.one(t, flooding.lead(), 201)
	s.slow.by(roundTrip)
	s.besideAFlood(t, 10, flooding.lead, polite.lead, polite.list, polite.start).only(t, "201 ", "503 service_unavailable")
}

// The database has to be asked about a service key each time, and about a key that
// is none; but nobody can make up keys to stand in the line of those who are known.
func TestKeysThatAreNoneDoNotStarveServiceKeysThatWereMetBefore(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := s.tenant(t)
	lead := func() request {
		r := w.lead()
		r.headers[1] = strings.TrimPrefix(w.Key("service"), "Authorization: ")
		return r
	}
	s.one(t, lead(), 201)
	s.slow.by(roundTrip)
	s.besideAFlood(t, 20, stranger, lead, lead).only(t, "401 invalid_api_key", "503 events_unavailable")
}

// The queue of events is bounded, and so is the memory of bodies: while nothing is
// recorded, what comes is turned away and nothing is lost.
func TestEventsThatTheDatabaseIsTooSlowForAreShedAndThoseAnsweredAreThere(t *testing.T) {
	t.Parallel()
	s := start(t)
	tenants := s.tenants(t, 12)
	for _, w := range tenants {
		s.one(t, w.event(), 202)
	}
	before := s.state(t)
	s.slow.by(2 * time.Second)
	stopped := time.AfterFunc(4*time.Second, func() { s.slow.by(0) })
	defer stopped.Stop()
	stop := s.watched(t)
	over := s.open(150, 4*time.Second, inTurn(tenants, tenant.batch))
	stop()
	t.Logf("%v", over)
	over.only(t, "202 ", "503 events_unavailable")
	if over.answers["503 events_unavailable"] == 0 || over.answers["202 "] == 0 {
		t.Errorf("all that came is answered %v", over.answers)
	}
	recorded := s.recorded(t)
	if want := over.answers["202 "]*100 + len(tenants); recorded < want {
		t.Errorf("%d events were answered, and %d are there", want, recorded)
	}
	for _, w := range tenants {
		s.one(t, w.event(), 202)
	}
	s.givesBack(t, before)
}

// Clients that do as Retry-After says come back spread over time, and all of them
// are served in the end.
func TestClientsThatRetryAreNoStorm(t *testing.T) {
	t.Parallel()
	s := start(t)
	tenants := s.tenants(t, 4)
	s.slow.by(roundTrip)
	defer s.slow.by(0)
	const clients = 150
	var attempts, failed atomic.Int64
	counted := &http.Client{Transport: counting{&attempts, &http.Transport{MaxIdleConnsPerHost: clients}}, Timeout: time.Minute}
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			w := tenants[i%len(tenants)]
			c, err := client.NewClientWithResponses(s.Base, client.WithHTTPClient(counted),
				client.WithAPIKey(strings.TrimPrefix(w.Key("all"), "Authorization: Bearer ")),
				client.WithRetries(client.Retry{Attempts: 30, Total: 2 * time.Minute}))
			if err != nil {
				t.Error(err)
				return
			}
			key := unique()
			answer, err := c.CreateLeadWithBodyWithResponse(context.Background(), &client.CreateLeadParams{IdempotencyKey: &key},
				"application/json", strings.NewReader(w.lead().body))
			if err != nil || answer.StatusCode() != 201 {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("%d leads took %d requests", clients, attempts.Load())
	if failed.Load() > 0 {
		t.Errorf("%d of %d leads were given up", failed.Load(), clients)
	}
	if attempts.Load() > 8*clients {
		t.Errorf("%d leads took %d requests", clients, attempts.Load())
	}
}

type counting struct {
	n    *atomic.Int64
	next http.RoundTripper
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}

// recorded is how many events there are.
func (s server) recorded(t *testing.T) int {
	t.Helper()
	return dbtest.Query[int](t, s.database, `select count(*) from events`)
}
