// Package work runs background jobs.
package work

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Job is done once at the start and then again and again, with a pause of
// Every in between.
type Job struct {
	Name  string
	Every time.Duration
	Do    func(context.Context) error
}

// Run runs every job until the context ends; the function it gives back waits
// for that. A job that fails is logged and done again in its turn.
func Run(ctx context.Context, log *slog.Logger, jobs []Job) (wait func()) {
	var running sync.WaitGroup
	for _, job := range jobs {
		running.Go(func() {
			for {
				if err := job.Do(ctx); err != nil && ctx.Err() == nil {
					log.Error("job failed", "job", job.Name, "error", err)
				}
				select {
				case <-ctx.Done():
					return
				case <-time.After(job.Every):
				}
			}
		})
	}
	return running.Wait
}
