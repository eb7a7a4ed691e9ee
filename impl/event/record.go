package event

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
)

const (
	groupEvents   = 2000             // a group stops taking offers once it has this many events
	queuedOffers  = 4096             // a lane; beyond it requests are turned away
	callTimeout   = 10 * time.Second // of one call to the database
	offerAttempts = 8                // before an offer that finds its workspace changed each time is turned away
	awayFor       = 5 * time.Second  // what a client is asked to wait while the database is away
	busyFor       = time.Second      // and while the queue is full
)

// A Result is what became of one event of a request.
type Result struct {
	Status  Status
	EventID string       // empty for a refused event
	Fault   *fault.Fault // why the event was refused
}

// A Recorder is the one write path of events, whichever way they came.
//
// Events of concurrent requests are recorded together: a lane takes every
// offer that is waiting, sends one statement, and gives each request its own
// answers when that has committed. No timer is involved, so an idle server
// answers after one commit and a busy one forms groups by itself. All offers
// of a workspace go through one lane, which therefore keeps what it knows of
// the workspace without a lock; the statement checks that knowledge under the
// workspace's gate, where processes meet.
type Recorder struct {
	lanes []*lane
	work  sync.WaitGroup

	offering sync.RWMutex // read-locked while an offer enters its lane
	closed   bool
}

// NewRecorder starts a recorder with so many lanes, each of which holds one
// connection while it records. Close ends it.
func NewRecorder(d *db.DB, lanes int) *Recorder {
	r := &Recorder{}
	for range lanes {
		l := &lane{db: d, queue: make(chan *offer, queuedOffers), registries: make(map[int64]registry)}
		r.lanes = append(r.lanes, l)
		r.work.Go(l.run)
	}
	return r
}

// Close records what was offered and ends; what is offered from now on is
// turned away.
func (r *Recorder) Close() {
	r.offering.Lock()
	r.closed = true
	r.offering.Unlock()
	for _, l := range r.lanes {
		close(l.queue)
	}
	r.work.Wait()
}

// ErrStaleCaller says that a recalled caller may not be what it was: it is to be
// admitted, and the events are to be offered again. Nothing was recorded.
var ErrStaleCaller = errors.New("the caller was recalled and may have changed")

// Record records the events of one request, in order, and says what became of
// each. The request of a recalled caller is counted in its key's minute. An
// error means that nothing of the request was recorded, unless the context
// ended: then it may have been. Faults: rate_limited, events_rate_limited,
// events_unavailable, internal_error.
func (r *Recorder) Record(ctx context.Context, caller *auth.Caller, events []Parsed) ([]Result, error) {
	o := &offer{
		ctx: ctx, caller: caller, workspace: caller.Workspace, events: events,
		results: make([]Result, len(events)), done: make(chan struct{}),
	}
	for i := range events {
		if events[i].Fault != nil {
			o.results[i] = Result{Status: Refused, Fault: events[i].Fault}
		}
	}
	if !r.offer(o) {
		return nil, fault.EventsUnavailable.In(busyFor)
	}
	select {
	case <-o.done:
		return o.results, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// offer puts an offer into its workspace's lane, unless that is full or closed.
func (r *Recorder) offer(o *offer) bool {
	r.offering.RLock()
	defer r.offering.RUnlock()
	if r.closed {
		return false
	}
	select {
	case r.lanes[uint64(o.workspace)%uint64(len(r.lanes))].queue <- o:
		return true
	default:
		return false
	}
}

// An offer is one request on its way through a lane.
type offer struct {
	ctx       context.Context
	caller    *auth.Caller
	workspace int64
	events    []Parsed
	results   []Result        // unsettled where the status is zero
	known     map[string]bool // ids that an earlier try found recorded; shared within the workspace
	counted   bool            // against the workspace's minute and day
	err       error
	settled   bool // the lane's own note; others wait for done
	done      chan struct{}
}

func (o *offer) settle(err error) {
	o.err, o.settled = err, true
	close(o.done)
}

type lane struct {
	db         *db.DB
	queue      chan *offer
	registries map[int64]registry
}

func (l *lane) run() {
	for first := range l.queue {
		offers, events := []*offer{first}, len(first.events)
		for waiting := true; waiting && events < groupEvents; {
			select {
			case o, ok := <-l.queue:
				if waiting = ok; ok {
					offers, events = append(offers, o), events+len(o.events)
				}
			default:
				waiting = false
			}
		}
		// A client that went away before its group left is not recorded.
		offers = slices.DeleteFunc(offers, func(o *offer) bool { return o.ctx.Err() != nil })
		slices.SortStableFunc(offers, func(a, b *offer) int { return cmp.Compare(a.workspace, b.workspace) })
		l.recordGroup(offers)
	}
}

// recordGroup settles every offer, come what may: a panic would otherwise end
// the process and, with it, the requests of everybody.
func (l *lane) recordGroup(offers []*offer) {
	defer func() {
		if p := recover(); p != nil {
			clear(l.registries)
			for _, o := range offers {
				if !o.settled {
					o.settle(fault.InternalError.Because(fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
				}
			}
		}
	}()
	l.record(offers)
}

// record settles every offer. Those whose workspace had changed since it was
// last looked at are tried again.
func (l *lane) record(offers []*offer) {
	for range offerAttempts {
		if len(offers) == 0 {
			return
		}
		offers = l.try(offers)
	}
	for _, o := range offers {
		o.settle(fault.EventsUnavailable.In(busyFor))
	}
}

// recordEach settles offers one by one, where together they cannot be judged:
// their workspace is at its limit, or one of them makes the group fail.
func (l *lane) recordEach(offers []*offer) {
	for i := range offers {
		l.record(offers[i : i+1])
	}
}

// try makes one call for all offers and gives back those to be tried again.
func (l *lane) try(offers []*offer) (again []*offer) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()

	g := group{now: l.db.Now()}
	for len(offers) > 0 {
		n := 1
		for n < len(offers) && offers[n].workspace == offers[0].workspace {
			n++
		}
		same := offers[:n]
		offers = offers[n:]
		known, err := l.registry(ctx, same)
		if err != nil {
			l.fail(same, err)
			continue
		}
		if same = current(same, known.version); len(same) > 0 {
			g.add(part{offers: same, draft: draft{registry: known}})
		}
	}
	if len(g.parts) == 0 {
		return nil
	}

	result, err := l.db.RecordEvents(ctx, &g.call)
	if err != nil {
		if all := g.offers(); len(all) > 1 && !errors.Is(err, db.ErrAway) {
			l.recordEach(all)
		} else {
			l.fail(all, err)
		}
		return nil
	}

	for i := range g.parts {
		p := &g.parts[i]
		switch result.Verdicts[i] {
		case db.GroupHeld:
			l.registries[p.workspace()] = p.draft.settled()
			again = append(again, p.settle(&result)...)
		case db.GroupStale:
			delete(l.registries, p.workspace())
			again = append(again, p.offers...)
		case db.GroupKnownID:
			p.learn(&result)
			again = append(again, p.offers...)
		case db.GroupMinuteFull, db.GroupDayFull, db.GroupKeyFull:
			if len(p.offers) > 1 {
				l.recordEach(p.offers)
				continue
			}
			p.offers[0].settle(full(p.offers[0], result.Verdicts[i], result.NowMS))
		}
	}
	return again
}

// full gives the fault of an offer that would pass a limit.
func full(o *offer, verdict, nowMS int64) *fault.Fault {
	left := func(unit time.Duration) time.Duration { return unit - time.Duration(nowMS)*time.Millisecond%unit }
	switch verdict {
	case db.GroupKeyFull:
		return auth.TooMany(o.caller.Limit, left(time.Minute))
	case db.GroupDayFull:
		return fault.EventsRateLimited.In(left(24 * time.Hour))
	}
	return fault.EventsRateLimited.In(left(time.Minute))
}

// registry gives what the lane knows of the offers' workspace, and looks again
// where a caller was admitted at a later version.
func (l *lane) registry(ctx context.Context, offers []*offer) (registry, error) {
	workspace := offers[0].workspace
	known, ok := l.registries[workspace]
	for _, o := range offers {
		ok = ok && (!o.caller.Recalled || o.caller.Version <= known.version)
	}
	if ok {
		return known, nil
	}
	known, err := loadRegistry(ctx, l.db, workspace)
	if err == nil {
		l.registries[workspace] = known
	}
	return known, err
}

// current turns away the offers whose recalled caller is of an earlier version
// than the registry, and gives the others.
func current(offers []*offer, version int64) []*offer {
	return slices.DeleteFunc(slices.Clone(offers), func(o *offer) bool {
		stale := o.caller.Recalled && o.caller.Version != version
		if stale {
			o.settle(ErrStaleCaller)
		}
		return stale
	})
}

func (l *lane) fail(offers []*offer, err error) {
	for _, o := range offers {
		if errors.Is(err, db.ErrAway) || errors.Is(err, context.DeadlineExceeded) {
			f := fault.EventsUnavailable.Because(err)
			f.RetryAfter = int(awayFor / time.Second)
			o.settle(f)
		} else {
			o.settle(fault.InternalError.Because(err))
		}
	}
}

// A group is one call in the making: the parts of several workspaces.
type group struct {
	now   time.Time
	parts []part
	call  db.EventGroup
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
	offers []*offer
	draft  draft
	slots  []slot // the events that were sent
	echoes []echo // events with the id of one that was sent before them
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
	workspace := int64(len(g.parts) + 1)
	count := 0
	recorded := make(map[string]int) // ids to be recorded → position in the call
	for _, o := range p.offers {
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
	c.Versions = append(c.Versions, p.draft.version)
	c.Counts = append(c.Counts, int64(count))
	c.Requests = append(c.Requests, int64(len(p.offers)))
	g.addKeys(p, workspace)
	g.parts = append(g.parts, p)
}

// addKeys has the requests of recalled callers counted.
func (g *group) addKeys(p part, workspace int64) {
	requests := make(map[int64]int64)
	limits := make(map[int64]int64)
	for _, o := range p.offers {
		if o.caller.Recalled && !o.counted {
			requests[o.caller.KeyID]++
			limits[o.caller.KeyID] = int64(o.caller.Limit)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(requests)) {
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
	c.IDHash = append(c.IDHash, hex.EncodeToString(sum[:16]))
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
				EventID: PublicID(p.workspace(), r.Numbers[s.sent]),
			}
		case s.fault != nil:
			*result = Result{Status: Refused, Fault: s.fault}
		default:
			delete(s.offer.known, s.offer.events[s.event].ID)
		}
	}
	for _, e := range p.echoes {
		e.offer.results[e.event] = Result{Status: Duplicate, EventID: PublicID(p.workspace(), r.Numbers[e.of])}
	}
	for _, o := range p.offers {
		o.counted = true
		if slices.ContainsFunc(o.results, func(r Result) bool { return r.Status == unsettled }) {
			again = append(again, o)
		} else {
			o.settle(nil)
		}
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
