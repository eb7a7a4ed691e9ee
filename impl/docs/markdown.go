package docs

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A heading of a page, for its table of contents and for the search.
type heading struct {
	Level    int
	ID, Text string
}

// code is a heading that is nothing but an error code.
var code = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)

// render turns Markdown into HTML, its links to pages as the function has them,
// and gives its headings.
func render(source []byte, link func(string) string) (template.HTML, []heading) {
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(codeBlocks{}, 100))),
	)
	tree := md.Parser().Parse(text.NewReader(source))
	var headings []heading
	ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { //nolint:errcheck // the function gives none
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(link(string(n.Destination)))
			}
		case *ast.Heading:
			// An error code is its own anchor, with its underscores.
			if text := plain(n, source); entering && code.MatchString(text) {
				n.SetAttributeString("id", []byte(text))
			}
			if id, ok := n.AttributeString("id"); ok && entering {
				headings = append(headings, heading{n.Level, string(id.([]byte)), plain(n, source)})
			}
		}
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, tree); err != nil {
		panic(err) // pages are part of the binary
	}
	// Wide tables scroll by themselves, by key too, so that the page need not.
	whole := strings.ReplaceAll(out.String(), "<table>", `<div class="table" tabindex="0" role="region" aria-label="Table"><table>`)
	whole = strings.ReplaceAll(whole, "</table>", "</table></div>")
	return template.HTML(whole), headings //nolint:gosec // made of our own pages
}

// plain gives the text of a heading.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
			continue
		}
		b.WriteString(plain(c, source))
	}
	return b.String()
}

// codeBlocks renders fenced code with the colors of its language, by classes.
type codeBlocks struct{}

var formatter = html.New(html.WithClasses(true), html.PreventSurroundingPre(true))

// RegisterFuncs makes it the renderer of fenced code.
func (codeBlocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var code strings.Builder
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			code.Write(line.Value(source))
		}
		language := string(n.(*ast.FencedCodeBlock).Language(source))
		w.WriteString(`<pre class="chroma" tabindex="0"><code>`) //nolint:errcheck // it goes to memory
		lexer := lexers.Get(language)
		if lexer == nil {
			lexer = lexers.Fallback
		}
		tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code.String())
		if err == nil {
			err = formatter.Format(w, styles.Fallback, tokens)
		}
		w.WriteString("</code></pre>\n") //nolint:errcheck // it goes to memory
		return ast.WalkContinue, err
	})
}
