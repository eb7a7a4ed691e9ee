package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/lead"
	"github.com/inletdev/inlet/impl/strictjson"
	"github.com/inletdev/inlet/openapi"
)

var compiled = sync.OnceValue(func() validators {
	v, err := newValidators()
	if err != nil {
		panic(err)
	}
	return v
})

// typed are the generated types that bodies are decoded into, by operation.
var typed = map[string]func() any{
	"createLead": func() any { return new(api.LeadInput) }, "createLeadAlias": func() any { return new(api.LeadInput) },
	"startMotion": func() any { return new(api.MotionStart) }, "identifyVisitor": func() any { return new(api.Identify) },
	"submitForm": func() any { return new(api.FormSubmission) }, "bookMeeting": func() any { return new(api.MeetingBooking) },
}

// withBody are the operations whose bodies the guard reads.
var withBody = func() (all []*api.Operation) {
	for i := range api.Operations {
		if op := &api.Operations[i]; op.BodySchema != "" && op.Tag != eventsTag {
			all = append(all, op)
		}
	}
	return all
}()

// FuzzBodies sends an operation any body. What the guard lets in, the generated
// type decodes, and says the same when it is encoded again; a lead of it is what a
// plain reading of the two spellings gives. What it keeps out is refused with the
// operation's own code, for a field that the body has or lacks, in words that quote
// no value. A body of the largest size made of the input is read in no time.
func FuzzBodies(f *testing.F) {
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		op := withBody[int(which)%len(withBody)]
		out, err := compiled().body(op, body)
		if err != nil {
			var refused *fault.Fault
			if !errors.As(err, &refused) || refused.Code != codeOf(op, http.StatusBadRequest) || refused.Message == "" {
				t.Fatalf("%s: %q is refused with %v", op.ID, body, err)
			}
			blames(t, op, body, refused)
		} else {
			understands(t, op, body, out)
		}
		if len(body) > 0 && (len(body) <= 16 || crc32.ChecksumIEEE(body)%1024 == 0) {
			around := [][2]string{{"", ""}, {`{"contactIds":[`, `1]}`}, {`{"fields":{`, `"a":1}}`}, {`{"name":"`, `"}`}}[int(which)/len(withBody)%4]
			room := int(min(op.MaxBody, 64<<10)) - len(around[0]) - len(around[1])
			begun := time.Now()
			_, _ = compiled().body(op, []byte(around[0]+strings.Repeat(string(body), room/len(body))+around[1]))
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("%s: %q, as often as it fits a body, takes %v", op.ID, body, took)
			}
		}
	})
}

// blames holds a refusal to the body that it is about.
func blames(t *testing.T, op *api.Operation, body []byte, refused *fault.Fault) {
	t.Helper()
	var value any
	if json.Unmarshal(body, &value) != nil {
		return
	}
	for _, text := range texts(value) {
		if len(text) >= 6 && strings.Contains(refused.Message, text) && !bytes.Contains(openapi.YAML(), []byte(text)) {
			t.Errorf("%s: %q is refused with %q, which quotes it", op.ID, body, refused.Message)
		}
	}
	object, ok := value.(map[string]any)
	if !ok || refused.Param == "" {
		return
	}
	names := slices.Concat(slices.Collect(maps.Keys(object)), compiled()[op.BodySchema].Required)
	if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(refused.Param, strictjson.Clip(name)) }) {
		t.Errorf("%s: %q is refused for %q, which it neither has nor lacks", op.ID, body, refused.Param)
	}
}

// texts are all values of a body that are text.
func texts(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, entry := range v {
			all = append(all, texts(entry)...)
		}
	case map[string]any:
		for _, entry := range v {
			all = append(all, texts(entry)...)
		}
	}
	return all
}

// understands holds what was let in to the generated type and the domain.
func understands(t *testing.T, op *api.Operation, body, out []byte) {
	t.Helper()
	if broken := strictjson.Check(body); broken != nil {
		t.Errorf("%s: %q is let in, though %v", op.ID, body, broken)
	}
	into := typed[op.ID]()
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(into); err != nil {
		t.Fatalf("%s: %q is let in, and does not decode: %v", op.ID, body, err)
	}
	again, err := json.Marshal(into)
	if err != nil {
		t.Fatalf("%s: %q: %v", op.ID, body, err)
	}
	var sent, decoded map[string]any
	if json.Unmarshal(body, &sent) != nil || json.Unmarshal(again, &decoded) != nil || !reflect.DeepEqual(withoutNull(sent), withoutNull(decoded)) {
		t.Errorf("%s: %q is decoded as %s", op.ID, body, again)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(again))
	if err != nil || validate(compiled()[op.BodySchema], instance) != nil {
		t.Errorf("%s: %q becomes %s, which is not let in", op.ID, body, again)
	}
	switch into := into.(type) {
	case *api.LeadInput:
		if got, want := leadOf(into, out), leadPlainly(out); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is the lead %+v, want %+v", body, got, want)
		}
	case *api.MeetingBooking:
		if _, err := time.Parse(time.RFC3339, strings.ToUpper(into.StartsAt)); err != nil {
			t.Errorf("%q starts at no time: %v", body, err)
		}
	}
}

// withoutNull leaves out what counts as absent.
func withoutNull(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for name, entry := range object {
		if entry != nil {
			out[name] = withoutNull(entry)
		}
	}
	return out
}

// leadPlainly reads a lead field by field.
func leadPlainly(body []byte) lead.Lead {
	var fields, company, utm map[string]json.RawMessage
	mustDecode(body, &fields)
	mustDecode(fields["company"], &company)
	mustDecode(fields["utm"], &utm)
	first := func(from ...json.RawMessage) string {
		for _, raw := range from {
			var text string
			if mustDecode(raw, &text); contact.OneLine(text) != "" {
				return text
			}
		}
		return ""
	}
	l := lead.Lead{
		Source: "api", Email: first(fields["email"]), Name: first(fields["name"]), FirstName: first(fields["first_name"]),
		LastName: first(fields["last_name"]), Title: first(fields["title"]), Seniority: first(fields["seniority"]),
		Department: first(fields["department"]), Phone: first(fields["phone"]), LinkedInURL: first(fields["linkedin_url"]),
		CompanyDomain: first(company["domain"], fields["company_domain"]), CompanyName: first(company["name"], fields["company_name"]),
		UTMSource: first(utm["source"], fields["utm_source"]), UTMMedium: first(utm["medium"], fields["utm_medium"]),
		UTMCampaign: first(utm["campaign"], fields["utm_campaign"]), Extra: map[string]json.RawMessage{},
	}
	known := strings.Fields("email name first_name last_name title seniority department phone linkedin_url company company_domain company_name utm utm_source utm_medium utm_campaign")
	for name, raw := range fields {
		if !slices.Contains(known, name) {
			l.Extra[name] = raw
		}
	}
	for name, raw := range company {
		if name != "domain" && name != "name" {
			l.Extra["company."+name] = raw
		}
	}
	for name, raw := range utm {
		if name != "source" && name != "medium" && name != "campaign" {
			l.Extra["utm."+name] = raw
		}
	}
	return l
}

func mustDecode(raw json.RawMessage, into any) {
	if raw == nil {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		panic(err) // the schema was held to it
	}
}

// bound notes what parameters the generated code hands to operations.
type bound struct {
	api.ServerInterface
	got map[string]string
}

func note[T any](b bound, name string, value *T) {
	if value != nil {
		b.got[name] = fmt.Sprint(*value)
	}
}

func (b bound) ListEvents(_ http.ResponseWriter, _ *http.Request, p api.ListEventsParams) {
	note(b, "limit", p.Limit)
	note(b, "cursor", p.Cursor)
	note(b, "name", p.Name)
	note(b, "status", p.Status)
}

func (b bound) ListEventTypes(_ http.ResponseWriter, _ *http.Request, p api.ListEventTypesParams) {
	note(b, "limit", p.Limit)
	note(b, "cursor", p.Cursor)
}

func (b bound) ListMeetingSlots(_ http.ResponseWriter, _ *http.Request, _ api.MeetingFormKey, p api.ListMeetingSlotsParams) {
	note(b, "from", p.From)
	note(b, "to", p.To)
	note(b, "time_zone", p.TimeZone)
}

func (b bound) CreateLead(_ http.ResponseWriter, _ *http.Request, p api.CreateLeadParams) {
	note(b, "Idempotency-Key", p.IdempotencyKey)
}

func (b bound) StartMotion(_ http.ResponseWriter, _ *http.Request, _ api.ID, p api.StartMotionParams) {
	note(b, "Idempotency-Key", &p.IdempotencyKey)
}

// allowed is what the document says of parameters, once more.
var allowed = map[string]*regexp.Regexp{
	"limit": regexp.MustCompile(`^([1-9][0-9]?|100)\z`), "cursor": regexp.MustCompile(`(?s)^.*\z`), "name": regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}\z`),
	"status": regexp.MustCompile(`^(accepted|unmatched)\z`), "time_zone": regexp.MustCompile(`(?s)^.{1,64}\z`),
	"from": regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}\z`), "to": regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}\z`),
	"startMotion Idempotency-Key": regexp.MustCompile(`^[!-~]{1,100}\z`), "createLead Idempotency-Key": regexp.MustCompile(`(?s)^.*\z`),
}

// FuzzParameters sends any query and any header: what the guard lets in, the
// generated code binds, to the values that were sent, and exactly what the document
// allows is let in. A refusal names a parameter and quotes no value.
func FuzzParameters(f *testing.F) {
	paths := []string{"GET /api/v1/events", "GET /api/v1/event-types", "GET /api/v1/meeting-forms/k/slots", "POST /api/v1/leads", "POST /api/v1/motions/1/start"}
	seen := bound{got: map[string]string{}}
	var unbound error
	mux := http.NewServeMux()
	api.HandlerWithOptions(seen, api.StdHTTPServerOptions{BaseRouter: mux, ErrorHandlerFunc: func(_ http.ResponseWriter, _ *http.Request, err error) { unbound = err }})
	f.Fuzz(func(t *testing.T, which byte, query, header string, twice bool) {
		method, path, _ := strings.Cut(paths[int(which)%len(paths)], " ")
		r := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}}
		if len(header) > 8192 { // more than any operation takes
			header = header[:8192]
		}
		if header != "" {
			r.Header["Idempotency-Key"] = []string{header}
		}
		if twice {
			r.Header["Idempotency-Key"] = []string{header, header}
		}
		_, pattern := mux.Handler(r)
		op := operations[pattern]
		sent, broken := url.ParseQuery(query)
		want, expected := map[string]string{}, broken == nil
		for _, p := range op.Parameters {
			values, rule := sent[p.Name], allowed[p.Name]
			switch p.In {
			case "path":
				continue
			case "header":
				values, rule = r.Header["Idempotency-Key"], allowed[op.ID+" "+p.Name]
			}
			if len(values) > 0 {
				want[p.Name] = values[0]
			}
			expected = expected && (len(values) == 0 && !p.Required || len(values) == 1 && rule.MatchString(values[0]))
		}
		err := compiled().parameters(op, r)
		for pair := range strings.SplitSeq(query, "&") {
			if _, broken := url.ParseQuery(pair); broken == nil {
				continue
			}
			escaped, _, _ := strings.Cut(pair, "=")
			name, unreadable := url.QueryUnescape(escaped)
			if isOurs := slices.ContainsFunc(op.Parameters, func(p api.Parameter) bool { return p.In == "query" && p.Name == name }); err == nil && unreadable == nil && isOurs {
				t.Errorf("%s: %q is let in, though %s cannot be decoded", op.ID, query, name)
			}
		}
		if err != nil {
			var refused *fault.Fault
			if !errors.As(err, &refused) || refused.Code.Status != http.StatusBadRequest ||
				!slices.ContainsFunc(op.Parameters, func(p api.Parameter) bool { return p.In != "path" && p.Name == refused.Param }) {
				t.Fatalf("%s: %q and %q are refused with %+v", op.ID, query, header, err)
			}
			if value := want[refused.Param]; len(value) >= 6 && strings.Contains(refused.Message, value) && !bytes.Contains(openapi.YAML(), []byte(value)) {
				t.Errorf("%s: %q and %q are refused with %q, which quotes it", op.ID, query, header, refused.Message)
			}
			if isDay := refused.Param == "from" || refused.Param == "to"; expected && !isDay {
				t.Errorf("%s: %q and %q are refused for %q: %s", op.ID, query, header, refused.Param, refused.Message)
			}
			return
		}
		if broken == nil && !expected {
			t.Errorf("%s: %q and %q are let in", op.ID, query, header)
		}
		clear(seen.got)
		unbound = nil
		if mux.ServeHTTP(httptest.NewRecorder(), r); unbound != nil {
			if broken == nil {
				t.Fatalf("%s: %q and %q are let in, and do not bind: %v", op.ID, query, header, unbound)
			}
			return
		}
		if !maps.Equal(seen.got, want) {
			t.Errorf("%s: %q and %q are bound as %q, want %q", op.ID, query, header, seen.got, want)
		}
	})
}
