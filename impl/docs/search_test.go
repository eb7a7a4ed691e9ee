package docs

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inletdev/inlet/impl/fault"
)

// FuzzSearch searches the site for any words: what is found holds every one of
// them, and the page that says so is made of the same elements and attributes
// whatever the words are. Words beyond a few, and those that are repeated, cost
// nothing.
func FuzzSearch(f *testing.F) {
	var all []entry
	whole := map[string]string{} // address → text, to look into what was found
	for _, code := range fault.Catalog() {
		e := entry{Title: "Errors", Part: code.Name, URL: "/docs/errors#" + code.Name, Text: code.Meaning + " " + code.Remedy}
		all = append(all, e)
		whole[e.URL] += strings.ToLower(e.Part + " " + e.Title + "\n" + e.Text + "\n")
	}
	site := &Site{prefix: "/docs", index: func() []entry { return all }} // of a whole one, a search takes too long
	handler := site.search()
	ask := func(query string) string {
		w := httptest.NewRecorder()
		handler(w, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/docs/search", RawQuery: url.Values{"q": {query}}.Encode()}})
		return w.Body.String()
	}
	const nowhere = "nothinghasthisword"
	nothing := elements(ask(nowhere))
	f.Fuzz(func(t *testing.T, query string) {
		found := search(all, query)
		if len(found) > mostFound {
			t.Errorf("%q finds %d entries", query, len(found))
		}
		for _, e := range found {
			for _, word := range words(query) {
				if !strings.Contains(whole[e.URL], word) {
					t.Errorf("%q finds %s, which lacks %q", query, e.URL, word)
				}
			}
		}
		// Only these signs could make an element, and a page takes its time.
		if absent := query + " " + nowhere; strings.ContainsAny(query, "<>&\"'`{}=\\\x00") && len(words(absent)) > len(words(query)) {
			if page := ask(absent); !slices.Equal(elements(page), nothing) || !strings.Contains(page, ">0 found") {
				t.Errorf("%q makes a page of other elements, or of hits", absent)
			}
		}
		if n := len(words(query)); n > mostWords {
			t.Errorf("%q is searched for %d words", query, n)
		}
		if repeated := strings.Repeat(query+" ", 20); !slices.Equal(words(repeated), words(query)) {
			t.Errorf("%q, written twenty times, is searched for %q", query, words(repeated))
		}
	})
}

// elements are those of a page, with the names of their attributes.
func elements(page string) (all []string) {
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return all
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken, html.CommentToken:
			token := z.Token()
			name := token.Data
			for _, a := range token.Attr {
				name += " " + a.Key
			}
			all = append(all, name)
		}
	}
}
