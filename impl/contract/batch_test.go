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

type batchReceipt struct {
	Accepted, Duplicate, Unmatched, Refused int
	PendingIdentity                         int `json:"pending_identity"`
	Results                                 []struct {
		ID      *string
		Status  string
		EventID string `json:"event_id"`
		Error   *struct {
			Code, Message string
			Param         *string
		}
	}
}

func (w seeded) batch(t testing.TB, s server, events ...string) (answer, batchReceipt) {
	t.Helper()
	a := s.send(t, "POST", "/api/v1/events/batch", `{"events":[`+strings.Join(events, ",")+`]}`, w.Key("all"))
	var receipt batchReceipt
	json.Unmarshal(a.body, &receipt)
	return a, receipt
}

func TestEachEventOfABatchIsJudgedOnItsOwnInOrder(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	w.record(t, s, `{"id":"before","name":"signed_up","company":{"domain":"globex.com"}}`)
	old := time.Now().Add(-31 * 24 * time.Hour).UTC().Format(time.RFC3339)
	events := []struct{ event, id, status, code, param string }{
		{`{"id":"a","name":"signed_up","company":{"domain":"globex.com"},"properties":{"plan":"pro"}}`, "a", "accepted", "", ""},
		{`{"id":"b","name":"signed_up","company":{"domain":"nobody.example"}}`, "b", "unmatched", "", ""},
		{`{"id":"c","name":"signed_up","visitor":{"id":"v-nobody"}}`, "c", "pending_identity", "", ""},
		{`{"id":"before","name":"signed_up","company":{"domain":"globex.com"}}`, "before", "duplicate", "", ""},
		// The first of an id is judged; the second is a duplicate if it was recorded.
		{`{"id":"a","name":"other","visitor":{"id":"v"}}`, "a", "duplicate", "", ""},
		{`{"id":"d","name":"signed_up","company":{"domain":"globex"}}`, "d", "refused", "invalid_request", "company.domain"},
		{`{"id":"d","name":"signed_up","company":{"domain":"globex.com"}}`, "d", "accepted", "", ""},
		// Types register in the order of the request.
		{`{"id":"e","name":"signed_up","visitor":{"id":"v"},"properties":{"plan":1}}`, "e", "refused", "property_type_mismatch", "properties.plan"},
		{`{"id":"f","name":"fresh","visitor":{"id":"v"},"properties":{"n":1}}`, "f", "pending_identity", "", ""},
		{`{"id":"g","name":"fresh","visitor":{"id":"v"},"properties":{"n":"x"}}`, "g", "refused", "property_type_mismatch", "properties.n"},
		{`{"id":"h","name":"legacy_event","visitor":{"id":"v"}}`, "h", "refused", "event_blocked", "name"},
		{`{"id":"i","name":"fresh","occurred_at":"` + old + `","visitor":{"id":"v"}}`, "i", "refused", "event_too_old", "occurred_at"},
		{`{"id":"j","name":"fresh","visitor":{"id":"v"},"properties":{"email":"x"}}`, "j", "refused", "pii_property", "properties.email"},
		{`{"id":"k","name":"Bad","visitor":{"id":"v"}}`, "k", "refused", "invalid_body", "name"},
		{`{"id":"l","name":"fresh","company":{"domain":"x.com","more":1}}`, "l", "refused", "invalid_body", "company.more"},
		{`{"id":"m","name":"fresh","name":"fresh","visitor":{"id":"v"}}`, "m", "refused", "invalid_body", "name"},
		{`{"id":"bad id","name":"fresh","visitor":{"id":"v"}}`, "", "refused", "invalid_body", "id"},
		{`{"id":7,"name":"fresh","visitor":{"id":"v"}}`, "", "refused", "invalid_body", "id"},
		{`{"name":"fresh","visitor":{"id":"v"}}`, "", "refused", "invalid_body", "id"},
		{`"event"`, "", "refused", "invalid_body", ""},
		{`null`, "", "refused", "invalid_body", ""},
	}
	var bodies []string
	for _, e := range events {
		bodies = append(bodies, e.event)
	}
	a, receipt := w.batch(t, s, bodies...)
	if a.status != 202 || len(receipt.Results) != len(events) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	counts := map[string]int{}
	for i, want := range events {
		got := receipt.Results[i]
		counts[got.Status]++
		code, param := "", ""
		if got.Error != nil {
			code, param = got.Error.Code, text(got.Error.Param)
			if got.Error.Param == nil {
				param = ""
			}
		}
		id := ""
		if got.ID != nil {
			id = *got.ID
		}
		if id != want.id || got.Status != want.status || code != want.code || param != want.param ||
			(got.EventID != "") == (want.status == "refused") {
			t.Errorf("%s comes to %q %s %s at %q (%s)", want.event, id, got.Status, code, param, got.EventID)
		}
	}
	if receipt.Accepted != counts["accepted"] || receipt.Duplicate != counts["duplicate"] || receipt.Unmatched != counts["unmatched"] ||
		receipt.PendingIdentity != counts["pending_identity"] || receipt.Refused != counts["refused"] {
		t.Errorf("counters %s, results %v", a.body, counts)
	}
	if receipt.Results[0].EventID != receipt.Results[4].EventID {
		t.Error("the duplicate in the batch has another event_id")
	}

	// Sent again, what was recorded is duplicate.
	_, again := w.batch(t, s, bodies...)
	for i, first := range receipt.Results {
		if want := first.EventID; want != "" && (again.Results[i].Status != "duplicate" || again.Results[i].EventID != want) {
			t.Errorf("%s sent again is %s %s", events[i].event, again.Results[i].Status, again.Results[i].EventID)
		}
	}
}

func TestABatchIsRefusedWholeForItsOwnShapeOnly(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	one := `{"id":"x","name":"n","visitor":{"id":"v"}}`
	for body, want := range map[string]struct {
		status      int
		code, param string
	}{
		`[]`:                                     {400, "invalid_body", ""},
		`{}`:                                     {400, "invalid_body", "events"},
		`{"events":[]}`:                          {400, "invalid_body", "events"},
		`{"events":{}}`:                          {400, "invalid_body", "events"},
		`{"events":[` + one + `],"workspace":1}`: {400, "invalid_body", "workspace"},
		`{"events":[` + one + `],"events":[]}`:   {400, "invalid_body", "events"},
		`{"events":[` + one + `]`:                {400, "invalid_body", ""},
		`{"events":[` + strings.Repeat(one+",", 100) + one + `]}`: {413, "batch_too_large", "events"},
	} {
		expect(t, s.send(t, "POST", "/api/v1/events/batch", body, w.Key("all")), want.status, want.code, want.param)
	}
	if a, receipt := w.batch(t, s, `{"id":"x"}`, `7`); a.status != 202 || receipt.Refused != 2 {
		t.Errorf("nothing but events of wrong shape: %d %s", a.status, a.body)
	}
	if a, receipt := w.batch(t, s, `{"id":"x","name":"legacy_event","visitor":{"id":"v"}}`); a.status != 202 || receipt.Refused != 1 {
		t.Errorf("nothing but a refused event: %d %s", a.status, a.body)
	}
	if a := s.send(t, "POST", "/api/v1/events/batch", `{"events":[`+strings.Repeat(one+",", 99)+one+`]}`, w.Key("all")); a.status != 202 {
		t.Errorf("100 events: %s", a.body)
	}
}

func TestParallelBatchesNeverPassTheMinuteByASingleEvent(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	for range 3 {
		w := workspace(t)
		var mu sync.Mutex
		minutes := map[string]bool{}
		passed := 0
		var parallel sync.WaitGroup
		for b := range 16 {
			parallel.Go(func() {
				var events []string
				for i := range 90 {
					// Refused ones and duplicates count as well.
					events = append(events, []string{
						fmt.Sprintf(`{"id":"b%d-%d","name":"n","visitor":{"id":"v"}}`, b, i),
						fmt.Sprintf(`{"id":"r%d-%d","name":"legacy_event","visitor":{"id":"v"}}`, b, i),
						`{"id":"same","name":"n","visitor":{"id":"v"}}`,
						`{"id":"bad"}`,
					}[i%4])
				}
				a, receipt := w.batch(t, []server{s, other}[b%2], events...)
				mu.Lock()
				defer mu.Unlock()
				minutes[a.header.Get("Date")[:22]] = true
				if a.status == 202 {
					passed += len(receipt.Results)
					return
				}
				expect(t, a, 429, "events_rate_limited", "")
			})
		}
		parallel.Wait()
		if len(minutes) > 1 {
			continue
		}
		// 11 batches of 90 fit into 1,000; the twelfth does not.
		if passed != 990 {
			t.Errorf("%d events passed, want 990", passed)
		}
		if n := dbtest.Query[int](t, dbtest.URL(t), `select minute_events from workspace_gates where workspace_id = $1`, w.ID); n != 990 {
			t.Errorf("%d events are counted, want 990", n)
		}
		return
	}
	t.Error("no minute was long enough")
}
