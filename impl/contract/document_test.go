package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	pathpkg "path"
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

var compiling sync.Mutex

func schemaAt(pointer string) (*jsonschema.Schema, error) {
	compiling.Lock()
	defer compiling.Unlock()
	return compiler().Compile("document.json#" + pointer)
}

// resolve follows references of the document.
func resolve(value map[string]any, pointer string) (map[string]any, string) {
	for {
		ref, ok := value["$ref"].(string)
		if !ok {
			return value, pointer
		}
		pointer = ref[1:]
		value = document()
		for _, step := range strings.Split(pointer[1:], "/") {
			value = value[step].(map[string]any)
		}
	}
}

// reached collects which (operation, status, code) the tests have seen.
var reached sync.Map

// operationOf finds the operation of a request by the mux's own rules.
func operationOf(method, path string) *api.Operation {
	mux := http.NewServeMux()
	for _, op := range api.Operations {
		mux.HandleFunc(op.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	r, err := http.NewRequest(method, path, nil)
	if err != nil || r.URL.Path != pathpkg.Clean(r.URL.Path) {
		return nil
	}
	_, pattern := mux.Handler(r)
	for i := range api.Operations {
		if api.Operations[i].Pattern == pattern {
			return &api.Operations[i]
		}
	}
	return nil
}

// conforms says how an answer deviates from the document.
func conforms(method, path string, a answer) error {
	if a.header.Get("X-Request-Id") == "" {
		return fmt.Errorf("no X-Request-Id")
	}
	op := operationOf(method, path)
	if op == nil || method == http.MethodHead {
		return general(path, a)
	}
	pointer := "/paths/" + strings.ReplaceAll(op.Path, "/", "~1") + "/" + strings.ToLower(method) +
		"/responses/" + strconv.Itoa(a.status)
	declared, ok := document()["paths"].(map[string]any)[op.Path].(map[string]any)[strings.ToLower(method)].(map[string]any)["responses"].(map[string]any)[strconv.Itoa(a.status)].(map[string]any)
	if !ok {
		return fmt.Errorf("status %d is not declared", a.status)
	}
	response, pointer := resolve(declared, pointer)
	for name, header := range response["headers"].(map[string]any) {
		described, _ := resolve(header.(map[string]any), "")
		if described["required"] == true && a.header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		return fmt.Errorf("Content-Type is %q", got)
	}
	schema, err := schemaAt(pointer + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		return fmt.Errorf("the body is no JSON: %w", err)
	}
	if err := schema.Validate(body); err != nil {
		return err
	}
	code, _ := a.refusal()
	if a.status >= 400 {
		known := false
		for _, c := range op.Errors[a.status] {
			known = known || c == code
		}
		if !known {
			return fmt.Errorf("code %s is not declared for status %d", code, a.status)
		}
	}
	reached.Store(fmt.Sprintf("%s %d %s", op.ID, a.status, code), true)
	return nil
}

// general checks answers outside operations: a refusal has the general shape,
// but for those of probes, which are text, and of pages.
func general(path string, a answer) error {
	if a.status < 400 || len(a.body) == 0 || path == "/readyz" || strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		return nil
	}
	var body struct {
		Error     string
		Message   string
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		return err
	}
	if body.Error == "" || body.Message == "" || body.RequestID != a.header.Get("X-Request-Id") {
		return fmt.Errorf("want error, message and request_id")
	}
	return nil
}
