package impl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/api"
	"github.com/inletdev/inlet/impl/docs"
	"github.com/inletdev/inlet/impl/embed"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/motion"
	"github.com/inletdev/inlet/impl/page"
	"github.com/inletdev/inlet/impl/trace"
	"github.com/inletdev/inlet/impl/visitor"
	"github.com/inletdev/inlet/impl/work"
)

// headerBytes is how large the headers of a request may be, its first line among
// them; net/http adds 4 KB. How long things may take is in limit/timeouts.go.
const headerBytes = 32 << 10

// What a client may do over one connection of HTTP/2, which there is where TLS is.
const (
	streams      = 100              // requests at a time
	streamBytes  = 64 << 10         // of each body that are taken before anybody reads them
	streamsBytes = 256 << 10        // and of all together
	silentFor    = 30 * time.Second // before the client is asked whether it is still there
	pongWithin   = 10 * time.Second
	stuckFor     = 20 * time.Second // without taking one byte of an answer
)

// A Server is everything that `inlet serve` runs on one database.
type Server struct {
	log         *slog.Logger
	http        *http.Server
	connections *connections
	metrics     http.Handler
	recorder    *event.Recorder
	refusals    *event.Refusals
	engine      *motion.Engine
	stopJobs    func()
	draining    atomic.Bool
}

// Config says how a server is reached, and by what it is watched.
type Config struct {
	DocsURL         string         // the documentation's
	PublicURL       string         // the API's base address as clients see it
	Proxies         []netip.Prefix // networks whose X-Forwarded-For and traceparent are believed
	WebhookNetworks []netip.Prefix // other than public ones that webhooks may reach
	OwnMetrics      bool           // metrics have a listener of their own, and are not among the routes
	Metrics         *prometheus.Registry
	Tracer          *trace.Tracer // nil: no traces
}

// NewServer builds the server and starts its background work. Close ends it.
func NewServer(ctx context.Context, d *db.DB, log *slog.Logger, c Config) (*Server, error) {
	cursorKey, err := d.Secret(ctx, "cursors")
	if err != nil {
		return nil, err
	}
	linkKey, err := d.Secret(ctx, "links")
	if err != nil {
		return nil, err
	}
	// A server that was down for days must not take the first event before there
	// is room for it.
	if err := d.EnsureEventPartitions(ctx, partitionDays); err != nil {
		return nil, err
	}
	registry := c.Metrics
	registry.MustRegister(d, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerBuild(registry)
	s := &Server{
		log: log, connections: newConnections(log),
		metrics:  unread(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})),
		recorder: event.NewRecorder(d, lanes(runtime.GOMAXPROCS(0)), registry, c.Tracer),
		refusals: event.NewRefusals(d, registry),
		engine:   motion.NewEngine(d, log, c.WebhookNetworks, registry, c.Tracer),
	}

	mux := http.NewServeMux()
	identifier := visitor.NewIdentifier(d, linkKey)
	edge, err := api.New(mux, api.Parts{
		DB: d, Recorder: s.recorder, Refusals: s.refusals, Lists: event.NewLists(d, page.NewSigner(cursorKey)),
		Identifier: identifier, Log: log, Metrics: registry, Tracer: c.Tracer,
		PublicURL: c.PublicURL, Proxies: c.Proxies, Crowded: crowded,
	})
	if err != nil {
		return nil, err
	}
	if err := docs.Mount(mux, c.DocsURL, c.PublicURL); err != nil {
		return nil, err
	}
	embed.Mount(mux, d, identifier, edge)
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", s.ready(d))
	if !c.OwnMetrics {
		mux.Handle("GET /metrics", s.metrics)
	}
	s.http = newHTTP(s.leaving(edge), log)
	s.http.ConnState, s.http.ConnContext = s.connections.state, s.connections.mark
	s.http.RegisterOnShutdown(s.connections.closeUnused)
	working, cancel := context.WithCancel(context.Background())
	wait := work.Run(working, work.Watch{Log: log, Metrics: registry, Tracer: c.Tracer},
		jobs(d, s.refusals, s.engine, newBacklog(d, registry), c.Tracer))
	s.stopJobs = func() { cancel(); wait(); s.engine.Close() }
	return s, nil
}

// newHTTP makes an HTTP server with every time-out set.
func newHTTP(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: limit.RequestHeaders,
		ReadTimeout:       limit.RequestHeaders, // bodies that keep coming get more: api/body.go
		WriteTimeout:      limit.Answer,
		IdleTimeout:       limit.IdleConnection,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerStream: streamBytes, MaxReceiveBufferPerConnection: streamsBytes,
			SendPingTimeout: silentFor, PingTimeout: pongWithin, WriteByteTimeout: stuckFor,
		},
	}
}

// HTTP is the server of the REST API; the caller gives it a listener, which is to
// be Bounded.
func (s *Server) HTTP() *http.Server { return s.http }

// Bounded gives a listener that accepts as many connections as the server can
// have.
func (s *Server) Bounded(l net.Listener) net.Listener { return bounded{l, s.connections} }

// Metrics serves Prometheus metrics, for a listener of their own.
func (s *Server) Metrics() *http.Server { return newHTTP(s.metrics, s.log) }

// Drain says that the server is about to end, while it still serves: it is not
// ready any more, so that balancers stop sending requests, and each connection
// ends with its next answer. It takes as long as balancers need to notice, or
// until the context ends. Close comes after it.
func (s *Server) Drain(ctx context.Context, delay time.Duration) {
	s.draining.Store(true)
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
}

// leaving has connections end with their next answer once the server drains.
// Closing those at rest would cross with requests that are on their way.
func (s *Server) leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Close ends the server in order: no new requests, answers to those in flight,
// background work. It takes limit.StopAnswers and limit.StopRest at most; what is left
// when answers are given takes no more than a moment, unless the database hangs.
func (s *Server) Close() error {
	answers, cancel := context.WithTimeout(context.Background(), limit.StopAnswers)
	defer cancel()
	rest, cancelRest := context.WithTimeout(context.Background(), limit.StopAnswers+limit.StopRest)
	defer cancelRest()
	err := s.http.Shutdown(answers)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close() // a client that does not get done with its request is no failure of ours
	}
	closed := make(chan error, 1)
	go func() {
		s.recorder.Close()
		s.stopJobs()
		closed <- s.refusals.Write(rest)
	}()
	select {
	case left := <-closed:
		return errors.Join(err, left)
	case <-rest.Done():
		return errors.Join(err, fmt.Errorf("the database does not answer: %w", rest.Err()))
	}
}

// unread keeps browsers and caches from making anything of an answer, on a
// listener that has no edge too.
func unread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// live says that the process runs, whatever else is wrong.
func live(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) }

// ready says whether requests would be served: the server is not about to end,
// and the database answers.
func (s *Server) ready(d *db.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte("the server is about to end\n"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit.Ready)
		defer cancel()
		answered := make(chan error, 1)
		go func() { answered <- d.Ping(ctx) }() // one that hangs does not even notice the context
		var err error
		select {
		case err = <-answered:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte("the database does not answer\n"))
			return
		}
		w.Write([]byte("ok\n"))
	}
}
