package upgrade

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/servertest"
)

// clients use every operation all the time, and no request of theirs may fail:
// each answer is held to what the previous version promises of it, and what was
// answered is kept to be looked for later.
type clients struct {
	w     servertest.Workspace
	links []string // tokens of links in e-mails

	inUse   sync.RWMutex // held by whoever sends a request, so that nobody does while servers change
	phase   string
	servers []*servertest.Server

	mu       sync.Mutex
	done     map[string]int            // successes in this phase, by operation and server
	shapes   map[string]map[string]any // fields of answers, by operation, as the previous version gave them
	failed   []string
	recorded map[string]string // event_id, by the event's id
	last     string            // an event that was recorded
	leads    map[string]any    // lead_id, by idempotency key
	lastLead string
	starts   map[string]bool // by idempotency key
	bookings int
	submits  int
	visitors []string // who were identified
	n        int
}

// An operation sends its requests; n tells them apart from those before.
type operation func(l *clients, base string, n int) error

var operations = map[string]operation{
	"createEvent": func(l *clients, base string, n int) error {
		return l.record(base, fmt.Sprint("e", n), fmt.Sprintf(`{"id":"e%d","name":"clicked","company":{"id":%d},"properties":{"n":%d}}`, n, l.company(n), n))
	},
	"a repeated event": func(l *clients, base string, n int) error {
		l.mu.Lock()
		id, eventID := l.last, l.recorded[l.last]
		l.mu.Unlock()
		if id == "" {
			return nil
		}
		got, err := l.send(base, "createEvent", "POST", "/api/v1/events", fmt.Sprintf(`{"id":%q,"name":"clicked","company":{"id":%d}}`, id, l.company(n)), 202)
		if err == nil && (got["status"] != "duplicate" || got["event_id"] != eventID) {
			err = fmt.Errorf("%s has the event_id %s, and its repeat is answered %v", id, eventID, got)
		}
		return err
	},
	"createEventBatch": func(l *clients, base string, n int) error {
		var events []string
		for i := range 3 {
			events = append(events, fmt.Sprintf(`{"id":"b%d-%d","name":"viewed","company":{"domain":"c%d-works.com"}}`, n, i, n%companies))
		}
		got, err := l.send(base, "createEventBatch", "POST", "/api/v1/events/batch", `{"events":[`+strings.Join(events, ",")+`]}`, 202)
		if err != nil {
			return err
		}
		results := list(got, "results")
		if len(results) != len(events) {
			return fmt.Errorf("a batch is answered %v", got)
		}
		for i, result := range results {
			if result["status"] != "accepted" {
				return fmt.Errorf("an event of a batch is answered %v", result)
			}
			l.keep(fmt.Sprintf("b%d-%d", n, i), result["event_id"])
		}
		return nil
	},
	"createLead":      lead("/api/v1/leads", "createLead"),
	"createLeadAlias": lead("/api/v1/lead", "createLeadAlias"),
	"a repeated lead": func(l *clients, base string, _ int) error {
		l.mu.Lock()
		key, id := l.lastLead, l.leads[l.lastLead]
		l.mu.Unlock()
		if key == "" {
			return nil
		}
		got, err := l.send(base, "a repeated lead", "POST", "/api/v1/leads", `{"email":"x@c1-works.com"}`, 409, "Idempotency-Key: "+key)
		if err == nil && got["lead_id"] != id {
			err = fmt.Errorf("the lead of %s is %v, and its repeat tells %v", key, id, got)
		}
		return err
	},
	"startMotion": func(l *clients, base string, n int) error {
		key := fmt.Sprint("s", n)
		// Undecided yet, or decided already.
		got, err := l.send(base, "", "POST", fmt.Sprintf("/api/v1/motions/%d/start", l.w.Motions["plain"]),
			fmt.Sprintf(`{"companyId":%d}`, l.company(n)), 2, "Idempotency-Key: "+key)
		if err == nil && got["companyId"] != float64(l.company(n)) {
			err = fmt.Errorf("a start is answered %v", got)
		}
		if err == nil {
			l.mu.Lock()
			l.starts[key] = true
			l.mu.Unlock()
		}
		return err
	},
	"listEvents": func(l *clients, base string, _ int) error {
		l.mu.Lock()
		atLeast := len(l.recorded)
		bases := l.bases()
		l.mu.Unlock()
		got, err := l.send(base, "listEvents", "GET", "/api/v1/events?limit=2", "", 200)
		if err != nil {
			return err
		}
		if total, _ := got["total"].(float64); total < float64(atLeast) {
			return fmt.Errorf("%d events were recorded, and the list has %v", atLeast, got["total"])
		}
		cursor, _ := got["nextCursor"].(string)
		if cursor == "" {
			return nil
		}
		// Whoever gave the cursor, all of them take it.
		for _, other := range bases {
			next, err := l.send(other, "listEvents", "GET", "/api/v1/events?limit=2&cursor="+cursor, "", 200)
			if err != nil {
				return err
			}
			if len(list(next, "rows")) == 0 {
				return fmt.Errorf("the page behind a cursor is empty: %v", next)
			}
		}
		return nil
	},
	"listEventTypes": func(l *clients, base string, _ int) error {
		_, err := l.send(base, "listEventTypes", "GET", "/api/v1/event-types", "", 200)
		return err
	},
	"identifyVisitor": func(l *clients, base string, n int) error {
		visitor := fmt.Sprint("v", n)
		// An event that waits for its visitor, who then says who it is.
		got, err := l.send(base, "createEvent", "POST", "/api/v1/events", fmt.Sprintf(`{"id":"w%d","name":"seen","visitor":{"id":%q}}`, n, visitor), 202)
		if err != nil {
			return err
		}
		if got["status"] != "pending_identity" {
			return fmt.Errorf("an event of a stranger is answered %v", got)
		}
		l.keep(fmt.Sprint("w", n), got["event_id"])
		_, err = l.send(base, "identifyVisitor", "POST", "/api/v1/visitors/identify",
			fmt.Sprintf(`{"site":%q,"visitor_id":%q,"token":%q}`, l.w.Sites["www"].SiteKey, visitor, l.token(n)), 202)
		l.mu.Lock()
		l.visitors = append(l.visitors, visitor)
		l.mu.Unlock()
		return err
	},
	"a link in an e-mail": func(l *clients, base string, n int) error {
		l.mu.Lock()
		bases := l.bases()
		l.mu.Unlock()
		r, err := http.NewRequest(http.MethodGet, base+"/l/"+l.links[n%len(l.links)], nil)
		if err != nil {
			return err
		}
		r.Header.Set("X-Forwarded-For", someone())
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		response.Body.Close()
		at, err := response.Location()
		if err != nil {
			return fmt.Errorf("a link is answered %d", response.StatusCode)
		}
		signed := ""
		for _, values := range at.Query() {
			signed = values[0]
		}
		// Whoever signed it, another one believes it.
		visitor := fmt.Sprint("l", n)
		_, err = l.send(bases[(n+1)%len(bases)], "identifyVisitor", "POST", "/api/v1/visitors/identify",
			fmt.Sprintf(`{"site":%q,"visitor_id":%q,"link":%q}`, l.w.Sites["www"].SiteKey, visitor, signed), 202)
		l.mu.Lock()
		l.visitors = append(l.visitors, visitor)
		l.mu.Unlock()
		return err
	},
	"getForm": func(l *clients, base string, _ int) error {
		_, err := l.send(base, "getForm", "GET", "/api/v1/forms/"+l.w.Forms["demo"].PublicKey, "", 200)
		return err
	},
	"submitForm": func(l *clients, base string, n int) error {
		_, err := l.send(base, "submitForm", "POST", "/api/v1/forms/"+l.w.Forms["demo"].PublicKey,
			fmt.Sprintf(`{"fields":{"email":"form%d@c%d-works.com"}}`, n, n%companies), 201)
		l.mu.Lock()
		l.submits++
		l.mu.Unlock()
		return err
	},
	"getMeetingForm": func(l *clients, base string, _ int) error {
		_, err := l.send(base, "getMeetingForm", "GET", "/api/v1/meeting-forms/"+l.w.MeetingForms["call"].PublicKey, "", 200)
		return err
	},
	"listMeetingSlots and bookMeeting": func(l *clients, base string, n int) error {
		form := "/api/v1/meeting-forms/" + l.w.MeetingForms["call"].PublicKey
		got, err := l.send(base, "listMeetingSlots", "GET", form+"/slots", "", 200)
		if err != nil {
			return err
		}
		slots := list(got, "slots")
		if len(slots) == 0 {
			return fmt.Errorf("no slot is free: %v", got)
		}
		slot := slots[n%len(slots)]["starts_at"]
		got, err = l.send(base, "", "POST", form, fmt.Sprintf(`{"starts_at":%q,"fields":{"email":"m%d@c1-works.com","name":"M"}}`, slot, n), 0)
		if err != nil {
			return err
		}
		switch {
		case got["status"] == "booked" && got["starts_at"] == slot:
			l.mu.Lock()
			l.bookings++
			l.mu.Unlock()
		case got["error"] != "slot_unavailable": // two may want the same one
			return fmt.Errorf("a booking is answered %v", got)
		}
		return nil
	},
	"pages": func(l *clients, base string, _ int) error {
		for _, page := range []string{"/t/inlet.js", "/api/v1/forms/" + l.w.Forms["demo"].PublicKey + "/page", "/docs", "/readyz"} {
			r, err := http.NewRequest(http.MethodGet, base+page, nil)
			if err != nil {
				return err
			}
			r.Header.Set("X-Forwarded-For", someone())
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("%s answers %d", page, response.StatusCode)
			}
		}
		return nil
	},
}

// list gives the objects of a list in an answer.
func list(answer map[string]any, name string) (objects []map[string]any) {
	entries, _ := answer[name].([]any)
	for _, entry := range entries {
		object, _ := entry.(map[string]any)
		objects = append(objects, object)
	}
	return objects
}

func lead(path, name string) operation {
	return func(l *clients, base string, n int) error {
		key := fmt.Sprint(name, n)
		got, err := l.send(base, name, "POST", path, fmt.Sprintf(`{"email":"lead%d@c%d-works.com"}`, n, n%companies), 201, "Idempotency-Key: "+key)
		if err != nil {
			return err
		}
		if got["company_id"] != float64(l.company(n)) {
			return fmt.Errorf("a lead of company %d is answered %v", l.company(n), got)
		}
		l.mu.Lock()
		l.leads[key], l.lastLead = got["lead_id"], key
		l.mu.Unlock()
		return nil
	}
}

// someone is the address of another client each time.
func someone() string {
	return fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256))
}

func (l *clients) company(n int) int64 { return l.w.Companies[fmt.Sprint("c", n%companies)] }

func (l *clients) bases() (all []string) {
	for _, s := range l.servers {
		all = append(all, s.Base)
	}
	return all
}

func (l *clients) record(base, id, event string) error {
	got, err := l.send(base, "createEvent", "POST", "/api/v1/events", event, 202)
	if err != nil {
		return err
	}
	if got["status"] != "accepted" {
		return fmt.Errorf("an event is answered %v", got)
	}
	l.keep(id, got["event_id"])
	return nil
}

func (l *clients) keep(id string, eventID any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded[id], _ = eventID.(string)
	if strings.HasPrefix(id, "e") {
		l.last = id
	}
}

// token says that a visitor is a person whom the workspace knows.
func (l *clients) token(n int) string {
	encode := base64.RawURLEncoding.EncodeToString
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"email":"p%d@c%d-works.com","site":%q,"iat":%d,"exp":%d,"jti":"j%d"}`,
		n%companies, n%companies, l.w.Sites["www"].SiteKey, now, now+600, n)
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// send sends a request and wants a status, or one of its hundred; zero takes any
// but failures of the server. The answer has the fields that it had when the
// operation of that name was first answered.
func (l *clients) send(base, name, method, path, body string, status int, headers ...string) (map[string]any, error) {
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", someone())
	public := strings.Contains(path, "forms/") || strings.Contains(path, "/visitors/")
	if !public {
		r.Header.Set("Authorization", "Bearer "+l.w.APIKeys["all"].Token)
	}
	for _, h := range headers {
		key, value, _ := strings.Cut(h, ": ")
		r.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	got := make(map[string]any)
	if err := json.Unmarshal(raw, &got); err != nil {
		return nil, fmt.Errorf("%s %s answers %d %s", method, path, response.StatusCode, raw)
	}
	if s := response.StatusCode; status > 99 && s != status || status > 0 && status < 10 && s/100 != status || s >= 500 {
		return nil, fmt.Errorf("%s %s answers %d %s", method, path, s, raw)
	}
	if name == "" {
		return got, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shapes[name] == nil {
		l.shapes[name] = got
	}
	for field, was := range l.shapes[name] {
		is, there := got[field]
		if !there && field != "nextCursor" && field != "reconciled" || there && was != nil && is != nil && fmt.Sprintf("%T", was) != fmt.Sprintf("%T", is) {
			return nil, fmt.Errorf("%s gave %s as %v, and now answers %s", name, field, was, raw)
		}
	}
	return got, nil
}

// run keeps sending until stop is closed: every operation to every server in turn.
func (l *clients) run(stop <-chan struct{}) {
	names := slices.Sorted(maps.Keys(operations))
	for {
		select {
		case <-stop:
			return
		default:
		}
		l.mu.Lock()
		l.n++
		n := l.n
		l.mu.Unlock()
		l.inUse.RLock()
		name, round := names[n%len(names)], n/len(names)
		s := l.servers[round%len(l.servers)]
		err := operations[name](l, s.Base, round)
		l.mu.Lock()
		if err != nil {
			l.failed = append(l.failed, l.phase+": "+name+": "+err.Error())
		} else {
			l.done[name+" "+s.Base]++
		}
		l.mu.Unlock()
		l.inUse.RUnlock()
	}
}

// go on with other servers: nothing is in flight to those that are left out.
func (l *clients) use(phase string, servers ...*servertest.Server) {
	l.inUse.Lock()
	defer l.inUse.Unlock()
	l.phase, l.servers, l.done = phase, servers, make(map[string]int)
}

// times waits until every operation has succeeded so many times on every server
// of the phase.
func (l *clients) times(t *testing.T, least int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		l.mu.Lock()
		missing := ""
		for name := range operations {
			for _, s := range l.servers {
				if l.done[name+" "+s.Base] < least {
					missing = name
				}
			}
		}
		failed := l.failed
		l.mu.Unlock()
		if len(failed) > 0 {
			t.Fatalf("%d requests failed; the first: %s", len(failed), failed[0])
		}
		if missing == "" {
			return
		}
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("%s: %s is not answered often enough", l.phase, missing)
		}
	}
}
