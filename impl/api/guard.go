package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
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
	db         *db.DB
	validators validators
}

func (g *guard) pass(w http.ResponseWriter, r *http.Request, x *exchange) error {
	var err error
	x.caller, err = auth.Admit(r.Context(), g.db, r.Header.Values("Authorization"))
	if x.caller != nil && x.caller.Rate != nil {
		setRate(w.Header(), x.caller.Rate)
	}
	if err != nil {
		return err
	}
	if err := x.caller.Require(x.op.Scopes); err != nil {
		return err
	}
	if err := g.validators.parameters(x.op, r); err != nil {
		return err
	}
	if x.op.MaxBody == 0 {
		return nil
	}
	if x.body, err = readBody(w, r, x.op); err != nil {
		return err
	}
	if err := mediaType(r.Header, x.op); err != nil {
		return err
	}
	if x.body, err = g.validators.body(x.op, x.body); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(x.body))
	return nil
}

// setRate tells a preview credential where it stands.
func setRate(h http.Header, rate *auth.Rate) {
	h.Set("RateLimit-Limit", strconv.Itoa(rate.Limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(rate.Remaining))
	h.Set("RateLimit-Reset", strconv.Itoa(int(rate.Reset/time.Second)))
}

// readBody reads the body whole, so that its cap comes before its media type
// and its content.
func readBody(w http.ResponseWriter, r *http.Request, op *api.Operation) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, op.MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, codeOf(op, http.StatusRequestEntityTooLarge).Says("want a body of at most %d bytes", op.MaxBody)
	}
	if err != nil {
		// The client stopped sending: whatever is answered, it hardly hears it.
		return nil, codeOf(op, http.StatusBadRequest).Says("the body ended before its announced length")
	}
	return body, nil
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
	kind, _, err := mime.ParseMediaType(strings.Join(declared, ", "))
	suffixed := strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	if err == nil && (kind == "application/json" || suffixed) {
		return nil
	}
	return code.Says("want Content-Type: application/json")
}
