package motion

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"github.com/inletdev/inlet/impl/trace"
)

// decideBatch is how many entries are decided in one transaction: enough to make
// its cost small, few enough that the first is told soon.
const decideBatch = 500

// Decide decides the entries that are queued, each exactly once, until there are
// none left. Several processes share the work: a workspace that one is at, the
// others pass by.
func (e *Engine) Decide(ctx context.Context) error {
	for {
		workspaces, err := e.db.QueuedWorkspaces(ctx)
		if err != nil {
			return err
		}
		var failed error
		more := false
		for _, workspace := range workspaces {
			n, err := e.decide(ctx, workspace)
			more = more || n == decideBatch
			failed = errors.Join(failed, err) // one workspace does not hold up the others
		}
		if failed != nil || !more {
			return failed
		}
	}
}

// decide decides some entries of a workspace, and gives how many.
func (e *Engine) decide(ctx context.Context, workspace int64) (int, error) {
	span := trace.Off
	if e.tracer != nil {
		queuedBy, err := e.db.QueuedBy(ctx, workspace, decideBatch)
		if err != nil {
			return 0, err
		}
		ctx, span = e.tracer.Linked(ctx, "decide entries", trace.Internal, carried(queuedBy))
	}
	defer span.End()
	n, err := e.db.DecideEntries(ctx, workspace, decideBatch)
	e.metrics.decided.Add(float64(n))
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("inlet.entries", n))
	}
	return n, err
}

func carried(stored [][]byte) []trace.SpanContext {
	var all []trace.SpanContext
	for _, s := range stored {
		if sc, ok := trace.Carried(s); ok {
			all = append(all, sc)
		}
	}
	return all
}
