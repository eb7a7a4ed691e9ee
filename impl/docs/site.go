package docs

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/inletdev/inlet/impl/fault"
)

//go:embed pages
var written embed.FS

//go:embed static
var static embed.FS

// What operators load into Prometheus and Grafana.
//
//go:embed monitoring
var monitoring embed.FS

//go:embed templates
var templateFiles embed.FS

// The page to try the API out on; scalar/README.md says whence.
//
//go:embed scalar/standalone.js.gz
var compressed []byte

// decompress gives what a compressed file holds.
func decompress(content []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		panic(err) // it is broken in the binary
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		panic(err) // it is broken in the binary
	}
	return plain
}

// Like pages they are made when somebody asks: most commands, and many a server in
// its whole life, show nobody a page.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(templateFiles, "templates/*.html"))
})

// A page is Markdown, written by hand or made from the document or the catalogue
// of errors.
type page struct {
	Path     string // below the site's address, such as guides/leads; empty for the home page
	Title    string
	Markdown []byte
}

// A section of the navigation.
type section struct {
	Title string
	Pages []*page
}

// Guides in the order in which people read them: those of who uses the API, and
// those of who runs it.
var (
	guides = []string{
		"authentication", "leads", "motions", "events", "visitors", "paging", "idempotency", "errors-and-retries", "limits", "test-data",
	}
	operating = []string{"self-hosting", "upgrading", "backups", "scaling-out", "monitoring", "runbook"}
)

// sections are all pages of the site.
var sections = sync.OnceValue(func() []section {
	start := section{Title: "Start", Pages: []*page{read(""), read("quickstart")}}
	byTag := make(map[string][]*page)
	var tags []string
	for _, op := range operations() {
		if byTag[op.Tag] == nil {
			tags = append(tags, op.Tag)
		}
		byTag[op.Tag] = append(byTag[op.Tag], made("operations/"+op.ID, op.page()))
	}
	all := []section{start, {Title: "Guides", Pages: readGuides(guides)}, {Title: "Operating", Pages: readGuides(operating)}}
	for _, tag := range tags {
		all = append(all, section{Title: tag, Pages: byTag[tag]})
	}
	return append(all,
		section{Title: "Reference", Pages: []*page{made("errors", errorCatalogue()), read("changelog")}},
		section{Title: "Trust", Pages: []*page{
			read("promises"), read("architecture"), read("threat-model"), read("faults"), read("overload"), read("fuzzing"), read("benchmarks"),
		}},
	)
})

func readGuides(names []string) []*page {
	var all []*page
	for _, name := range names {
		all = append(all, read("guides/"+name))
	}
	return all
}

// read gives a page that was written by hand.
func read(name string) *page {
	file := name
	if name == "" {
		file = "home"
	}
	return made(name, embedded(written, "pages/"+file+".md"))
}

func made(name string, source []byte) *page {
	title, _, _ := bytes.Cut(bytes.TrimPrefix(source, []byte("# ")), []byte("\n"))
	return &page{Path: name, Title: string(title), Markdown: source}
}

// errorCatalogue writes every code, with what it means and what to do: the
// anchors are the codes and stay.
func errorCatalogue() []byte {
	var b bytes.Buffer
	b.WriteString("# Errors\n\nMatch on the code; messages are for people and can change. [Errors and retries](/guides/errors-and-retries) shows the shapes of error bodies.\n")
	done := make(map[string]bool)
	for _, first := range fault.Catalog() {
		if done[first.Name] {
			continue
		}
		done[first.Name] = true
		fmt.Fprintf(&b, "\n## %s\n", first.Name)
		for _, code := range fault.Catalog() {
			if code.Name == first.Name {
				fmt.Fprintf(&b, "\n**%d %s.** %s\n\nWhat to do: %s\n\nRetry: %s\n", code.Status, http.StatusText(code.Status),
					code.Meaning, code.Remedy, retries[code.Retry])
			}
		}
	}
	return b.Bytes()
}

var retries = map[fault.Retry]string{
	fault.Never:       "no, the same request will always be refused.",
	fault.AfterFix:    "after the request, the key or the workspace has been changed.",
	fault.SameRequest: "yes, send the very same request again.",
	fault.After:       "yes, after `Retry-After` seconds, the same request.",
}

// A Site is the documentation as it is read at an address.
type Site struct {
	base           string // the site's address, such as https://inlet.example.com/docs
	prefix, suffix string // of what pages are found under
	files          map[string]file
	index          func() []entry // of all that can be searched for
}

// A file of the site.
type file struct {
	kind    string
	content func() []byte // made at the first call
	gzipped bool          // too large to be kept in memory as it is before somebody asks for it so
}

// build names every file of the site. Links to pages are made by the function;
// a page is found under its path and the suffix.
func build(base, publicURL, prefix, suffix string) *Site {
	s := &Site{base: base, prefix: prefix, suffix: suffix, files: make(map[string]file)}
	add := func(name, kind string, content func() []byte) {
		s.files[name] = file{kind: kind, content: sync.OnceValue(content)}
	}
	document := sync.OnceValues(func() (asYAML, asJSON []byte) { return documentFor(publicURL) })
	add("openapi/v1.json", "application/json", func() []byte { _, asJSON := document(); return asJSON })
	add("openapi/v1.yaml", "application/yaml", func() []byte { asYAML, _ := document(); return asYAML })
	var ofPages []func() []entry
	for _, section := range sections() {
		for _, p := range section.Pages {
			link := linker(p.Path, prefix, suffix)
			rendered := func() (template.HTML, []heading) { return render(forPeople(p.Markdown, publicURL), link) }
			add(p.Path+suffixOf(p.Path, suffix), htmlType, func() []byte {
				text, headings := rendered()
				return s.fill("page.html", view{Page: p, HTML: text, Headings: headings, Twin: link("/" + twin(p.Path))})
			})
			add(twin(p.Path), "text/markdown; charset=utf-8", func() []byte { return absolute(forPeople(p.Markdown, publicURL), base) })
			ofPages = append(ofPages, func() []entry {
				_, headings := rendered()
				return entries(p, headings, link)
			})
		}
	}
	s.index = sync.OnceValue(func() (all []entry) {
		for _, of := range ofPages {
			all = append(all, of()...)
		}
		return all
	})
	add("search.json", "application/json", func() []byte {
		index, err := json.Marshal(s.index())
		if err != nil {
			panic(err) // it is text
		}
		return index
	})
	add("llms.txt", "text/plain; charset=utf-8", func() []byte { return list(base) })
	if suffix != "" { // a server answers it itself
		add("search"+suffix, htmlType, func() []byte { return s.fill("page.html", view{Page: searchPage}) })
	}
	add("reference"+suffix, htmlType, func() []byte { return s.fill("reference.html", view{Page: &page{Path: "reference"}}) })
	s.files["scalar.js"] = file{kind: "text/javascript; charset=utf-8", content: func() []byte { return compressed }, gzipped: true}
	for name, kind := range map[string]string{"docs.css": "text/css", "docs.js": "text/javascript", "reference.js": "text/javascript"} {
		add(name, kind+"; charset=utf-8", func() []byte { return embedded(static, "static/"+name) })
	}
	for name, kind := range map[string]string{"monitoring/alerts.yml": "application/yaml", "monitoring/dashboard.json": "application/json"} {
		add(name, kind, func() []byte { return bytes.ReplaceAll(embedded(monitoring, name), []byte("{docs_url}"), []byte(base)) })
	}
	return s
}

const htmlType = "text/html; charset=utf-8"

var searchPage = &page{Path: "search", Title: "Search"}

// fill makes a page of a template.
func (s *Site) fill(name string, v view) []byte {
	v.Sections, v.Link = sections(), linker(v.Page.Path, s.prefix, s.suffix)
	var out bytes.Buffer
	if err := templates().ExecuteTemplate(&out, name, v); err != nil {
		panic(err) // pages and templates are part of the binary
	}
	return out.Bytes()
}

func embedded(files embed.FS, name string) []byte {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is missing from the binary
	}
	return content
}

// list is the site for programs that read text.
func list(base string) []byte {
	var all bytes.Buffer
	fmt.Fprintf(&all, "# Inlet\n\n> %s\n", root().at("info", "summary").text())
	for _, section := range sections() {
		fmt.Fprintf(&all, "\n## %s\n\n", section.Title)
		for _, p := range section.Pages {
			fmt.Fprintf(&all, "- [%s](%s/%s)\n", p.Title, base, twin(p.Path))
		}
	}
	return all.Bytes()
}

// twin is where a page is found as Markdown.
func twin(name string) string {
	if name == "" {
		return "index.md"
	}
	return name + ".md"
}

func suffixOf(name, suffix string) string {
	if name == "" && suffix != "" {
		return "index" + suffix
	}
	return suffix
}

// linker makes the links of a page: from the root of the server, where that
// serves the site, else relative to the page, as files are.
func linker(from, prefix, suffix string) func(string) string {
	return func(to string) string {
		target, isPage := strings.CutPrefix(to, "/")
		if !isPage {
			return to
		}
		target, anchor, hasAnchor := strings.Cut(target, "#")
		if hasAnchor {
			anchor = "#" + anchor
		}
		if path.Ext(target) == "" {
			target += suffixOf(target, suffix)
		}
		if suffix != "" {
			return strings.Repeat("../", strings.Count(from, "/")) + target + anchor
		}
		if target == "" && prefix == "" {
			return "/" + anchor
		}
		return strings.TrimSuffix(prefix+"/"+target, "/") + anchor
	}
}

// forPeople puts the server's address where pages have $BASE's meaning spelled
// out.
func forPeople(markdown []byte, publicURL string) []byte {
	return bytes.ReplaceAll(markdown, []byte("{base_url}"), []byte(publicURL))
}

// absolute makes the links of a Markdown twin lead to other twins.
func absolute(markdown []byte, base string) []byte {
	for _, section := range sections() {
		for _, p := range section.Pages {
			if p.Path != "" {
				markdown = bytes.ReplaceAll(markdown, []byte("](/"+p.Path+")"), []byte("]("+base+"/"+p.Path+".md)"))
				markdown = bytes.ReplaceAll(markdown, []byte("](/"+p.Path+"#"), []byte("]("+base+"/"+p.Path+".md#"))
			}
		}
	}
	for _, other := range []string{"reference", "openapi/v1.json", "openapi/v1.yaml", "llms.txt", "monitoring/alerts.yml", "monitoring/dashboard.json"} {
		markdown = bytes.ReplaceAll(markdown, []byte("](/"+other+")"), []byte("]("+base+"/"+other+")"))
	}
	return markdown
}

// A view is what the template of a page is given.
type view struct {
	Page     *page
	Sections []section
	HTML     template.HTML
	Headings []heading
	Link     func(string) string
	Twin     string
	Query    string
	Found    []entry
}

// Contents are the headings of the second level, where there are enough of them
// to choose from, and not too many to see.
func (v view) Contents() []heading {
	var all []heading
	for _, h := range v.Headings {
		if h.Level == 2 {
			all = append(all, h)
		}
	}
	if len(all) < 3 || len(all) > 15 {
		return nil
	}
	return all
}

// names of the files, in order.
func (s *Site) names() []string { return slices.Sorted(maps.Keys(s.files)) }
