package contract

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/openapi"
)

// document is the published document, its answers closed: a field that it does
// not know is a deviation, although clients must bear one.
var document = sync.OnceValue(func() map[string]any {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		panic(err)
	}
	closeObjects(value)
	return value.(map[string]any)
})

func closeObjects(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, open := v["additionalProperties"]; v["type"] == "object" && v["properties"] != nil && !open {
			v["additionalProperties"] = false
		}
		for _, entry := range v {
			closeObjects(entry)
		}
	case []any:
		for _, entry := range v {
			closeObjects(entry)
		}
	}
}

var compiler = sync.OnceValue(func() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("document.json", document()); err != nil {
		panic(err)
	}
	return c
})

var (
	compiling sync.Mutex
	compiled  sync.Map // by pointer
)

func schemaAt(pointer string) (*jsonschema.Schema, error) {
	if schema, ok := compiled.Load(pointer); ok {
		return schema.(*jsonschema.Schema), nil
	}
	compiling.Lock()
	defer compiling.Unlock()
	schema, err := compiler().Compile("document.json#" + pointer)
	if err == nil {
		compiled.Store(pointer, schema)
	}
	return schema, err
}

// resolve follows references of the document.
func resolve(value map[string]any, pointer string) (map[string]any, string) {
	for {
		ref, ok := value["$ref"].(string)
		if !ok {
			return value, pointer
		}
		pointer = ref[1:]
		value = lookup(pointer)
	}
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// lookup gives what stands at a JSON pointer of the document.
func lookup(pointer string) map[string]any {
	var value any = document()
	for _, step := range strings.Split(pointer, "/")[1:] {
		if list, ok := value.([]any); ok {
			i, err := strconv.Atoi(step)
			if err != nil {
				panic(err) // the document is ours
			}
			value = list[i]
			continue
		}
		value = value.(map[string]any)[unescaped.Replace(step)]
	}
	return value.(map[string]any)
}

// reached collects which (operation, status, code) the tests have seen.
var reached sync.Map

// operationOf finds the operation of a request by the mux's own rules. GET serves
// HEAD too.
func operationOf(method, path string) *api.Operation {
	if path == "" || path != pathpkg.Clean(path) {
		return nil
	}
	_, pattern := routes().Handler(&http.Request{Method: method, URL: &url.URL{Path: path}})
	for i := range api.Operations {
		if api.Operations[i].Pattern == pattern {
			return &api.Operations[i]
		}
	}
	return nil
}

var routes = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, op := range api.Operations {
		mux.HandleFunc(op.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
})

// allowed gives what Allow has to say of a path; nothing where no operation has it.
func allowed(path string) string {
	var methods []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if operationOf(method, path) != nil {
			methods = append(methods, method)
		}
	}
	if methods == nil {
		return ""
	}
	return strings.Join(append(methods, "OPTIONS"), ", ")
}

// isPublic tells whether browsers call some operation of the path.
func isPublic(path string) bool {
	for _, method := range []string{"GET", "POST"} {
		if op := operationOf(method, path); op != nil && len(op.Scopes) == 0 {
			return true
		}
	}
	return false
}

// asked is what a test asked of the server.
type asked struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
}

// conforms says how an answer deviates from the document: in its status, its
// headers, its type, its body or its code, or in that it accepts what the document
// does not. Answers that are no operation's are held to what the document says of
// all of them.
func conforms(q asked, a answer) error {
	if err := valid("/components/schemas/RequestID", a.header.Get("X-Request-Id")); err != nil {
		return fmt.Errorf("X-Request-Id: %w", err)
	}
	op := operationOf(q.method, q.url.Path)
	if op == nil {
		return general(q, a)
	}
	status := strconv.Itoa(a.status)
	operation := document()["paths"].(map[string]any)[op.Path].(map[string]any)[strings.ToLower(op.Method)].(map[string]any)
	declared, ok := operation["responses"].(map[string]any)[status].(map[string]any)
	if !ok {
		return fmt.Errorf("status %d is not declared", a.status)
	}
	response, pointer := resolve(declared, "/paths/"+strings.ReplaceAll(op.Path, "/", "~1")+"/"+strings.ToLower(op.Method)+"/responses/"+status)
	if err := headersConform(response["headers"].(map[string]any), pointer, a.header); err != nil {
		return err
	}
	content := response["content"].(map[string]any)
	kind := a.header.Get("Content-Type")
	if content[kind] == nil {
		return fmt.Errorf("the Content-Type %q is not declared", kind)
	}
	if q.method == http.MethodHead {
		return nil // which has no body
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		return fmt.Errorf("the body is no JSON: %w", err)
	}
	if err := valid(pointer+"/content/"+strings.ReplaceAll(kind, "/", "~1")+"/schema", body); err != nil {
		return err
	}
	code, _ := a.refusal()
	if a.status >= 400 && !slices.Contains(op.Errors[a.status], code) {
		return fmt.Errorf("code %s is not declared for status %d", code, a.status)
	}
	if a.status < 300 {
		if err := accepts(op, q, body); err != nil {
			return fmt.Errorf("the request breaks the document and was accepted: %w", err)
		}
	}
	reached.Store(fmt.Sprintf("%s %d %s", op.ID, a.status, code), true)
	return nil
}

func valid(pointer string, value any) error {
	schema, err := schemaAt(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// ofHTTP are headers that the document does not declare, for they are not the
// API's but HTTP's own, or tell browsers what they may do with an answer.
var ofHTTP = []string{
	"Content-Type", "Content-Length", "Date", "Connection", "Cache-Control", "X-Content-Type-Options",
	"Content-Security-Policy", "Cross-Origin-Resource-Policy", "Strict-Transport-Security",
}

// headersConform holds the headers of an answer to those declared, both ways.
func headersConform(declared map[string]any, pointer string, got http.Header) error {
	for name, raw := range declared {
		header, at := resolve(raw.(map[string]any), pointer+"/headers/"+name)
		values := got.Values(name)
		if len(values) == 0 && header["required"] != true {
			continue
		}
		if len(values) != 1 {
			return fmt.Errorf("the header %s is there %d times", name, len(values))
		}
		schema, _ := resolve(header["schema"].(map[string]any), "")
		if err := valid(at+"/schema", typed(schema, values[0])); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	for name := range got {
		if !declares(declared, name) && !slices.Contains(ofHTTP, name) {
			return fmt.Errorf("the header %s is not declared", name)
		}
	}
	return nil
}

// declares compares names of headers as HTTP does.
func declares(declared map[string]any, name string) bool {
	for other := range declared {
		if strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// typed gives the text of a header or parameter as its schema sees it.
func typed(schema map[string]any, text string) any {
	if schema["type"] == "integer" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}

// accepts says how a request that was accepted breaks the document. A batch is
// accepted whatever its events are; what breaks the document has to be refused
// with invalid_body.
func accepts(op *api.Operation, q asked, answered any) error {
	for _, p := range op.Parameters {
		var values []string
		switch p.In {
		case "query":
			values = q.url.Query()[p.Name]
		case "header":
			values = q.header.Values(p.Name)
		case "path":
			r := &http.Request{Method: q.method, URL: q.url}
			mux := http.NewServeMux()
			mux.HandleFunc(op.Pattern, func(_ http.ResponseWriter, r *http.Request) { values = []string{r.PathValue(p.Name)} })
			mux.ServeHTTP(nil, r)
		}
		if len(values) == 0 && p.Required || len(values) > 1 {
			return fmt.Errorf("%s is there %d times", p.Name, len(values))
		}
		for _, value := range values {
			schema, _ := resolve(lookup(p.Schema), "")
			if err := valid(p.Schema, typed(schema, value)); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	if op.BodySchema == "" {
		return nil
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(q.body))
	if err != nil {
		return err
	}
	if op.ID != "createEventBatch" {
		return valid(op.BodySchema, body)
	}
	results := answered.(map[string]any)["results"].([]any)
	events, _ := body.(map[string]any)["events"].([]any)
	if len(results) != len(events) || len(events) == 0 || len(events) > 100 || len(body.(map[string]any)) != 1 {
		return fmt.Errorf("%d results for %d events", len(results), len(events))
	}
	for i, event := range events {
		refused, _ := results[i].(map[string]any)["error"].(map[string]any)
		if err := valid("/components/schemas/EventInput", event); err != nil && refused["code"] != "invalid_body" {
			return fmt.Errorf("event %d became %v: %w", i, results[i], err)
		}
	}
	return nil
}

// general checks answers outside operations.
func general(q asked, a answer) error {
	path, kind := q.url.Path, a.header.Get("Content-Type")
	if allow := allowed(path); allow != "" {
		if a.header.Get("Allow") != allow {
			return fmt.Errorf("Allow is %q, want %q", a.header.Get("Allow"), allow)
		}
		if open := a.header.Get("Access-Control-Allow-Origin") != ""; open != isPublic(path) {
			return fmt.Errorf("that pages may read it is %v", open)
		}
		if q.method == http.MethodOptions {
			if a.status != http.StatusNoContent || len(a.body) > 0 {
				return fmt.Errorf("want 204 without a body")
			}
			return nil
		}
		return refusedGenerally(q, a, http.StatusMethodNotAllowed, "method_not_allowed")
	}
	if strings.HasPrefix(path, "/api/") && !strings.HasPrefix(kind, "text/") {
		// Pages and scripts of the embeds stand below /api/v1 too.
		if a.status == http.StatusNoContent && q.method == http.MethodOptions && a.header.Get("Allow") != "" {
			return nil
		}
		if a.status == http.StatusMethodNotAllowed && a.header.Get("Allow") != "" {
			return refusedGenerally(q, a, http.StatusMethodNotAllowed, "method_not_allowed")
		}
		return refusedGenerally(q, a, http.StatusNotFound, "not_found")
	}
	if a.status >= 400 && kind == "application/json" {
		code, _ := a.refusal()
		return refusedGenerally(q, a, a.status, code)
	}
	if a.status >= 400 && !strings.HasPrefix(kind, "text/") {
		return fmt.Errorf("%d with the Content-Type %q", a.status, kind)
	}
	return nil
}

// refusedGenerally checks a refusal that has the general shape on every route.
func refusedGenerally(q asked, a answer, status int, want string) error {
	if kind := a.header.Get("Content-Type"); a.status != status || kind != "application/json" {
		return fmt.Errorf("%d with the Content-Type %q, want %d with JSON", a.status, kind, status)
	}
	if q.method == http.MethodHead {
		return nil
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		return err
	}
	if err := valid("/components/schemas/Error", body); err != nil {
		return err
	}
	code, _ := a.refusal()
	known := document()["components"].(map[string]any)["schemas"].(map[string]any)["Error"].(map[string]any)["properties"].(map[string]any)["error"].(map[string]any)["x-extensible-enum"].([]any)
	if code != want || !slices.Contains(known, any(code)) || a.field("request_id") != a.header.Get("X-Request-Id") {
		return fmt.Errorf("want the code %s, of those that the document lists, and the id of the request", want)
	}
	return nil
}
