package api

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// FuzzTraceparent begins the trace of a request with any header: only of a proxy of
// ours is it believed, and then what the standard calls valid, and nothing else,
// says which trace it is.
func FuzzTraceparent(f *testing.F) {
	edge := &Edge{guard: &guard{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/10")}}}
	parent := func(remote, header string) trace.SpanContext {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"Traceparent": {header}, "Tracestate": {header}, "Baggage": {header}}}
		return trace.SpanContextFromContext(edge.traced(r, &exchange{}).Context())
	}
	f.Fuzz(func(t *testing.T, header, remote string) {
		for _, from := range []string{"203.0.113.9:1", "[2001:db8::1]:1", "10.0.0.1", "", "[::ffff:203.0.113.9]:1"} {
			if sc := parent(from, header); sc.IsValid() {
				t.Errorf("%q of %q is believed", header, from)
			}
		}
		for _, from := range []string{"10.1.2.3:4567", "[::ffff:10.1.2.3]:1", "[fe80::1%eth0]:1"} {
			sc := parent(from, header)
			if valid := traceparent.MatchString(header) && strings.Trim(header[3:35], "0") != "" && strings.Trim(header[36:52], "0") != ""; valid && !sc.IsValid() {
				t.Errorf("%q of %q is not believed", header, from)
			}
			if sc.IsValid() && (len(header) < 55 || sc.TraceID().String() != header[3:35] || sc.SpanID().String() != header[36:52] || !sc.IsRemote() || sc.TraceState().Len() > 0) {
				t.Errorf("%q of %q is believed to be %v", header, from, sc)
			}
		}
		if peer, err := netip.ParseAddrPort(remote); err != nil || !isOneOf(peer.Addr(), edge.guard.proxies) {
			if sc := parent(remote, header); sc.IsValid() {
				t.Errorf("%q of %q is believed", header, remote)
			}
		}
	})
}

// traceparent is what W3C Trace Context has, of its only version.
var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]\z`)
