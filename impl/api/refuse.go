package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oapi-codegen/nullable"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
)

// awayFor is what a client is asked to wait while the database is away.
const awayFor = 5 * time.Second

// generalBody is the error shape of everything but what event routes decide
// themselves.
type generalBody struct {
	Error      string   `json:"error"`
	Message    string   `json:"message"`
	RequestID  string   `json:"request_id"`
	Param      string   `json:"param,omitempty"`
	Scopes     []string `json:"scopes,omitempty"`
	RetryAfter int      `json:"retry_after,omitempty"`
	Scope      string   `json:"scope,omitempty"`
	LeadID     int64    `json:"lead_id,omitempty"`
}

// faultOf gives what a client is told about an error: a fault as it is; a
// database that is away as the operation's 503 (and so a request that its client
// gave up, which nobody hears); anything else as its 500. The
// first code that an operation lists under a status is the one the transport
// itself answers with. op is nil outside operations.
func faultOf(op *api.Operation, err error) *fault.Fault {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
	case errors.Is(err, db.ErrAway), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		f = codeOf(op, http.StatusServiceUnavailable).Because(err)
	default:
		f = codeOf(op, http.StatusInternalServerError).Because(err)
	}
	if f.Code.Retry == fault.After && f.RetryAfter == 0 {
		f.RetryAfter = int(awayFor / time.Second)
	}
	return f
}

// codeOf gives the first code that the operation lists under a status.
func codeOf(op *api.Operation, status int) *fault.Code {
	for _, code := range fault.Catalog() {
		if code.Status == status && op != nil && len(op.Errors[status]) > 0 && op.Errors[status][0] == code.Name {
			return code
		}
	}
	for _, code := range []*fault.Code{fault.ServiceUnavailable, fault.BodyTooLarge, fault.UnsupportedMediaType} {
		if code.Status == status {
			return code
		}
	}
	return fault.InternalError
}

// refuse renders a fault: the one place where errors become answers.
func refuse(w http.ResponseWriter, op *api.Operation, requestID string, f *fault.Fault) {
	h := w.Header()
	switch f.Code {
	case fault.InvalidAPIKey:
		h.Set("WWW-Authenticate", "Bearer")
	case fault.ForbiddenScope:
		h.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(f.Scopes, " ")+`"`)
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	var body any = generalBody{
		Error: f.Code.Name, Message: f.Message, RequestID: requestID,
		Param: f.Param, Scopes: f.Scopes, RetryAfter: f.RetryAfter, Scope: f.Scope, LeadID: f.LeadID,
	}
	if op != nil && op.Tag == eventsTag && !precedesRoute(f.Code) {
		body = api.EventError{Error: errorOf(f)}
	}
	writeJSON(w, f.Code.Status, body)
}

// errorOf gives the object by which event routes report a refusal.
func errorOf(f *fault.Fault) api.EventErrorDetail {
	e := api.EventErrorDetail{Code: f.Code.Name, Message: f.Message, Param: nullable.NewNullNullable[string]()}
	if f.Param != "" {
		e.Param.Set(f.Param)
	}
	return e
}

// precedesRoute tells the answers that are decided before an operation comes to
// anything of its own, and so have the general shape on every route.
func precedesRoute(c *fault.Code) bool {
	switch c {
	case fault.InvalidAPIKey, fault.RateLimited, fault.APIDisabled, fault.ForbiddenScope,
		fault.NotFound, fault.MethodNotAllowed:
		return true
	}
	return false
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // error bodies hold strings and numbers only
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(raw, '\n'))
}
