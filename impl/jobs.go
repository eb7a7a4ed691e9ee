package impl

import (
	"context"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/motion"
	"github.com/inletdev/inlet/impl/trace"
	"github.com/inletdev/inlet/impl/work"
)

// partitionDays is how far ahead room for events is made: what a server
// survives without its job.
const partitionDays = 7

// jobs is every background job. They take no input and are idempotent, so that
// several processes may run the same one.
func jobs(d *db.DB, refusals *event.Refusals, engine *motion.Engine, backlog *backlog, tracer *trace.Tracer) []work.Job {
	return []work.Job{
		{Name: "statements", Every: 10 * time.Second, Do: d.Prepare},
		{Name: "clock", Every: 10 * time.Second, Do: d.SyncClock},
		{Name: "event facts", Every: 500 * time.Millisecond, Do: func(ctx context.Context) error {
			return event.Process(ctx, d, tracer)
		}},
		{Name: "motion entries", Every: 500 * time.Millisecond, Do: engine.Decide},
		{Name: "motion steps", Every: 500 * time.Millisecond, Do: engine.Run},
		{Name: "decided entries", Every: time.Hour, Do: d.DropDecidedEntries},
		{Name: "backlog", Every: 15 * time.Second, Do: backlog.look},
		{Name: "refusals", Every: time.Second, Do: refusals.Write},
		{Name: "expired events", Every: time.Minute, Do: d.DropExpiredEvents},
		{Name: "expired tokens", Every: 10 * time.Minute, Do: d.DropExpiredTokens},
		{Name: "event partitions", Every: time.Hour, Do: func(ctx context.Context) error {
			return d.EnsureEventPartitions(ctx, partitionDays)
		}},
	}
}
