package event

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of the write path. What happens to every event is counted once a group.
type metrics struct {
	waited   prometheus.Histogram
	group    prometheus.Histogram
	took     prometheus.Histogram
	recorded [Refused]prometheus.Counter // by status
}

func newMetrics(r prometheus.Registerer, q *queue, lanes int) *metrics {
	with := promauto.With(r)
	seconds := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	m := &metrics{
		waited: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "inlet_event_queue_wait_seconds",
			Help:    "Time that a request with events waits for a lane.",
			Buckets: seconds,
		}),
		group: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "inlet_event_group_events",
			Help:    "Events that are recorded together.",
			Buckets: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2000},
		}),
		took: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "inlet_event_group_duration_seconds",
			Help:    "Time from when a lane takes a group until it is on the disk.",
			Buckets: seconds,
		}),
	}
	recorded := with.NewCounterVec(prometheus.CounterOpts{
		Name: "inlet_events_total",
		Help: "Events answered with a status of their own, by it: accepted, unmatched, pending_identity, duplicate.",
	}, []string{"status"})
	for status := Accepted; status < Refused; status++ {
		m.recorded[status] = recorded.WithLabelValues(status.String())
	}
	gauge := func(name, help string, value func() int) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			q.mu.Lock()
			defer q.mu.Unlock()
			return float64(value())
		})
	}
	gauge("inlet_event_queue_events", "Events that wait for a lane.", func() int { return q.events })
	gauge("inlet_event_queue_bytes", "Memory that they take.", func() int { return q.bytes })
	gauge("inlet_event_queue_limit_bytes", "Memory that they may take before requests are turned away.", func() int { return queueBytes })
	gauge("inlet_event_lanes", "Lanes that record events.", func() int { return lanes })
	gauge("inlet_event_lanes_working", "Lanes that are at work.", func() int { return q.working })
	return m
}
