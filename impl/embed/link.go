package embed

import (
	"net/http"

	"github.com/inletdev/inlet/impl/visitor"
)

// follow leads whoever clicked the link of an e-mail on to its page.
func follow(edge Edge, i *visitor.Identifier) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := edge.TakeRead(r)
		var page string
		if err == nil {
			page, err = i.Follow(r.Context(), r.PathValue("token"))
		}
		if err != nil {
			absent(w, edge.Refused(r, err))
			return
		}
		// The address stands for a person: it is nobody else's to keep or to pass on.
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Robots-Tag", "noindex")
		http.Redirect(w, r, page, http.StatusFound)
	}
}
