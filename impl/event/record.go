package event

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/trace"
)

const (
	awayFor = 5 * time.Second // what a client is asked to wait while the database is away
	busyFor = 4 * time.Second // and at most, a second at least, while too much is waiting to be recorded
	// offerPatience is how long an offer may wait for a lane before it is turned
	// away: a disk that stops for a moment costs nobody their events.
	offerPatience = 3 * time.Second
)

// A Result is what became of one event of a request.
type Result struct {
	Status  Status
	EventID string       // empty for a refused event
	Fault   *fault.Fault // why the event was refused
}

// A Recorder is the one write path of events, whichever way they came.
//
// Events of concurrent requests are recorded together: a lane takes what is
// waiting, sends one statement, and gives each request its own answers when
// that is durable. No timer is involved, so an idle server answers after one
// commit and a busy one forms groups by itself, and records the next while the
// disk is still at work on the one before. A workspace is with one lane at a
// time, which judges its events by what the process knows of it; the statement
// checks that knowledge under the workspace's gate, where processes meet.
type Recorder struct {
	queue *queue
	work  sync.WaitGroup
}

// NewRecorder starts a recorder with so many lanes, each of which holds two
// connections. Close ends it.
func NewRecorder(d *db.DB, lanes int, r prometheus.Registerer, tracer *trace.Tracer) *Recorder {
	q := newQueue()
	rec := &Recorder{queue: q}
	known, m := &registries{}, newMetrics(r, q, lanes)
	for range lanes {
		l := newLane(d, q, known, m, tracer)
		rec.work.Go(l.run)
		rec.work.Go(l.flush)
	}
	return rec
}

// Close records what was offered and ends; what is offered from now on is
// turned away.
func (r *Recorder) Close() {
	r.queue.close()
	r.work.Wait()
}

// ErrStaleCaller says that a recalled caller may not be what it was: it is to be
// admitted, and the events are to be offered again. Nothing was recorded.
var ErrStaleCaller = errors.New("the caller was recalled and may have changed")

// Record records the events of one request, in order, and says what became of
// each. The request of a recalled caller is counted in its key's minute. An
// error means that nothing of the request was recorded, unless the context
// ended: then it may have been. Faults: rate_limited, events_rate_limited,
// ingest_backlogged, events_unavailable, internal_error.
func (r *Recorder) Record(ctx context.Context, caller *auth.Caller, events []Parsed) ([]Result, error) {
	o := &offer{ctx: ctx, caller: caller, workspace: caller.Workspace, events: events, done: make(chan struct{}), at: time.Now()}
	_, o.waiting = trace.Child(ctx, "wait for a lane")
	if o.results = o.one[:]; len(events) != 1 {
		o.results = make([]Result, len(events))
	}
	for i := range events {
		if events[i].Fault != nil {
			o.results[i] = Result{Status: Refused, Fault: events[i].Fault}
		}
	}
	if !r.queue.add(o) {
		trace.Fail(o.waiting, "queue_full")
		o.waiting.End()
		return nil, busy()
	}
	select {
	case <-o.done:
		return o.results, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Full tells whether what a workspace sends now is turned away, whatever it is; the
// error is then the one of Record.
func (r *Recorder) Full(workspace int64) error {
	if r.queue.full(workspace) {
		return busy()
	}
	return nil
}

// busy says that too much is waiting, and when to come back: at random, so that
// those who come at once do not come back at once.
func busy() *fault.Fault {
	return fault.EventsUnavailable.In(rand.N(busyFor))
}

// An offer is one request on its way through a lane.
type offer struct {
	ctx       context.Context
	caller    *auth.Caller
	workspace int64
	events    []Parsed
	results   []Result        // unsettled where the status is zero
	one       [1]Result       // room for the result of a single event
	known     map[string]bool // ids that an earlier try found recorded; shared within the workspace
	refusal   *fault.Fault    // a limit refused it; all that is left is to count the request
	counted   bool            // against the workspace's minute and day, and the key's
	err       error
	settled   bool
	done      chan struct{}
	at        time.Time  // when it was made
	waiting   trace.Span // until a lane takes it
}

// settle says what became of an offer; its request hears of it when it is done.
func (o *offer) settle(err error) { o.err, o.settled = err, true }

// toCount tells whether the request is still to be counted in its key's minute.
func (o *offer) toCount() bool { return o.caller.Recalled && !o.counted }

// weight is about how much memory an offer holds on to, in bytes.
func (o *offer) weight() int {
	n := 512
	for i := range o.events {
		n += 512 + len(o.events[i].PropertiesJSON)
	}
	return n
}
