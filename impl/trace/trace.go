// Package trace tells OpenTelemetry what the server spends its time on. Names
// and attributes of spans are the server's own words, numbers and outcomes:
// nothing that a client sent and no identifier of a record is among them.
//
// Only where work begins is a Tracer needed, and a nil one is off. Whatever is
// done on the way is a Child of the span in the context, and where there is none,
// or it is not recorded, a child costs nothing.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// A Span is a piece of work with a beginning and an end.
type Span = trace.Span

// A SpanContext identifies a span.
type SpanContext = trace.SpanContext

// The kinds of spans that are not Internal.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer // answers a request
	Client   = trace.SpanKindClient // sends one
)

// Off is a span that records nothing.
var Off = trace.SpanFromContext(context.Background())

// scope names this server as the one who measured.
const scope = "github.com/inletdev/inlet"

// A Tracer begins traces. A nil one gives spans that record nothing.
type Tracer struct{ sampled, always trace.Tracer }

// New makes a tracer that begins traces with what samples them; those that are
// linked to sampled spans with what records all of them.
func New(sampled, always trace.TracerProvider) *Tracer {
	return &Tracer{sampled.Tracer(scope), always.Tracer(scope)}
}

// Root begins a trace; a span of another process in the context is its parent.
func (t *Tracer) Root(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	if t == nil {
		return ctx, Off
	}
	return t.sampled.Start(ctx, name, trace.WithSpanKind(kind))
}

// mostLinks is how many links a span keeps.
const mostLinks = 128

// Linked begins a trace that goes on with what other traces began. It is recorded
// if any of those is, and so their sampling holds for what they led to; where
// there are none it is a Root.
func (t *Tracer) Linked(ctx context.Context, name string, kind trace.SpanKind, from []trace.SpanContext) (context.Context, Span) {
	if t == nil || len(from) == 0 {
		return t.Root(ctx, name, kind)
	}
	links := make([]trace.Link, 0, min(len(from), mostLinks))
	for _, sc := range from[:min(len(from), mostLinks)] {
		links = append(links, trace.Link{SpanContext: sc})
	}
	return t.always.Start(ctx, name, trace.WithNewRoot(), trace.WithSpanKind(kind), trace.WithLinks(links...))
}

// Child begins a part of the work that the context's span stands for.
func Child(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, Internal)
}

// Call is a Child that waits for another server.
func Call(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, Client)
}

func child(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Off
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind))
}

// Link says that another span has to do with the context's.
func Link(ctx context.Context, to Span) {
	trace.SpanFromContext(ctx).AddLink(trace.Link{SpanContext: to.SpanContext()})
}

// Under puts a span into a context, as the parent of what is done there.
func Under(ctx context.Context, span Span) context.Context {
	if !span.IsRecording() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// Fail says that a span's work failed. The kind is one of a few words: what an
// error says may be personal.
func Fail(span Span, kind string) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("error.type", kind))
		span.SetStatus(codes.Error, "")
	}
}
