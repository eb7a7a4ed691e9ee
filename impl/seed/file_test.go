package seed

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/contact"
)

// FuzzFile reads any text as a seed file: every mistake is told with a line of the
// file that is there and in words that fit one, and what has no mistake holds
// nothing that the database cannot, and no reference that leads nowhere.
func FuzzFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, source string) {
		told := func(err error) {
			lines := strings.Count(source, "\n") + strings.Count(source, "\r") + 1 // YAML ends lines with either
			for mistake := range strings.SplitSeq(err.Error(), "\n") {
				if more.MatchString(mistake) {
					continue
				}
				at := mistakes.FindStringSubmatch(mistake)
				if at == nil {
					t.Errorf("%q is refused with %q", source, mistake)
				} else if line, err := strconv.Atoi(at[1]); err != nil || line < 1 || line > lines {
					t.Errorf("%q, of %d lines, is refused with %q", source, lines, mistake)
				}
			}
		}
		read, tree, err := read("x.yaml", []byte(source))
		if err != nil {
			told(err)
			return
		}
		p := &problems{filename: "x.yaml", tree: tree}
		check(read, p)
		if err := p.err(); err != nil {
			told(err)
			return
		}
		if len(read.Workspaces) == 0 {
			t.Errorf("%q has no workspace", source)
		}
		storable(t, reflect.ValueOf(read), "file")
		for _, w := range read.Workspaces {
			leads(t, w)
		}
	})
}

var (
	mistakes = regexp.MustCompile(`^x\.yaml:([0-9]+): .`)
	more     = regexp.MustCompile(`^… and [0-9]+ more$`)
)

// storable makes sure that PostgreSQL can hold every text and every number.
func storable(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Errorf("%s is %q", path, s)
		}
	case reflect.Int:
		if n := v.Int(); n > 1<<31-1 || n < -1<<31 {
			t.Errorf("%s is %d", path, n)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			storable(t, v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			storable(t, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			storable(t, key, path+".key")
			storable(t, v.MapIndex(key), path+"."+key.String())
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			storable(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

// leads makes sure that the references of a workspace lead somewhere, and that
// what the loader normalises has a normal form.
func leads(t *testing.T, w workspaceEntry) {
	t.Helper()
	refs := map[string]bool{"": true}
	for _, c := range w.Companies {
		refs["company "+c.Ref] = true
		if _, ok := company.NormalizeDomain(c.Domain); !ok && c.Domain != "" {
			t.Errorf("the domain %q passes", c.Domain)
		}
	}
	for _, s := range w.Segments {
		refs["segment "+s.Ref] = true
	}
	for _, p := range w.Contacts {
		if p.Company != "" && !refs["company "+p.Company] {
			t.Errorf("the contact %q is at %q", p.Ref, p.Company)
		}
		if p.Email != "" && contact.NormalizeEmail(p.Email) == "" {
			t.Errorf("the address %q passes", p.Email)
		}
	}
	for _, m := range w.Motions {
		for _, s := range m.Steps {
			if s.Segment != "" && !refs["segment "+s.Segment] {
				t.Errorf("the motion %q adds to %q", m.Ref, s.Segment)
			}
			if hours := s.Days*24 + s.Hours; hours < 0 || hours > 36500*24 {
				t.Errorf("the motion %q waits for %d hours", m.Ref, hours)
			}
		}
	}
}
