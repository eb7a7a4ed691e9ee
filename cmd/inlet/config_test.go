package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzAddresses starts a server with any addresses: those that are taken are web
// addresses of nothing but scheme, host and path, and pages below them are found
// where they say.
func FuzzAddresses(f *testing.F) {
	f.Fuzz(func(t *testing.T, public, docs, listen string) {
		c := publicConfig{PublicURL: public, DocsURL: docs}
		api, site, err := c.addresses("http://" + listen)
		if err != nil {
			return
		}
		for _, address := range []string{api, site} {
			u, err := url.Parse(address)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(address, "/") || strings.ContainsAny(address, "?# \"'<>") {
				t.Errorf("%q, %q and %q give %q: %v", public, docs, listen, address, err)
				return
			}
			mux := http.NewServeMux()
			mux.HandleFunc("GET "+u.Path+"/a/b", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
			page, err := http.NewRequest(http.MethodGet, address+"/a/b", nil)
			if err != nil {
				t.Errorf("%q, %q and %q give %q: %v", public, docs, listen, address, err)
				return
			}
			w := httptest.NewRecorder()
			if mux.ServeHTTP(w, page); w.Code != http.StatusTeapot {
				t.Errorf("%q, %q and %q give %q, below which nothing is found", public, docs, listen, address)
			}
		}
		again := publicConfig{PublicURL: api, DocsURL: site}
		if api2, site2, err := again.addresses("http://" + listen); err != nil || api2 != api || site2 != site {
			t.Errorf("%q and %q give %q and %q, %v", api, site, api2, site2, err)
		}
	})
}
