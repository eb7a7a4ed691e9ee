package impl

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/inletdev/inlet/db"
)

// A backlog is what waits to be done, as the job that asks the database saw it
// last: whoever reads metrics must not be able to make it work. It is of the whole
// database, and the same in every process.
type backlog struct {
	db                                               *db.DB
	events, entries, entryAge, steps, stepAge, ahead prometheus.Gauge
}

func newBacklog(d *db.DB, r prometheus.Registerer) *backlog {
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.With(r).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &backlog{
		db:       d,
		events:   gauge("inlet_backlog_events", "Accepted events that are not facts yet, of all workspaces."),
		entries:  gauge("inlet_backlog_entries", "Entries into motions that wait for their decision, counted up to 100,000."),
		entryAge: gauge("inlet_backlog_entry_age_seconds", "How long the oldest of them has waited."),
		steps:    gauge("inlet_backlog_steps", "Steps of motions that are due, counted up to 100,000."),
		stepAge:  gauge("inlet_backlog_step_age_seconds", "How long the one that has been due longest has been so."),
		ahead:    gauge("inlet_event_partitions_ahead_days", "Days ahead that there is room for events."),
	}
}

func (b *backlog) look(ctx context.Context) error {
	now, err := b.db.Backlog(ctx)
	if err != nil {
		return err
	}
	b.events.Set(float64(now.Events))
	b.entries.Set(float64(now.Entries))
	b.entryAge.Set(now.EntryAge)
	b.steps.Set(float64(now.Steps))
	b.stepAge.Set(now.StepAge)
	b.ahead.Set(float64(now.PartitionDays))
	return nil
}
