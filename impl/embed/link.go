package embed

import (
	"net/http"

	"github.com/inletdev/inlet/impl/visitor"
)

// follow leads whoever clicked the link of an e-mail on to its page.
func follow(i *visitor.Identifier) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, err := i.Follow(r.Context(), r.PathValue("token"))
		if err != nil {
			show(w, "", nil, nil, err)
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
