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
	"errors"
	"html/template"
	"net/http"
	"path"
	"regexp"
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
func Mount(mux *http.ServeMux, d *db.DB, identifier *visitor.Identifier) {
	mux.HandleFunc("GET /l/{token}", follow(identifier))
	mount(mux, definitions{
		find:        func(ctx context.Context, key string) (form.Form, error) { return form.Find(ctx, d, key) },
		findMeeting: func(ctx context.Context, key string) (form.MeetingForm, error) { return form.FindMeeting(ctx, d, key) },
	})
}

// definitions are where forms come from.
type definitions struct {
	find        func(ctx context.Context, publicKey string) (form.Form, error)
	findMeeting func(ctx context.Context, publicKey string) (form.MeetingForm, error)
}

func mount(mux *http.ServeMux, d definitions) {
	for _, name := range []string{"inlet.js", "page.js", "form.js", "meeting.js", "page.css"} {
		mux.HandleFunc("GET /t/"+name, asset(name))
	}
	script := asset("embed.js")
	mux.HandleFunc("GET /api/v1/forms/{publicKey}/page", func(w http.ResponseWriter, r *http.Request) {
		found, err := d.find(r.Context(), r.PathValue("publicKey"))
		show(w, "form.html", found.Origins, found, err)
	})
	mux.HandleFunc("GET /api/v1/forms/{publicKey}/embed.js", func(w http.ResponseWriter, r *http.Request) {
		if _, err := d.find(r.Context(), r.PathValue("publicKey")); err != nil {
			show(w, "", nil, nil, err)
			return
		}
		script(w, r)
	})
	mux.HandleFunc("GET /api/v1/meeting-forms/{publicKey}/page", func(w http.ResponseWriter, r *http.Request) {
		found, err := d.findMeeting(r.Context(), r.PathValue("publicKey"))
		show(w, "meeting.html", found.Origins, found, err)
	})
	mux.HandleFunc("GET /api/v1/meeting-forms/{publicKey}/embed.js", func(w http.ResponseWriter, r *http.Request) {
		if _, err := d.findMeeting(r.Context(), r.PathValue("publicKey")); err != nil {
			show(w, "", nil, nil, err)
			return
		}
		script(w, r)
	})
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

// show answers with a page, or with one that says that there is none.
func show(w http.ResponseWriter, name string, origins []string, found any, err error) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if err != nil {
		status := http.StatusInternalServerError
		if known := (*fault.Fault)(nil); errors.As(err, &known) {
			status = known.Code.Status
		}
		h.Set("Content-Security-Policy", policy+"; frame-ancestors *")
		w.WriteHeader(status)
		// Too late for another answer if this fails.
		_ = templates.ExecuteTemplate(w, "absent.html", status == http.StatusNotFound)
		return
	}
	h.Set("Content-Security-Policy", policy+"; frame-ancestors "+ancestors(origins))
	_ = templates.ExecuteTemplate(w, name, found)
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
