// Package api is the REST transport: it speaks HTTP and JSON as the document
// says, and decides nothing. The edge and the guard answer what can be said
// before an operation; the generated strict server decodes; the handlers here
// translate to the domain and back; refuse renders every error.
package api

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/fault"
)

// API holds the operations, tag by tag; together they are the document's
// strict server.
type API struct {
	Leads
	Motions
	Events
}

var _ api.StrictServerInterface = API{}

// New puts the operations into the mux and gives the edge that all requests
// to the mux, those of other mounts too, go through.
func New(mux *http.ServeMux, d *db.DB, recorder *event.Recorder, refusals *event.Refusals,
	lists *event.Lists, log *slog.Logger, r prometheus.Registerer,
) (*Edge, error) {
	validators, err := newValidators()
	if err != nil {
		return nil, err
	}
	guard := &guard{admitter: auth.NewAdmitter(d), validators: validators}
	edge := &Edge{mux: mux, guard: guard, refusals: refusals, log: log, metrics: newMetrics(r)}

	strict := api.NewStrictHandlerWithOptions(API{Events: Events{guard, recorder, refusals, lists}}, nil,
		api.StrictHTTPServerOptions{
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

// later answers an operation that a later release brings.
func later() error { return fault.NotImplemented.New() }
