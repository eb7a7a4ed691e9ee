package openapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inletdev/inlet/openapi"
)

// published reads published.yaml: the document as clients have it, which is
// replaced by openapi.yaml whenever a version is published.
func published(t *testing.T) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("published.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, raw)
}

func parsed(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

// Within v1 there are only additions. oasdiff (scripts/document.sh) sees to what
// every document has; this to what is ours: codes, extensible values, scopes, caps.
func TestNothingPublishedIsTakenAway(t *testing.T) {
	for _, gone := range takenAway(published(t), document(t)) {
		t.Error(gone)
	}
}

func takenAway(before, now map[string]any) (gone []string) {
	say := func(format string, args ...any) { gone = append(gone, fmt.Sprintf(format, args...)) }
	for path, item := range before["paths"].(map[string]any) {
		for method, raw := range item.(map[string]any) {
			was := raw.(map[string]any)
			name := was["operationId"].(string)
			is, ok := at(now, "paths", path, method).(map[string]any)
			if !ok || is["operationId"] != name {
				say("%s: no such operation at %s %s any more", name, strings.ToUpper(method), path)
				continue
			}
			for status := range was["responses"].(map[string]any) {
				if at(is, "responses", status) == nil {
					say("%s: no status %s any more", name, status)
				}
			}
			for status, codes := range was["x-errors"].(map[string]any) {
				for _, code := range missing(codes, at(is, "x-errors", status)) {
					say("%s: status %s has no code %v any more", name, status, code)
				}
			}
			for _, code := range missing(was["x-result-errors"], is["x-result-errors"]) {
				say("%s: results have no code %v any more", name, code)
			}
			for _, scope := range missing(is["x-scopes"], was["x-scopes"]) {
				say("%s: wants the scope %v, as it did not", name, scope)
			}
			if number(is["x-max-body"]) < number(was["x-max-body"]) {
				say("%s: takes %v bytes, which were %v", name, is["x-max-body"], was["x-max-body"])
			}
			if was["x-availability"] == "live" && is["x-availability"] != "live" {
				say("%s: is %v, and was live", name, is["x-availability"])
			}
		}
	}
	walk("", before, func(pointer string, was map[string]any) {
		for _, value := range missing(was["x-extensible-enum"], extensibleAt(now, pointer)) {
			say("%s: has no value %v any more", pointer, value)
		}
	})
	slices.Sort(gone)
	return gone
}

func at(value any, steps ...string) any {
	for _, step := range steps {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func extensibleAt(doc map[string]any, pointer string) any {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	var steps []string
	for _, step := range strings.Split(pointer, "/")[1:] {
		steps = append(steps, unescape.Replace(step))
	}
	return at(doc, append(steps, "x-extensible-enum")...)
}

func missing(of, in any) (gone []any) {
	there, _ := in.([]any)
	wanted, _ := of.([]any)
	for _, value := range wanted {
		if !slices.Contains(there, value) {
			gone = append(gone, value)
		}
	}
	return gone
}

func number(value any) float64 {
	if value == nil {
		return math.Inf(1) // no body is taken, and none was
	}
	var n float64
	fmt.Sscan(fmt.Sprint(value), &n)
	return n
}

func TestWhatIsTakenAwayIsFound(t *testing.T) {
	for what, c := range map[string]struct{ old, new, want string }{
		"a code":               {"[invalid_body, invalid_cursor]", "[invalid_body]", "listEventTypes: status 400 has no code invalid_cursor any more"},
		"a status":             {"        \"409\": [duplicate_request]\n", "", "createLead: status 409 has no code duplicate_request any more"},
		"a code of results":    {"x-result-errors: [invalid_body, ", "x-result-errors: [", "createEventBatch: results have no code invalid_body any more"},
		"an extensible value":  {"[accepted, unmatched, pending_identity, duplicate]", "[accepted, unmatched, pending_identity]", "/components/schemas/EventReceipt/properties/status: has no value duplicate any more"},
		"a scope":              {"x-scopes: [leads.manage]", "x-scopes: [leads.manage, contacts.manage]", "createLead: wants the scope contacts.manage, as it did not"},
		"bytes of a body":      {"x-max-body: 32768", "x-max-body: 16384", "startMotion: takes 16384 bytes, which were 32768"},
		"an operation":         {"/api/v1/events/batch:", "/api/v1/events/many:", "createEventBatch: no such operation at POST /api/v1/events/batch any more"},
		"that it is available": {"x-availability: live", "x-availability: preview", "createLead: is preview, and was live"},
	} {
		now := strings.ReplaceAll(string(openapi.YAML()), c.old, c.new)
		if gone := takenAway(document(t), parsed(t, []byte(now))); !slices.Contains(gone, c.want) {
			t.Errorf("%s: found is only\n%s", what, strings.Join(gone, "\n"))
		}
	}
	if gone := takenAway(document(t), maps.Clone(document(t))); len(gone) > 0 {
		t.Errorf("of nothing taken away found is %v", gone)
	}
}
