// Package work runs background jobs.
package work

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/inletdev/inlet/impl/trace"
)

// A Job is done once at the start and then again and again, with a pause of
// Every in between.
type Job struct {
	Name  string
	Every time.Duration
	Do    func(context.Context) error
}

// seeks tells jobs that look for work so often that they mostly find none: what
// they do find is worth a span, not every look.
func (j Job) seeks() bool { return j.Every <= time.Second }

// Watch is how one sees what jobs do.
type Watch struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  *trace.Tracer // nil: off
}

// Run runs every job until the context ends; the function it gives back waits
// for that. A job that fails is logged and done again in its turn.
func Run(ctx context.Context, w Watch, jobs []Job) (wait func()) {
	var running sync.WaitGroup
	m := newMetrics(w.Metrics)
	for _, job := range jobs {
		series := m.of(job.Name)
		running.Go(func() {
			for {
				once(ctx, w, series, job)
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

// once does a job once. One that is cut off by the end of the server neither
// succeeded nor failed.
func once(ctx context.Context, w Watch, m series, job Job) {
	within, span := ctx, trace.Off
	if !job.seeks() {
		within, span = w.Tracer.Root(ctx, "job "+job.Name, trace.Internal)
	}
	defer span.End()
	began := time.Now()
	err := job.Do(within)
	if err != nil && ctx.Err() != nil {
		return
	}
	m.took.Observe(time.Since(began).Seconds())
	if err == nil {
		m.succeeded.SetToCurrentTime()
		return
	}
	m.failed.Inc()
	trace.Fail(span, "job_failed")
	w.Log.ErrorContext(within, "job failed", "job", job.Name, "error", err)
}

type metrics struct {
	took      *prometheus.HistogramVec
	failed    *prometheus.CounterVec
	succeeded *prometheus.GaugeVec
}

// series are the metrics of one job.
type series struct {
	took      prometheus.Observer
	failed    prometheus.Counter
	succeeded prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) metrics {
	with, name := promauto.With(r), []string{"name"} // not "job", which is Prometheus's own
	return metrics{
		took: with.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "inlet_job_duration_seconds",
			Help:    "Time that a run of a background job takes, by its name.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10, 60},
		}, name),
		failed: with.NewCounterVec(prometheus.CounterOpts{
			Name: "inlet_job_failures_total",
			Help: "Runs of a background job that failed, by its name.",
		}, name),
		succeeded: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "inlet_job_last_success_timestamp_seconds",
			Help: "When a background job last succeeded, by its name; the start of the process where it has not yet.",
		}, name),
	}
}

func (m metrics) of(job string) series {
	s := series{m.took.WithLabelValues(job), m.failed.WithLabelValues(job), m.succeeded.WithLabelValues(job)}
	s.succeeded.SetToCurrentTime()
	return s
}
