package event

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// A group is one call in the making: the parts of several workspaces.
type group struct {
	now   time.Time
	parts []part
	call  db.EventGroup
}

// makeRoom spares the columns of the call growing step by step.
func (g *group) makeRoom(offers []*offer) {
	n := 0
	for _, o := range offers {
		n += len(o.events)
	}
	c := &g.call
	for _, column := range []*[]int64{&c.Workspace, &c.Mode, &c.Type, &c.OccurredMS, &c.CompanyID, &c.ContactID} {
		*column = make([]int64, 0, n)
	}
	for _, column := range []*[]string{&c.ID, &c.Domain, &c.Registrable, &c.Email, &c.Visitor, &c.Properties} {
		*column = make([]string, 0, n)
	}
	c.IDHash = make([][16]byte, 0, n)
}

func (g *group) offers() []*offer {
	var all []*offer
	for i := range g.parts {
		all = append(all, g.parts[i].offers...)
	}
	return all
}

// A part holds the offers of one workspace in a group.
type part struct {
	position int // of the workspace in the call
	offers   []*offer
	draft    draft
	slots    []slot // the events that were sent
	echoes   []echo // events with the id of one that was sent before them
	firstKey int    // position of its first key in the call
	keys     []int64
}

func (p *part) workspace() int64 { return p.offers[0].workspace }

type slot struct {
	offer *offer
	event int // position in the offer
	sent  int // position in the call
	fault *fault.Fault
}

type echo struct {
	offer *offer
	event int
	of    int // position in the call
}

// add judges the unsettled events of a part, in order, and puts them into the
// call.
func (g *group) add(p part) {
	c := &g.call
	p.position = len(g.parts)
	workspace := int64(p.position + 1) // as the call counts them
	count := 0
	recorded := make(map[string]int) // ids to be recorded → position in the call
	for _, o := range p.offers {
		if o.refusal != nil {
			continue
		}
		if !o.counted {
			count += len(o.events)
		}
		for i := range o.events {
			if o.results[i].Status != unsettled {
				continue
			}
			e := &o.events[i].Event
			if of, ok := recorded[e.ID]; ok {
				p.echoes = append(p.echoes, echo{o, i, of})
				continue
			}
			var (
				mode  int64 = db.EventLookUp
				match reference
				id    int64
				adds  bool
				f     *fault.Fault
			)
			if !o.known[e.ID] {
				if match, id, adds, f = p.draft.judge(e, g.now); f == nil {
					recorded[e.ID] = len(c.ID)
					mode = db.EventRecord
					if adds {
						mode = db.EventRegister
					}
				}
			}
			p.slots = append(p.slots, slot{o, i, len(c.ID), f})
			c.Workspace = append(c.Workspace, workspace)
			c.Mode = append(c.Mode, mode)
			g.addEvent(e, match, id)
		}
	}
	for name, t := range p.draft.changed {
		c.TypeWorkspace = append(c.TypeWorkspace, workspace)
		c.TypeID = append(c.TypeID, t.id)
		c.TypeName = append(c.TypeName, name)
		c.TypeLabel = append(c.TypeLabel, Label(name))
		c.TypeProperties = append(c.TypeProperties, t.propertiesJSON())
	}
	c.Workspaces = append(c.Workspaces, p.workspace())
	c.Versions = append(c.Versions, p.draft.versions)
	c.Counts = append(c.Counts, int64(count))
	c.Upto = append(c.Upto, int64(len(c.ID)))
	p.firstKey = len(c.KeyID)
	g.addKeys(&p, workspace)
	g.parts = append(g.parts, p)
}

// addKeys has the requests of recalled callers counted.
func (g *group) addKeys(p *part, workspace int64) {
	requests := make(map[int64]int64)
	limits := make(map[int64]int64)
	for _, o := range p.offers {
		if o.toCount() {
			requests[o.caller.KeyID]++
			limits[o.caller.KeyID] = int64(o.caller.Limit)
		}
	}
	p.keys = slices.Sorted(maps.Keys(requests))
	for _, key := range p.keys {
		g.call.KeyWorkspace = append(g.call.KeyWorkspace, workspace)
		g.call.KeyID = append(g.call.KeyID, key)
		g.call.KeyRequests = append(g.call.KeyRequests, requests[key])
		g.call.KeyLimit = append(g.call.KeyLimit, limits[key])
	}
}

func (g *group) addEvent(e *Event, match reference, typeID int64) {
	c := &g.call
	sum := sha256.Sum256([]byte(e.ID))
	occurred := int64(0)
	if !e.OccurredAt.IsZero() {
		occurred = e.OccurredAt.UnixMilli()
	}
	properties := "{}"
	if len(e.PropertiesJSON) > 0 {
		properties = e.PropertiesJSON
	}
	email := ""
	if e.Contact.Email != "" {
		email = contact.NormalizeEmail(e.Contact.Email)
	}
	c.IDHash = append(c.IDHash, [16]byte(sum[:16]))
	c.ID = append(c.ID, e.ID)
	c.Type = append(c.Type, typeID)
	c.OccurredMS = append(c.OccurredMS, occurred)
	c.CompanyID = append(c.CompanyID, e.Company.ID)
	c.Domain = append(c.Domain, match.domain)
	c.Registrable = append(c.Registrable, match.registrable)
	c.ContactID = append(c.ContactID, e.Contact.ID)
	c.Email = append(c.Email, email)
	c.Visitor = append(c.Visitor, e.Visitor)
	c.Properties = append(c.Properties, properties)
}

// settle gives every offer its answers, and back the offers that hold an event
// believed to be recorded already whose 30 days have ended meanwhile.
func (p *part) settle(r *db.EventGroupResult) (again []*offer) {
	for _, s := range p.slots {
		result := &s.offer.results[s.event]
		switch {
		case r.Statuses[s.sent] >= 0:
			*result = Result{
				Status:  statusOf(r.Statuses[s.sent]),
				EventID: PublicID(p.workspace(), r.Number(p.position, s.sent)),
			}
		case s.fault != nil:
			*result = Result{Status: Refused, Fault: s.fault}
		default:
			delete(s.offer.known, s.offer.events[s.event].ID)
		}
	}
	for _, e := range p.echoes {
		e.offer.results[e.event] = Result{Status: Duplicate, EventID: PublicID(p.workspace(), r.Number(p.position, e.of))}
	}
	for _, o := range p.offers {
		o.counted = true
		switch {
		case o.refusal != nil:
			o.settle(o.refusal)
		case slices.ContainsFunc(o.results, func(r Result) bool { return r.Status == unsettled }):
			again = append(again, o)
		default:
			o.settle(nil)
		}
	}
	return again
}

// ration settles which offers still fit where together they would pass a limit:
// in order, each that fits goes on, and each that does not is refused. A request
// past the limit of its key is not counted; any other is, so one that a limit of
// the workspace refuses is given back too, to be counted. What is left can only
// get less within the minute, so those that go on may be rationed once more.
// All requests of a group arrive before any of its events waits, so the backlog
// holds for all of them or for none.
func (p *part) ration(r *db.EventGroupResult) (again []*offer) {
	left := func(unit time.Duration) time.Duration { return unit - time.Duration(r.NowMS)*time.Millisecond%unit }
	keyLeft := make(map[int64]int64)
	for i, key := range p.keys {
		keyLeft[key] = r.KeyLeft[p.firstKey+i]
	}
	minuteLeft, dayLeft := r.MinuteLeft[p.position], r.DayLeft[p.position]
	for _, o := range p.offers {
		if o.toCount() {
			if keyLeft[o.caller.KeyID] <= 0 {
				o.settle(auth.TooMany(o.caller.Limit, left(time.Minute)))
				continue
			}
			keyLeft[o.caller.KeyID]--
		}
		events := int64(len(o.events))
		switch {
		case o.refusal != nil || o.counted:
		case events > minuteLeft:
			o.refusal = fault.EventsRateLimited.In(left(time.Minute))
		case events > dayLeft:
			o.refusal = fault.EventsRateLimited.In(left(24 * time.Hour))
		case r.BacklogLeft[p.position] <= 0:
			o.refusal = fault.IngestBacklogged.In(limit.BacklogWait)
		default:
			minuteLeft -= events
			dayLeft -= events
		}
		if o.refusal != nil && !o.toCount() {
			o.settle(o.refusal)
			continue
		}
		again = append(again, o)
	}
	return again
}

// learn notes which ids were recorded before, so that the next try judges the
// other events without them. All offers of the workspace learn it at once: the
// next one with the same id would only meet the same answer.
func (p *part) learn(r *db.EventGroupResult) {
	known := p.offers[0].known
	if known == nil {
		known = make(map[string]bool)
	}
	for _, s := range p.slots {
		if s.fault == nil && r.Statuses[s.sent] == db.EventDuplicate {
			known[s.offer.events[s.event].ID] = true
		}
	}
	for _, o := range p.offers {
		o.known = known
	}
}
