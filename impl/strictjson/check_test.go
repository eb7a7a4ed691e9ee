package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func nested(open, end string, levels int) string {
	return strings.Repeat(open, levels) + strings.Repeat(end, levels)
}

func TestCheckNamesTheFieldAtFault(t *testing.T) {
	for body, path := range map[string]string{
		`{"a":1,"a":2}`:                              "a",
		`{"a":1,"\u0061":2}`:                         "a",
		`{"a":{"b":[1,{"c":1,"c":2}]}}`:              "a.b[1].c",
		`[{"a":1,"a":2}]`:                            "[0].a",
		`{"0":{"1":null,"1":null}}`:                  "0.1",
		`{"a.b":{"~/":1,"~/":1}}`:                    "a.b.~/",
		`{"a":"\u0000"}`:                             "a",
		`{"a":["x","y\u0000z"]}`:                     "a[1]",
		`{"a":{"b\u0000":1}}`:                        "a.b\x00",
		`{"a":"\ud83d"}`:                             "a",
		`{"a":["\ude00"]}`:                           "a[0]",
		`{"a":"\ud83d\u0041"}`:                       "a",
		`{"a":{"b":"\x"}}`:                           "a.b",
		"{\"a\":{\"b\":\"\xff\"}}":                   "a.b",
		"{\"a\":\"\xed\xa0\x80\"}":                   "a",
		`{"a":1e400}`:                                "a",
		`{"a":-1e309}`:                               "a",
		`{"a":[0,1e-100000]}`:                        "a[1]",
		`{"a":0e99999999999999999999}`:               "a",
		`{"a":1` + strings.Repeat("0", 400) + `}`:    "a",
		`{"a":{"b":` + nested("[", "]", 100) + `}}`:  "a",
		`{"b":` + nested(`{"a":`, "}", 10_000) + `}`: "b",
		nested("[", "]", 10_000):                     "[0]",
		`{"` + strings.Repeat("ü", 65) + `":1e400}`:  strings.Repeat("ü", 64) + "…",

		``: "", ` `: "", `{`: "", `{"a":1`: "", `{"a":1}}`: "", `{"a":1} x`: "", `{} {}`: "", `1 2`: "", `[1,]`: "", `{"a":1,}`: "",
		`{"a":01}`: "", `{"a":NaN}`: "", `{"a":+1}`: "", `{a:1}`: "", `{'a':1}`: "", `{"a":1 "b":2}`: "", "\ufeff{}": "", "{}\x00": "",
		"{\"a\":\"\n\"}": "",
	} {
		err := Check([]byte(body))
		if err == nil || err.Path != path || err.Message == "" {
			t.Errorf("%.200s: %v, want it at %q", body, err, path)
		}
	}
}

func TestCheckPassesWhatEveryReaderReadsAlike(t *testing.T) {
	for _, body := range []string{
		`{}`, `[]`, `"x"`, `null`, `12`, ` {"a":[1,2.5e3,"\ud83d\ude00"]} `, `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`,
		`{"":""}`, "\r\n\t[]\n", `"\"\\\/\b\f\n\r\tü\u00fc\uffff"`, nested("[", "]", 64),
		`[1.7976931348623157e308,-1e308,5e-324,1e-400,0e400,0.` + strings.Repeat("0", 1000) + `1]`,
	} {
		if err := Check([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := Check([]byte(nested("[", "]", 65))); err == nil {
		t.Error("65 levels pass")
	}
}

func TestCheckOfHugeNumbersAndDeepNestingIsCheap(t *testing.T) {
	for name, body := range map[string]string{
		"numbers": `[` + strings.Repeat(`1e1000000,`, 20000) + `1]`,
		"nesting": strings.Repeat(`[`, 1<<20),
		"objects": strings.Repeat(`{"a":`, 1<<18),
	} {
		var err *Error
		if allocated := testing.AllocsPerRun(1, func() { err = Check([]byte(body)) }); allocated > 1000 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
		if err == nil {
			t.Errorf("%s pass", name)
		}
	}
}

// FuzzCheck holds Check to a slower reading of the same rules by encoding/json, in
// both directions. What it refuses it refuses for a field that the body has, in
// words that quote nothing of it, and what it passes means the same when it is
// written anew. A body of the largest size made of the input is read in no time:
// nothing is quadratic.
func FuzzCheck(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		got := Check(body)
		want := refused(body)
		if (got != nil) != (want != "") {
			t.Fatalf("%q: %v, want it refused for %q", body, got, want)
		}
		switch {
		case got == nil:
			var value any
			if err := json.Unmarshal(body, &value); err != nil {
				t.Fatalf("%q passes: %v", body, err)
			}
			again, err := json.Marshal(value)
			if err != nil {
				t.Fatalf("%q passes: %v", body, err)
			}
			if bad := Check(again); bad != nil {
				t.Errorf("%q passes, but not %q: %v", body, again, bad)
			}
		case !slices.Contains(messages, got.Message):
			t.Errorf("%q is refused with %q", body, got.Message)
		case !leads(got.Path, body):
			t.Errorf("%q is refused for %q, which it has not", body, got.Path)
		}
		if len(body) > 0 && (len(body) <= 16 || crc32.ChecksumIEEE(body)%256 == 0) {
			const largest = 256 << 10
			begun := time.Now()
			_ = Check(bytes.Repeat(body, largest/len(body)))
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("%q, as often as it fits a body, takes %v", body, took)
			}
		}
	})
}

// messages are all that clients are told.
var messages = []string{
	"the value is nested too deeply", "want text without U+0000", "want a number that a double-precision float can hold",
	"something follows the JSON value; want one value alone", "want a JSON value, not an empty body",
	"the body is not valid JSON", "the field stands twice; send it once", "the body is not valid UTF-8",
	"a string holds half of a surrogate pair", "a string holds a broken escape",
}

var lone = regexp.MustCompile(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})`)

// refused says why a body is to be refused, and nothing where it is not. It reads
// the body several times over.
func refused(body []byte) string {
	if !json.Valid(body) {
		return "syntax"
	}
	if !utf8.Valid(body) {
		return "UTF-8"
	}
	for _, found := range lone.FindAllSubmatch(body, -1) { // valid JSON has backslashes in strings only
		if found[1] != nil {
			return "surrogate"
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var names []map[string]bool // of the objects that are open; nil for arrays
	isName := false
	for {
		token, err := d.Token()
		if err != nil {
			return map[bool]string{true: "", false: "syntax"}[errors.Is(err, io.EOF)]
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				names = append(names, map[string]bool{})
			case '[':
				names = append(names, nil)
			default:
				names = names[:len(names)-1]
			}
			if len(names) > 64 {
				return "depth"
			}
			isName = len(names) > 0 && names[len(names)-1] != nil
			continue
		case string:
			if strings.ContainsRune(v, 0) {
				return "U+0000"
			}
			if isName {
				if names[len(names)-1][v] {
					return "name twice"
				}
				names[len(names)-1][v] = true
				isName = false
				continue
			}
		case json.Number:
			_, err := v.Float64()
			mantissa, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
			n, tooLong := strconv.Atoi(cmp.Or(exponent, "0"))
			if err != nil || tooLong != nil || n > 400 || n < -400 || mantissa == "" {
				return "number"
			}
		}
		isName = len(names) > 0 && names[len(names)-1] != nil
	}
}

var strung = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// leads tells whether a path is made of names that stand in a body, and places in
// arrays.
func leads(path string, body []byte) bool {
	names := map[string]bool{}
	for at := range body { // a broken string may hide where the next one begins
		if body[at] != '"' {
			continue
		}
		quoted := strung.Find(body[at:])
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil && len(name) == 0 {
			continue
		}
		names[Clip(string(name))] = true
	}
	var follow func(rest string, first bool) bool
	follow = func(rest string, first bool) bool {
		if rest == "" {
			return true
		}
		if rest[0] == '[' {
			if end := strings.IndexByte(rest, ']'); end > 1 && strings.Trim(rest[1:end], "0123456789") == "" && follow(rest[end+1:], false) {
				return true
			}
		}
		if !first {
			if rest[0] != '.' {
				return false
			}
			rest = rest[1:]
		}
		for name := range names {
			if next, ok := strings.CutPrefix(rest, name); ok && follow(next, false) {
				return true
			}
		}
		return false
	}
	return follow(path, true)
}
