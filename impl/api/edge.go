package api

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/trace"
)

// An exchange is what is known of one request while it is answered.
type exchange struct {
	recorder  recorder
	requestID string
	ids       [1]string      // the request id as a header has it
	pattern   string         // of the route; empty where none matched
	op        *api.Operation // nil outside operations
	caller    *auth.Caller   // nil until recalled or admitted
	body      []byte         // of an operation, read whole and within its cap
	bodyTaken int64          // to be released
	of        sender         // whose lines it waits in, and whose bodies are bounded
	events    []event.Parsed // the events sent, once they are read
	one       [1]event.Parsed
	fault     *fault.Fault // what the client was told, if it was refused
	span      trace.Span   // of an operation
	place     place        // among those who work on the database
	cancel    func()       // ends that work; nil before it begins

	authorization []string // the header, for admission
	origin        string   // of the page that sent it, of public operations
}

// isIntake tells whether the operation takes events in.
func (x *exchange) isIntake() bool { return x.op != nil && x.op.Tag == eventsTag && x.op.MaxBody > 0 }

// arrived ends the wait for a request of which nothing is left to be read. The
// connection is watched on, for a client that goes away, and the end of that wait
// would pass for one.
func (x *exchange) arrived() {
	// Without a connection, as in tests, there is nothing to wait for.
	_ = http.NewResponseController(x.recorder.ResponseWriter).SetReadDeadline(time.Time{})
}

// awaited gives the client its time for the body anew, after a wait that was ours.
func (x *exchange) awaited() {
	_ = http.NewResponseController(x.recorder.ResponseWriter).SetReadDeadline(time.Now().Add(limit.RequestHeaders))
}

// Header values that every answer has; shared, so never to be changed. An answer
// that says nothing else is data for whoever asked: kept by nobody, no page, in
// no frame, and not to be loaded by the pages of others. What is published or
// stands in pages sets its own.
var (
	nosniff   = []string{"nosniff"}
	noStore   = []string{"no-store"}
	noPage    = []string{"default-src 'none'; frame-ancestors 'none'"}
	ownOrigin = []string{"same-origin"}
	jsonType  = []string{"application/json"}
	closing   = []string{"close"}
)

// aYear is how long browsers are to remember that a host is served by HTTPS. Of
// its other names we know nothing, and whoever tries the server out on their own
// machine serves other things there too.
func aYear(publicURL string) []string {
	if u, err := url.Parse(publicURL); err != nil || u.Scheme != "https" || u.Hostname() == "localhost" {
		return nil
	}
	return []string{"max-age=31536000"}
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// An Edge stands before every route. It gives a request its id, finds its route
// and method, has the guard pass requests of operations, recovers from panics,
// and writes one log line a request, which says nothing of headers, query, body
// or path but the request id and the route: the rest may be personal.
type Edge struct {
	mux      *http.ServeMux
	guard    *guard
	refusals *event.Refusals
	log      *slog.Logger
	metrics  *metrics
	tracer   *trace.Tracer
	crowded  func(context.Context) bool // whether the connection is one too many for operations; may be nil

	onlyHTTPS []string // for how long; nil where clients may use HTTP
}

func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := &exchange{requestID: requestID(r), recorder: recorder{ResponseWriter: w}, span: trace.Off}
	out := &x.recorder
	out.place = &x.place
	x.ids[0] = x.requestID
	h := out.Header()
	h["X-Request-Id"] = x.ids[:]
	h["X-Content-Type-Options"] = nosniff
	h["Cache-Control"] = noStore
	h["Content-Security-Policy"] = noPage
	h["Cross-Origin-Resource-Policy"] = ownOrigin
	if e.onlyHTTPS != nil {
		h["Strict-Transport-Security"] = e.onlyHTTPS
	}
	if len(r.TransferEncoding) > 0 {
		// A body in chunks may have had a length too, by which a proxy that believes
		// the length sees another end. What comes behind it on the connection is
		// nobody's request.
		h["Connection"] = closing
	}
	e.metrics.inFlight.Inc()
	defer e.metrics.inFlight.Dec()
	defer func() {
		// Come what may: a panic goes on where an answer has begun.
		x.place.leave()
		if x.cancel != nil {
			x.cancel()
		}
		e.guard.bodies.release(x.of, x.bodyTaken)
		e.record(r, x, out, time.Since(start))
	}()
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			e.log.Error("panic", "request_id", x.requestID, "route", x.pattern, "panic", p, "stack", string(debug.Stack()))
			if out.status != 0 {
				panic(http.ErrAbortHandler) // the answer has begun; a broken connection is all that can tell
			}
			e.refuse(out, x, fault.InternalError.New())
		}
	}()
	e.route(out, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)), x)
}

func (e *Edge) route(w http.ResponseWriter, r *http.Request, x *exchange) {
	// The mux would redirect a path that is not clean, to a place that the
	// document does not know.
	if r.URL.Path != path.Clean(r.URL.Path) {
		e.refuse(w, x, fault.NotFound.New())
		return
	}
	if _, x.pattern = e.mux.Handler(r); x.pattern == "" {
		e.misroute(w, r, x)
		return
	}
	if x.op = operations[x.pattern]; x.op != nil {
		if e.crowded != nil && e.crowded(r.Context()) {
			w.Header()["Connection"] = closing
			e.refuse(w, x, shed(codeOf(x.op, http.StatusServiceUnavailable)))
			return
		}
		if e.tracer != nil {
			r = e.traced(r, x)
		}
		if err := e.guard.pass(w, r, x); err != nil {
			e.refuse(w, x, err)
			return
		}
	}
	e.mux.ServeHTTP(w, r)
}

// misroute answers what no route serves: 204 to OPTIONS and 405 to another
// method where the path exists with some method, else 404.
func (e *Edge) misroute(w http.ResponseWriter, r *http.Request, x *exchange) {
	probe := *r
	var allow []string
	public := false
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		probe.Method = method
		if _, pattern := e.mux.Handler(&probe); pattern != "" {
			allow = append(allow, method)
			public = public || operations[pattern] != nil && isPublic(operations[pattern])
		}
	}
	if allow == nil {
		e.refuse(w, x, fault.NotFound.New())
		return
	}
	methods := strings.Join(append(allow, "OPTIONS"), ", ")
	w.Header().Set("Allow", methods)
	if public {
		preflight(w.Header(), methods)
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	e.refuse(w, x, fault.MethodNotAllowed.New())
}

func (e *Edge) refuse(w http.ResponseWriter, x *exchange, err error) {
	x.fault = faultOf(x.op, err)
	// What a client gave up was not refused: it may even have been recorded.
	if x.isIntake() && x.caller != nil && !errors.Is(err, context.Canceled) {
		e.refusals.Count(x.caller, x.fault, x.events)
	}
	refuse(w, x.op, x.requestID, x.fault)
}

func (e *Edge) record(r *http.Request, x *exchange, out *recorder, took time.Duration) {
	route := x.pattern
	if route == "" {
		route = nowhere
	}
	e.metrics.observe(route, out.status, x.fault, took)
	var room [8]slog.Attr
	attrs := append(room[:0],
		slog.String("request_id", x.requestID),
		slog.String("route", route),
		slog.Int("status", out.status),
		slog.Float64("ms", float64(took.Microseconds())/1000),
	)
	if x.caller != nil {
		attrs = append(attrs, slog.Int64("workspace", x.caller.Workspace), slog.Int64("key", x.caller.KeyID))
	}
	level := slog.LevelInfo
	if x.fault != nil {
		attrs = append(attrs, slog.String("code", x.fault.Code.Name))
		if cause := errors.Unwrap(x.fault); cause != nil {
			if r.Context().Err() == nil { // else it is the client that went away
				level = slog.LevelError
			}
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
	}
	e.log.LogAttrs(trace.Under(r.Context(), x.span), level, "request", attrs...)
	endSpan(r, x, out.status)
}

// requestID echoes the caller's own id of 1 to 128 visible ASCII characters, or
// makes one.
func requestID(r *http.Request) string {
	if own := r.Header.Values("X-Request-Id"); len(own) == 1 && len(own[0]) >= 1 && len(own[0]) <= 128 &&
		!slices.ContainsFunc([]byte(own[0]), func(c byte) bool { return c < 0x21 || c > 0x7e }) {
		return own[0]
	}
	var random [16]byte // 128 bits
	rand.Read(random[:])
	return string(requestIDs.AppendEncode(append(make([]byte, 0, 32), "req_"...), random[:]))
}

var requestIDs = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// recorder notes the status of an answer, with which the work on it is over.
type recorder struct {
	http.ResponseWriter
	status int
	place  *place
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		r.place.leave()
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
		r.place.leave()
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach what lies below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
