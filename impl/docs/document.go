package docs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/openapi"
)

// A node is a part of the document, in the order in which it was written.
type node struct{ value any }

var root = sync.OnceValue(func() node {
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(openapi.YAML(), &doc, yaml.UseOrderedMap()); err != nil {
		panic(err) // a test reads the document
	}
	return node{doc}
})

// at goes down by keys, and follows references.
func (n node) at(path ...string) node {
	for _, key := range path {
		n = n.follow().child(key)
	}
	return n.follow()
}

func (n node) child(key string) node {
	if m, ok := n.value.(yaml.MapSlice); ok {
		for _, item := range m {
			if fmt.Sprint(item.Key) == key {
				return node{item.Value}
			}
		}
	}
	return node{}
}

func (n node) follow() node {
	for {
		ref, ok := n.child("$ref").value.(string)
		if !ok {
			return n
		}
		next := root()
		for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			next = next.child(key)
		}
		n = next
	}
}

// refName gives the name of the schema that a node refers to; empty for none.
func (n node) refName() string {
	ref, _ := n.child("$ref").value.(string)
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

func (n node) text() string {
	if n.value == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(n.value))
}

func (n node) number() int {
	number, err := strconv.Atoi(n.text())
	if err != nil {
		panic(err) // a test reads the document
	}
	return number
}

// line gives text as one line, as a table cell takes it.
func (n node) line() string {
	return strings.ReplaceAll(strings.Join(strings.Fields(n.text()), " "), "|", "\\|")
}

func (n node) keys() []string {
	m, _ := n.value.(yaml.MapSlice)
	keys := make([]string, len(m))
	for i, item := range m {
		keys[i] = fmt.Sprint(item.Key)
	}
	return keys
}

func (n node) list() []node {
	all, _ := n.value.([]any)
	nodes := make([]node, len(all))
	for i, v := range all {
		nodes[i] = node{v}
	}
	return nodes
}

// plain gives the value as encoding/json writes it, maps in their order.
func (n node) json() string {
	raw, err := yaml.MarshalWithOptions(n.value, yaml.JSON())
	if err != nil {
		panic(err) // it was read from YAML
	}
	var indented strings.Builder
	out := json.NewEncoder(&indented)
	out.SetEscapeHTML(false)
	compact := strings.TrimSpace(string(raw))
	pretty := indent(compact)
	return pretty
}

// indent lays JSON out over lines, short objects and lists on one.
func indent(raw string) string {
	var value json.RawMessage = []byte(raw)
	var b strings.Builder
	layOut(&b, value, "")
	return b.String()
}

const lineLength = 90

func layOut(b *strings.Builder, raw json.RawMessage, margin string) {
	one := compact(raw)
	if len(margin)+len(one) <= lineLength || one[0] != '{' && one[0] != '[' {
		b.WriteString(one)
		return
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	open, _ := decoder.Token() //nolint:errcheck // it was valid
	b.WriteString(fmt.Sprint(open) + "\n")
	for first := true; decoder.More(); first = false {
		if !first {
			b.WriteString(",\n")
		}
		b.WriteString(margin + "  ")
		if fmt.Sprint(open) == "{" {
			key, _ := decoder.Token() //nolint:errcheck // it was valid
			name, _ := json.Marshal(key)
			b.WriteString(string(name) + ": ")
		}
		var entry json.RawMessage
		if err := decoder.Decode(&entry); err != nil {
			panic(err) // it was valid
		}
		layOut(b, entry, margin+"  ")
	}
	b.WriteString("\n" + margin + map[string]string{"{": "}", "[": "]"}[fmt.Sprint(open)])
}

// compact writes JSON on one line, with a space where people put one.
func compact(raw json.RawMessage) string {
	var b strings.Builder
	inText, escaped := false, false
	for _, c := range strings.TrimSpace(string(raw)) {
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\n' || c == '\t'):
			continue
		}
		b.WriteRune(c)
		if !inText && (c == ',' || c == ':') {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// An operation of the document.
type operation struct {
	node
	ID, Method, Path, Tag string
}

// operations lists them in the order of the document.
func operations() []operation {
	var all []operation
	paths := root().child("paths")
	for _, path := range paths.keys() {
		for _, method := range paths.child(path).keys() {
			op := paths.child(path).child(method)
			all = append(all, operation{op, op.child("operationId").text(), strings.ToUpper(method), path, op.child("tags").list()[0].text()})
		}
	}
	return all
}

// availability is how the interface labels what is there.
var availability = map[string]string{"live": "Live", "preview": "Preview", "coming_soon": "Coming soon"}

// page writes what the document says of an operation.
func (o operation) page() []byte {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# %s\n\n`%s %s` · **%s**\n\n%s\n\n", o.child("summary").text(), o.Method, o.Path,
		availability[o.child("x-availability").text()], o.child("description").text())
	if scopes := o.child("x-scopes").list(); len(scopes) > 0 {
		var names []string
		for _, s := range scopes {
			names = append(names, "`"+s.text()+"`")
		}
		p("Needs an API key with the scope %s.", strings.Join(names, ", "))
	} else {
		p("Needs no API key. It is called by Inlet's own embeds and is not meant to be called directly.")
	}
	if most := o.child("x-max-body"); most.value != nil {
		p(" The body is at most %d KB.", most.number()/1024)
	}
	p("\n\n")
	if parameters := o.child("parameters").list(); len(parameters) > 0 {
		p("## Parameters\n\n| name | in | type | | meaning |\n|---|---|---|---|---|\n")
		for _, parameter := range parameters {
			parameter = parameter.follow()
			p("| `%s` | %s | %s | %s | %s |\n", parameter.child("name").text(), parameter.child("in").text(),
				typeOf(parameter.child("schema")), required(parameter.child("required").value == true), parameter.child("description").line())
		}
		p("\n")
	}
	if body := o.at("requestBody", "content", "application/json"); body.value != nil {
		p("## Body\n\n%s\n\n", o.at("requestBody").child("description").text())
		fields(&b, body.child("schema"))
		p("## Example\n\n")
		for _, language := range languages {
			p("%s:\n\n```%s\n%s\n```\n\n", language.name, language.fence, language.write(o))
		}
	} else {
		p("## Example\n\n")
		for _, language := range languages {
			p("%s:\n\n```%s\n%s\n```\n\n", language.name, language.fence, language.write(o))
		}
	}
	p("## Answers\n\n")
	responses := o.child("responses")
	for _, status := range responses.keys() {
		if status >= "400" {
			continue
		}
		response := responses.at(status)
		p("### %s\n\n%s\n\n", status, response.child("description").text())
		content := response.at("content", "application/json")
		fields(&b, content.child("schema"))
		for _, name := range content.child("examples").keys() {
			example := content.child("examples").child(name)
			p("%s:\n\n```json\n%s\n```\n\n", example.child("summary").text(), example.child("value").json())
		}
	}
	o.errors(&b)
	return []byte(b.String())
}

func (o operation) errors(b *strings.Builder) {
	fmt.Fprint(b, "## Errors\n\n| status | code | meaning |\n|---|---|---|\n")
	codes := o.child("x-errors")
	for _, status := range codes.keys() {
		for _, code := range codes.child(status).list() {
			fmt.Fprintf(b, "| %s | [`%s`](/errors#%s) | %s |\n", status, code.text(), code.text(), meaning(code.text(), status))
		}
	}
	fmt.Fprint(b, "\n")
	if results := o.child("x-result-errors").list(); len(results) > 0 {
		fmt.Fprint(b, "A refused event of a batch carries one of these codes in its `error`: ")
		for i, code := range results {
			if i > 0 {
				fmt.Fprint(b, ", ")
			}
			fmt.Fprintf(b, "[`%s`](/errors#%s)", code.text(), code.text())
		}
		fmt.Fprint(b, ".\n")
	}
}

func meaning(name, status string) string {
	for _, code := range fault.Catalog() {
		if code.Name == name && fmt.Sprint(code.Status) == status {
			return code.Meaning
		}
	}
	panic(name + " is not in the catalogue") // a test compares them
}

func required(is bool) string {
	if is {
		return "required"
	}
	return ""
}

// fields writes a schema's fields as a table, those of its objects and lists
// below them.
func fields(b *strings.Builder, schema node) {
	rows := rowsOf(schema, "", nil)
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(b, "| field | type | | meaning |\n|---|---|---|---|\n"+strings.Join(rows, "")+"\n")
}

func rowsOf(schema node, prefix string, within []string) []string {
	name := schema.refName()
	if name != "" && slices.Contains(within, name) {
		return nil
	}
	within = append(within, name)
	schema = schema.follow()
	var rows []string
	for _, choice := range schema.child("oneOf").list() {
		for _, row := range rowsOf(choice, prefix, within) {
			// Of a choice, no field is required by itself.
			rows = append(rows, strings.Replace(row, " | required | ", " |  | ", 1))
		}
	}
	needed := schema.child("required").list()
	properties := schema.child("properties")
	for _, field := range properties.keys() {
		property := properties.child(field)
		description := property.child("description")
		if description.value == nil {
			description = property.follow().child("description")
		}
		isNeeded := slices.ContainsFunc(needed, func(n node) bool { return n.text() == field })
		rows = append(rows, fmt.Sprintf("| `%s%s` | %s | %s | %s |\n", prefix, field, typeOf(property), required(isNeeded), description.line()))
		rows = append(rows, rowsOf(property, prefix+field+".", within)...)
		if items := property.follow().child("items"); items.value != nil {
			rows = append(rows, rowsOf(items, prefix+field+"[].", within)...)
		}
	}
	return rows
}

// typeOf says in a word what a schema takes, with its limits.
func typeOf(schema node) string {
	schema = schema.follow()
	if choices := schema.child("oneOf").list(); len(choices) > 0 {
		var names []string
		for _, c := range choices {
			if name := strings.Fields(typeOf(c))[0]; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return strings.Join(names, " or ")
	}
	var names []string
	for _, t := range schema.child("type").list() {
		names = append(names, t.text())
	}
	kind := strings.Join(names, " or ")
	if kind == "" {
		kind = schema.child("type").text()
	}
	switch {
	case schema.child("const").value != nil:
		return "`" + schema.child("const").text() + "`"
	case schema.child("enum").value != nil || schema.child("x-extensible-enum").value != nil:
		var values []string
		for _, v := range append(schema.child("enum").list(), schema.child("x-extensible-enum").list()...) {
			values = append(values, "`"+v.text()+"`")
		}
		if len(values) <= 9 {
			return kind + ": " + strings.Join(values, ", ")
		}
	case strings.HasPrefix(kind, "string") && schema.child("maxLength").value != nil:
		return kind + ", at most " + schema.child("maxLength").text() + " characters"
	case strings.HasPrefix(kind, "integer") && schema.child("maximum").text() != "9007199254740991":
		kind += ", " + schema.child("minimum").text() + " to " + schema.child("maximum").text()
		if preset := schema.child("default"); preset.value != nil {
			kind += "; default " + preset.text()
		}
	case strings.HasPrefix(kind, "object") && schema.child("maxProperties").value != nil:
		return kind + ", at most " + schema.child("maxProperties").text() + " entries"
	case strings.HasPrefix(kind, "array"):
		return kind + ", at most " + schema.child("maxItems").text()
	}
	return kind
}
