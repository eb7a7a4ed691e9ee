package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/trace"
)

const (
	groupEvents   = 2000             // a group stops taking offers once it has this many events
	overlapFrom   = 8                // requests of a group from which on the disk is left to work behind it
	callTimeout   = 10 * time.Second // of one call to the database
	offerAttempts = 64               // before an offer that finds its workspace changed each time, by other processes, is turned away
)

// A lane records events group by group. It has two connections: while the disk is
// at work on a group over one, the next is recorded over the other.
type lane struct {
	db         *db.DB
	queue      *queue
	registries *registries
	metrics    *metrics
	tracer     *trace.Tracer

	free     chan *db.Pinned // connections without a group
	recorded chan recorded   // groups that are settled once they are flushed

	conn *db.Pinned      // of the group at hand
	wait bool            // whether that waits for the disk itself
	ctx  context.Context // of its span
}

// recorded is a group that was recorded, and may wait for the disk yet.
type recorded struct {
	conn   *db.Pinned
	offers []*offer
	began  time.Time
	ctx    context.Context // of its span
	span   trace.Span
}

// LaneConnections are those that a lane keeps.
const LaneConnections = 2

func newLane(d *db.DB, q *queue, r *registries, m *metrics, tracer *trace.Tracer) *lane {
	l := &lane{
		db: d, queue: q, registries: r, metrics: m, tracer: tracer,
		free: make(chan *db.Pinned, LaneConnections), recorded: make(chan recorded, LaneConnections),
	}
	for range LaneConnections {
		l.free <- d.Pin()
	}
	return l
}

// run records until the queue is closed and empty.
func (l *lane) run() {
	defer close(l.recorded)
	for {
		offers, workspaces := l.queue.take(groupEvents)
		if offers == nil {
			return
		}
		began := time.Now()
		for _, o := range offers {
			l.metrics.waited.Observe(began.Sub(o.at).Seconds())
			o.waiting.End()
		}
		offers = turnAwayLate(offers)
		slices.SortStableFunc(offers, func(a, b *offer) int { return cmp.Compare(a.workspace, b.workspace) })
		l.conn = <-l.free
		l.wait = len(offers) < overlapFrom
		ctx, span := l.begin(offers)
		l.ctx = ctx
		l.recordGroup(offers)
		group := recorded{conn: l.conn, offers: offers, began: began, ctx: ctx, span: span}
		if l.wait {
			l.free <- l.conn
			l.done(group)
		} else {
			l.recorded <- group
		}
		l.queue.giveBack(workspaces)
	}
}

// turnAwayLate gives the offers that are still worth recording. A client that went
// away before its group left is not recorded.
func turnAwayLate(offers []*offer) []*offer {
	before := time.Now().Add(-offerPatience)
	return slices.DeleteFunc(offers, func(o *offer) bool {
		if o.at.After(before) {
			return o.ctx.Err() != nil
		}
		o.settle(busy())
		close(o.done)
		return true
	})
}

// flush makes groups durable that were recorded without waiting for the disk,
// and tells their requests.
func (l *lane) flush() {
	for r := range l.recorded {
		ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
		err := r.conn.Flush(ctx)
		cancel()
		if err != nil {
			l.registries.forgetAll() // what they were taken from may be lost
			for _, o := range r.offers {
				if o.err == nil {
					o.settle(unavailable(err))
				}
			}
		}
		l.free <- r.conn
		l.done(r)
	}
	for range LaneConnections {
		(<-l.free).Close()
	}
}

// begin begins the span of a group, which is linked with those of the requests
// that it answers, and they with it. Where none of those is recorded, it is not.
func (l *lane) begin(offers []*offer) (context.Context, trace.Span) {
	ctx := context.Background()
	var of []*offer
	var from []trace.SpanContext
	for _, o := range offers {
		if sc, ok := trace.Recorded(o.ctx); ok {
			of, from = append(of, o), append(from, sc)
		}
	}
	if of == nil {
		return ctx, trace.Off
	}
	ctx, span := l.tracer.Linked(ctx, "record a group", trace.Internal, from)
	for _, o := range of {
		trace.Link(o.ctx, span)
	}
	return ctx, span
}

// done tells the requests what became of their offers.
func (l *lane) done(g recorded) {
	var events int
	var became [Refused + 1]int
	for _, o := range g.offers {
		events += len(o.events)
		for i := range o.results {
			if o.err == nil {
				became[o.results[i].Status]++
			}
		}
	}
	for status := Accepted; status < Refused; status++ {
		if became[status] > 0 {
			l.metrics.recorded[status].Add(float64(became[status]))
		}
	}
	if len(g.offers) > 0 {
		l.metrics.group.Observe(float64(events))
		l.metrics.took.Observe(time.Since(g.began).Seconds())
	}
	if g.span.IsRecording() {
		g.span.SetAttributes(attribute.Int("inlet.events", events), attribute.Int("inlet.requests", len(g.offers)))
		g.span.End()
	}
	for _, o := range g.offers {
		close(o.done)
	}
}

// recordGroup settles every offer, come what may: a panic would otherwise end
// the process and, with it, the requests of everybody.
func (l *lane) recordGroup(offers []*offer) {
	defer func() {
		if p := recover(); p != nil {
			l.registries.forgetAll()
			for _, o := range offers {
				if !o.settled {
					o.settle(fault.InternalError.Because(fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
				}
			}
		}
	}()
	if !l.db.Distributed() {
		l.record(offers)
		return
	}
	for len(offers) > 0 {
		n := sameWorkspace(offers)
		l.record(offers[:n])
		offers = offers[n:]
	}
}

// sameWorkspace counts the offers of the first one's workspace, which stand
// together.
func sameWorkspace(offers []*offer) int {
	n := 1
	for n < len(offers) && offers[n].workspace == offers[0].workspace {
		n++
	}
	return n
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
		o.settle(busy())
	}
}

// recordEach settles offers one by one, where one of them makes the group fail.
func (l *lane) recordEach(offers []*offer) {
	for i := range offers {
		l.record(offers[i : i+1])
	}
}

// recordApart settles the workspaces of a group one by one, where something
// else holds on to one of them: the others must not wait for it, now or with
// the next groups.
func (l *lane) recordApart(g *group, err error) {
	if len(g.parts) == 1 {
		l.registries.avoid(g.parts[0].workspace(), time.Now().Add(awayFor))
		l.fail(g.offers(), err)
		return
	}
	for i := range g.parts {
		l.record(g.parts[i].offers)
	}
}

// try makes one call for all offers and gives back those to be tried again.
func (l *lane) try(offers []*offer) (again []*offer) {
	ctx, cancel := context.WithTimeout(l.ctx, callTimeout)
	defer cancel()

	g := group{now: l.db.Now()}
	g.call.Wait = l.wait
	g.makeRoom(offers)
	for len(offers) > 0 {
		n := sameWorkspace(offers)
		same := offers[:n]
		offers = offers[n:]
		if l.registries.avoids(same[0].workspace, time.Now()) {
			l.fail(same, db.ErrHeld)
			continue
		}
		known, err := l.registry(ctx, same)
		if err != nil {
			l.fail(same, err)
			continue
		}
		if same = current(same, known.versions.Workspace); len(same) > 0 {
			g.add(part{offers: same, draft: draft{registry: known}})
		}
	}
	if len(g.parts) == 0 {
		return nil
	}

	result, err := l.conn.RecordEvents(ctx, &g.call)
	if errors.Is(err, db.ErrHeld) {
		l.recordApart(&g, err)
		return nil
	}
	if err != nil {
		l.registries.forgetAll()
		if all := g.offers(); len(all) > 1 && !isAway(err) {
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
			l.registries.keep(p.workspace(), p.draft.settled(result.NowMS))
			again = append(again, p.settle(&result)...)
		case db.GroupStale:
			l.registries.forget(p.workspace())
			again = append(again, p.offers...)
		case db.GroupKnownID:
			p.learn(&result)
			again = append(again, p.offers...)
		case db.GroupLimited:
			again = append(again, p.ration(&result)...)
		}
	}
	return again
}

// registry gives what is known of the offers' workspace, and looks again
// where a caller was admitted at a later version.
func (l *lane) registry(ctx context.Context, offers []*offer) (registry, error) {
	workspace := offers[0].workspace
	known, ok := l.registries.find(workspace)
	for _, o := range offers {
		ok = ok && (!o.caller.Recalled || o.caller.Version <= known.versions.Workspace)
	}
	if ok {
		return known, nil
	}
	known, err := loadRegistry(ctx, l.db, workspace)
	if err == nil {
		l.registries.keep(workspace, known)
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
		if isAway(err) {
			o.settle(unavailable(err))
		} else {
			o.settle(fault.InternalError.Because(err))
		}
	}
}

// isAway tells errors that say nothing of what was sent: the next request would
// only meet them too.
func isAway(err error) bool {
	return errors.Is(err, db.ErrAway) || errors.Is(err, db.ErrHeld) || errors.Is(err, context.DeadlineExceeded)
}

func unavailable(cause error) *fault.Fault {
	f := fault.EventsUnavailable.Because(cause)
	f.RetryAfter = int(awayFor / time.Second)
	return f
}
