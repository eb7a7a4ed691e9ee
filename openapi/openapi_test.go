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

// headersOf names the headers that an answer of the status has, sometimes if
// not always.
func headersOf(status string) []string {
	names := []string{"X-Request-Id"}
	switch status {
	case "401", "403":
		names = append(names, "WWW-Authenticate")
	case "429", "503":
		names = append(names, "Retry-After")
	}
	return names
}

func TestOperationsStandUnderTheTagsOfTheInterfaceInItsOrder(t *testing.T) {
	doc := document(t)
	want := []string{"Leads", "Motions", "Events", "Embeds"}
	var tags []string
	for _, tag := range doc["tags"].([]any) {
		tags = append(tags, tag.(map[string]any)["name"].(string))
	}
	if !slices.Equal(tags, want) {
		t.Errorf("the tags are %v, want %v", tags, want)
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, raw := range item.(map[string]any) {
			named, _ := raw.(map[string]any)["tags"].([]any)
			if len(named) != 1 || !slices.Contains(want, named[0].(string)) {
				t.Errorf("%s %s has the tags %v, want one of %v", method, path, named, want)
			}
		}
	}
}

func TestEveryPageLinksToTheNext(t *testing.T) {
	doc := document(t)
	pages := 0
	for path, item := range doc["paths"].(map[string]any) {
		op, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok {
			continue
		}
		if named, _ := op["tags"].([]any); slices.Contains(named, any("Embeds")) {
			continue // they have no pages
		}
		pages++
		links, _ := op["responses"].(map[string]any)["200"].(map[string]any)["links"].(map[string]any)
		next, _ := links["nextPage"].(map[string]any)
		parameters, _ := next["parameters"].(map[string]any)
		if next["operationId"] != op["operationId"] || parameters["cursor"] != "$response.body#/nextCursor" {
			t.Errorf("GET %s does not link nextCursor to its own cursor", path)
		}
	}
	if pages != 2 {
		t.Errorf("%d lists, want 2", pages)
	}
}

func TestALeadKeepsFieldsThatTheDocumentDoesNotName(t *testing.T) {
	schemas := document(t)["components"].(map[string]any)["schemas"].(map[string]any)
	// Said outright, since generated types drop unknown fields otherwise.
	if schemas["LeadInput"].(map[string]any)["additionalProperties"] != true {
		t.Error("LeadInput does not say additionalProperties: true")
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
				headers := response["headers"].(map[string]any)
				for _, name := range headersOf(status) {
					if name == "WWW-Authenticate" && len(op["x-scopes"].([]any)) == 0 {
						continue // there is nothing to authenticate with
					}
					if headers[name] == nil {
						t.Errorf("%s %s %s has no %s", method, path, status, name)
					}
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
			if takesBody := op["requestBody"] != nil; takesBody != (op["x-max-body"] != nil) {
				t.Errorf("%s %s: x-max-body is for operations with a body, and for each of them", method, path)
			}
			// Who needs no scope needs no credential.
			open, _ := op["security"].([]any)
			if public := op["security"] != nil && len(open) == 0; public != (len(op["x-scopes"].([]any)) == 0) || public != (op["x-called-by"] == "embeds") {
				t.Errorf("%s %s: security, x-scopes and x-called-by do not agree", method, path)
			}
			for _, field := range []string{"operationId", "summary", "description", "tags", "x-scopes", "x-availability"} {
				if op[field] == nil {
					t.Errorf("%s %s has no %s", method, path, field)
				}
			}
		}
	}
}

// isType tells whether a schema allows values of the type, alone or beside null.
func isType(schema map[string]any, name string) bool {
	if several, ok := schema["type"].([]any); ok {
		return slices.Contains(several, any(name))
	}
	return schema["type"] == name
}

// checkBounds holds one schema to limits that clients can rely on.
func checkBounds(t *testing.T, pointer string, schema map[string]any) {
	t.Helper()
	switch {
	case isType(schema, "integer") && (schema["minimum"] == nil || schema["maximum"] == nil):
		t.Errorf("%s is an integer without bounds", pointer)
	case isType(schema, "string") && schema["maxLength"] == nil && schema["const"] == nil && schema["enum"] == nil:
		t.Errorf("%s is a text without maxLength", pointer)
	case schema["const"] != nil && schema["type"] == nil:
		t.Errorf("%s has const without type", pointer)
	case isType(schema, "array") && schema["maxItems"] == nil:
		t.Errorf("%s is an array without maxItems", pointer)
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
			if value["$ref"] != nil {
				if value["type"] != nil {
					t.Errorf("%s has a type beside $ref", pointer)
				}
				return
			}
			if isType(value, "object") && below != "" {
				t.Errorf("%s is an inline object; name it", pointer)
			}
			if _, several := value["type"].([]any); several && isType(value, "object") && value["title"] != name {
				t.Errorf("%s is an object or null without a title; some generators then call it %sType0", pointer, name)
			}
			if value["anyOf"] != nil {
				t.Errorf("%s has anyOf, which some generators make nothing of; write not: {not: {anyOf: …}}", pointer)
			}
			checkBounds(t, pointer, value)
			if strings.HasPrefix(below, "/properties/") && strings.Count(below, "/") == 2 && value["description"] == nil {
				t.Errorf("%s has no description", pointer)
			}
		})
	}
	walk("", doc, func(pointer string, value map[string]any) {
		schema, ok := value["schema"].(map[string]any)
		if !ok || strings.HasPrefix(pointer, "/components/schemas/") {
			return
		}
		if strings.HasSuffix(pointer, "/application~1json") && schema["$ref"] == nil {
			t.Errorf("%s has an inline schema; name it", pointer)
		}
		// Any text is read as a cursor, so that a wrong one is always
		// invalid_cursor and never another code.
		if schema["$ref"] == nil && pointer != "/components/parameters/Cursor" {
			checkBounds(t, pointer, schema)
		}
	})
	for _, bad := range []string{"jsonSchemaDialect", `"nullable"`, "x-go-"} {
		if bytes.Contains(openapi.JSON(), []byte(bad)) {
			t.Errorf("the document holds %s", bad)
		}
	}
}
