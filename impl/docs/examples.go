package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// languages that every operation is shown in.
var languages = []struct {
	name, fence string
	write       func(operation) string
}{
	{"curl", "sh", curl},
	{"Go", "go", goProgram},
	{"TypeScript", "ts", typeScript},
	{"Python", "python", python},
}

// A call is an example request of an operation: the first that the document has.
type call struct {
	method, path string
	headers      []string // "Name: value"
	body         string   // empty for none
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

func (o operation) call() call {
	c := call{method: o.Method}
	var query []string
	values := make(map[string]string)
	if len(o.child("x-scopes").list()) > 0 {
		c.headers = append(c.headers, "Authorization: Bearer $KEY")
	}
	for _, p := range o.child("parameters").list() {
		p = p.follow()
		name, example := p.child("name").text(), p.child("example").text()
		switch p.child("in").text() {
		case "path":
			values[name] = example
		case "header":
			c.headers = append(c.headers, name+": "+example)
		case "query":
			// One is enough to show how; a cursor comes from a page before.
			if name == "limit" {
				query = append(query, name+"="+example)
			}
		}
	}
	c.path = inPath.ReplaceAllStringFunc(o.Path, func(name string) string { return values[strings.Trim(name, "{}")] })
	if query != nil {
		c.path += "?" + strings.Join(query, "&")
	}
	if examples := o.at("requestBody", "content", "application/json").child("examples"); examples.value != nil {
		c.headers = append(c.headers, "Content-Type: application/json")
		c.body = examples.child(examples.keys()[0]).child("value").json()
	}
	return c
}

func curl(o operation) string {
	c := o.call()
	var b strings.Builder
	fmt.Fprintf(&b, "curl -sS \"$BASE%s\"", c.path)
	for _, h := range c.headers {
		fmt.Fprintf(&b, " \\\n  -H \"%s\"", h)
	}
	if c.body != "" {
		fmt.Fprintf(&b, " \\\n  -d '%s'", strings.ReplaceAll(c.body, "'", `'\''`))
	}
	return b.String()
}

func goProgram(o operation) string {
	c := o.call()
	var b strings.Builder
	body := "nil"
	if c.body != "" {
		fmt.Fprintf(&b, "body := strings.NewReader(`%s`)\n", c.body)
		body = "body"
	}
	fmt.Fprintf(&b, "request, err := http.NewRequest(%q, base+%q, %s)\nif err != nil {\n\treturn err\n}\n", c.method, c.path, body)
	for _, h := range c.headers {
		name, value, _ := strings.Cut(h, ": ")
		if rest, ok := strings.CutSuffix(value, "$KEY"); ok {
			fmt.Fprintf(&b, "request.Header.Set(%q, %q+key)\n", name, rest)
			continue
		}
		fmt.Fprintf(&b, "request.Header.Set(%q, %q)\n", name, value)
	}
	b.WriteString("response, err := http.DefaultClient.Do(request)")
	return b.String()
}

func typeScript(o operation) string {
	c := o.call()
	var b strings.Builder
	fmt.Fprintf(&b, "const response = await fetch(`${base}%s`, {\n  method: %q,\n", c.path, c.method)
	if len(c.headers) > 0 {
		b.WriteString("  headers: {\n")
		for _, h := range c.headers {
			name, value, _ := strings.Cut(h, ": ")
			if rest, ok := strings.CutSuffix(value, "$KEY"); ok {
				fmt.Fprintf(&b, "    %q: `%s${key}`,\n", name, rest)
				continue
			}
			fmt.Fprintf(&b, "    %q: %q,\n", name, value)
		}
		b.WriteString("  },\n")
	}
	if c.body != "" {
		fmt.Fprintf(&b, "  body: JSON.stringify(%s),\n", strings.ReplaceAll(c.body, "\n", "\n  "))
	}
	b.WriteString("});\nconst answer = await response.json();")
	return b.String()
}

func python(o operation) string {
	c := o.call()
	var b strings.Builder
	fmt.Fprintf(&b, "response = requests.request(\n    %q, base + %q,\n", c.method, c.path)
	var headers []string
	for _, h := range c.headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Content-Type" {
			continue // json= sets it
		}
		if rest, ok := strings.CutSuffix(value, "$KEY"); ok {
			headers = append(headers, fmt.Sprintf("%q: %q + key", name, rest))
			continue
		}
		headers = append(headers, fmt.Sprintf("%q: %q", name, value))
	}
	if headers != nil {
		fmt.Fprintf(&b, "    headers={%s},\n", strings.Join(headers, ", "))
	}
	if c.body != "" {
		fmt.Fprintf(&b, "    json=%s,\n", strings.ReplaceAll(asPython(c.body), "\n", "\n    "))
	}
	b.WriteString(")\nanswer = response.json()")
	return b.String()
}

// asPython writes JSON as Python does; only its three words differ.
func asPython(body string) string {
	words := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\btrue\b|\bfalse\b|\bnull\b`)
	return words.ReplaceAllStringFunc(body, func(word string) string {
		switch word {
		case "true":
			return "True"
		case "false":
			return "False"
		case "null":
			return "None"
		}
		return word
	})
}
