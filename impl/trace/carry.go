package trace

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Recorded gives the context's span where it is recorded.
func Recorded(ctx context.Context) (sc trace.SpanContext, ok bool) {
	span := trace.SpanFromContext(ctx)
	return span.SpanContext(), span.IsRecording()
}

// carried is how many bytes a span takes where it is stored: trace and span id.
const carried = len(trace.TraceID{}) + len(trace.SpanID{})

// Carry gives the context's span as it is stored with work that is done later,
// and nil where it is not recorded.
func Carry(ctx context.Context) []byte {
	sc, ok := Recorded(ctx)
	if !ok {
		return nil
	}
	traceID, spanID := sc.TraceID(), sc.SpanID()
	return append(append(make([]byte, 0, carried), traceID[:]...), spanID[:]...)
}

// Carried gives the span that was stored; ok says that it is one.
func Carried(stored []byte) (sc trace.SpanContext, ok bool) {
	if len(stored) != carried {
		return sc, false
	}
	sc = trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID(stored[:len(trace.TraceID{})]),
		SpanID:     trace.SpanID(stored[len(trace.TraceID{}):]),
		TraceFlags: trace.FlagsSampled,
		Remote:     true,
	})
	return sc, sc.IsValid()
}
