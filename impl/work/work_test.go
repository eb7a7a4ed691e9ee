package work

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// values gives the series of a registry: of a histogram, how often it was
// observed.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			all[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestMetricsTellHowJobsWent(t *testing.T) {
	registry := prometheus.NewRegistry()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var good, bad atomic.Int64
	began := time.Now()
	wait := Run(ctx, Watch{Log: slog.New(slog.DiscardHandler), Metrics: registry}, []Job{
		{Name: "good", Every: time.Millisecond, Do: func(context.Context) error { good.Add(1); return nil }},
		{Name: "bad", Every: time.Millisecond, Do: func(context.Context) error { bad.Add(1); return errors.New("no") }},
		{Name: "long", Every: time.Hour, Do: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	})
	for good.Load() < 5 || bad.Load() < 5 {
		time.Sleep(time.Millisecond)
	}
	end()
	wait()
	ended := time.Now()
	got := values(t, registry)
	for name, want := range map[string]float64{
		"inlet_job_duration_seconds good": float64(good.Load()),
		"inlet_job_failures_total good":   0,
		"inlet_job_failures_total long":   0, // cut off is no failure
		"inlet_job_duration_seconds long": 0, // and no run
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	// The last failure may have met the end, and then counts as cut off.
	if failures := got["inlet_job_failures_total bad"]; failures < float64(bad.Load()-1) || failures > float64(bad.Load()) {
		t.Errorf("%v of %d failures are counted", failures, bad.Load())
	}
	const last = "inlet_job_last_success_timestamp_seconds "
	seconds := func(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
	if got[last+"bad"] < seconds(began) || got[last+"bad"] > got[last+"good"] || got[last+"good"] > seconds(ended) {
		t.Errorf("the last successes are %v, between %v and %v", got, seconds(began), seconds(ended))
	}
}
