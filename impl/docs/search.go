package docs

import (
	"cmp"
	"slices"
	"strings"
)

// An entry of the search: a page, or a part of one below a heading.
type entry struct {
	Title string `json:"title"` // of the page
	Part  string `json:"part"`  // the heading; empty for the page as a whole
	URL   string `json:"url"`
	Text  string `json:"text"`
}

// entries cuts a page at its headings.
func entries(p *page, headings []heading, link func(string) string) []entry {
	var all []entry
	at := -1
	current := entry{Title: p.Title, URL: link("/" + p.Path)}
	inCode := false
	for line := range strings.Lines(string(p.Markdown)) {
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if strings.HasPrefix(line, "#") && !inCode {
			if at++; at > 0 && at < len(headings) {
				all = append(all, current)
				current = entry{Title: p.Title, Part: headings[at].Text, URL: link("/" + p.Path + "#" + headings[at].ID)}
			}
			continue
		}
		current.Text += line
	}
	return append(all, current)
}

const mostFound = 30

// search gives the entries that hold every word of a query, those that have it in a
// heading first.
func search(all []entry, query string) []entry {
	words := words(query)
	if len(words) == 0 {
		return nil
	}
	type hit struct {
		entry
		score int
	}
	var hits []hit
	for _, e := range all {
		head, text := strings.ToLower(e.Part+" "+e.Title), strings.ToLower(e.Text)
		score := 0
		for _, word := range words {
			n := 20*strings.Count(head, word) + strings.Count(text, word)
			if n == 0 {
				score = 0
				break
			}
			score += min(n, 40)
		}
		if score > 0 {
			e.Text = ""
			hits = append(hits, hit{e, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var found []entry
	for _, h := range hits[:min(len(hits), mostFound)] {
		found = append(found, h.entry)
	}
	return found
}

const mostWords = 16

// words are the first words of a query, each once. A request has room for ten
// thousand, and to count them all in every page would take seconds.
func words(query string) (all []string) {
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if len(all) < mostWords && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}
