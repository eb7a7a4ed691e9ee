package page

import (
	"strings"
	"testing"
)

func TestACursorOpensInItsOwnListOnly(t *testing.T) {
	s := NewSigner([]byte("a key of thirty-two bytes or more"))
	list := List{"events", 7, "name=a"}
	cursor := s.Seal(list, "42")
	if position, ok := s.Open(list, cursor); !ok || position != "42" {
		t.Fatalf("it opens as %q, %v", position, ok)
	}
	for name, other := range map[string]List{
		"another list": {"event-types", 7, "name=a"}, "another workspace": {"events", 8, "name=a"},
		"other filters": {"events", 7, "name=b"}, "parts moved": {"eventsname=a", 7, ""},
	} {
		if _, ok := s.Open(other, cursor); ok {
			t.Errorf("it opens in %s", name)
		}
	}
	if _, ok := NewSigner([]byte("another key of thirty-two bytes..")).Open(list, cursor); ok {
		t.Error("it opens with another key")
	}
	for i := range cursor {
		for _, c := range "AZaz09-_" {
			if changed := cursor[:i] + string(c) + cursor[i+1:]; changed != cursor {
				if _, ok := s.Open(list, changed); ok {
					t.Errorf("%s opens, which was changed at %d", changed, i)
				}
			}
		}
	}
	for _, bad := range []string{"", "x", cursor + "A", cursor[1:], cursor + "=", strings.Repeat("A", 1000), " " + cursor} {
		if _, ok := s.Open(list, bad); ok {
			t.Errorf("%q opens", bad)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := NewSigner([]byte("a key of thirty-two bytes or more"))
	list := List{"events", 7, ""}
	f.Add(s.Seal(list, "42"))
	f.Fuzz(func(t *testing.T, cursor string) {
		if position, ok := s.Open(list, cursor); ok && s.Seal(list, position) != cursor {
			t.Errorf("%q opens and was not sealed", cursor)
		}
	})
}
