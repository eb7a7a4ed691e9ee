// Package embed serves what stands in other people's pages: the tracker, and the
// pages of forms and meeting forms with the scripts that put them there. What
// these send goes to the operations of the document, like anybody's requests.
package embed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/form"
	"github.com/inletdev/inlet/impl/visitor"
)

//go:embed static
var static embed.FS

//go:embed pages
var pages embed.FS

// Mount adds the routes: the tracker and what pages load below /t, page and
// script of each form and meeting form, and the links of e-mails below /l.
func Mount(mux *http.ServeMux, d *db.DB, identifier *visitor.Identifier, edge Edge) {
	mux.HandleFunc("GET /l/{token}", follow(edge, identifier))
	mount(mux, edge, definitions{
		find:        func(ctx context.Context, key string) (form.Form, error) { return form.Find(ctx, d, key) },
		findMeeting: func(ctx context.Context, key string) (form.MeetingForm, error) { return form.FindMeeting(ctx, d, key) },
	})
}

// An Edge stands before all routes: it counts what anybody may ask, and knows
// what becomes of an error.
type Edge interface {
	TakeRead(r *http.Request) error                  // of the address that the request came from
	TakeKey(key string) error                        // of a form, by its public key
	Refused(r *http.Request, err error) *fault.Fault // what the client is told
}

// definitions are where forms come from.
type definitions struct {
	find        func(ctx context.Context, publicKey string) (form.Form, error)
	findMeeting func(ctx context.Context, publicKey string) (form.MeetingForm, error)
}

func mount(mux *http.ServeMux, edge Edge, d definitions) {
	for _, name := range []string{"inlet.js", "page.js", "form.js", "meeting.js", "page.css"} {
		mux.HandleFunc("GET /t/"+name, asset(name))
	}
	script := asset("embed.js")
	// serve passes a request on with what its form is, if it may see it.
	serve := func(find func(ctx context.Context, key string) (page, error), found func(http.ResponseWriter, *http.Request, page)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			err := edge.TakeRead(r)
			var p page
			if err == nil {
				p, err = find(r.Context(), r.PathValue("publicKey"))
			}
			if err == nil {
				err = edge.TakeKey(p.key)
			}
			if err != nil {
				absent(w, edge.Refused(r, err))
				return
			}
			found(w, r, p)
		}
	}
	ofForm := func(ctx context.Context, key string) (page, error) {
		f, err := d.find(ctx, key)
		return page{"form.html", f.PublicKey, f.Origins, f}, err
	}
	ofMeeting := func(ctx context.Context, key string) (page, error) {
		m, err := d.findMeeting(ctx, key)
		return page{"meeting.html", m.PublicKey, m.Origins, m}, err
	}
	show := func(w http.ResponseWriter, _ *http.Request, p page) { p.show(w) }
	load := func(w http.ResponseWriter, r *http.Request, _ page) { script(w, r) }
	mux.HandleFunc("GET /api/v1/forms/{publicKey}/page", serve(ofForm, show))
	mux.HandleFunc("GET /api/v1/forms/{publicKey}/embed.js", serve(ofForm, load))
	mux.HandleFunc("GET /api/v1/meeting-forms/{publicKey}/page", serve(ofMeeting, show))
	mux.HandleFunc("GET /api/v1/meeting-forms/{publicKey}/embed.js", serve(ofMeeting, load))
}

// asset serves a file that any page may load.
func asset(name string) http.HandlerFunc {
	content, err := static.ReadFile("static/" + name)
	if err != nil {
		panic(err) // it is missing from the binary
	}
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	kind := "text/javascript; charset=utf-8"
	if path.Ext(name) == ".css" {
		kind = "text/css; charset=utf-8"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	}
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{"autocomplete": autocomplete}).ParseFS(pages, "pages/*.html"))

// A page of a form or meeting form.
type page struct {
	template string
	key      string
	origins  []string // whose pages may show it
	of       any
}

func (p page) show(w http.ResponseWriter) {
	write(w, http.StatusOK, "frame-ancestors "+ancestors(p.origins), p.template, p.of)
}

// absent answers with a page that says that there is none.
func absent(w http.ResponseWriter, f *fault.Fault) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	write(w, f.Code.Status, "frame-ancestors *", "absent.html", f.Code.Status == http.StatusNotFound)
}

func write(w http.ResponseWriter, status int, ancestors, template string, of any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy+"; "+ancestors)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	w.WriteHeader(status)
	// Too late for another answer if this fails.
	_ = templates.ExecuteTemplate(w, template, of)
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'"

// ancestors are the pages that may show a form: those of its origins. What is
// not an origin might say something else in a policy, and is left out.
func ancestors(origins []string) string {
	allowed := "'self'"
	for _, o := range origins {
		if anOrigin.MatchString(o) {
			allowed += " " + o
		}
	}
	return allowed
}

var anOrigin = regexp.MustCompile(`^https?://[A-Za-z0-9._-]+(:[0-9]+)?$`)

// autocomplete tells a browser what a field is, so that it can fill it in.
func autocomplete(f form.Field) string {
	switch known := f.Type; known {
	case "email", "tel", "url":
		return known
	}
	switch strings.ToLower(f.Name) {
	case "name":
		return "name"
	case "first_name":
		return "given-name"
	case "last_name":
		return "family-name"
	case "company_name":
		return "organization"
	case "title":
		return "organization-title"
	}
	return "on"
}
