package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestAnEventNameIsBlockedArchivedAndRenamedWhileTheServerRuns(t *testing.T) {
	s, w := sharedServer(t), workspace(t)
	n := 0
	send := func() answer {
		n++
		return w.record(t, s, fmt.Sprintf(`{"id":"e%d","name":"signed_up","visitor":{"id":"v"}}`, n))
	}
	if a := send(); a.status != 202 {
		t.Fatalf("%s", a.body)
	}
	inlet(t, "", "event-type", "block", "signed_up", "--workspace", w.slug)
	expect(t, send(), 422, "event_blocked", "name")
	inlet(t, "", "event-type", "archive", "signed_up", "--workspace", w.slug)
	if a := send(); a.status != 202 {
		t.Errorf("an archived name is refused: %s", a.body)
	}
	inlet(t, "", "event-type", "activate", "signed_up", "--workspace", w.slug)
	inlet(t, "", "event-type", "rename", "signed_up", "New sign-up", "--workspace", w.slug)
	var all []struct{ Name, Label, Status string }
	json.Unmarshal([]byte(inlet(t, "", "event-type", "list", "--workspace", w.slug, "--json")), &all)
	if got := fmt.Sprint(all); got != "[{legacy_event Legacy event blocked} {old_event Old event archived} {signed_up New sign-up active}]" {
		t.Errorf("listed are %s", got)
	}
	if table := inlet(t, "", "event-type", "list", "--workspace", w.slug); !strings.Contains(table, "New sign-up") {
		t.Errorf("the table is\n%s", table)
	}
	for _, wrong := range [][]string{
		{"event-type", "block", "never_sent", "--workspace", w.slug},
		{"event-type", "block", "signed_up", "--workspace", "nowhere"},
		{"event-type", "rename", "signed_up", " ", "--workspace", w.slug},
	} {
		if out, err := tryInlet(t, "", wrong...); err == nil {
			t.Errorf("%v passes: %s", wrong, out)
		}
	}
}

func TestAKeyIsShownOnceAndListedWithoutItsToken(t *testing.T) {
	s, w := sharedServer(t), workspace(t)
	token := strings.TrimSpace(inlet(t, "", "key", "create", "--workspace", w.slug, "--name", "by hand",
		"--owner", "ADA@"+w.slug+".example", "--scopes", "events.send"))
	a := s.send(t, "POST", "/api/v1/events", `{"id":"k","name":"n","visitor":{"id":"v"}}`, "Authorization: Bearer "+token)
	if a.status != 202 {
		t.Errorf("the new key answers %d %s", a.status, a.body)
	}
	for _, form := range []string{"--json", "--no-json"} {
		args := []string{"key", "list", "--workspace", w.slug}
		if form == "--json" {
			args = append(args, form)
		}
		list := inlet(t, "", args...)
		if strings.Contains(list, token) || !strings.Contains(list, "amp_…"+token[len(token)-4:]) {
			t.Errorf("the list is\n%s", list)
		}
	}
	// The leads permission is ticked where nothing is said.
	leads := strings.TrimSpace(inlet(t, "", "key", "create", "--workspace", w.slug, "--name", "form"))
	if a := s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, "Authorization: Bearer "+leads); a.status != 201 {
		t.Errorf("a key without scopes named answers %d %s", a.status, a.body)
	}
	for _, wrong := range [][]string{
		{"key", "create", "--workspace", w.slug, "--name", "x", "--scopes", "all"},
		{"key", "create", "--workspace", w.slug, "--name", "x", "--owner", "nobody@x.example"},
		{"key", "create", "--workspace", w.slug, "--name", "x", "--kind", "service"},
		{"key", "revoke", "999999999", "--workspace", w.slug},
		{"workspace", "create", w.slug},
		{"workspace", "show", "nowhere"},
	} {
		if out, err := tryInlet(t, "", wrong...); err == nil {
			t.Errorf("%v passes: %s", wrong, out)
		}
	}
}
