package api

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/trace"
)

const eventsTag = "Events"

// operations is the document's own table, by the pattern of the mux.
var operations = func() map[string]*api.Operation {
	table := make(map[string]*api.Operation, len(api.Operations))
	for i := range api.Operations {
		table[api.Operations[i].Pattern] = &api.Operations[i]
	}
	return table
}()

// A guard passes a request on to its operation once everything that can be
// said before looking at records has been said, in the order: credential,
// request rate, workspace switch, scopes, headers and query, body size, media
// type, body. It reads what each operation wants from the document's table.
type guard struct {
	admitter   *auth.Admitter
	validators validators
	bodies     bodies
	places     places

	// Of public operations.
	addresses limit.Minute
	keys      limit.Minute // apart from addresses, of which anybody may have many
	now       func() time.Time
	proxies   []netip.Prefix
	publicURL string
}

func (g *guard) pass(w http.ResponseWriter, r *http.Request, x *exchange) error {
	if isPublic(x.op) {
		return g.passPublic(w, r, x)
	}
	x.authorization = r.Header.Values("Authorization")
	x.caller, x.of.workspace = g.admitter.Recall(x.authorization)
	if x.of.workspace == 0 {
		if err := g.admitStranger(r, x); err != nil {
			return err
		}
		x.of.workspace = x.caller.Workspace
		if !x.caller.Recalled {
			if err := g.check(w, r, x); err != nil || x.isIntake() {
				return err
			}
			return g.places.enter(r, x, &g.places.callers, x.of)
		}
	}
	// Intake of events admits its caller in the statement that records them. A
	// recalled caller without the scopes may have them by now; of a service key no
	// more than the workspace is known.
	if x.isIntake() && x.caller != nil && x.caller.Require(x.op.Scopes) == nil {
		return g.afterAdmission(r.Context(), x, g.check(w, r, x))
	}
	// What is known of the caller is enough to wait for the body, which must not
	// keep a place among those who work.
	if g.places.callers.Full(x.of) {
		return shed(codeOf(x.op, http.StatusServiceUnavailable))
	}
	checked := g.check(w, r, x)
	if isShed(checked) {
		return checked
	}
	if err := g.places.enter(r, x, &g.places.callers, x.of); err != nil {
		return err
	}
	if err := g.admit(r.Context(), x); err != nil {
		return err
	}
	if x.isIntake() {
		x.place.leave()
	}
	return checked
}

// admit makes sure, now, of the caller, the rate, the switch and the scopes.
func (g *guard) admit(ctx context.Context, x *exchange) error {
	ctx, span := trace.Child(ctx, "admit")
	defer span.End()
	var err error
	x.caller, err = g.admitter.Admit(ctx, x.authorization)
	if x.caller != nil && x.caller.Rate != nil {
		setRate(x.recorder.Header(), x.caller.Rate)
	}
	if err != nil {
		return err
	}
	return x.caller.Require(x.op.Scopes)
}

// admitStranger admits a credential that tells nothing until the database is
// asked, or recalls its caller if it was admitted meanwhile: after a start everybody
// is a stranger, and many come with one key.
func (g *guard) admitStranger(r *http.Request, x *exchange) error {
	if auth.Malformed(x.authorization) {
		return g.admit(r.Context(), x) // which needs no database
	}
	if r.Body == http.NoBody {
		x.arrived()
	} else {
		defer x.awaited()
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit.Handling)
	defer cancel()
	if err := g.places.take(ctx, x, &g.places.strangers, sender{network: clientNetwork(r, g.proxies)}); err != nil {
		return err
	}
	defer x.place.leave()
	if x.caller, _ = g.admitter.Recall(x.authorization); x.caller != nil {
		return nil
	}
	return g.admit(ctx, x)
}

// admitRecalled is admit for a caller whose events are not recorded after all, or
// not yet.
func (g *guard) admitRecalled(ctx context.Context, x *exchange) error {
	ctx, cancel := context.WithTimeout(ctx, limit.Handling)
	defer cancel()
	if err := g.places.take(ctx, x, &g.places.callers, x.of); err != nil {
		return err
	}
	defer x.place.leave() // what is recorded needs none
	return g.admit(ctx, x)
}

// afterAdmission gives the error of something that comes behind admission,
// which has to take place first where the caller was only recalled.
func (g *guard) afterAdmission(ctx context.Context, x *exchange, err error) error {
	if err != nil && x.caller.Recalled && !isShed(err) {
		if err := g.admitRecalled(ctx, x); err != nil {
			return err
		}
	}
	return err
}

// check is all that comes between admission and the operation.
func (g *guard) check(w http.ResponseWriter, r *http.Request, x *exchange) error {
	_, span := trace.Child(r.Context(), "check")
	defer span.End()
	if err := g.validators.parameters(x.op, r); err != nil {
		return err
	}
	if x.op.MaxBody == 0 {
		return nil
	}
	var err error
	if x.body, x.bodyTaken, err = g.bodies.read(w, r, x.op, x.of); err != nil {
		return err
	}
	x.arrived()
	if err := mediaType(r.Header, x.op); err != nil {
		return err
	}
	if x.body, err = g.validators.body(x.op, x.body); err != nil {
		return err
	}
	if !x.isIntake() { // whose operations read x.body
		r.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	return nil
}

// setRate tells a preview credential where it stands.
func setRate(h http.Header, rate *auth.Rate) {
	h.Set("RateLimit-Limit", strconv.Itoa(rate.Limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(rate.Remaining))
	h.Set("RateLimit-Reset", strconv.Itoa(int(rate.Reset/time.Second)))
}

// mediaType refuses an explicit type that is not JSON. None at all is read as
// JSON.
func mediaType(h http.Header, op *api.Operation) error {
	code := codeOf(op, http.StatusUnsupportedMediaType)
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return code.Says("want a body without Content-Encoding")
	}
	declared, ok := h["Content-Type"]
	if !ok {
		return nil
	}
	if len(declared) == 1 && declared[0] == "application/json" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(strings.Join(declared, ", "))
	suffixed := strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	if err == nil && (kind == "application/json" || suffixed) {
		return nil
	}
	return code.Says("want Content-Type: application/json")
}
