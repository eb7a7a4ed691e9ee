package api

import (
	"net/http"
	"net/netip"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"

	"github.com/inletdev/inlet/impl/trace"
)

// traced begins the span of a request of an operation. Nothing of the request is
// in it but its method and route. The trace that a request says to be part of is
// believed of trusted proxies only: whoever could say so could have every request
// of theirs recorded, at our cost.
func (e *Edge) traced(r *http.Request, x *exchange) *http.Request {
	ctx := r.Context()
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && isOneOf(peer.Addr(), e.guard.proxies) {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier{"Traceparent": r.Header["Traceparent"]})
	}
	ctx, x.span = e.tracer.Root(ctx, x.pattern, trace.Server)
	return r.WithContext(ctx)
}

// endSpan says in the span of a request what it came to. That a client was told of
// its own mistake is no error of the server.
func endSpan(r *http.Request, x *exchange, status int) {
	if !x.span.IsRecording() {
		return
	}
	_, route, _ := strings.Cut(x.pattern, " ")
	x.span.SetAttributes(
		attribute.String("http.request.method", r.Method),
		attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status),
	)
	if x.fault != nil {
		x.span.SetAttributes(attribute.String("inlet.code", x.fault.Code.Name))
		if status >= http.StatusInternalServerError {
			trace.Fail(x.span, x.fault.Code.Name)
		}
	}
	x.span.End()
}
