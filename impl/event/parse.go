package event

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
)

// Parsed is one event of a request: read, or refused for its shape. Of a
// refused one only the ID holds, and it is empty unless it was usable.
type Parsed struct {
	Event
	Fault *fault.Fault // invalid_body; its param is relative to the event
}

// Parse reads a body that is one event. It is written by hand, because event
// intake is what the server exists for; a test holds it to the document's
// schema in both directions.
//
// The fault is invalid_body. Broken JSON comes before everything. Among several
// faults of fields, malformed, repeated and unknown fields come before missing
// ones, and among equals the one whose path sorts first is reported. Of an event
// at fault the id and the name are given where they are in order.
func Parse(body []byte) (Event, *fault.Fault) {
	p := parser{scanner: scanner{text: string(body)}}
	e := p.event()
	p.end()
	if p.broken != "" {
		return Event{}, p.breakage()
	}
	if p.fault != nil {
		return e.named(), p.fault
	}
	return e, nil
}

// named is all that is kept of an event at fault.
func (e Event) named() Event { return Event{ID: e.ID, Name: e.Name} }

// ParseBatch reads a body that holds a batch of events. Each event is judged on
// its own: what is wrong inside one, short of broken JSON, is the fault of that
// one. Faults of the whole body: batch_too_large for more than 100 events;
// invalid_body, whose param is `events` or the unknown field beside it.
func ParseBatch(body []byte) ([]Parsed, *fault.Fault) {
	p := parser{scanner: scanner{text: string(body)}}
	var (
		parsed []Parsed
		count  int
		given  bool
		batch  worst // of the body as a whole
	)
	if p.peek() != '{' {
		p.skip()
		batch.refuse(malformed, "", wantObject)
	} else {
		for key := range p.fields {
			switch {
			case key != "events":
				p.skip()
				batch.refuse(malformed, clip(key), noField)
				continue
			case given:
				p.skip()
				batch.refuse(malformed, "events", twice)
				continue
			}
			given = true
			if parsed, count = p.events(); count == 0 {
				batch.refuse(malformed, "events", "want an array of 1 to %d events", limit.BatchEvents)
			}
			if p.broken != "" {
				p.depth, p.field = 1, "events" // wherever inside it is
			}
		}
		if !given {
			batch.refuse(missing, "events", required)
		}
	}
	p.end()
	switch {
	case p.broken != "":
		return nil, p.breakage()
	case count > limit.BatchEvents:
		return nil, fault.BatchTooLarge.At("events", "want at most %d events, not %d", limit.BatchEvents, count)
	case batch.fault != nil:
		return nil, batch.fault
	}
	return parsed, nil
}

// events reads the array of a batch, of what is no array nothing. Events beyond
// what a batch may hold are counted only.
func (p *parser) events() (parsed []Parsed, count int) {
	if p.peek() != '[' {
		p.skip()
		return nil, 0
	}
	parsed = make([]Parsed, 0, limit.BatchEvents)
	for range p.elements {
		if count++; count > limit.BatchEvents {
			p.skip()
			continue
		}
		p.worst = worst{}
		e := p.event()
		if p.fault != nil {
			e = e.named()
		}
		parsed = append(parsed, Parsed{Event: e, Fault: p.fault})
	}
	return parsed, count
}

// What is wrong with a field, the gravest first.
const (
	malformed = iota // or unknown, or repeated
	missing
	nobody // says not who the event is about
)

const (
	wantObject = "want a JSON object"
	wantString = "want a string"
	noNUL      = "want text without U+0000"
	noField    = "no such field; compare its spelling with the reference"
	twice      = "the field stands twice; send it once"
	required   = "the field is required"

	wantInstant = "want a date and time with its zone, such as 2026-01-31T08:30:00.000Z"
)

var (
	wantID      = fmt.Sprintf("want 1 to %d visible ASCII characters", limit.EventIDLength)
	wantName    = fmt.Sprintf("want a lower-case letter, then a-z, 0-9 and underscore, at most %d characters", limit.EventNameLength)
	wantWhole   = fmt.Sprintf("want a whole number from %d to %d", limit.MinID, limit.MaxID)
	wantDomain  = fmt.Sprintf("want 1 to %d characters", limit.CompanyDomainLength)
	wantEmail   = fmt.Sprintf("want 1 to %d characters", limit.ContactEmailLength)
	wantVisitor = fmt.Sprintf("want 1 to %d letters, digits and dashes", limit.VisitorIDLength)
	wantKey     = fmt.Sprintf("want a key of a lower-case letter, then a-z, 0-9 and underscore, at most %d characters", limit.PropertyKeyLength)
	wantText    = fmt.Sprintf("want at most %d characters", limit.PropertyTextLength)
)

// worst keeps the fault to be reported.
type worst struct {
	fault    *fault.Fault
	kind     int
	refusals int
}

func (w *worst) refuse(kind int, path, format string, args ...any) {
	w.refusals++
	if w.fault == nil || kind < w.kind || kind == w.kind && path < w.fault.Param {
		w.fault, w.kind = fault.InvalidBody.At(path, format, args...), kind
	}
}

// A parser reads events.
type parser struct {
	scanner
	worst
	room []Property // where the properties of all events stand, one behind the other

	// The field being read: at depth 1 one of the event, at depth 2 one of that.
	depth        int
	field, inner string
}

// path names the field being read, from the event.
func (p *parser) path() string {
	switch p.depth {
	case 0:
		return ""
	case 1:
		return clip(p.field)
	}
	return p.field + "." + clip(p.inner)
}

// wrong refuses the field being read.
func (p *parser) wrong(want string) { p.refuse(malformed, p.path(), "%s", want) }

// breakage is the fault of a body whose JSON is broken.
func (p *parser) breakage() *fault.Fault {
	if p.inField {
		return fault.InvalidBody.At(p.path(), "%s", p.broken)
	}
	return fault.InvalidBody.Says("%s", p.broken)
}

// fields reads the members of an event.
func (p *parser) fields(yield func(key string) bool) {
	for key := range p.members {
		p.depth, p.field = 1, key
		if !yield(key) || p.broken != "" {
			return
		}
		p.depth = 0
	}
}

// inners reads the members of a field of an event.
func (p *parser) inners(yield func(key string) bool) {
	for key := range p.members {
		p.depth, p.inner = 2, key
		if !yield(key) || p.broken != "" {
			return
		}
		p.depth = 1
	}
}

// event reads an event.
func (p *parser) event() (e Event) {
	if p.peek() != '{' {
		p.skip()
		p.refuse(malformed, "", wantObject)
		return e
	}
	const (
		id = 1 << iota
		name
		occurredAt
		company
		contact
		visitor
		properties
	)
	seen := 0
	for key := range p.fields {
		field := 0
		switch key {
		case "id":
			field = id
			e.ID = p.text(visibleASCII, wantID)
		case "name":
			field = name
			e.Name = p.text(eventName, wantName)
		case "occurred_at":
			field = occurredAt
			p.text(func(s string) (ok bool) { e.OccurredAt, ok = instant(s); return ok }, wantInstant)
		case "company":
			field = company
			e.Company.ID, e.Company.Domain = p.reference("domain", companyDomain, wantDomain)
		case "contact":
			field = contact
			e.Contact.ID, e.Contact.Email = p.reference("email", contactEmail, wantEmail)
		case "visitor":
			field = visitor
			e.Visitor = p.visitor()
		case "properties":
			field = properties
			e.Properties, e.PropertiesJSON = p.properties()
		default:
			p.unknown()
		}
		if field&seen != 0 {
			p.wrong(twice)
			if field == id {
				e.ID = ""
			}
		}
		seen |= field
	}
	if seen&id == 0 {
		p.refuse(missing, "id", required)
	}
	if seen&name == 0 {
		p.refuse(missing, "name", required)
	}
	if seen&(company|contact|visitor) == 0 {
		p.refuse(nobody, "company", "name at least one of company, contact and visitor, to say who the event is about")
	}
	return e
}

func (p *parser) unknown() {
	p.skip()
	p.wrong(noField)
}

// text reads a string that has to be valid; it is empty where it is not.
func (p *parser) text(valid func(string) bool, want string) string {
	if p.peek() != '"' {
		p.skip()
		p.wrong(wantString)
		return ""
	}
	s, ok := p.str()
	switch {
	case !ok:
		p.wrong(noNUL)
	case !valid(s):
		p.wrong(want)
	default:
		return s
	}
	return ""
}

// isObject tells whether the field being read is an object, and passes over
// what is none.
func (p *parser) isObject() bool {
	if p.peek() == '{' {
		return true
	}
	p.skip()
	p.wrong("want an object")
	return false
}

// reference reads an object with exactly one of a whole number `id` and
// another field, which is a text.
func (p *parser) reference(other string, valid func(string) bool, want string) (id int64, text string) {
	if !p.isObject() {
		return 0, ""
	}
	var ids, others int
	before := p.refusals
	for key := range p.inners {
		switch key {
		case "id":
			if ids++; ids > 1 {
				p.repeated()
				continue
			}
			id = p.id()
		case other:
			if others++; others > 1 {
				p.repeated()
				continue
			}
			text = p.text(valid, want)
		default:
			p.unknown()
		}
	}
	if p.refusals == before && ids+others != 1 {
		p.wrong("want exactly one of id and " + other)
	}
	return id, text
}

func (p *parser) repeated() {
	p.skip()
	p.wrong(twice)
}

func (p *parser) visitor() (id string) {
	if !p.isObject() {
		return ""
	}
	ids := 0
	for key := range p.inners {
		if key != "id" {
			p.unknown()
			continue
		}
		if ids++; ids > 1 {
			p.repeated()
			continue
		}
		id = p.text(visitorID, wantVisitor)
	}
	if ids == 0 {
		p.refuse(missing, "visitor.id", required)
	}
	return id
}

func (p *parser) id() int64 {
	if !isNumber(p.peek()) {
		p.skip()
		p.wrong(wantWhole)
		return 0
	}
	n, ok := whole(p.number())
	if !ok || n < limit.MinID || n > limit.MaxID {
		p.wrong(wantWhole)
	}
	return n
}

// properties reads the map of properties, and gives its JSON too.
func (p *parser) properties() (all []Property, compact string) {
	if !p.isObject() {
		return nil, ""
	}
	if p.room == nil {
		p.room = make([]Property, 0, 8)
	}
	start, first, entries := p.pos, len(p.room), 0
	p.spaced = false
	for key := range p.inners {
		if entries++; entries > limit.PropertyCount {
			p.skip()
			continue
		}
		property, ok := p.property(key)
		if !ok {
			continue
		}
		for i := range p.room[first:] {
			if p.room[first+i].Key == key {
				p.wrong(twice)
			}
		}
		p.room = append(p.room, property)
	}
	if p.broken != "" {
		return nil, ""
	}
	if entries > limit.PropertyCount {
		p.refuse(malformed, p.path(), "want at most %d entries, not %d", limit.PropertyCount, entries)
	}
	compact = p.scanner.text[start:p.pos]
	if p.spaced {
		compact = withoutSpace(compact)
	}
	return p.room[first:], compact
}

func (p *parser) property(key string) (property Property, ok bool) {
	if !propertyKey(key) {
		p.skip()
		p.wrong(wantKey)
		return property, false
	}
	property.Key = key
	switch c := p.peek(); {
	case c == '"':
		property.Type = TypeString
		property.Text = p.text(propertyText, wantText)
	case isNumber(c):
		property.Type = TypeNumber
		property.Text = p.number()
		if !strictjson.IsFinite(property.Text) {
			p.wrong("want a number that a double-precision float can hold")
		}
	case c == 't':
		property.Type = TypeBool
		property.Text = "true"
		p.skip()
	case c == 'f':
		property.Type = TypeBool
		property.Text = "false"
		p.skip()
	default:
		p.skip()
		p.wrong("want a string, a number or a boolean")
		return property, false
	}
	return property, true
}

// withoutSpace drops the white space between the tokens of valid JSON.
func withoutSpace(json string) string {
	var b strings.Builder
	b.Grow(len(json))
	quoted := false
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case quoted && c == '\\':
			b.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c <= ' ':
			continue
		}
		b.WriteByte(json[i])
	}
	return b.String()
}

// clip keeps a caller's own field name from filling an answer.
func clip(key string) string {
	const most = 64 // characters
	if len(key) <= most {
		return key
	}
	n := 0
	for i := range key {
		if n++; n > most {
			return key[:i] + "…"
		}
	}
	return key
}

// longer tells whether a text has more characters (Unicode code points).
func longer(s string, than int) bool {
	return len(s) > than && utf8.RuneCountInString(s) > than
}

func companyDomain(s string) bool { return s != "" && !longer(s, limit.CompanyDomainLength) }

func contactEmail(s string) bool { return s != "" && !longer(s, limit.ContactEmailLength) }

func propertyText(s string) bool { return !longer(s, limit.PropertyTextLength) }

func eventName(s string) bool { return identifier(s, limit.EventNameLength) }

func propertyKey(s string) bool { return identifier(s, limit.PropertyKeyLength) }

// identifier tells what names events and properties.
func identifier(s string, length int) bool {
	if len(s) < 1 || len(s) > length || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= limit.EventIDLength
}

func visitorID(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '-' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= limit.VisitorIDLength
}
