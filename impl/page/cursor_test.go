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

// FuzzOpen seals a position and changes the cursor or what it is bound to in one
// place: the cursor opens as it was sealed and in no other way, and no text that
// Seal did not make opens at all.
func FuzzOpen(f *testing.F) {
	s := NewSigner([]byte("a key of thirty-two bytes or more"))
	f.Fuzz(func(t *testing.T, text, name, filters, position string, at int) {
		list := List{Name: name, Workspace: 7, Filters: filters}
		if opened, ok := s.Open(list, text); ok && s.Seal(list, opened) != text {
			t.Errorf("%q opens in %+v and was not sealed", text, list)
		}
		cursor := s.Seal(list, position)
		opened, ok := s.Open(list, cursor)
		if ok != (len(cursor) <= longest) || ok && opened != position {
			t.Fatalf("%q of %+v opens as %q, %t", position, list, opened, ok)
		}
		at = int(uint(at) % uint(len(cursor)))
		for _, changed := range []string{
			cursor[:at] + cursor[at+1:], cursor[:at] + text + cursor[at:], cursor[:at] + text + cursor[at+1:], cursor + "=", cursor + "\n",
		} {
			if opened, ok := s.Open(list, changed); ok && changed != cursor {
				t.Errorf("%q, which was %q, opens as %q", changed, cursor, opened)
			}
		}
		for _, other := range []List{
			{name, 8, filters}, {name + text, 7, filters}, {name, 7, filters + text}, {name + filters, 7, ""}, {"", 7, name + filters}, {filters, 7, name},
		} {
			if _, ok := s.Open(other, cursor); ok && other != list {
				t.Errorf("the cursor of %+v opens in %+v", list, other)
			}
		}
		if _, ok := NewSigner([]byte(text)).Open(list, cursor); ok {
			t.Errorf("the cursor opens with the key %q", text)
		}
	})
}
