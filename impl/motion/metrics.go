package motion

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// What became of an attempt at a webhook.
const (
	delivered = "delivered"
	postponed = "failed" // and is made again, if it was not the last
	hopeless  = "refused"
	cutOff    = "cut_off"
)

// metrics of motions.
type metrics struct {
	decided  prometheus.Counter
	steps    *prometheus.CounterVec // by kind
	failed   prometheus.Counter
	ended    *prometheus.CounterVec // by status
	attempts *prometheus.CounterVec // by outcome
	took     prometheus.Histogram
}

func newMetrics(r prometheus.Registerer, s *slots) *metrics {
	with := promauto.With(r)
	m := &metrics{
		decided: with.NewCounter(prometheus.CounterOpts{
			Name: "inlet_motion_entries_decided_total",
			Help: "Entries into motions that this process decided, whatever the decision.",
		}),
		steps: with.NewCounterVec(prometheus.CounterOpts{
			Name: "inlet_motion_steps_total",
			Help: "Steps taken, by kind; a webhook's is counted when it was delivered.",
		}, []string{"kind"}),
		failed: with.NewCounter(prometheus.CounterOpts{
			Name: "inlet_motion_step_errors_total",
			Help: "Steps that could not be taken for a reason of the server's own. They are tried again, for about a day.",
		}),
		ended: with.NewCounterVec(prometheus.CounterOpts{
			Name: "inlet_motion_enrollments_ended_total",
			Help: "Enrollments that ended, by status: completed, exited, failed.",
		}, []string{"status"}),
		attempts: with.NewCounterVec(prometheus.CounterOpts{
			Name: "inlet_webhook_attempts_total",
			Help: "Attempts at webhooks, by outcome: delivered; failed, which is tried again; refused, which is not; cut_off by the end of the server.",
		}, []string{"outcome"}),
		took: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "inlet_webhook_duration_seconds",
			Help:    "Time of an attempt at a webhook.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}),
	}
	for _, kind := range []string{Wait, AddToSegment, RemoveFromSegment, SetField, AddNote, CreateOpportunity, SendWebhook} {
		m.steps.WithLabelValues(kind)
	}
	for _, status := range []string{Completed, Exited, Failed} {
		m.ended.WithLabelValues(status)
	}
	for _, outcome := range []string{delivered, postponed, hopeless, cutOff} {
		m.attempts.WithLabelValues(outcome)
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "inlet_webhooks_in_flight",
		Help: "Webhooks on their way.",
	}, func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(s.taken)
	})
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "inlet_webhooks_in_flight_limit",
		Help: "Webhooks that may be on their way at a time.",
	}, func() float64 { return deliveries })
	return m
}
