package motion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/trace"
)

const (
	dueBatch  = 200         // enrollments that are looked for at a time
	atATime   = 2           // of them: while one waits for its commit, another goes on; more would slow requests down
	lookAgain = time.Minute // while a motion is paused or the agents are off
	// lease is how long an attempt at a webhook has to itself: if its process dies,
	// another one is made after it.
	lease = 2 * limit.WebhookAttempt
)

// backoff is the wait before each new attempt at a step, as Standard Webhooks
// proposes it; after the last, the enrollment fails.
var backoff = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// An Engine takes the steps of enrollments.
type Engine struct {
	db      *db.DB
	log     *slog.Logger
	client  *http.Client
	backoff []time.Duration
	metrics *metrics
	tracer  *trace.Tracer

	onTheirWay sync.WaitGroup
	slots      slots
}

// NewEngine makes an engine whose webhooks reach public addresses, and of others
// these networks.
func NewEngine(d *db.DB, log *slog.Logger, networks []netip.Prefix, r prometheus.Registerer, tracer *trace.Tracer) *Engine {
	e := &Engine{
		db: d, log: log, client: webhookClient(networks), backoff: backoff, tracer: tracer, slots: newSlots(),
	}
	e.metrics = newMetrics(r, &e.slots)
	return e
}

// Close waits for the webhooks that are on their way.
func (e *Engine) Close() { e.onTheirWay.Wait() }

// Run takes every step that is due, until there are none left. Several processes
// share the work: an enrollment that one is at, the others pass by.
func (e *Engine) Run(ctx context.Context) error {
	for {
		full, all := e.slots.full()
		due, err := e.db.DueEnrollments(ctx, dueBatch, full, all)
		if err != nil {
			return err
		}
		taken, err := e.advanceAll(ctx, due)
		if err != nil || len(due) < dueBatch || taken == 0 {
			return err
		}
	}
}

// advanceAll advances enrollments, some at a time, and gives how many it did. An
// error says that the database is away or the server is ending.
func (e *Engine) advanceAll(ctx context.Context, due []db.Due) (int, error) {
	var (
		workers     sync.WaitGroup
		next, taken atomic.Int64
		stopped     atomic.Pointer[error]
	)
	for range min(atATime, len(due)) {
		workers.Go(func() {
			for stopped.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(due) {
					return
				}
				switch err := e.advance(ctx, due[i]); {
				case err == nil:
					taken.Add(1)
				case away(err), ctx.Err() != nil:
					stopped.Store(&err)
				}
			}
		})
	}
	workers.Wait()
	if err := stopped.Load(); err != nil {
		return 0, *err
	}
	return int(taken.Load()), nil
}

// advance takes the steps of one enrollment up to its next wait, webhook or end,
// in one transaction.
func (e *Engine) advance(ctx context.Context, due db.Due) error {
	ctx, span, err := e.begin(ctx, due)
	if err != nil {
		return err
	}
	defer span.End()
	var post *webhook
	var done progress
	giveBack := func() {
		if post != nil {
			e.slots.giveBack(due.Workspace, 0)
			post = nil
		}
	}
	err = e.db.In(ctx, due.Workspace, func(s *db.Scope) (err error) {
		giveBack() // it is run again where others got in its way
		done = progress{}
		post, err = e.take(ctx, s, due.Enrollment, &done)
		return err
	})
	if err != nil {
		giveBack()
	} else {
		e.count(span, done)
	}
	switch {
	case errors.Is(err, db.ErrNotFound): // another process was at it
		return nil
	case away(err), err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		e.metrics.failed.Inc()
		trace.Fail(span, "step_failed")
		e.log.ErrorContext(ctx, "a step failed", "workspace", due.Workspace, "enrollment", due.Enrollment, "error", err)
		return errors.Join(err, e.later(ctx, due))
	}
	if post != nil {
		ctx, span := trace.Call(ctx, "webhook")
		e.onTheirWay.Go(func() {
			begun := time.Now()
			e.deliver(ctx, span, due, post)
			e.slots.giveBack(due.Workspace, time.Since(begun))
		})
	}
	return nil
}

// begin begins the span of an enrollment's steps, linked with that of the request
// that started the motion.
func (e *Engine) begin(ctx context.Context, due db.Due) (context.Context, trace.Span, error) {
	if e.tracer == nil {
		return ctx, trace.Off, nil
	}
	startedBy, err := e.db.StartedBy(ctx, due)
	if err != nil {
		return ctx, trace.Off, err
	}
	ctx, span := e.tracer.Linked(ctx, "take steps", trace.Internal, carried([][]byte{startedBy}))
	return ctx, span, nil
}

// progress is what a transaction brought an enrollment, to be counted once it is
// committed.
type progress struct {
	steps []string // their kinds
	ended string   // its status, if it did
}

func (e *Engine) count(span trace.Span, done progress) {
	for _, kind := range done.steps {
		e.metrics.steps.WithLabelValues(kind).Inc()
	}
	if done.ended != "" {
		e.metrics.ended.WithLabelValues(done.ended).Inc()
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.StringSlice("inlet.steps", done.steps))
	}
}

// away tells whether the database is away for all enrollments: a lock that is
// held for too long is in the way of one.
func away(err error) bool { return errors.Is(err, db.ErrAway) && !errors.Is(err, db.ErrHeld) }

// take takes the steps of an enrollment that need nothing but the database. A
// webhook is only claimed for an attempt, to be made when the claim is sure.
func (e *Engine) take(ctx context.Context, s *db.Scope, id int64, done *progress) (*webhook, error) {
	end := func(status string, step int, problem string) error {
		done.ended = status
		return s.EndEnrollment(ctx, id, status, step, problem)
	}
	n, err := s.LockEnrollment(ctx, id, true)
	if err != nil {
		return nil, err
	}
	switch {
	case n.CompanyGone:
		return nil, end(Exited, n.Step, "The company is gone.")
	case n.MotionStatus == "archived":
		return nil, end(Exited, n.Step, "The motion was archived.")
	case n.MotionStatus != "active" || !n.AgentsEnabled:
		return nil, s.MoveEnrollment(ctx, id, n.Step, n.Attempts, lookAgain, "")
	}
	var steps []Step
	if err := json.Unmarshal(n.Steps, &steps); err != nil {
		return nil, err
	}
	for at := n.Step; at < len(steps); at++ {
		switch step := steps[at]; step.Kind {
		case Wait:
			done.steps = append(done.steps, step.Kind)
			return nil, s.MoveEnrollment(ctx, id, at+1, 0, time.Duration(step.Hours)*time.Hour, "")
		case SendWebhook:
			if at != n.Step {
				n.Attempts = 0
			}
			if !e.slots.take(s.Workspace()) { // it is due, and left alone until there is one
				return nil, s.MoveEnrollment(ctx, id, at, n.Attempts, 0, "")
			}
			post, err := newWebhook(n, at, step.URL, e.db.Now())
			if err == nil {
				err = s.MoveEnrollment(ctx, id, at, n.Attempts+1, lease, "")
			}
			if err != nil {
				e.slots.giveBack(s.Workspace(), 0)
				return nil, err
			}
			return post, nil
		default:
			if err := do(ctx, s, n, step); err != nil {
				return nil, err
			}
			done.steps = append(done.steps, step.Kind)
		}
	}
	return nil, end(Completed, len(steps), "")
}

// do takes a step that is done at once.
func do(ctx context.Context, s *db.Scope, n db.Enrollment, step Step) error {
	switch step.Kind {
	case AddToSegment:
		return s.AddCompanyToSegment(ctx, step.Segment, n.Company)
	case RemoveFromSegment:
		return s.RemoveCompanyFromSegment(ctx, step.Segment, n.Company)
	case SetField:
		return s.SetCompanyField(ctx, n.Company, step.Field, step.Value)
	case AddNote:
		return s.AddNote(ctx, n.Company, n.ID, step.Text)
	case CreateOpportunity:
		return s.AddOpportunity(ctx, n.Company, n.ID, step.Name, step.Amount)
	}
	return fmt.Errorf("no step is of kind %q", step.Kind)
}

// deliver makes the claimed attempt at a webhook and moves the enrollment on.
func (e *Engine) deliver(ctx context.Context, span trace.Span, due db.Due, post *webhook) {
	defer span.End()
	began := time.Now()
	problem, final := post.send(ctx, e.client)
	e.metrics.took.Observe(time.Since(began).Seconds())
	outcome := postponed
	switch {
	case problem == "":
		outcome = delivered
	case final:
		outcome = hopeless
	case ctx.Err() != nil: // no attempt: it is made again by whoever comes first
		outcome = cutOff
	}
	e.metrics.attempts.WithLabelValues(outcome).Inc()
	if span.IsRecording() {
		span.SetAttributes(attribute.String("inlet.outcome", outcome), attribute.Int("inlet.attempt", post.attempt))
		if outcome != delivered {
			trace.Fail(span, outcome)
		}
	}
	// The attempt was made: what came of it is kept even if the server is ending.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var done progress
	err := e.db.In(ctx, due.Workspace, func(s *db.Scope) error {
		done = progress{}
		return e.ifClaimed(ctx, s, due.Enrollment, post, func(n db.Enrollment) error {
			switch outcome {
			case delivered:
				done.steps = []string{SendWebhook}
				return s.MoveEnrollment(ctx, due.Enrollment, post.step+1, 0, 0, "")
			case hopeless:
				done.ended = Failed
				return s.EndEnrollment(ctx, due.Enrollment, Failed, post.step, problem)
			case cutOff:
				return s.MoveEnrollment(ctx, due.Enrollment, post.step, post.attempt-1, 0, "")
			}
			return e.postpone(ctx, s, n, problem, &done)
		})
	})
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		e.log.ErrorContext(ctx, "a webhook's outcome is not kept; it will be sent again", "workspace", due.Workspace,
			"enrollment", due.Enrollment, "error", err)
		return
	}
	e.count(trace.Off, done)
}

// ifClaimed does something with an enrollment unless its claim was lost: it then
// took longer than its lease, and another process is at it.
func (e *Engine) ifClaimed(ctx context.Context, s *db.Scope, id int64, post *webhook, do func(db.Enrollment) error) error {
	n, err := s.LockEnrollment(ctx, id, false)
	if err != nil || n.Step != post.step || n.Attempts != post.attempt {
		return err
	}
	return do(n)
}

// later has a step that failed on the server tried again after a while.
func (e *Engine) later(ctx context.Context, due db.Due) error {
	var done progress
	err := e.db.In(ctx, due.Workspace, func(s *db.Scope) error {
		done = progress{}
		n, err := s.LockEnrollment(ctx, due.Enrollment, false)
		if err != nil {
			return err
		}
		n.Attempts++
		return e.postpone(ctx, s, n, "The step failed on the server.", &done)
	})
	if err == nil {
		e.count(trace.Off, done)
	}
	return err
}

// postpone has a step tried again after a while, or the enrollment failed where it
// was tried as often as it is.
func (e *Engine) postpone(ctx context.Context, s *db.Scope, n db.Enrollment, problem string, done *progress) error {
	if n.Attempts > len(e.backoff) {
		done.ended = Failed
		return s.EndEnrollment(ctx, n.ID, Failed, n.Step, problem)
	}
	return s.MoveEnrollment(ctx, n.ID, n.Step, n.Attempts, e.backoff[n.Attempts-1], problem)
}
