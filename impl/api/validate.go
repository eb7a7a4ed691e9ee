package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
	"github.com/inletdev/inlet/openapi"
)

// validators holds the document's own schemas of bodies and parameters,
// compiled once, by their JSON pointer. Bodies of events are not among them:
// impl/event parses those, and a test holds its parser to the same schema.
type validators map[string]*jsonschema.Schema

func newValidators() (validators, error) {
	const document = "openapi.json"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(document, doc); err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	v := make(validators)
	compile := func(pointer string) error {
		if pointer == "" || v[pointer] != nil {
			return nil
		}
		schema, err := compiler.Compile(document + "#" + pointer)
		if err != nil {
			return fmt.Errorf("document: schema %s: %w", pointer, err)
		}
		v[pointer] = schema
		return nil
	}
	for _, op := range api.Operations {
		if err := compile(op.BodySchema); err != nil {
			return nil, err
		}
		for _, p := range op.Parameters {
			if err := compile(p.Schema); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// body checks a body that the document has a schema for: strictly read JSON
// first, then the schema. What it gives back, the generated types decode: the
// same body, its whole numbers written as such.
func (v validators) body(op *api.Operation, body []byte) ([]byte, error) {
	code := codeOf(op, http.StatusBadRequest)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, code.Says("want a JSON object as the body")
	}
	if op.Tag == eventsTag {
		return body, nil // impl/event reads these
	}
	if err := strictjson.Check(body); err != nil {
		return nil, code.At(err.Path, "%s", err.Message)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, code.Says("want a body of JSON")
	}
	if violation := validate(v[op.BodySchema], instance); violation != nil {
		return nil, code.At(violation.path, "%s", violation.want)
	}
	if plain, changed := plainNumbers(instance); changed {
		return json.Marshal(plain)
	}
	return body, nil
}

// plainNumbers writes whole numbers such as 12.0 and 1.2e1 as 12: they are
// valid integers, which encoding/json refuses to decode into one. Those that are
// larger than any id stay: thousands of 1e308 would become megabytes of digits.
func plainNumbers(value any) (plain any, changed bool) {
	switch v := value.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return v, false
		}
		if near, err := v.Float64(); err != nil || math.Abs(near) > limit.MaxID || near != math.Trunc(near) || near == 0 && !isZero(v.String()) {
			return v, false
		}
		if exact, ok := new(big.Rat).SetString(v.String()); ok && exact.IsInt() {
			return json.Number(exact.Num().String()), true
		}
	case []any:
		for i, entry := range v {
			p, c := plainNumbers(entry)
			v[i], changed = p, changed || c
		}
		return v, changed
	case map[string]any:
		for key, entry := range v {
			p, c := plainNumbers(entry)
			v[key], changed = p, changed || c
		}
		return v, changed
	}
	return value, false
}

// isZero tells 0.0e5 from what is only too small to be told from it.
func isZero(number string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return !strings.ContainsAny(digits, "123456789")
}

// parameters checks headers and query. Path parameters name records: one that
// is malformed names none, which the operation says in its turn.
func (v validators) parameters(op *api.Operation, r *http.Request) error {
	var query url.Values
	if r.URL.RawQuery != "" {
		query = r.URL.Query()
	}
	broken := brokenPairs(r.URL.RawQuery)
	for _, p := range op.Parameters {
		code := codeOf(op, http.StatusBadRequest)
		var values []string
		switch p.In {
		case "header":
			values = r.Header.Values(p.Name)
			if slices.Contains(op.Errors[http.StatusBadRequest], fault.IdempotencyKeyRequired.Name) {
				code = fault.IdempotencyKeyRequired
			}
		case "query":
			if broken[p.Name] {
				return code.At(p.Name, "want %s percent-encoded", p.Name)
			}
			values = query[p.Name]
		default:
			continue
		}
		switch {
		case len(values) == 0 && !p.Required:
			continue
		case len(values) == 0:
			return code.At(p.Name, "%s is required", p.Name)
		case len(values) > 1:
			return code.At(p.Name, "want %s once, not %d times", p.Name, len(values))
		}
		schema := v[p.Schema]
		var instance any = values[0]
		if isInteger(schema) {
			if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && strconv.FormatInt(n, 10) == values[0] {
				instance = n
			}
		}
		if violation := validate(schema, instance); violation != nil {
			return code.At(p.Name, "%s", violation.want)
		}
	}
	return nil
}

// brokenPairs names the parameters whose values cannot be decoded. net/url
// leaves them out, as if they had not been sent.
func brokenPairs(query string) (names map[string]bool) {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if _, err := url.QueryUnescape(value); err == nil && !strings.Contains(pair, ";") {
			continue
		}
		if name, err := url.QueryUnescape(name); err == nil {
			if names == nil {
				names = make(map[string]bool)
			}
			names[name] = true
		}
	}
	return names
}

func isInteger(s *jsonschema.Schema) bool {
	for s.Ref != nil {
		s = s.Ref
	}
	return s.Types != nil && slices.Contains(s.Types.ToStrings(), "integer")
}

// A violation is one place where an instance leaves its schema.
type violation struct {
	path string
	want string
}

// validate gives the violation that comes first by path: the library reports
// them in random order.
func validate(schema *jsonschema.Schema, instance any) *violation {
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(instance); !errors.As(err, &invalid) {
		return nil
	}
	found := violationsOf(invalid, instance)
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b violation) int {
		if (a.path == "") != (b.path == "") {
			return -cmp.Compare(a.path, b.path) // a field says more than none
		}
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.want, b.want))
	})
	return &found[0]
}

func violationsOf(e *jsonschema.ValidationError, instance any) []violation {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return violationsAt(instance, e.InstanceLocation, k.Missing, "the field is required")
	case *kind.AdditionalProperties:
		return violationsAt(instance, e.InstanceLocation, k.Properties, "no such field; compare its spelling with the reference")
	case *kind.Not:
		// The document says "at least one of these fields" so. Which one to name,
		// and that blank is not there, the domain knows.
		return nil
	}
	if _, choice := e.ErrorKind.(*kind.OneOf); !choice && len(e.Causes) > 0 {
		var all []violation
		for _, cause := range e.Causes {
			all = append(all, violationsOf(cause, instance)...)
		}
		return all
	}
	return []violation{{pathOf(instance, e.InstanceLocation), wantOf(e.ErrorKind)}}
}

func violationsAt(instance any, location, names []string, want string) []violation {
	var all []violation
	for _, name := range names {
		all = append(all, violation{pathOf(instance, append(slices.Clone(location), name)), want})
	}
	return all
}

// pathOf writes a location in an instance as clients see it: contactIds[3],
// company.domain. A number is a place in an array only where there is one: a field
// may have that name too.
func pathOf(instance any, location []string) string {
	var b strings.Builder
	for _, step := range location {
		switch v := instance.(type) {
		case []any:
			b.WriteString("[" + step + "]")
			if i, err := strconv.Atoi(step); err == nil && i < len(v) {
				instance = v[i]
			}
			continue
		case map[string]any:
			instance = v[step]
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strictjson.Clip(step))
	}
	return b.String()
}

// wantOf says what would be right, and never repeats what was sent.
func wantOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "want " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		var names []string
		for _, value := range k.Want {
			names = append(names, fmt.Sprint(value))
		}
		return "want one of " + strings.Join(names, ", ")
	case *kind.MinLength:
		return fmt.Sprintf("want at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("want at most %d characters", k.Want)
	case *kind.Pattern:
		return "want a value that matches " + k.Want
	case *kind.Minimum:
		return "want at least " + k.Want.RatString()
	case *kind.Maximum:
		return "want at most " + k.Want.RatString()
	case *kind.MinItems:
		return fmt.Sprintf("want at least %d entries", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("want at most %d entries", k.Want)
	case *kind.UniqueItems:
		return "want no entry twice"
	}
	return "compare the value with the reference"
}
