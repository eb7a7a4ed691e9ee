package lead

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestExtraFieldsAreTextNumbersAndBooleans(t *testing.T) {
	for value, kept := range map[string]bool{
		`"x"`: true, `""`: true, `"{"`: true, `"[1]"`: true, `"null"`: true, `0`: true, `-1.5e3`: true, `true`: true, `false`: true,
		`null`: false, `{}`: false, `[]`: false, `{"a":"b"}`: false, `["a"]`: false,
		`"` + strings.Repeat("x", 200000) + `"`: true,
		`1` + strings.Repeat("0", 308):          true,
		`0.` + strings.Repeat("1", 20000):       false, // more digits than PostgreSQL's numeric has
		`-0.` + strings.Repeat("1", 20000):      false,
	} {
		var got map[string]json.RawMessage
		if err := json.Unmarshal(extra(map[string]json.RawMessage{"f": json.RawMessage(value)}), &got); err != nil {
			t.Fatal(err)
		}
		if (got["f"] != nil) != kept || kept && string(got["f"]) != value {
			t.Errorf("%.40s is kept as %.40s", value, got["f"])
		}
	}
}

func TestTheFirstFiftyExtraFieldsByNameAreKept(t *testing.T) {
	fields := map[string]json.RawMessage{}
	for i := range 100 {
		fields[fmt.Sprintf("f%02d", i)] = json.RawMessage(`1`)
		fields[fmt.Sprintf("a%02d", i)] = json.RawMessage(`[]`)
	}
	var got map[string]int
	if err := json.Unmarshal(extra(fields), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 50 || got["f00"] != 1 || got["f49"] != 1 {
		t.Errorf("got %v", got)
	}
}

func TestTheFirst128CharactersOfAKeyCount(t *testing.T) {
	for key, want := range map[string]string{
		"":                          "",
		"k":                         "k",
		strings.Repeat("k", 128):    strings.Repeat("k", 128),
		strings.Repeat("k", 129):    strings.Repeat("k", 128),
		strings.Repeat("ü", 200):    strings.Repeat("ü", 128),
		strings.Repeat("😀", 128):    strings.Repeat("😀", 128),
		"k\xff":                     "kÿ",
		strings.Repeat("\xe4", 200): strings.Repeat("ä", 128),
	} {
		if got := firstCharacters(key); got != want {
			t.Errorf("%q gives %q", key, got)
		}
	}
}
