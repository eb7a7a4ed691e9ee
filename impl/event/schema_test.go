package event

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/strictjson"
	"github.com/inletdev/inlet/openapi"
)

// TestParseAgreesWithTheDocument holds Parse to the schema that the document
// publishes, in both directions: each takes exactly what the other takes, and
// for what neither takes both name the same field.
//
// What the schema cannot say is said here: what strictjson refuses is refused.
// Numbers at the very end of what doubles hold are left out: the schema compares
// them before they are rounded.
func TestParseAgreesWithTheDocument(t *testing.T) {
	const (
		cases = 200_000
		most  = 20 * time.Second // under the race detector it is slower
	)
	var (
		until   = time.Now().Add(most)
		workers sync.WaitGroup
		n       atomic.Int64
		taken   atomic.Int64
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !t.Failed() && time.Now().Before(until) {
				i := n.Add(1)
				if i > cases {
					return
				}
				g := generator{seeded(int(i))}
				body := g.event()
				if g.IntN(4) == 0 {
					body = g.mutated(body)
				}
				if compare(t, []byte(body)) {
					taken.Add(1)
				}
			}
		})
	}
	workers.Wait()
	ran := min(n.Load(), cases)
	t.Logf("%d cases, %d of them events", ran, taken.Load())
	if !t.Failed() && (taken.Load() < ran/5 || taken.Load() > ran*4/5) {
		t.Errorf("%d of %d cases are events: the cases say little", taken.Load(), ran)
	}
}

var eventInput = sync.OnceValue(func() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		panic(err)
	}
	return compiler.MustCompile("openapi.json#/components/schemas/EventInput")
})

// compare parses a body and holds the outcome to the document.
func compare(t *testing.T, body []byte) (taken bool) {
	t.Helper()
	_, got := Parse(body)

	if broken := strictjson.Check(body); broken != nil {
		if got == nil {
			t.Errorf("taken: %s\nthough: %v", body, broken)
		}
		return false
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Errorf("strictjson takes what is no JSON: %s: %v", body, err)
		return false
	}
	if atTheEndOfDoubles(instance) {
		return false
	}
	var all []leaf
	if invalid := (*jsonschema.ValidationError)(nil); errors.As(eventInput().Validate(instance), &invalid) {
		all = leaves(invalid)
	}
	switch {
	case got == nil && all != nil:
		t.Errorf("taken: %s\nthough the document refuses %v", body, all)
	case got != nil && all == nil:
		t.Errorf("refused: %s\nfor %q: %s\nthough the document takes it", body, got.Param, got.Message)
	case got != nil:
		want := slices.MinFunc(all, func(a, b leaf) int { return cmp.Or(a.kind-b.kind, cmp.Compare(a.path, b.path)) })
		if got.Param != want.path || got.Code != fault.InvalidBody || got.Message == "" {
			t.Errorf("refused: %s\nfor %q: %s\nthough the document refuses %v", body, got.Param, got.Message, all)
		}
	}
	return got == nil
}

// A leaf is one thing that the schema refuses.
type leaf struct {
	kind int
	path string
}

func leaves(e *jsonschema.ValidationError) []leaf {
	at := func(names ...string) string {
		steps := append(slices.Clone(e.InstanceLocation), names...)
		for i := range steps {
			steps[i] = clip(steps[i])
		}
		return strings.Join(steps, ".")
	}
	var all []leaf
	switch k := e.ErrorKind.(type) {
	case *kind.Not:
		return []leaf{{nobody, "company"}}
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, leaf{missing, at(name)})
		}
		return all
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			all = append(all, leaf{malformed, at(name)})
		}
		return all
	case *kind.PropertyNames: // its location is wrong in this version of the library
		return []leaf{{malformed, "properties." + clip(k.Property)}}
	case *kind.OneOf:
		// Of a choice that fails, values that are wrong in their branch and
		// fields that no branch knows tell more than the choice itself.
		strangers := make(map[leaf]int)
		for _, branch := range e.Causes {
			for _, l := range leaves(branch) {
				switch unknown := isUnknown(branch, l); {
				case l.kind == missing || l.path == at():
				case unknown:
					if strangers[l]++; strangers[l] == len(e.Causes) {
						all = append(all, l)
					}
				default:
					all = append(all, l)
				}
			}
		}
		if all == nil {
			return []leaf{{malformed, at()}}
		}
		return all
	}
	if len(e.Causes) == 0 {
		return []leaf{{malformed, at()}}
	}
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

// isUnknown tells whether a branch refuses a field because it does not know it.
func isUnknown(e *jsonschema.ValidationError, l leaf) bool {
	if _, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		return slices.Contains(leaves(e), l)
	}
	return slices.ContainsFunc(e.Causes, func(cause *jsonschema.ValidationError) bool { return isUnknown(cause, l) })
}

func atTheEndOfDoubles(value any) bool {
	switch v := value.(type) {
	case json.Number:
		f, _ := v.Float64()
		return math.Abs(f) == math.MaxFloat64
	case map[string]any:
		for _, inner := range v {
			if atTheEndOfDoubles(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, atTheEndOfDoubles)
	}
	return false
}

// A generator writes events, many of them right, with whatever lies at the
// limits of a rule more often than chance would.
type generator struct{ *rand.Rand }

func seeded(n int) *rand.Rand { return rand.New(rand.NewPCG(2026, uint64(n))) }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) event() string {
	if g.IntN(100) == 0 {
		return g.any()
	}
	members := []string{`"id":` + g.value(g.id), `"name":` + g.value(g.name)}
	if g.IntN(2) == 0 {
		members = append(members, `"occurred_at":`+g.value(g.instant))
	}
	for about := 1 + g.IntN(7); about > 0; about &= about - 1 {
		switch about & -about {
		case 1:
			members = append(members, `"company":`+g.value(func() string { return g.reference("domain", limit.CompanyDomainLength) }))
		case 2:
			members = append(members, `"contact":`+g.value(func() string { return g.reference("email", limit.ContactEmailLength) }))
		case 4:
			members = append(members, `"visitor":`+g.value(g.visitor))
		}
	}
	if g.IntN(2) == 0 {
		members = append(members, `"properties":`+g.value(g.properties))
	}
	return g.object(members)
}

// object writes an object, at times without one of its members, with one twice
// or with one that is unknown, and in any order.
func (g generator) object(members []string) string {
	switch g.IntN(90) {
	case 0:
		if len(members) > 0 {
			i := g.IntN(len(members))
			members = slices.Delete(members, i, i+1)
		}
	case 1:
		if len(members) > 0 {
			members = append(members, pick(g, members...))
		}
	case 2:
		name := pick(g, `"organization_id"`, `"Id"`, `"nam"`, `"zz"`, `""`, `"domain"`, `"email"`, `"a.b"`, `"0"`, `"\u0000"`,
			`"`+strings.Repeat("ü", 64+g.IntN(2))+`"`)
		members = append(members, name+":"+g.any())
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	space := pick(g, "", "", "", " ", "\n\t", "\r\n")
	return "{" + space + strings.Join(members, ","+space) + space + "}"
}

// value writes what good writes, but at times something else.
func (g generator) value(good func() string) string {
	if g.IntN(60) == 0 {
		return g.any()
	}
	return good()
}

func (g generator) any() string {
	return pick(g, `null`, `true`, `false`, `""`, `"x"`, `"12"`, `{}`, `[]`, `[1,"a",{"b":null}]`, `{"id":1}`, `{"id":"x"}`,
		`{"a":{"b":[{}]}}`, `{"a":1,"a":2}`, `"\u0000"`, g.number(), strings.Repeat("[", 64)+strings.Repeat("]", 64),
		strings.Repeat("[", 10_000))
}

func (g generator) number() string {
	switch g.IntN(4) {
	case 0: // whole numbers that floats hold, beyond what they hold exactly
		exact := math.Ldexp(1+g.Float64(), 50+g.IntN(21))
		return strconv.FormatFloat(math.Trunc(exact), pick(g, byte('f'), 'e', 'g'), -1, 64) + pick(g, "", "", "", ".0")
	case 1:
		return strconv.FormatInt(g.Int64()>>g.IntN(64), 10) + pick(g, "", "", ".0", ".00", ".5", "e0", "E+2", "e-2")
	}
	return pick(g, "0", "-0", "-0.0", "0e5", "1", "-1", "1.0", "1.5", "12.0", "1e3", "1E3", "1e+3", "120e-1", "125e-1", "0.012e3",
		"9007199254740991", "9007199254740991.0", "9007199254740992", "9007199254740990.5", "9007199254740991.5",
		"9.007199254740991e15", "9.007199254740992e15", "90071992547409910e-1", "18446744073709551617", "1180591620717411303424",
		"1e15", "1e16", "1e300", "-1e300", "1e308", "1e309", "1e400", "-1e400", "1e401", "1e-400", "1e-401", "0e400", "0e401",
		"1e1000000", "1e-1000000", "0e99999999999999999999", "5e-324", "1e-330",
		"1"+strings.Repeat("0", 308), "1"+strings.Repeat("0", 309), "1"+strings.Repeat("0", 500), "0."+strings.Repeat("0", 500)+"1",
		"01", "1.", ".5", "+1", "1e", "0x1", "NaN", "Infinity", "-")
}

// text writes a string of about as many characters as are allowed.
func (g generator) text(alphabet string, length int) string {
	n := 1 + g.IntN(8)
	if g.IntN(8) == 0 {
		n = pick(g, 0, 1, length-1, length, length, length+1)
	}
	runes := []rune(alphabet)
	var b strings.Builder
	b.WriteByte('"')
	for range n {
		switch r := pick(g, runes...); {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case g.IntN(50) == 0:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	if g.IntN(100) == 0 {
		b.WriteString(pick(g, " ", "ü", "😀", "_", "-", "A", "0", "\\n", "\\u0000", "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\ud83d\\u0041",
			"\\x", "\x00", "\n", "\x7f", "\xff", "\xed\xa0\x80", "\u2028", "\ufffd", "\\/", "\\b\\f\\r\\t"))
	}
	b.WriteByte('"')
	return b.String()
}

func (g generator) id() string { return g.text("!#$az09AZ~\"\\-_", limit.EventIDLength) }

func (g generator) name() string {
	if g.IntN(20) == 0 {
		return g.text("az_09", limit.EventNameLength)
	}
	return pick(g, `"signed_in"`, `"a"`, `"x`+g.text("az_09", limit.EventNameLength-1)[1:])
}

func (g generator) instant() string {
	if g.IntN(40) == 0 {
		return g.text("0123456789-:TZ+.", 35)
	}
	part := func(max int) int {
		if g.IntN(40) == 0 {
			return max + 1 - (max+1)*g.IntN(2)
		}
		return 1 + g.IntN(max)
	}
	s := fmt.Sprintf("%04d-%02d-%02d%s%02d:%02d:%02d", pick(g, 2026, 2026, 2024, 2000, 1900, 1, 0, 9999),
		part(12), part(31), pick(g, "T", "T", "T", "T", "T", "T", "T", "T", "t", " ", ""), part(23), part(59), part(59))
	if g.IntN(3) == 0 {
		s += pick(g, ".", ".", ".", ".", ".", ".", ",") + "1234567890123"[:pick(g, 0, 1, 1, 2, 3, 3, 3, 6, 9, 9, 10)]
	}
	s += pick(g, "Z", "Z", "z", "+00:00", "-00:00", "+01:00", "-11:30", "+23:59")
	if g.IntN(20) == 0 {
		s = s[:len(s)-1] + pick(g, "", "+24:00", "+01:60", "+0100", "+01", "+1:00", " Z", "Z ", "ZZ")
	}
	return `"` + s + `"`
}

func (g generator) reference(other string, length int) string {
	id := func() string {
		if g.IntN(4) > 0 {
			return `"id":` + strconv.FormatInt(1+g.Int64()>>(10+g.IntN(53)), 10)
		}
		return `"id":` + g.value(g.number)
	}
	text := func() string {
		return `"` + other + `":` + g.value(func() string { return g.text("aü.@😀", length) })
	}
	switch g.IntN(40) {
	case 0:
		return g.object(nil)
	case 1:
		return g.object([]string{id(), text()})
	}
	if g.IntN(2) == 0 {
		return g.object([]string{id()})
	}
	return g.object([]string{text()})
}

func (g generator) visitor() string {
	return g.object([]string{`"id":` + g.value(func() string { return g.text("azAZ09-", limit.VisitorIDLength) })})
}

func (g generator) properties() string {
	entries := pick(g, 0, 1, 2, 3, 5, 8)
	if g.IntN(20) == 0 {
		entries = 48 + g.IntN(5)
	}
	members := make([]string, entries)
	for i := range members {
		key := fmt.Sprintf(`"p%d"`, i)
		if g.IntN(60) == 0 {
			key = g.text("az_09", limit.PropertyKeyLength)
		}
		members[i] = key + ":" + g.value(func() string {
			switch g.IntN(4) {
			case 0:
				return strconv.FormatFloat(math.Float64frombits(g.Uint64()>>2), 'g', -1, 64)
			case 1:
				return pick(g, "true", "false", "0", "-1.50", g.number())
			}
			return g.text("aü\"\\ 😀", limit.PropertyTextLength)
		})
	}
	return g.object(members)
}

// mutated breaks a body somewhere.
func (g generator) mutated(body string) string {
	if body == "" {
		return body
	}
	for range 1 + g.IntN(3) {
		i := g.IntN(len(body))
		switch g.IntN(4) {
		case 0:
			body = body[:i] + body[i+1:]
		case 1:
			body = body[:i] + pick(g, `"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, ` `, `0`, `e`, `.`, `-`, `u`, "\n", "\x00", "\x1f", "\xc3", "null") + body[i:]
		case 2:
			body = body[:i] + string(rune(' '+g.IntN(95))) + body[i+1:]
		case 3:
			body = body[:i]
		}
		if body == "" {
			return body
		}
	}
	return body
}
