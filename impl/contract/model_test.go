package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// The rules of events as a model of one workspace, which is to be read as their
// specification; then the requests that clients make, which follow from the
// seed alone; then the test, which holds two processes to the model.

// A modelWorkspace is what a workspace should hold.
type modelWorkspace struct {
	seeded
	companies []companyReference
	malformed []companyReference // domains that are no host names
	contacts  []contactReference
	visitors  []visitorReference
	worksAt   map[int64]int64 // contact → company

	limit int           // events that may be sent in a unit of time; zero where it is out of reach
	unit  time.Duration // of the limit

	mu       sync.Mutex
	types    map[string]*modelType
	recorded map[string]*modelEvent // by the caller's id
	claimed  map[string][]string    // event_ids told to duplicates of an event whose own answer was still to come
	counted  []countedRequest
	refused  []refusedRequest
}

// A reference is what an event says of who it is about, and who that is; zero
// for nobody of the workspace.
type companyReference struct {
	json    string
	company int64
	hint    string
}

type contactReference struct {
	json    string
	contact int64
}

type visitorReference struct {
	id      string
	contact int64
}

type modelType struct {
	status     string
	properties map[string]string
}

// A modelEvent is a recorded event.
type modelEvent struct {
	sentEvent
	eventID, status      string
	companyID, contactID int64
	sentAt, answeredAt   time.Time
}

// A sentEvent is an event as a client sends it.
type sentEvent struct {
	id, name   string
	occurredAt time.Time // zero where it is not given
	company    *companyReference
	contact    *contactReference
	visitor    *visitorReference
	properties []sentProperty
	misshape   *misshape
	joint      bool // other clients send the id as well
}

type sentProperty struct{ key, json string }

func (p sentProperty) kind() string {
	switch p.json[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

// A misshape replaces the value of a field, or takes the field away, so that
// the event has not the shape of one. Without a field it replaces the event.
type misshape struct{ field, json, param string }

var misshapes = []misshape{
	{"", `"event"`, ""}, {"", `null`, ""}, {"", `[]`, ""},
	{"id", ``, "id"}, {"id", `"a b"`, "id"}, {"id", `7`, "id"}, {"id", `""`, "id"},
	{"name", ``, "name"}, {"name", `"Bad"`, "name"}, {"name", `"` + strings.Repeat("x", 49) + `"`, "name"},
	{"occurred_at", `"yesterday"`, "occurred_at"}, {"occurred_at", `"2026-02-30T00:00:00Z"`, "occurred_at"}, {"occurred_at", `null`, "occurred_at"},
	{"company", `{}`, "company"}, {"company", `{"id":1,"domain":"x.com"}`, "company"}, {"company", `{"id":0}`, "company.id"},
	{"company", `{"id":"1"}`, "company.id"}, {"company", `{"name":"x"}`, "company.name"}, {"company", `{"domain":""}`, "company.domain"},
	{"contact", `{"email":7}`, "contact.email"}, {"contact", `{"id":1,"email":"a@b.co"}`, "contact"},
	{"visitor", `{}`, "visitor.id"}, {"visitor", `{"id":"a_b"}`, "visitor.id"},
	{"properties", `[]`, "properties"}, {"properties", `{"Plan":1}`, "properties.Plan"}, {"properties", `{"plan":null}`, "properties.plan"},
	{"properties", `{"plan":{}}`, "properties.plan"}, {"properties", `{` + manyProperties(51) + `}`, "properties"},
	{"organization_id", `1`, "organization_id"}, {"event_id", `"evt_1"`, "event_id"},
}

func (e *sentEvent) hasID() bool {
	return e.misshape == nil || e.misshape.field != "" && e.misshape.field != "id"
}

func (e *sentEvent) propertiesJSON() string {
	var entries []string
	for _, p := range e.properties {
		entries = append(entries, `"`+p.key+`":`+p.json)
	}
	return `{` + strings.Join(entries, ",") + `}`
}

func (e *sentEvent) json() string {
	fields := map[string]string{"id": `"` + e.id + `"`, "name": `"` + e.name + `"`}
	if !e.occurredAt.IsZero() {
		fields["occurred_at"] = e.occurredAt.Format(`"2006-01-02T15:04:05.000000Z07:00"`)
	}
	if e.company != nil {
		fields["company"] = e.company.json
	}
	if e.contact != nil {
		fields["contact"] = e.contact.json
	}
	if e.visitor != nil {
		fields["visitor"] = `{"id":"` + e.visitor.id + `"}`
	}
	if e.properties != nil {
		fields["properties"] = e.propertiesJSON()
	}
	if m := e.misshape; m != nil {
		if m.field == "" {
			return m.json
		}
		if fields[m.field] = m.json; m.json == "" {
			delete(fields, m.field)
		}
	}
	var entries []string
	for _, field := range []string{"properties", "organization_id", "event_id", "visitor", "name", "contact", "id", "company", "occurred_at"} {
		if value, ok := fields[field]; ok {
			entries = append(entries, `"`+field+`":`+value)
		}
	}
	return `{` + strings.Join(entries, ",") + `}`
}

// A verdict is the answer to one event: a status, or refused with its reason.
type verdict struct{ status, code, param string }

func refused(code, param string) verdict { return verdict{"refused", code, param} }

// personalNames are the property names that an event may not have.
var personalNames = strings.Fields(`email e_mail phone mobile name first_name last_name full_name address street zip
	postcode ssn password secret token api_key card iban dob birth_date ip ip_address`)

// personalValues look like e-mail addresses and card numbers; values that do not
// are among ordinaryValues.
var personalValues = []string{
	`"ada@globex.com"`, `"mail to ada.l@mail.globex.com, please"`, `"4111111111111111"`, `"card 5555-5555-5555-4444."`, `4111111111111111`,
}

var ordinaryValues = map[string][]string{
	"string": {`"pro"`, `""`, `"react@18.2.0"`, `"4111111111111112"`, `"ü \" \u0041"`, `"1700000000000"`},
	"number": {`1`, `-7`, `1.50`, `1e3`, `1700000000000`, `4111111111111112`},
	"bool":   {`true`, `false`},
}

// verdict judges an event by the first rule that answers.
func (m *modelWorkspace) verdict(e *sentEvent, duplicate bool) verdict {
	const day = 24 * time.Hour
	known := m.types[e.name]
	switch {
	case e.misshape != nil:
		return refused("invalid_body", e.misshape.param)
	case e.company == nil && e.contact == nil && e.visitor == nil:
		return refused("invalid_body", "company")
	case duplicate:
		return verdict{status: "duplicate"}
	case !e.occurredAt.IsZero() && time.Since(e.occurredAt) > 30*day:
		return refused("event_too_old", "occurred_at")
	case !e.occurredAt.IsZero() && time.Until(e.occurredAt) > 5*time.Minute:
		return refused("event_in_future", "occurred_at")
	case known != nil && known.status == "blocked":
		return refused("event_blocked", "name")
	}
	for _, p := range e.properties {
		if slices.Contains(personalNames, p.key) {
			return refused("pii_property", "properties."+p.key)
		}
	}
	for _, p := range e.properties {
		if slices.Contains(personalValues, p.json) {
			return refused("pii_value", "properties."+p.key)
		}
	}
	switch {
	case len(e.propertiesJSON()) > 4096:
		return refused("invalid_request", "properties")
	case e.company != nil && slices.Contains(m.malformed, *e.company):
		return refused("invalid_request", "company.domain")
	case known == nil && len(m.types) >= 200:
		return refused("event_type_limit", "name")
	}
	first := map[string]string{}
	if known != nil {
		first = known.properties
	}
	different := len(first)
	for _, p := range e.properties {
		if first[p.key] == "" {
			different++
		}
	}
	if different > 50 {
		return refused("too_many_properties", "properties")
	}
	for _, p := range e.properties {
		if first[p.key] != "" && first[p.key] != p.kind() {
			return refused("property_type_mismatch", "properties."+p.key)
		}
	}
	status, _, _ := m.match(e)
	return verdict{status: status}
}

// match says who an event is about.
func (m *modelWorkspace) match(e *sentEvent) (status string, company, contact int64) {
	if e.company != nil && e.company.company == 0 || e.contact != nil && e.contact.contact == 0 {
		return "unmatched", 0, 0
	}
	if e.company != nil {
		company = e.company.company
	}
	switch {
	case e.contact != nil:
		contact = e.contact.contact
	case e.visitor != nil && e.visitor.contact != 0 && (company == 0 || company == m.worksAt[e.visitor.contact]):
		contact = e.visitor.contact
	}
	if company == 0 && contact == 0 {
		return "pending_identity", 0, 0
	}
	if company == 0 {
		company = m.worksAt[contact]
	}
	return "accepted", company, contact
}

// keep records an event, and registers its name and properties.
func (m *modelWorkspace) keep(e *sentEvent, eventID string, sentAt, answeredAt time.Time) {
	known := m.types[e.name]
	if known == nil {
		known = &modelType{"active", map[string]string{}}
		m.types[e.name] = known
	}
	for _, p := range e.properties {
		known.properties[p.key] = p.kind()
	}
	kept := &modelEvent{sentEvent: *e, eventID: eventID, sentAt: sentAt, answeredAt: answeredAt}
	kept.status, kept.companyID, kept.contactID = m.match(e)
	m.recorded[e.id] = kept
}

// listed gives the events that a filter lists, the newest first.
func (m *modelWorkspace) listed(name, status string) (rows []*modelEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.recorded {
		if (name == "" || name == e.name) && (status == "" || status == e.status) {
			rows = append(rows, e)
		}
	}
	slices.SortFunc(rows, func(a, b *modelEvent) int { return compare(b.eventID, a.eventID) })
	return rows
}

// shows tells how a row of the list deviates from the event.
func (e *modelEvent) shows(row eventRow) error {
	const layout = "2006-01-02T15:04:05.000Z"
	received, err := time.Parse(layout, row.ReceivedAt)
	if err != nil {
		return err
	}
	occurred := row.ReceivedAt
	if !e.occurredAt.IsZero() {
		occurred = e.occurredAt.UTC().Truncate(time.Millisecond).Format(layout)
	}
	id := func(id *int64) (n int64) {
		if id != nil {
			n = *id
		}
		return n
	}
	hint := "null"
	if e.company != nil && e.company.hint != "" {
		hint = e.company.hint
	}
	properties := map[string]any{}
	if err := json.Unmarshal([]byte(e.propertiesJSON()), &properties); err != nil {
		return err
	}
	switch {
	case row.ID != e.id || row.EventID != e.eventID || row.Name != e.name || row.Status != e.status:
		return fmt.Errorf("want %s, %s, %s of %s", e.id, e.eventID, e.status, e.name)
	case id(row.CompanyID) != e.companyID || id(row.ContactID) != e.contactID:
		return fmt.Errorf("want company %d and contact %d", e.companyID, e.contactID)
	case text(row.DomainHint) != hint:
		return fmt.Errorf("want the domain hint %s", hint)
	case row.OccurredAt != occurred:
		return fmt.Errorf("want occurred_at %s", occurred)
	case received.Before(e.sentAt.Truncate(time.Millisecond)) || received.After(e.answeredAt):
		return fmt.Errorf("want received_at between %v and %v", e.sentAt.UTC(), e.answeredAt.UTC())
	case !received.Equal(receivedAt(row.EventID)):
		return fmt.Errorf("want received_at to be the time in the event_id, %v", receivedAt(row.EventID))
	case row.ResolvedAt != nil:
		return fmt.Errorf("want no resolved_at")
	case !reflect.DeepEqual(row.Properties, properties):
		return fmt.Errorf("want the properties %s", e.propertiesJSON())
	}
	return nil
}

// A countedRequest passed the limit. Its first event was recorded and tells when.
type countedRequest struct {
	first  string
	events int
}

// A refusedRequest would have passed the limit, at some time between the two.
type refusedRequest struct {
	events             int
	sentAt, answeredAt time.Time
}

// A trial is one run of the test.
type trial struct {
	*testing.T
	seed      uint64
	processes []server
	shared    []*modelWorkspace // by all clients
	limited   []*modelWorkspace // and these are at a low limit
}

// tellEnded tells of processes that ended by themselves.
func (tr *trial) tellEnded() {
	for _, s := range tr.processes {
		select {
		case <-s.Exited():
			log := s.Log()
			tr.Errorf("INLET_MODEL_SEED=%d: a process ended:\n%s", tr.seed, log[max(0, len(log)-20_000):])
		default:
		}
	}
}

// A client sends one request after another. What it sends follows from the seed
// alone: nothing that depends on luck, such as which of several clients was
// first, decides what it sends next. Its event ids and names are its own but
// where an event is joint, so that each of its answers follows from what it
// sent before.
type client struct {
	*trial
	number    int
	own       *modelWorkspace // in which nobody else sends anything
	random    *rand.Rand
	luck      *rand.Rand // of what no answer may depend on
	operation int
	ids       int // that it has made up so far
	last      map[*modelWorkspace][]*sentEvent
}

func (tr *trial) client(number int, own *modelWorkspace) *client {
	return &client{
		trial: tr, number: number, own: own, last: map[*modelWorkspace][]*sentEvent{},
		random: rand.New(rand.NewPCG(tr.seed, uint64(number))), luck: rand.New(rand.NewPCG(tr.seed, uint64(1000+number))),
	}
}

func (c *client) process() server { return c.processes[c.luck.IntN(len(c.processes))] }

// disagree tells what was done and how it should have ended. It ends the test:
// what follows would only be a consequence.
func (c *client) disagree(m *modelWorkspace, format string, args ...any) {
	c.Helper()
	c.Errorf("INLET_MODEL_SEED=%d, client %d, operation %d, workspace %s: %s",
		c.seed, c.number, c.operation, m.Slug, fmt.Sprintf(format, args...))
}

// chance tells true in so many of a hundred cases.
func (c *client) chance(percent int) bool { return c.random.IntN(100) < percent }

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// act makes one request, or those of one walk through a list.
func (c *client) act() {
	c.operation++
	m := c.own
	switch p := c.random.IntN(100); {
	case p < 65:
		m = pick(c.random, c.shared)
	case p < 75:
		m = pick(c.random, c.limited)
	}
	switch p := c.random.IntN(100); {
	case p < 62:
		c.send(m, false, c.events(m, 1)...)
	case p < 84:
		size := 1 + c.random.IntN(12)
		if c.chance(4) {
			size = 100
		}
		c.last[m] = c.events(m, size)
		c.send(m, true, c.last[m]...)
	case p < 88 && m.limit == 0 && c.last[m] != nil:
		c.send(m, true, c.last[m]...)
	case p < 91:
		c.sendNoEvents(m)
	default:
		c.walkList(m)
	}
}

// events makes up some events. In a limited workspace the first of them can
// always be recorded.
func (c *client) events(m *modelWorkspace, count int) (events []*sentEvent) {
	for range count {
		events = append(events, c.event(m))
	}
	if m.limit > 0 {
		events[0] = c.plainEvent()
	}
	return events
}

func (c *client) plainEvent() *sentEvent {
	return &sentEvent{id: c.freshID(), name: "plain_event", visitor: &visitorReference{id: "v-nobody"}}
}

func (c *client) freshID() string {
	c.ids++
	return fmt.Sprintf("c%d-%d", c.number, c.ids)
}

func (c *client) event(m *modelWorkspace) *sentEvent {
	e := &sentEvent{id: c.freshID(), name: c.name(m)}
	switch p := c.random.IntN(100); {
	case p < 15 && m != c.own:
		// All clients come to the same number at about the same time.
		e.id, e.joint = fmt.Sprintf("joint-%d", c.operation/8), true
	case p < 30:
		e.id = fmt.Sprintf("c%d-%d", c.number, c.ids-c.random.IntN(1+c.random.IntN(c.ids)))
	}
	if c.chance(50) {
		ago := time.Duration(c.random.Int64N(int64(30*24*time.Hour))) - 4*time.Minute
		e.occurredAt = time.Now().Add(-ago).In(time.FixedZone("", 1800*c.random.IntN(20)))
	}
	if about := 1 + c.random.IntN(7); !c.chance(1) {
		if about&1 != 0 {
			e.company = &m.companies[c.random.IntN(len(m.companies))]
		}
		if about&2 != 0 {
			e.contact = &m.contacts[c.random.IntN(len(m.contacts))]
		}
		if about&4 != 0 {
			e.visitor = &m.visitors[c.random.IntN(len(m.visitors))]
		}
	}
	count := c.random.IntN(4)
	if c.chance(5) {
		count = c.random.IntN(40)
	}
	for range count {
		key := c.key(e.name)
		e.set(key, pick(c.random, ordinaryValues[c.kind(key)]))
	}
	if c.chance(30) {
		c.spoil(m, e)
	}
	if c.chance(4) {
		e.misshape = &misshapes[c.random.IntN(len(misshapes))]
	}
	return e
}

// spoil lets an event break some rules, often several at once.
func (c *client) spoil(m *modelWorkspace, e *sentEvent) {
	const percent = 25
	month, some := 30*24*time.Hour, time.Minute+time.Duration(c.random.IntN(1e9))
	if c.chance(percent) {
		e.occurredAt = time.Now().Add(-month - some)
	} else if c.chance(percent) {
		e.occurredAt = time.Now().Add(5*time.Minute + some)
	}
	if c.chance(percent) {
		e.name = "legacy_event"
	}
	if c.chance(percent) {
		e.set(pick(c.random, personalNames), `"x"`)
	}
	if c.chance(percent) {
		e.set(c.key(e.name), pick(c.random, personalValues))
	}
	if c.chance(percent) {
		for i := range 9 {
			e.set(fmt.Sprintf("big%d", i), `"`+strings.Repeat("x", 500)+`"`)
		}
	}
	if c.chance(percent) {
		e.company = &m.malformed[c.random.IntN(len(m.malformed))]
	}
	c.random.Shuffle(len(e.properties), func(i, j int) {
		e.properties[i], e.properties[j] = e.properties[j], e.properties[i]
	})
	if len(e.properties) > 50 {
		e.properties = e.properties[:50]
	}
}

// set gives an event a property; each stands only once.
func (e *sentEvent) set(key, json string) {
	for i := range e.properties {
		if e.properties[i].key == key {
			e.properties[i].json = json
			return
		}
	}
	e.properties = append(e.properties, sentProperty{key, json})
}

// name gives one of the names that all clients use, whose properties are known
// from the start, or one of the client's own. In the client's own workspace
// there are more of these than a workspace may have.
func (c *client) name(m *modelWorkspace) string {
	names := 6
	if m == c.own && c.chance(20) {
		names = 60
	}
	if c.chance(30) {
		return pick(c.random, []string{"plain_event", "plain_event", "wide_event", "archived_event"})
	}
	return fmt.Sprintf("c%d_n%d", c.number, c.random.IntN(names))
}

func (c *client) key(name string) string {
	if name == "plain_event" || name == "archived_event" || name == "legacy_event" {
		return pick(c.random, []string{"plan", "seats", "paid"})
	}
	return fmt.Sprintf("p%d", c.random.IntN(1+c.random.IntN(60)))
}

// kind gives the type that most events give a property.
func (c *client) kind(key string) string {
	if c.chance(2) {
		return pick(c.random, []string{"string", "number", "bool"})
	}
	return usualKind(key)
}

func usualKind(key string) string {
	switch key {
	case "plan":
		return "string"
	case "seats":
		return "number"
	case "paid":
		return "bool"
	}
	n, _ := strconv.Atoi(key[1:])
	return []string{"string", "number", "bool"}[n%3]
}

// An outcome is what an answer says of one event.
type outcome struct {
	verdict
	id, eventID string
}

// send sends events, in a batch or a single one, and holds the answer against
// the model.
func (c *client) send(m *modelWorkspace, batch bool, events ...*sentEvent) {
	known := m.known(events)
	sentAt := time.Now()
	a, outcomes := c.exchange(m, batch, events)
	answeredAt := time.Now()

	if a.status == 429 {
		c.limits(m, a, refusedRequest{len(events), sentAt, answeredAt})
		return
	}
	if len(outcomes) != len(events) {
		c.disagree(m, "%d events are answered %d %s", len(events), a.status, a.body)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, e := range events {
		got := outcomes[i]
		want := m.verdict(e, known[e.id] != "")
		// Whether another client was first with a joint id only the answer tells.
		if e.joint && known[e.id] == "" && got.status == "duplicate" {
			m.claimed[e.id] = append(m.claimed[e.id], got.eventID)
			want, known[e.id] = m.verdict(e, true), got.eventID
		}
		if got.verdict != want || got.id != e.id && e.hasID() || got.id != "" && !e.hasID() ||
			want.status == "duplicate" && got.eventID != known[e.id] || (got.eventID == "") != (want.status == "refused") {
			c.disagree(m, "event %d of %d:\n%s\nis answered %+v in\n%d %.3000s\nThe model expects %+v, %s",
				i+1, len(events), e.json(), got, a.status, a.body, want, known[e.id])
			return
		}
		if want.status == "duplicate" || want.status == "refused" {
			continue
		}
		if earlier := m.recorded[e.id]; earlier != nil {
			c.disagree(m, "%s is recorded twice, as %s and %s", e.id, earlier.eventID, got.eventID)
			return
		}
		m.keep(e, got.eventID, sentAt, answeredAt)
		known[e.id] = got.eventID
	}
	if m.limit > 0 {
		m.counted = append(m.counted, countedRequest{events[0].id, len(events)})
	}
}

// known gives the event_id of each event whose id is recorded for certain.
func (m *modelWorkspace) known(events []*sentEvent) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := make(map[string]string)
	for _, e := range events {
		if earlier := m.recorded[e.id]; earlier != nil {
			known[e.id] = earlier.eventID
		}
	}
	return known
}

// exchange sends events and reads what became of each.
func (c *client) exchange(m *modelWorkspace, batch bool, events []*sentEvent) (a answer, outcomes []outcome) {
	if !batch {
		a = m.record(c, c.process(), events[0].json())
		got := outcome{}
		switch a.status {
		case 202:
			got.status, _ = a.field("status").(string)
			got.eventID, _ = a.field("event_id").(string)
			got.id, _ = a.field("id").(string)
		case 400, 422:
			got.status = "refused"
			got.code, got.param = a.refusal()
			if (a.status == 400) != (got.code == "invalid_body") {
				return a, nil
			}
			if events[0].hasID() {
				got.id = events[0].id // the answer to a single event does not repeat it
			}
		default:
			return a, nil
		}
		return a, []outcome{got}
	}
	var bodies []string
	for _, e := range events {
		bodies = append(bodies, e.json())
	}
	a, receipt := m.batch(c, c.process(), bodies...)
	counts := map[string]int{}
	for _, result := range receipt.Results {
		got := outcome{verdict: verdict{status: result.Status}, eventID: result.EventID}
		if result.ID != nil {
			got.id = *result.ID
		}
		if result.Error != nil {
			got.code = result.Error.Code
			if result.Error.Param != nil {
				got.param = *result.Error.Param
			}
		}
		counts[got.status]++
		outcomes = append(outcomes, got)
	}
	if a.status == 202 && (receipt.Accepted != counts["accepted"] || receipt.Unmatched != counts["unmatched"] ||
		receipt.PendingIdentity != counts["pending_identity"] || receipt.Duplicate != counts["duplicate"] || receipt.Refused != counts["refused"]) {
		return a, nil
	}
	return a, outcomes
}

// sendNoEvents sends what is refused whole, whatever the limits.
func (c *client) sendNoEvents(m *modelWorkspace) {
	one := c.plainEvent().json()
	request := pick(c.random, []struct {
		path, body  string
		status      int
		code, param string
	}{
		{"", `{`, 400, "invalid_body", ""},
		{"", one + one, 400, "invalid_body", ""},
		{"/batch", `{"events":[]}`, 400, "invalid_body", "events"},
		{"/batch", `{"events":[` + one + `],"workspace":1}`, 400, "invalid_body", "workspace"},
		{"/batch", `{"events":[` + one + `]`, 400, "invalid_body", ""},
		{"/batch", `{"events":[` + strings.Repeat(one+",", 100) + one + `]}`, 413, "batch_too_large", "events"},
	})
	a := c.process().send(c, "POST", "/api/v1/events"+request.path, request.body, m.Key("all"))
	if code, param := a.refusal(); a.status != request.status || code != request.code || param != request.param {
		c.disagree(m, "%.3000s\nis answered %d %s\nThe model expects %d %s at %q",
			request.body, a.status, a.body, request.status, request.code, request.param)
	}
}

// limits notes a request that was refused for the limit, which is held against
// the others once all are answered.
func (c *client) limits(m *modelWorkspace, a answer, r refusedRequest) {
	code, _ := a.refusal()
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	if m.limit == 0 || code != "events_rate_limited" || err != nil || wait < 1 || wait > int(m.unit/time.Second) {
		c.disagree(m, "%d events are answered %d %s, to be sent again after %q", r.events, a.status, a.body, a.header.Get("Retry-After"))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = append(m.refused, r)
}

// walkList walks through a list while events arrive. Those that were there at
// the start are shown; of a name of its own, the client knows all.
func (c *client) walkList(m *modelWorkspace) {
	own := fmt.Sprintf("c%d_n%d", c.number, c.random.IntN(6))
	name := pick(c.random, []string{"", own, own, own, "plain_event", "never_sent"})
	status := pick(c.random, []string{"", "accepted", "unmatched"})
	before := m.listed(name, status)
	rows, totals := c.walk(m, name, status, 1+c.random.IntN(100))
	shown := make(map[string]bool)
	for _, row := range rows {
		shown[row.EventID] = true
	}
	for _, e := range before {
		if !shown[e.eventID] {
			c.disagree(m, "%s of %q, %q was recorded before the list was read, and is not in it", e.id, name, status)
			return
		}
	}
	if slices.Min(totals) < len(before) || name == own && (slices.Max(totals) != len(before) || len(rows) != len(before)) {
		c.disagree(m, "%d events of %q, %q are listed with totals of %v; the model expects %d", len(rows), name, status, totals, len(before))
	}
}

// walk reads all pages of a list, each from any process, and looks at what
// holds for every list.
func (c *client) walk(m *modelWorkspace, name, status string, limit int) (rows []eventRow, totals []int) {
	query := url.Values{}
	if name != "" {
		query.Set("name", name)
	}
	if status != "" {
		query.Set("status", status)
	}
	for {
		// The pages of a long list are not the smallest.
		query.Set("limit", strconv.Itoa(max(limit, min(len(rows), 100))))
		page := m.list(c, c.process(), query)
		if len(rows) == 0 && page.NextCursor == nil && page.Total != len(page.Rows) {
			c.disagree(m, "%v: all %d events are on one page, with a total of %d", query, len(page.Rows), page.Total)
		}
		rows, totals = append(rows, page.Rows...), append(totals, page.Total)
		if page.NextCursor == nil {
			break
		}
		query.Set("cursor", *page.NextCursor)
	}
	for i, row := range rows {
		if name != "" && row.Name != name || status != "" && row.Status != status {
			c.disagree(m, "%v lists %+v", query, row)
			break
		}
		if i > 0 && compare(row.ReceivedAt+row.EventID, rows[i-1].ReceivedAt+rows[i-1].EventID) >= 0 {
			c.disagree(m, "%v lists %+v behind %+v", query, row, rows[i-1])
			break
		}
	}
	return rows, totals
}

// rush sends ids that all clients send at this moment.
func (c *client) rush(phase int) {
	for _, m := range c.shared {
		events := c.events(m, 10)
		for i, n := range c.random.Perm(len(events)) {
			events[i].id, events[i].joint = fmt.Sprintf("rush-%d-%d", phase, n), true
		}
		c.send(m, true, events[:5]...)
		for _, e := range events[5:] {
			c.send(m, false, e)
		}
	}
}

// agree holds all that can be read of a workspace, while nobody writes, against
// the model, but for the filters, of which it tries so many of a hundred.
func (c *client) agree(m *modelWorkspace, percent int) {
	want := m.listed("", "")
	rows, totals := c.walk(m, "", "", 1+c.random.IntN(100))
	if len(rows) != len(want) || slices.Min(totals) != len(want) || slices.Max(totals) != len(want) {
		c.disagree(m, "%d events are listed with totals of %v; the model expects %d", len(rows), totals, len(want))
		return
	}
	for i, row := range rows {
		if err := want[i].shows(row); err != nil {
			c.disagree(m, "%s\nis listed as %+v: %v", want[i].json(), row, err)
			return
		}
	}
	for id, eventIDs := range m.claimed {
		for _, eventID := range eventIDs {
			if recorded := m.recorded[id]; recorded == nil || recorded.eventID != eventID {
				c.disagree(m, "a duplicate of %s was answered with %s; the model expects %+v", id, eventID, recorded)
				return
			}
		}
	}
	c.agreeOnFilters(m, percent)
	c.agreeOnTypes(m, rows)
	if m.limit > 0 {
		c.agreeOnLimit(m)
	}
}

func (c *client) agreeOnFilters(m *modelWorkspace, percent int) {
	for _, name := range append(slices.Sorted(maps.Keys(m.types)), "never_sent", "") {
		for _, status := range []string{"", "accepted", "unmatched"} {
			want := m.listed(name, status)
			if !c.chance(percent) || len(want) == 0 && !c.chance(10) {
				continue
			}
			rows, totals := c.walk(m, name, status, 1+c.random.IntN(100))
			if len(rows) != len(want) || slices.Min(totals) != len(want) || slices.Max(totals) != len(want) {
				c.disagree(m, "%d events of %q, %q are listed with totals of %v; the model expects %d", len(rows), name, status, totals, len(want))
				return
			}
			for i, row := range rows {
				if row.EventID != want[i].eventID {
					c.disagree(m, "event %d of %q, %q is listed as %+v; the model expects %+v", i+1, name, status, row, want[i])
					return
				}
			}
		}
	}
}

func (c *client) agreeOnTypes(m *modelWorkspace, events []eventRow) {
	newest := make(map[string]string)
	for _, row := range events {
		newest[row.Name] = max(newest[row.Name], row.ReceivedAt)
	}
	names := slices.Sorted(maps.Keys(m.types))
	query := url.Values{}
	for read := 0; ; {
		query.Set("limit", strconv.Itoa(20+c.random.IntN(81)))
		a := c.process().send(c, "GET", "/api/v1/event-types?"+query.Encode(), "", m.Key("all"))
		var page struct {
			Rows []struct {
				Name, Label, Status string
				SignalFact          string `json:"signal_fact"`
				Properties          map[string]string
				FirstSeenAt         string `json:"first_seen_at"`
				LastSeenAt          string `json:"last_seen_at"`
			}
			NextCursor *string
			Total      int
		}
		json.Unmarshal(a.body, &page)
		for _, row := range page.Rows {
			want := m.types[row.Name]
			if read == len(names) || row.Name != names[read] || row.Status != want.status || row.SignalFact != "event."+row.Name ||
				row.Label != strings.ToUpper(row.Name[:1])+strings.ReplaceAll(row.Name[1:], "_", " ") ||
				!maps.Equal(row.Properties, want.properties) || row.LastSeenAt < max(newest[row.Name], row.FirstSeenAt) {
				c.disagree(m, "event type %d is listed as %+v; the model expects %+v, last seen at %s", read+1, row, want, newest[row.Name])
				return
			}
			read++
		}
		if page.Total != len(names) || page.NextCursor == nil && read != len(names) {
			c.disagree(m, "%d event types are listed with a total of %d; the model expects %d", read, page.Total, len(names))
			return
		}
		if page.NextCursor == nil {
			return
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// agreeOnLimit holds that no unit of time has more events than the limit, and
// that those of a refused request would have been too many. Only the first is
// exact: what passed until a request was refused is not known, only what passed
// in the end.
func (c *client) agreeOnLimit(m *modelWorkspace) {
	passed := m.passed()
	for unit, events := range passed {
		if events > m.limit {
			c.disagree(m, "%d events passed in the unit that begins at %v, with a limit of %d", events, unit, m.limit)
		}
	}
	for _, r := range m.refused {
		if passed[r.sentAt.UTC().Truncate(m.unit)]+r.events <= m.limit && passed[r.answeredAt.UTC().Truncate(m.unit)]+r.events <= m.limit {
			c.disagree(m, "%d events were refused at %v, though %v passed with a limit of %d", r.events, r.answeredAt.UTC(), passed, m.limit)
		}
	}
}

// passed gives how many events passed the limit in each unit of time.
func (m *modelWorkspace) passed() map[time.Time]int {
	passed := make(map[time.Time]int)
	for _, r := range m.counted {
		passed[receivedAt(m.recorded[r.first].eventID).Truncate(m.unit)] += r.events
	}
	return passed
}

// fill sends one request after another up to the limit, where each answer is
// known beforehand.
func (c *client) fill(m *modelWorkspace) {
	begun := time.Now().UTC().Truncate(m.unit)
	left := m.limit - m.passed()[begun]
	send := func(count int) {
		events := make([]*sentEvent, count)
		for i := range events {
			events[i] = c.plainEvent()
		}
		before := len(m.refused)
		c.send(m, true, events...)
		ended := !time.Now().UTC().Truncate(m.unit).Equal(begun)
		if refused := len(m.refused) > before; !ended && refused != (count > left) {
			c.disagree(m, "%d events are refused: %t, with %d left of a limit of %d", count, refused, left, m.limit)
		}
		if count <= left {
			left -= count
		}
	}
	for left >= 100 {
		send(100)
	}
	send(left + 1)
	if left > 0 {
		send(left)
	}
	send(1)
}

// receivedAt reads the time of receipt out of an event_id.
func receivedAt(eventID string) time.Time {
	var ms int64
	for _, digit := range strings.TrimPrefix(eventID, "evt_")[:10] {
		ms = ms<<5 | int64(strings.IndexRune("0123456789abcdefghjkmnpqrstvwxyz", digit))
	}
	return time.UnixMilli(ms >> 2).UTC() // 48 of 50 bits
}

// seededTypes are the event types of a workspace before anything is sent.
func seededTypes(unused int) map[string]*modelType {
	usual := func(keys ...string) map[string]string {
		properties := make(map[string]string)
		for _, key := range keys {
			properties[key] = usualKind(key)
		}
		return properties
	}
	wide := make([]string, 50)
	for i := range wide {
		wide[i] = fmt.Sprintf("p%d", i)
	}
	types := map[string]*modelType{
		"legacy_event":   {"blocked", usual("plan")},
		"old_event":      {"archived", usual()},
		"plain_event":    {"active", usual("plan", "seats", "paid")},
		"archived_event": {"archived", usual("plan", "seats", "paid")},
		"wide_event":     {"active", usual(wide...)},
	}
	for i := range unused {
		types[fmt.Sprintf("unused_%d", i)] = &modelType{"active", usual()}
	}
	return types
}

// model makes a workspace, at a limit unless that is zero, and the model of it.
func model(t testing.TB, unusedTypes, limit int, unit time.Duration) *modelWorkspace {
	t.Helper()
	m := &modelWorkspace{
		limit: limit, unit: unit,
		types: seededTypes(unusedTypes), recorded: map[string]*modelEvent{}, claimed: map[string][]string{},
	}
	var types strings.Builder
	for name, of := range m.types {
		properties, _ := json.Marshal(of.properties)
		if !strings.Contains(standard, name) {
			fmt.Fprintf(&types, "      - {name: %s, status: %s, properties: %s}\n", name, of.status, properties)
		}
	}
	m.seeded = seed(t, strings.NewReplacer(
		"    contacts:\n", `      - {ref: labs, name: Labs, domain: labs.globex.com}
      - {ref: local, name: Local, domain: SLUG.example}
    contacts:
      - {ref: local, email: local@SLUG.example, company: local}
`,
		"    sites:\n", types.String()+"    sites:\n",
	).Replace(standard)+`      - {id: v-alone, site: www, identified_as: alone}
      - {id: v-SLUG, site: www, identified_as: local}
`)
	perMinute, perDay := 1_000_000, 1_000_000
	switch unit {
	case time.Minute:
		perMinute = limit
	case 24 * time.Hour:
		perDay = limit
	}
	inlet(t, "", "workspace", "set", m.Slug, fmt.Sprintf("--events-per-minute=%d", perMinute), fmt.Sprintf("--events-per-day=%d", perDay))
	return m
}

// refer lists what events may say of who they are about: records of the
// workspace, of another one, and of none.
func (m *modelWorkspace) refer(other seeded) {
	globex, initech, labs, local := m.Companies["globex"], m.Companies["initech"], m.Companies["labs"], m.Companies["local"]
	hank, milton, alone, here := m.Contacts["hank"], m.Contacts["milton"], m.Contacts["alone"], m.Contacts["local"]
	m.worksAt = map[int64]int64{hank: globex, milton: initech, here: local}
	m.companies = []companyReference{
		{fmt.Sprintf(`{"id":%d}`, globex), globex, ""},
		{fmt.Sprintf(`{"id":%d.0}`, initech), initech, ""},
		{fmt.Sprintf(`{"id":%d}`, labs), labs, ""},
		{fmt.Sprintf(`{"id":%d}`, other.Companies["globex"]), 0, ""},
		{`{"id":9007199254740991}`, 0, ""},
		{`{"domain":"globex.com"}`, globex, "globex.com"},
		{`{"domain":"HTTPS://www.Globex.com:443/pricing?x=1"}`, globex, "globex.com"},
		{`{"domain":"shop.eu.globex.com"}`, globex, "shop.eu.globex.com"},
		{`{"domain":"labs.globex.com"}`, labs, "labs.globex.com"},
		{`{"domain":"x.labs.globex.com"}`, globex, "x.labs.globex.com"},
		{`{"domain":"globex.de."}`, globex, "globex.de"},
		{`{"domain":"B\u00dcCHER.example"}`, globex, "xn--bcher-kva.example"},
		{`{"domain":"mail.initech.co.uk"}`, initech, "mail.initech.co.uk"},
		{`{"domain":"` + m.Slug + `.example"}`, local, m.Slug + ".example"},
		{`{"domain":"` + other.Slug + `.example"}`, 0, other.Slug + ".example"},
		{`{"domain":"other.co.uk"}`, 0, "other.co.uk"},
		{`{"domain":"nobody.example"}`, 0, "nobody.example"},
	}
	m.malformed = []companyReference{{`{"domain":"globex"}`, 0, ""}, {`{"domain":"10.0.0.1"}`, 0, ""}, {`{"domain":"a_b.example"}`, 0, ""}}
	m.contacts = []contactReference{
		{fmt.Sprintf(`{"id":%d}`, hank), hank},
		{fmt.Sprintf(`{"id":%d}`, alone), alone},
		{fmt.Sprintf(`{"id":%d}`, other.Contacts["hank"]), 0},
		{`{"id":9007199254740991}`, 0},
		{`{"email":"HANK@globex.com"}`, hank},
		{`{"email":"milton@gmail.com"}`, milton},
		{`{"email":"local@` + m.Slug + `.example"}`, here},
		{`{"email":"local@` + other.Slug + `.example"}`, 0},
		{`{"email":"nobody@globex.com"}`, 0},
		{`{"email":"no address"}`, 0},
	}
	m.visitors = []visitorReference{
		{"v-hank", hank}, {"v-alone", alone}, {"v-" + m.Slug, here}, {"v-" + other.Slug, 0}, {"v-nobody", 0}, {"never-seen", 0},
	}
}

// setting gives a number from the environment, or another one.
func setting(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParallelClientsOfTwoProcessesAgreeWithAModel(t *testing.T) {
	t.Parallel()
	const clients, phases = 6, 3
	operations := int(setting(t, "INLET_MODEL_OPERATIONS", 3000))
	tr := &trial{T: t, seed: setting(t, "INLET_MODEL_SEED", rand.Uint64())}
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	tr.processes = []server{sharedServer(t), other}
	defer tr.tellEnded()

	tr.shared = []*modelWorkspace{model(t, 0, 0, 0), model(t, 0, 0, 0)}
	tr.limited = []*modelWorkspace{model(t, 0, operations/10, time.Minute), model(t, 0, operations/10, 24*time.Hour)}
	var sending []*client
	all := slices.Concat(tr.shared, tr.limited)
	for i := range clients {
		// Fewer names are left than a client makes up.
		m := model(t, 170, 0, 0)
		sending, all = append(sending, tr.client(i, m)), append(all, m)
	}
	for i, m := range all {
		m.refer(all[(i+1)%len(all)].seeded)
	}

	for phase := range phases {
		var parallel sync.WaitGroup
		for _, c := range sending {
			parallel.Go(func() {
				c.rush(phase)
				for range operations / clients / phases {
					if t.Failed() {
						return
					}
					c.act()
				}
			})
		}
		parallel.Wait()
		if t.Failed() {
			return
		}
		for i, m := range all {
			parallel.Go(func() {
				c := tr.client(100*(phase+1)+i, m)
				if phase < phases-1 {
					c.agree(m, 10)
					return
				}
				if m.limit > 0 {
					c.fill(m)
				}
				c.agree(m, 50)
			})
		}
		parallel.Wait()
		if t.Failed() {
			return
		}
	}
	events := 0
	for _, m := range all {
		events += len(m.recorded)
		m.factsAgree(t, dbtest.URL(t))
	}
	t.Logf("INLET_MODEL_SEED=%d: %d operations, %d events recorded", tr.seed, operations, events)
}
