package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/servertest"
)

// A place is where a client puts something of its own into a request: a parameter,
// a header, a value of the body, or the name of one. Places are read from the
// document: a new operation, parameter or field is swept without being named.
type place struct {
	op   *api.Operation
	in   string // path, query, header, body, or name
	name string // of a parameter
	at   []step // into the body
	kind string // string, integer or number
}

// A step goes into an object, or to the first entry of an array.
type step struct {
	field string // empty for an array
	alone bool   // the object takes one field only
}

func (p place) String() string {
	if p.at == nil {
		return p.op.ID + " " + p.in + " " + p.name
	}
	var fields []string
	for _, s := range p.at {
		fields = append(fields, cmp.Or(s.field, "0"))
	}
	return p.op.ID + " " + p.in + " " + strings.Join(fields, ".")
}

// undeclared are headers that servers and what stands before them like to read.
var undeclared = []string{"Origin", "Referer", "User-Agent", "Cookie", "X-Request-Id", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "Forwarded", "X-Real-Ip", "Traceparent", "Tracestate", "Accept-Language", "X-Http-Method-Override", "X-Original-Url"}

// declared leaves of the headers that no operation declares those of two operations,
// one with a credential and one without: what reads them comes before all of them.
func declared(all []place) []place {
	return slices.DeleteFunc(all, func(p place) bool {
		return slices.Contains(undeclared, p.name) && p.op.ID != "createEvent" && p.op.ID != "submitForm"
	})
}

// places lists those of all operations: what reads first, so that nobody sees what
// the sweep itself wrote.
func places() (all []place) {
	for i := range api.Operations {
		op := &api.Operations[i]
		for _, p := range op.Parameters {
			schema, _ := resolve(lookup(p.Schema), "")
			kind, _ := schema["type"].(string)
			all = append(all, place{op: op, in: p.In, name: p.Name, kind: kind})
		}
		for _, name := range undeclared {
			all = append(all, place{op: op, in: "header", name: name, kind: "string"})
		}
		if op.BodySchema != "" {
			all = append(all, inside(op, lookup(op.BodySchema), nil, false)...)
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.op.Method, b.op.Method) })
	return all
}

// inside lists the places that a schema has, below a place of a body.
func inside(op *api.Operation, schema map[string]any, at []step, alone bool) (all []place) {
	schema, _ = resolve(schema, "")
	if choices, ok := schema["oneOf"].([]any); ok {
		for _, choice := range choices {
			all = append(all, inside(op, choice.(map[string]any), at, true)...)
		}
		return all
	}
	below := func(s step) []step { return append(slices.Clone(at), s) }
	kinds, ok := schema["type"].([]any)
	if !ok {
		kinds = []any{schema["type"]}
	}
	for _, kind := range kinds {
		switch kind {
		case "object":
			fields, _ := schema["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				all = append(all, inside(op, fields[name].(map[string]any), below(step{name, alone}), false)...)
			}
			added := below(step{"added", alone})
			all = append(all, place{op: op, in: "name", at: added, kind: "string"})
			switch more := schema["additionalProperties"].(type) {
			case map[string]any:
				all = append(all, inside(op, more, added, false)...)
			case bool:
				if more {
					all = append(all, place{op: op, in: "body", at: added, kind: "string"})
				}
			}
		case "array":
			all = append(all, inside(op, schema["items"].(map[string]any), below(step{}), false)...)
		case "string", "integer", "number":
			all = append(all, place{op: op, in: "body", at: at, kind: kind.(string)})
		}
	}
	return all
}

// An asking is a request that is yet to be sent.
type asking struct {
	op      *api.Operation
	inPath  map[string]string
	query   url.Values
	headers map[string]string
	body    any
}

// A sweeper makes requests of every operation that the server takes, with records
// of one workspace.
type sweeper struct {
	server     server
	address    string // of the database
	workspace  seeded
	credential string
	number     atomic.Int64
	mu         sync.Mutex
	slots      []string // that nobody has booked
}

// sweepable is a workspace in which every operation finds what it needs. ORG and
// PERSON are names of its own.
const sweepable = `
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@ORG.com, name: Ada ORG, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 1000000}
    companies:
      - {ref: company, name: ORG Limited, domain: ORG.com, other_domains: [ORG.de], industry: ORG industry}
      - {ref: other, name: ORG Other, domain: ORGother.com}
    contacts:
      - {ref: contact, email: PERSON@ORG.com, first_name: PERSON, company: company, linkedin_url: "https://www.linkedin.com/in/PERSON-ORG"}
    segments:
      - {ref: seg, name: ORG segment, companies: [company]}
    motions:
      - {ref: motion, name: ORG motion, entry: {api_call: true, reentry: always}, steps: [{kind: add_note, text: "ORG note"}, {kind: wait, days: 1}]}
    event_types:
      - {name: ORG_event, label: ORG label, properties: {ORG_plan: string}}
    signals:
      - {ref: sig, name: ORG signal, event: ORG_event, min_count: 1, within_days: 7, score: 10}
    sites:
      - {ref: www, secret: secret-of-ORG-and-nobody-else, origins: ["https://www.ORG.com"]}
    visitors:
      - {id: v-PERSON-ORG, site: www, identified_as: contact}
    forms:
      - {ref: demo, name: ORG form, fields: [email, name, ORG_size]}
    meeting_forms:
      - {ref: call, name: ORG call, minutes: 5}
`

func sweepOf(t testing.TB, s server, address, slug, org, person string) *sweeper {
	t.Helper()
	w := seedOn(t, address, slug, strings.NewReplacer("ORG", org, "PERSON", person).Replace(sweepable))
	if out, err := servertest.Command(t, address, "", "workspace", "set", slug, "--events-per-minute=10000000", "--events-per-day=100000000"); err != nil {
		t.Fatal(out, err)
	}
	k := &sweeper{server: s, address: address, workspace: w, credential: w.APIKeys["all"].Token}
	for day := 1; day < 56; day += 28 {
		from, to := time.Now().AddDate(0, 0, day).Format(time.DateOnly), time.Now().AddDate(0, 0, day+27).Format(time.DateOnly)
		a := s.send(t, "GET", "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey+"/slots?from="+from+"&to="+to, "")
		var list struct {
			Slots []struct {
				StartsAt string `json:"starts_at"`
			}
		}
		if err := json.Unmarshal(a.body, &list); err != nil || len(list.Slots) == 0 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for _, slot := range list.Slots {
			k.slots = append(k.slots, slot.StartsAt)
		}
	}
	return k
}

// unique is text that no other request has; it is found again by its form.
func (k *sweeper) unique() string { return fmt.Sprintf("uq%07d", k.number.Add(1)) }

// known gives what only the workspace can know: values that name its records.
func (k *sweeper) known(op *api.Operation, name string) any {
	w := k.workspace
	switch name {
	case "startMotion id":
		return w.Motions["motion"]
	case "startMotion companyId":
		return w.Companies["company"]
	case "identifyVisitor site":
		return w.Sites["www"].SiteKey
	case "bookMeeting starts_at":
		k.mu.Lock()
		defer k.mu.Unlock()
		slot := k.slots[0]
		k.slots = k.slots[1:]
		return slot
	case op.ID + " fields":
		return map[string]any{"email": k.unique() + "@newco.com", "name": "Some Body"}
	case op.ID + " publicKey":
		if strings.Contains(op.Path, "meeting") {
			return w.MeetingForms["call"].PublicKey
		}
		return w.Forms["demo"].PublicKey
	case op.ID + " Idempotency-Key", op.ID + " id", op.ID + " events.0.id":
		return k.unique()
	case op.ID + " email":
		return k.unique() + "@newco.com"
	}
	return nil
}

// plain makes a request that is good as it stands, with no more than it needs.
func (k *sweeper) plain(op *api.Operation) asking {
	a := asking{op: op, inPath: map[string]string{}, query: url.Values{}, headers: map[string]string{}}
	for _, p := range op.Parameters {
		value := k.known(op, op.ID+" "+p.Name)
		if !p.Required {
			continue
		}
		if value == nil {
			value = k.sample(op, lookup(p.Schema), nil)
		}
		switch p.In {
		case "path":
			a.inPath[p.Name] = fmt.Sprint(value)
		case "query":
			a.query.Set(p.Name, fmt.Sprint(value))
		case "header":
			a.headers[p.Name] = fmt.Sprint(value)
		}
	}
	if op.BodySchema != "" {
		a.body = k.sample(op, lookup(op.BodySchema), nil)
	}
	return a
}

// sample gives a small value of a schema.
func (k *sweeper) sample(op *api.Operation, schema map[string]any, at []string) any {
	if known := k.known(op, op.ID+" "+strings.Join(at, ".")); known != nil {
		return known
	}
	schema, pointer := resolve(schema, "")
	if choices, ok := schema["oneOf"].([]any); ok {
		return k.sample(op, choices[0].(map[string]any), at)
	}
	if choices, ok := schema["enum"].([]any); ok {
		return choices[0]
	}
	kind := schema["type"]
	if kinds, ok := kind.([]any); ok {
		kind = kinds[0]
	}
	switch kind {
	case "object":
		value := map[string]any{}
		fields, _ := schema["properties"].(map[string]any)
		of := func(name string) any {
			return k.sample(op, fields[name].(map[string]any), append(slices.Clone(at), name))
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			value[name.(string)] = of(name.(string))
		}
		if choice, ok := schema["not"].(map[string]any); ok { // the document's way to say: one of these at least
			first := choice["not"].(map[string]any)["anyOf"].([]any)[0].(map[string]any)["required"].([]any)[0].(string)
			value[first] = of(first)
		}
		return value
	case "array":
		return []any{k.sample(op, schema["items"].(map[string]any), append(slices.Clone(at), "0"))}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	for _, text := range []string{"some-text", "sometext", "2026-03-02", "2026-03-02T09:30:00Z", "Europe/Berlin"} {
		if pointer == "" || valid(pointer, text) == nil {
			return text
		}
	}
	panic("no text is known that " + op.ID + " " + strings.Join(at, ".") + " takes")
}

// with puts a value into a place of a plain request. It is false for what cannot be
// sent there.
func (k *sweeper) with(p place, value any) (asking, bool) {
	a := k.plain(p.op)
	text := fmt.Sprint(value)
	switch p.in {
	case "path":
		a.inPath[p.name] = text
		return a, text != "" && text != "." && text != ".." && !strings.Contains(text, "/") // else it is another path
	case "query":
		a.query.Set(p.name, text)
	case "header":
		a.headers[p.name] = text
		return a, text != "" && strings.TrimSpace(text) == text && httpguts.ValidHeaderFieldValue(text)
	case "name":
		at := slices.Clone(p.at)
		at[len(at)-1].field = text
		a.body = put(a.body, at, "x")
		return a, text != ""
	default:
		a.body = put(a.body, p.at, value)
	}
	return a, true
}

// put gives a body with a value at a place.
func put(body any, at []step, value any) any {
	if len(at) == 0 {
		return value
	}
	if at[0].field == "" {
		list, _ := body.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		return append([]any{put(list[0], at[1:], value)}, list[1:]...)
	}
	object, _ := body.(map[string]any)
	changed := map[string]any{}
	if !at[0].alone {
		maps.Copy(changed, object)
	}
	changed[at[0].field] = put(changed[at[0].field], at[1:], value)
	return changed
}

// ask sends a request with the sweeper's credential.
func (k *sweeper) ask(t testing.TB, a asking) answer {
	t.Helper()
	path := a.op.Path
	for name, value := range a.inPath {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	if len(a.query) > 0 {
		path += "?" + a.query.Encode()
	}
	headers := []string{}
	if len(a.op.Scopes) > 0 {
		headers = append(headers, "Authorization: Bearer "+k.credential)
	}
	for name, value := range a.headers {
		headers = append(headers, name+": "+value)
	}
	return k.server.send(t, a.op.Method, path, written(a.body), headers...)
}

func written(body any) string {
	if body == nil {
		return ""
	}
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		panic(err) // it is made of maps, lists, text and numbers
	}
	return raw.String()
}

// What the sweep starts from has to be taken, or it would see the first refusal
// and nothing behind it.
func TestEveryOperationTakesTheRequestThatSweepsStartFrom(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	k := sweepOf(t, s, dbtest.URL(t), "sweep"+strings.ToLower(noise(10)), "acme", "ann")
	for i := range api.Operations {
		if a := k.ask(t, k.plain(&api.Operations[i])); a.status >= http.StatusBadRequest {
			t.Errorf("%s answers its plain request with %d %s; say in sweeper.known what it needs", api.Operations[i].ID, a.status, a.body)
		}
	}
	if n := len(places()); n < 80 {
		t.Errorf("only %d places are found", n)
	}
}

// startReleased starts the binary as it is released, for tests that send many
// thousand requests or compare what they cost: the one that finds races is slow.
func startReleased(t testing.TB, address string, env ...string) server {
	t.Helper()
	return server{servertest.StartProgram(t, released(t), address, env...)}
}

// released builds that binary, as make build does, whose work is used.
func released(t testing.TB) string {
	t.Helper()
	program := servertest.Binary + "-released"
	buildReleased.Do(func() {
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "../../cmd/inlet")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build inlet: %v: %s", err, out)
		}
	})
	return program
}

var buildReleased sync.Once
