package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
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

func FuzzCheckPassesValidJSONOnly(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `[1e5,{}]`, `{"a":{"a":1,"a":2}}`, `[1e400]`, `[[[{"a":[]}]]]`, `"\u0000"`, `{} x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if Check(body) != nil {
			return
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			t.Fatalf("%q passes: %v", body, err)
		}
		// What passes means the same when it is written anew.
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("%q passes: %v", body, err)
		}
		if bad := Check(again); bad != nil {
			t.Errorf("%q passes, but not %q: %v", body, again, bad)
		}
	})
}
