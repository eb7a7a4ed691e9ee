// Package docs publishes what people and generators read: the document, guides,
// and what was measured. It is public, and any page may read it from a browser.
package docs

import (
	"embed"
	"net/http"

	"github.com/inletdev/inlet/openapi"
)

//go:embed *.md
var guides embed.FS

// Mount adds the routes, below /docs.
func Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /docs/openapi/v1.json", publish("application/json", openapi.JSON()))
	for _, guide := range []string{"benchmarks", "embeds", "motions"} {
		content, err := guides.ReadFile(guide + ".md")
		if err != nil {
			panic(err) // it is missing from the binary
		}
		mux.HandleFunc("GET /docs/"+guide, publish("text/markdown; charset=utf-8", content))
	}
}

func publish(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.Write(content)
	}
}
