package event

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/trace"
)

// processBatch is how many events are processed in one transaction: enough to
// make its cost small, few enough that an identification, which waits for it,
// does not wait long.
const processBatch = 2000

// Process counts the events that were recorded and makes facts of the accepted
// ones, exactly once, until there are none left. Several processes share the
// work: a workspace that one is at, the others pass by.
func Process(ctx context.Context, d *db.DB, tracer *trace.Tracer) error {
	for {
		workspaces, err := d.UnprocessedWorkspaces(ctx)
		if err != nil {
			return err
		}
		var failed error
		more := false
		for _, workspace := range workspaces {
			ctx, span := tracer.Root(ctx, "process events", trace.Internal)
			n, err := d.ProcessEvents(ctx, workspace, processBatch)
			if span.IsRecording() {
				span.SetAttributes(attribute.Int("inlet.events", n))
			}
			span.End()
			more = more || n == processBatch
			failed = errors.Join(failed, err) // one workspace does not hold up the others
		}
		if failed != nil || !more {
			return failed
		}
	}
}
