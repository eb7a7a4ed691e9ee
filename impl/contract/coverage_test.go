package contract

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/inletdev/inlet/gen/api"
)

// everyAnswerConforms tells, once all tests have ended, of the answers against the
// document that no test was told of.
func everyAnswerConforms() error {
	deviations.Lock()
	defer deviations.Unlock()
	var all []error
	for _, deviation := range deviations.list {
		all = append(all, errors.New(deviation))
	}
	return errors.Join(all...)
}

// whatNoTestReachesIsListed compares it, once all tests have ended, with a reviewed
// file, whose goal is to be empty.
func whatNoTestReachesIsListed() error {
	for _, some := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(some).Value.String() != "" {
			return nil // only some of the tests ran, or none
		}
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
		return err
	}
	var want []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			want = append(want, line)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("uncovered.txt should list\n%s", strings.Join(got, "\n"))
	}
	return nil
}
