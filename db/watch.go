package db

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"

	"github.com/inletdev/inlet/impl/trace"
)

// The kinds of errors that are counted. What a caller asked for and is not there,
// or is there already, is none, nor is what a caller gave up.
const (
	errAway          = "away"          // no connection, or it broke
	errTimeout       = "timeout"       // a statement took longer than it may
	errLock          = "lock"          // a lock was held for too long
	errDeadlock      = "deadlock"      // tried again
	errSerialization = "serialization" // tried again
	errFull          = "full"          // no room on the disk, or the disk fails
	errTurn          = "turn"          // too many transactions of one workspace waited
	errOther         = "other"
)

var errorKinds = []string{errAway, errTimeout, errLock, errDeadlock, errSerialization, errFull, errTurn, errOther}

// metrics of a database. DB is their collector.
type metrics struct {
	errors       map[string]prometheus.Counter
	transactions prometheus.Histogram
	waiting      atomic.Int64 // transactions that wait for their turn
	all          []prometheus.Collector
}

func newMetrics(d *DB) *metrics {
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inlet_db_errors_total",
		Help: "Errors of the database, by kind: away, timeout, lock, deadlock, serialization, full, turn, other.",
	}, []string{"kind"})
	m := &metrics{
		errors: make(map[string]prometheus.Counter),
		transactions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "inlet_db_transaction_duration_seconds",
			Help:    "Time of a transaction from its begin to its commit, its waits for a connection and for its turn included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
	}
	for _, kind := range errorKinds {
		m.errors[kind] = failed.WithLabelValues(kind)
	}
	m.all = []prometheus.Collector{
		failed, m.transactions,
		collectors.NewDBStatsCollector(d.x.DB, "inlet"),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "inlet_db_turns_waiting",
			Help: "Transactions that wait because their workspace has as many under way as it may.",
		}, func() float64 { return float64(m.waiting.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "inlet_db_clock_offset_seconds",
			Help: "How far the database's clock is ahead of this process's.",
		}, func() float64 { return time.Until(d.Now()).Seconds() }),
	}
	return m
}

// Describe describes the metrics of the database.
func (d *DB) Describe(to chan<- *prometheus.Desc) {
	for _, c := range d.metrics.all {
		c.Describe(to)
	}
}

// Collect gives the metrics of the database, without asking it anything.
func (d *DB) Collect(to chan<- prometheus.Metric) {
	for _, c := range d.metrics.all {
		c.Collect(to)
	}
}

// kindOf gives the kind of a classified error, empty where it is none to count.
func kindOf(err error) string {
	switch {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrExists),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case errors.Is(err, ErrHeld):
		return errLock
	case errors.Is(err, errNoTurn):
		return errTurn
	case hasCode(err, "40P01"):
		return errDeadlock
	case hasCode(err, "40001"):
		return errSerialization
	case hasCode(err, "57014"):
		return errTimeout
	case hasCode(err, "53100"), hasCode(err, "58030"):
		return errFull
	case errors.Is(err, ErrAway):
		return errAway
	}
	return errOther
}

// came notes what a statement came to, and gives its error as callers tell them
// apart.
func (d *DB) came(ctx context.Context, span trace.Span, err error) error {
	err = classify(ctx, err)
	if err != nil {
		if kind := kindOf(err); kind != "" {
			d.metrics.errors[kind].Inc()
			trace.Fail(span, kind)
		}
	}
	span.End()
	return err
}

// statement begins the span of a statement: what it does to which table or by
// which function, and no values.
func statement(ctx context.Context, query string) (context.Context, trace.Span) {
	ctx, span := trace.Call(ctx, "sql")
	if span.IsRecording() {
		name := summary(query)
		span.SetName(name)
		span.SetAttributes(attribute.String("db.system.name", "postgresql"), attribute.String("db.query.summary", name))
	}
	return ctx, span
}

var (
	summaries sync.Map // by statement, of which there are so many as stand in this package
	verb      = regexp.MustCompile(`(?i)\b(select|insert|update|delete|commit)\b`)
	target    = regexp.MustCompile(`(?i)\b(?:from|into|update)\s+(\w+)|\bselect\s+(\w+)\(`)
)

// summary says in two words what a statement does: the first of its verbs, and the
// table or function that it names first.
func summary(query string) string {
	if known, ok := summaries.Load(query); ok {
		return known.(string)
	}
	s := strings.ToUpper(verb.FindString(query))
	if found := target.FindStringSubmatch(query); found != nil {
		s += " " + found[1] + found[2]
	}
	summaries.Store(query, s)
	return s
}
