// Package api is the REST transport: it speaks HTTP and JSON as the document
// says, and decides nothing. The edge and the guard answer what can be said
// before an operation; the generated strict server decodes; the handlers here
// translate to the domain and back; refuse renders every error.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/trace"
	"github.com/inletdev/inlet/impl/visitor"
)

// API holds the operations, tag by tag; together they are the document's
// strict server.
type API struct {
	Leads
	Motions
	Events
	Embeds
}

var _ api.StrictServerInterface = API{}

// Parts are what the operations work with.
type Parts struct {
	DB         *db.DB
	Recorder   *event.Recorder
	Refusals   *event.Refusals
	Lists      *event.Lists
	Identifier *visitor.Identifier
	Log        *slog.Logger
	Metrics    prometheus.Registerer
	Tracer     *trace.Tracer // nil: off

	Crowded func(context.Context) bool // whether a request came over a connection that is one too many; may be nil

	PublicURL string         // where clients reach the server; may be empty
	Proxies   []netip.Prefix // networks whose X-Forwarded-For and traceparent are believed
}

// New puts the operations into the mux and gives the edge that all requests
// to the mux, those of other mounts too, go through.
func New(mux *http.ServeMux, p Parts) (*Edge, error) {
	validators, err := newValidators()
	if err != nil {
		return nil, err
	}
	guard := &guard{
		admitter: auth.NewAdmitter(p.DB), validators: validators, places: newPlaces(),
		now: p.DB.Now, proxies: p.Proxies, publicURL: p.PublicURL,
	}
	edge := &Edge{
		mux: mux, guard: guard, refusals: p.Refusals, log: p.Log,
		metrics: newMetrics(p.Metrics, &guard.bodies), tracer: p.Tracer, onlyHTTPS: aYear(p.PublicURL), crowded: p.Crowded,
	}

	operations := API{
		Leads:   Leads{p.DB},
		Motions: Motions{p.DB},
		Events:  Events{guard, p.Recorder, p.Refusals, p.Lists},
		Embeds:  Embeds{guard, p.DB, p.Identifier},
	}
	strict := api.NewStrictHandlerWithOptions(operations, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  edge.undecodable,
		ResponseErrorHandlerFunc: edge.failed,
	})
	api.HandlerWithOptions(strict, api.StdHTTPServerOptions{BaseRouter: mux, ErrorHandlerFunc: edge.unbindable})
	return edge, nil
}

// failed answers an error that a handler returned.
func (e *Edge) failed(w http.ResponseWriter, r *http.Request, err error) {
	e.refuse(w, exchangeOf(r.Context()), err)
}

// undecodable answers a body that passed its schema and yet does not decode,
// which is the server's fault, not the client's.
func (e *Edge) undecodable(w http.ResponseWriter, r *http.Request, err error) {
	e.refuse(w, exchangeOf(r.Context()), err)
}

// unbindable answers parameters that do not bind. The guard has checked header
// and query, so it is the path, whose identifier names no record then.
func (e *Edge) unbindable(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	if invalid := (*api.InvalidParamFormatError)(nil); errors.As(err, &invalid) && x.op != nil {
		err = codeOf(x.op, http.StatusNotFound).New()
	}
	e.refuse(w, x, err)
}
