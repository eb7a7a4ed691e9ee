package impl

import (
	"context"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/work"
)

// partitionDays is how far ahead room for events is made: what a server
// survives without its job.
const partitionDays = 7

// jobs is every background job. They take no input and are idempotent, so that
// several processes may run the same one.
func jobs(d *db.DB) []work.Job {
	return []work.Job{
		{Name: "clock", Every: 10 * time.Second, Do: d.SyncClock},
		{Name: "event counts", Every: time.Second, Do: d.CountEvents},
		{Name: "expired events", Every: 10 * time.Minute, Do: d.DropExpiredEvents},
		{Name: "event partitions", Every: time.Hour, Do: func(ctx context.Context) error {
			return d.EnsureEventPartitions(ctx, partitionDays)
		}},
	}
}
