package contract

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

type eventRow struct {
	ID, Name, Status string
	EventID          string  `json:"event_id"`
	OccurredAt       string  `json:"occurred_at"`
	ReceivedAt       string  `json:"received_at"`
	CompanyID        *int64  `json:"company_id"`
	ContactID        *int64  `json:"contact_id"`
	DomainHint       *string `json:"domain_hint"`
	ResolvedAt       *string `json:"resolved_at"`
	Properties       map[string]any
}

type eventPage struct {
	Rows       []eventRow
	NextCursor *string
	Total      int
}

func (w seeded) list(t testing.TB, s server, query url.Values) eventPage {
	t.Helper()
	a := s.send(t, "GET", "/api/v1/events?"+query.Encode(), "", w.Key("all"))
	if a.status != 200 {
		t.Fatalf("%v: %d %s", query, a.status, a.body)
	}
	var page eventPage
	json.Unmarshal(a.body, &page)
	return page
}

// walk reads all pages of a list.
func (w seeded) walk(t testing.TB, s server, query url.Values) (rows []eventRow, totals []int) {
	t.Helper()
	for {
		page := w.list(t, s, query)
		rows, totals = append(rows, page.Rows...), append(totals, page.Total)
		if page.NextCursor == nil {
			return rows, totals
		}
		query.Set("cursor", *page.NextCursor)
	}
}

func TestAnEventIsListedAsItWasRecorded(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	occurred := time.Now().Add(-time.Hour).In(time.FixedZone("", 2*3600))
	a := w.record(t, s, fmt.Sprintf(`{"id":"one","name":"signed_up","occurred_at":%q,"company":{"domain":"WWW.Globex.com"},
		"contact":{"email":"hank@globex.com"},"properties":{"plan":"pro","seats":3,"paid":true}}`, occurred.Format("2006-01-02T15:04:05.000000000Z07:00")))
	w.record(t, s, `{"id":"two","name":"signed_up","visitor":{"id":"v-nobody"}}`)
	page := w.list(t, s, nil)
	if page.Total != 2 || len(page.Rows) != 2 || page.NextCursor != nil || page.Rows[0].ID != "two" {
		t.Fatalf("%+v", page)
	}
	one := page.Rows[1]
	if one.EventID != a.field("event_id") || one.Status != "accepted" || one.Name != "signed_up" ||
		*one.CompanyID != w.Companies["globex"] || *one.ContactID != w.Contacts["hank"] || *one.DomainHint != "globex.com" ||
		one.ResolvedAt != nil || one.OccurredAt != occurred.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("%+v", one)
	}
	if got := fmt.Sprint(one.Properties); got != "map[paid:true plan:pro seats:3]" {
		t.Errorf("properties are %s", got)
	}
	two := page.Rows[0]
	if two.Status != "pending_identity" || two.CompanyID != nil || two.ContactID != nil || two.DomainHint != nil || len(two.Properties) != 0 {
		t.Errorf("%+v", two)
	}
	if two.OccurredAt != two.ReceivedAt {
		t.Errorf("an event without occurred_at is dated %s, received %s", two.OccurredAt, two.ReceivedAt)
	}
}

func TestEveryFilterListsAndCountsExactly(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	about := map[string]string{
		"accepted": `"company":{"domain":"globex.com"}`, "unmatched": `"company":{"domain":"nobody.example"}`,
		"pending_identity": `"visitor":{"id":"v-nobody"}`,
	}
	names := []string{"alpha", "beta", "gamma"}
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]int{}
	n := 0
	add := func(count int) {
		var events []string
		for range count {
			name := names[random.IntN(3)]
			status := []string{"accepted", "unmatched", "pending_identity"}[random.IntN(3)]
			events = append(events, fmt.Sprintf(`{"id":"f%d","name":%q,%s}`, n, name, about[status]))
			n++
			for _, key := range []string{"", name, "/" + status, name + "/" + status} {
				want[key]++
			}
		}
		if a, _ := w.batch(t, s, events...); a.status != 202 {
			t.Fatalf("%s", a.body)
		}
	}
	check := func() {
		t.Helper()
		for _, name := range []string{"", "alpha", "beta", "gamma", "never_sent"} {
			for _, status := range []string{"", "accepted", "unmatched"} {
				query, key := url.Values{"limit": {"7"}}, name
				if name != "" {
					query.Set("name", name)
				}
				if status != "" {
					query.Set("status", status)
					key += "/" + status
				}
				rows, totals := w.walk(t, s, query)
				if len(rows) != want[key] || totals[0] != want[key] {
					t.Errorf("%v: %d rows and a total of %d, want %d", query, len(rows), totals[0], want[key])
				}
				if !slices.IsSortedFunc(rows, func(a, b eventRow) int { return -compare(a.EventID, b.EventID) }) {
					t.Errorf("%v: not the newest first", query)
				}
				for _, row := range rows {
					if name != "" && row.Name != name || status != "" && row.Status != status {
						t.Errorf("%v lists %s of %s", query, row.Status, row.Name)
					}
				}
			}
		}
	}
	add(60)
	check()
	// Counted, uncounted, and some of both.
	time.Sleep(1500 * time.Millisecond)
	check()
	add(40)
	check()
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestWalkingThePagesWhileEventsArriveShowsEachOfTheFirstOnce(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	var events []string
	for i := range 90 {
		events = append(events, fmt.Sprintf(`{"id":"first%d","name":"n","visitor":{"id":"v"}}`, i))
	}
	w.batch(t, s, events...)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				w.record(t, s, fmt.Sprintf(`{"id":"later%d","name":"n","visitor":{"id":"v"}}`, i))
			}
		}
	})
	for _, query := range []url.Values{{"limit": {"10"}}, {"limit": {"10"}, "name": {"n"}}} {
		rows, _ := w.walk(t, s, query)
		seen := map[string]int{}
		for _, row := range rows {
			seen[row.ID]++
		}
		for i := range 90 {
			if n := seen[fmt.Sprintf("first%d", i)]; n != 1 {
				t.Errorf("first%d is shown %d times", i, n)
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s is shown %d times", id, n)
			}
		}
	}
	close(stop)
	sending.Wait()
}

func TestACursorIsOfItsListItsWorkspaceAndItsFilters(t *testing.T) {
	t.Parallel()
	s, w, other := sharedServer(t), workspace(t), workspace(t)
	for i := range 3 {
		for _, of := range []seeded{w, other} {
			of.record(t, s, fmt.Sprintf(`{"id":"c%d","name":"n%d","visitor":{"id":"v"}}`, i, i))
		}
	}
	cursor := *w.list(t, s, url.Values{"limit": {"1"}}).NextCursor
	// It is not bound to the limit.
	if page := w.list(t, s, url.Values{"limit": {"2"}, "cursor": {cursor}}); len(page.Rows) != 2 {
		t.Errorf("%d rows behind the first", len(page.Rows))
	}
	for query, of := range map[string]seeded{
		"/api/v1/events?cursor=" + cursor:                 other,
		"/api/v1/events?name=n1&cursor=" + cursor:         w,
		"/api/v1/events?status=accepted&cursor=" + cursor: w,
		"/api/v1/event-types?cursor=" + cursor:            w,
		"/api/v1/events?cursor=x":                         w,
		"/api/v1/events?cursor=":                          w, // of no page, so no way to begin anew unnoticed
		"/api/v1/event-types?cursor=":                     w,
		"/api/v1/events?cursor=" + cursor + "A":           w,
		"/api/v1/event-types?cursor=n1":                   w,
	} {
		expect(t, s.send(t, "GET", query, "", of.Key("all")), 400, "invalid_cursor", "cursor")
	}
}

func TestAListShowsThirtyDaysToTheMillisecond(t *testing.T) {
	t.Parallel()
	e := servertest.StartPostgres(t)
	s := start(t, e.URL())
	defer s.Stop()
	key := newKey(t, e)
	for i := range 3 {
		if a := s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"d%d","name":"n","visitor":{"id":"v"}}`, i), key); a.status != 202 {
			t.Fatalf("%s", a.body)
		}
		time.Sleep(20 * time.Millisecond)
	}
	total := func() (n float64) {
		a := s.send(t, "GET", "/api/v1/events", "", key)
		if rows := a.field("rows").([]any); float64(len(rows)) != a.field("total") {
			t.Errorf("%d rows, a total of %v", len(rows), a.field("total"))
		}
		return a.field("total").(float64)
	}
	time.Sleep(1500 * time.Millisecond) // let them be counted
	if n := total(); n != 3 {
		t.Errorf("%v events", n)
	}
	// The second event becomes 30 days old exactly when the clock stands between
	// its neighbours.
	second := dbtest.Query[int64](t, e.URL(), `select event_no >> 20 from events where id = 'd1'`)
	dbtest.Exec(t, e.URL(), fmt.Sprintf(`alter database inlet set inlet.clock_offset = '%d milliseconds'`,
		30*24*3600*1000-(time.Now().UnixMilli()-second)-60_000))
	s.Stop()
	s = start(t, e.URL())
	if n := total(); n != 3 {
		t.Errorf("%v events are listed a minute before 30 days", n)
	}
	dbtest.Exec(t, e.URL(), `alter database inlet set inlet.clock_offset = '30 days 1 minute'`)
	s.Stop()
	s = start(t, e.URL())
	if n := total(); n != 0 {
		t.Errorf("%v events are listed after 30 days", n)
	}
	// And the id may be used again.
	a := s.send(t, "POST", "/api/v1/events", `{"id":"d1","name":"n","visitor":{"id":"v"}}`, key)
	if a.field("status") != "pending_identity" {
		t.Errorf("after 30 days the id is %s", a.body)
	}
	if n := total(); n != 1 {
		t.Errorf("%v events", n)
	}
}

func TestEventTypesAreListedByNameWithWhatWasSeen(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	w.record(t, s, `{"id":"1","name":"zeta_event","visitor":{"id":"v"},"properties":{"n":1,"s":"x","b":true}}`)
	w.record(t, s, `{"id":"2","name":"alpha","visitor":{"id":"v"}}`)
	time.Sleep(5 * time.Millisecond)
	w.record(t, s, `{"id":"3","name":"zeta_event","visitor":{"id":"v"}}`)
	type typeRow struct {
		ID                      int64
		Name, Label, Status     string
		SignalFact              string `json:"signal_fact"`
		Properties              map[string]string
		FirstSeenAt, LastSeenAt string
	}
	var all []typeRow
	query := url.Values{"limit": {"1"}}
	for {
		a := s.send(t, "GET", "/api/v1/event-types?"+query.Encode(), "", w.Key("all"))
		var page struct {
			Rows       []json.RawMessage
			NextCursor *string
			Total      int
		}
		json.Unmarshal(a.body, &page)
		if a.status != 200 || page.Total != 4 || len(page.Rows) != 1 {
			t.Fatalf("%s", a.body)
		}
		var row typeRow
		json.Unmarshal(page.Rows[0], &row)
		var times struct {
			First string `json:"first_seen_at"`
			Last  string `json:"last_seen_at"`
		}
		json.Unmarshal(page.Rows[0], &times)
		row.FirstSeenAt, row.LastSeenAt = times.First, times.Last
		all = append(all, row)
		if page.NextCursor == nil {
			break
		}
		query.Set("cursor", *page.NextCursor)
	}
	var names []string
	for _, row := range all {
		names = append(names, row.Name)
	}
	if !slices.Equal(names, []string{"alpha", "legacy_event", "old_event", "zeta_event"}) {
		t.Errorf("names %v", names)
	}
	zeta := all[3]
	if zeta.Label != "Zeta event" || zeta.SignalFact != "event.zeta_event" || zeta.Status != "active" ||
		fmt.Sprint(zeta.Properties) != "map[b:bool n:number s:string]" || zeta.LastSeenAt <= zeta.FirstSeenAt {
		t.Errorf("%+v", zeta)
	}
	if received := w.list(t, s, url.Values{"name": {"zeta_event"}, "limit": {"1"}}).Rows[0].ReceivedAt; zeta.LastSeenAt != received {
		t.Errorf("last seen at %s, received at %s", zeta.LastSeenAt, received)
	}
	if all[1].Status != "blocked" || all[2].Status != "archived" {
		t.Errorf("%+v", all)
	}
}

func TestAListByStatusIsExactOverManyNames(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	want := make(map[string][]string) // status → ids, newest first
	n := 0
	for range 6 {
		var events []string
		for range 100 {
			n++
			// Names in an uneven rhythm, so that some are rare and some come in runs.
			name := fmt.Sprintf("name_%d", n*n/7%90)
			about, status := `"company":{"domain":"globex.com"}`, "accepted"
			switch {
			case n%5 == 0:
				about, status = `"company":{"domain":"nobody.example"}`, "unmatched"
			case n > 500 && n < 560:
				about, status = `"visitor":{"id":"v"}`, "pending_identity"
			}
			events = append(events, fmt.Sprintf(`{"id":"m%d","name":"%s",%s}`, n, name, about))
			want[status] = append([]string{fmt.Sprintf("m%d", n)}, want[status]...)
		}
		if a, _ := w.batch(t, s, events...); a.status != 202 {
			t.Fatalf("%s", a.body)
		}
	}
	for _, status := range []string{"accepted", "unmatched"} {
		for _, limit := range []string{"1", "7", "100"} {
			if limit == "1" && status == "accepted" {
				continue // many requests that show nothing new
			}
			rows, totals := w.walk(t, s, url.Values{"status": {status}, "limit": {limit}})
			var got []string
			for _, row := range rows {
				got = append(got, row.ID)
			}
			if !slices.Equal(got, want[status]) {
				t.Errorf("%s by %s: %d events are listed, want %d, or in another order", status, limit, len(got), len(want[status]))
			}
			for _, total := range totals {
				if total != len(want[status]) {
					t.Fatalf("%s: a total of %d, want %d", status, total, len(want[status]))
				}
			}
		}
	}
}
