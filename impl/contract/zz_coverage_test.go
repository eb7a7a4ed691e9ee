package contract

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inletdev/inlet/gen/api"
)

// What no test reaches is a reviewed file, whose goal is to be empty. It is
// compared once all tests of the package have run, and so stands last.
func TestWhatNoTestReachesIsListed(t *testing.T) {
	if flag.Lookup("test.run").Value.String() != "" {
		t.Skip("only some of the tests ran")
	}
	var got []string
	for _, op := range api.Operations {
		for status, codes := range op.Errors {
			for _, code := range codes {
				key := fmt.Sprintf("%s %d %s", op.ID, status, code)
				if _, ok := reached.Load(key); !ok {
					got = append(got, key)
				}
			}
		}
	}
	slices.Sort(got)
	raw, err := os.ReadFile("uncovered.txt")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			want = append(want, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("uncovered.txt should list\n%s", strings.Join(got, "\n"))
	}
}

// Most tests are told of an answer that deviates; this tells of those that no test
// took part in.
func TestEveryAnswerConforms(t *testing.T) {
	deviations.Lock()
	defer deviations.Unlock()
	for _, deviation := range deviations.list {
		t.Error(deviation)
	}
}
