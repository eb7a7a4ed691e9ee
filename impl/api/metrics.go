package api

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
)

// metrics are labelled by route, status and code only: nothing a client chooses
// becomes a label.
type metrics struct {
	inFlight prometheus.Gauge
	requests table[answered, prometheus.Counter]
	duration table[string, prometheus.Observer] // by route
	refusals table[refused, prometheus.Counter]
}

type answered struct {
	route  string
	status int
}

type refused struct {
	route string
	code  string
}

// nowhere is the route of requests that none serves.
const nowhere = "none"

func newMetrics(r prometheus.Registerer, b *bodies) *metrics {
	with := promauto.With(r)
	requests := with.NewCounterVec(prometheus.CounterOpts{
		Name: "inlet_http_requests_total",
		Help: "Requests answered, by route and status.",
	}, []string{"route", "status"})
	duration := with.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "inlet_http_request_duration_seconds",
		Help:    "Time from the request's headers to the end of its answer, by route.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"route"})
	refusals := with.NewCounterVec(prometheus.CounterOpts{
		Name: "inlet_refusals_total",
		Help: "Requests refused, by route and error code.",
	}, []string{"route", "code"})
	m := &metrics{
		inFlight: with.NewGauge(prometheus.GaugeOpts{
			Name: "inlet_http_requests_in_flight",
			Help: "Requests that are being answered.",
		}),
		requests: table[answered, prometheus.Counter]{make: func(a answered) prometheus.Counter {
			return requests.WithLabelValues(a.route, strconv.Itoa(a.status))
		}},
		duration: table[string, prometheus.Observer]{make: func(route string) prometheus.Observer {
			return duration.WithLabelValues(route)
		}},
		refusals: table[refused, prometheus.Counter]{make: func(f refused) prometheus.Counter {
			return refusals.WithLabelValues(f.route, f.code)
		}},
	}
	for _, of := range []struct {
		senders string
		sender  sender
	}{{"keys", sender{}}, {"public", sender{network: "any"}}} {
		labels := prometheus.Labels{"senders": of.senders}
		with.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "inlet_request_body_bytes", ConstLabels: labels,
			Help: "Memory that bodies of requests in flight take, of senders with a key and of the public.",
		}, func() float64 {
			b.mu.Lock()
			defer b.mu.Unlock()
			taken, _, _ := b.total(of.sender)
			return float64(*taken)
		})
		with.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "inlet_request_body_limit_bytes", ConstLabels: labels,
			Help: "Memory that they may take before requests are turned away.",
		}, func() float64 {
			_, most, _ := b.total(of.sender)
			return float64(most)
		})
	}
	// Series of what can happen are there before it does, so that the first time
	// counts as a rise.
	for _, op := range api.Operations {
		m.duration.get(op.Pattern)
		for _, names := range op.Errors {
			for _, name := range names {
				m.refusals.get(refused{op.Pattern, name})
			}
		}
	}
	for _, code := range []*fault.Code{fault.NotFound, fault.MethodNotAllowed} {
		m.refusals.get(refused{nowhere, code.Name})
	}
	m.requests.get(answered{nowhere, http.StatusNotFound})
	return m
}

func (m *metrics) observe(route string, status int, f *fault.Fault, took time.Duration) {
	m.requests.get(answered{route, status}).Inc()
	m.duration.get(route).Observe(took.Seconds())
	if f != nil {
		m.refusals.get(refused{route, f.Code.Name}).Inc()
	}
}

// A table gives the series of labels that were met before without a lock and
// without garbage. Labels are few, so it only ever grows.
type table[K comparable, V any] struct {
	make  func(K) V
	known atomic.Pointer[map[K]V]
	mu    sync.Mutex
}

func (t *table[K, V]) get(key K) V {
	if known := t.known.Load(); known != nil {
		if v, ok := (*known)[key]; ok {
			return v
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[K]V)
	if known := t.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	v := t.make(key)
	next[key] = v
	t.known.Store(&next)
	return v
}
