// Package docs publishes what people and generators read: the document, and the
// site made of it, of the catalogue of errors and of pages written by hand. All
// of it is public, and any page may read it from a browser.
package docs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/inletdev/inlet/openapi"
)

// policy lets pages load nothing from elsewhere, and nothing written into them.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'self'"

// tryOut is the policy of the page that sends requests to the API, whose origin
// comes last. Scalar writes its styles into the page.
const tryOut = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; font-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; connect-src 'self' "

// secure keeps a page to its policy, to itself, and from the devices it has no
// use for.
func secure(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// originOf gives the origin of an address.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Mount adds the site below the path of its address, for a server that clients
// reach at the public one.
func Mount(mux *http.ServeMux, docsURL, publicURL string) error {
	at, err := url.Parse(docsURL)
	if err != nil {
		return fmt.Errorf("address of the documentation: %w", err)
	}
	prefix := strings.TrimSuffix(at.Path, "/")
	site := build(strings.TrimSuffix(docsURL, "/"), publicURL, prefix, "")
	for _, name := range site.names() {
		pattern := strings.TrimSuffix(prefix+"/"+name, "/")
		if pattern == "" {
			pattern = "/{$}"
		}
		policy := policy
		if name == "reference" {
			policy = tryOut + originOf(publicURL)
		}
		mux.HandleFunc("GET "+pattern, site.serve(site.files[name], policy))
	}
	mux.HandleFunc("GET "+prefix+"/search", site.search())
	return nil
}

// serve answers with a file that does not change while the server runs.
func (s *Site) serve(f file, policy string) http.HandlerFunc {
	tag := sync.OnceValue(func() string {
		sum := sha256.Sum256(f.content())
		return `"` + hex.EncodeToString(sum[:16]) + `"`
	})
	// Once for all who do not take it compressed: it would be a lot of work for
	// whoever asks often.
	plain := sync.OnceValue(func() []byte { return decompress(f.content()) })
	return func(w http.ResponseWriter, r *http.Request) {
		tag, content := tag(), f.content()
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "ETag, Inlet-Document")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		secure(h, policy)
		h.Set("ETag", tag)
		h.Set("Inlet-Document", openapi.Hash())
		if f.gzipped {
			h.Set("Vary", "Accept-Encoding")
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				h.Set("Content-Encoding", "gzip")
			} else {
				content = plain()
			}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// search answers browsers that run no script.
func (s *Site) search() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("q")
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		secure(h, policy)
		//nolint:errcheck // whoever asked is gone
		w.Write(s.fill("page.html", view{Page: searchPage, Query: query, Found: search(s.index(), query)}))
	}
}

// Export writes the site as files into a folder, for any server of files. Links
// between them are relative; the Markdown twins name the site's address.
func Export(dir, docsURL, publicURL string) (files int, err error) {
	site := build(strings.TrimSuffix(docsURL, "/"), publicURL, "", ".html")
	for _, name := range site.names() {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return files, err
		}
		content := site.files[name].content()
		if site.files[name].gzipped {
			content = decompress(content)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

func documentFor(publicURL string) (asYAML, asJSON []byte) {
	return openapi.For(cmp.Or(strings.TrimSuffix(publicURL, "/"), "http://127.0.0.1:8080"))
}
