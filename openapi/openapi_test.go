package openapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inletdev/inlet/openapi"
)

func document(t *testing.T) map[string]any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func TestTheDocumentIsOpenAPI31(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.DisableExamplesValidation()); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("it is OpenAPI %s", doc.OpenAPI)
	}
}

// walk visits every value of the document with its JSON pointer.
func walk(pointer string, value any, visit func(pointer string, value map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(pointer, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(pointer+"/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"), v[key], visit)
		}
	case []any:
		for i, entry := range v {
			walk(fmt.Sprintf("%s/%d", pointer, i), entry, visit)
		}
	}
}

func TestEveryExampleIsValid(t *testing.T) {
	doc := document(t)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	checked := 0
	walk("", doc, func(pointer string, value map[string]any) {
		if value["schema"] == nil || strings.Contains(pointer, "/components/schemas/") {
			return
		}
		schema, err := compiler.Compile("doc.json#" + pointer + "/schema")
		if err != nil {
			t.Errorf("%s: %v", pointer, err)
			return
		}
		examples := map[string]any{}
		if named, ok := value["examples"].(map[string]any); ok {
			for name, e := range named {
				examples[name] = e.(map[string]any)["value"]
			}
		}
		if single, ok := value["example"]; ok {
			examples["example"] = single
		}
		if len(examples) == 0 {
			t.Errorf("%s has no example", pointer)
		}
		for name, example := range examples {
			checked++
			if err := schema.Validate(example); err != nil {
				t.Errorf("%s, %s: %v", pointer, name, err)
			}
		}
	})
	if checked < 60 {
		t.Errorf("only %d examples are found", checked)
	}
}

func TestEveryStatusIsDeclaredWithItsCodesAndAnExampleEach(t *testing.T) {
	doc := document(t)
	shared := doc["components"].(map[string]any)["responses"].(map[string]any)
	for path, item := range doc["paths"].(map[string]any) {
		for method, raw := range item.(map[string]any) {
			op := raw.(map[string]any)
			codes := op["x-errors"].(map[string]any)
			for status, declared := range op["responses"].(map[string]any) {
				response := declared.(map[string]any)
				if ref, ok := response["$ref"].(string); ok {
					response = shared[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
				}
				if response["headers"].(map[string]any)["X-Request-Id"] == nil {
					t.Errorf("%s %s %s has no X-Request-Id", method, path, status)
				}
				examples := response["content"].(map[string]any)["application/json"].(map[string]any)["examples"].(map[string]any)
				if status < "400" {
					continue
				}
				listed, ok := codes[status].([]any)
				if !ok {
					t.Errorf("%s %s declares %s without codes", method, path, status)
					continue
				}
				for _, code := range listed {
					if examples[code.(string)] == nil {
						t.Errorf("%s %s %s has no example of %s", method, path, status, code)
					}
				}
			}
			for status := range codes {
				if op["responses"].(map[string]any)[status] == nil {
					t.Errorf("%s %s has codes for %s, which it does not declare", method, path, status)
				}
			}
			for _, field := range []string{"operationId", "summary", "description", "tags", "x-scopes", "x-availability"} {
				if op[field] == nil {
					t.Errorf("%s %s has no %s", method, path, field)
				}
			}
		}
	}
}

// Generators give good types only for a document that keeps to these rules.
func TestSchemasKeepToWhatGeneratorsUnderstand(t *testing.T) {
	doc := document(t)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for name, raw := range schemas {
		schema := raw.(map[string]any)
		if schema["description"] == nil {
			t.Errorf("%s has no description", name)
		}
		walk(name, schema, func(pointer string, value map[string]any) {
			below := strings.TrimPrefix(pointer, name)
			if regexp.MustCompile(`/(properties|propertyNames|not/not/anyOf/\d+/properties|not/not/anyOf/\d+|not|not/not)$`).MatchString(below) ||
				strings.Contains(below, "/anyOf/") || strings.HasSuffix(below, "/propertyNames") {
				return
			}
			kind, _ := value["type"].(string)
			switch {
			case value["$ref"] != nil:
				if value["type"] != nil {
					t.Errorf("%s has a type beside $ref", pointer)
				}
				return
			case kind == "object" && below != "":
				t.Errorf("%s is an inline object; name it", pointer)
			case kind == "integer" && (value["minimum"] == nil || value["maximum"] == nil):
				t.Errorf("%s is an integer without bounds", pointer)
			case kind == "string" && value["maxLength"] == nil && value["const"] == nil && value["enum"] == nil:
				t.Errorf("%s is a text without maxLength", pointer)
			case value["const"] != nil && value["type"] == nil:
				t.Errorf("%s has const without type", pointer)
			case kind == "array" && value["maxItems"] == nil:
				t.Errorf("%s is an array without maxItems", pointer)
			}
			if strings.HasPrefix(below, "/properties/") && strings.Count(below, "/") == 2 && value["description"] == nil {
				t.Errorf("%s has no description", pointer)
			}
		})
	}
	for _, bad := range []string{"jsonSchemaDialect", `"nullable"`, "x-go-"} {
		if bytes.Contains(openapi.JSON(), []byte(bad)) {
			t.Errorf("the document holds %s", bad)
		}
	}
}
