package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestAnEventNameIsBlockedArchivedAndRenamedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	n := 0
	send := func() answer {
		n++
		return w.record(t, s, fmt.Sprintf(`{"id":"e%d","name":"signed_up","visitor":{"id":"v"}}`, n))
	}
	if a := send(); a.status != 202 {
		t.Fatalf("%s", a.body)
	}
	inlet(t, "", "event-type", "block", "signed_up", "--workspace", w.Slug)
	expect(t, send(), 422, "event_blocked", "name")
	inlet(t, "", "event-type", "archive", "signed_up", "--workspace", w.Slug)
	if a := send(); a.status != 202 {
		t.Errorf("an archived name is refused: %s", a.body)
	}
	inlet(t, "", "event-type", "activate", "signed_up", "--workspace", w.Slug)
	inlet(t, "", "event-type", "rename", "signed_up", "New sign-up", "--workspace", w.Slug)
	var all []struct{ Name, Label, Status string }
	json.Unmarshal([]byte(inlet(t, "", "event-type", "list", "--workspace", w.Slug, "--json")), &all)
	if got := fmt.Sprint(all); got != "[{legacy_event Legacy event blocked} {old_event Old event archived} {signed_up New sign-up active}]" {
		t.Errorf("listed are %s", got)
	}
	if table := inlet(t, "", "event-type", "list", "--workspace", w.Slug); !strings.Contains(table, "New sign-up") {
		t.Errorf("the table is\n%s", table)
	}
	for _, wrong := range [][]string{
		{"event-type", "block", "never_sent", "--workspace", w.Slug},
		{"event-type", "block", "signed_up", "--workspace", "nowhere"},
		{"event-type", "rename", "signed_up", " ", "--workspace", w.Slug},
	} {
		if out, err := tryInlet(t, "", wrong...); err == nil {
			t.Errorf("%v passes: %s", wrong, out)
		}
	}
}

func TestAKeyIsShownOnceAndListedWithoutItsToken(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	token := strings.TrimSpace(inlet(t, "", "key", "create", "--workspace", w.Slug, "--name", "by hand",
		"--owner", "ADA@"+w.Slug+".example", "--scopes", "events.send"))
	a := s.send(t, "POST", "/api/v1/events", `{"id":"k","name":"n","visitor":{"id":"v"}}`, "Authorization: Bearer "+token)
	if a.status != 202 {
		t.Errorf("the new key answers %d %s", a.status, a.body)
	}
	for _, form := range []string{"--json", "--no-json"} {
		args := []string{"key", "list", "--workspace", w.Slug}
		if form == "--json" {
			args = append(args, form)
		}
		list := inlet(t, "", args...)
		if strings.Contains(list, token) || !strings.Contains(list, "amp_…"+token[len(token)-4:]) {
			t.Errorf("the list is\n%s", list)
		}
	}
	// The leads permission is ticked where nothing is said.
	leads := strings.TrimSpace(inlet(t, "", "key", "create", "--workspace", w.Slug, "--name", "form"))
	if a := s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, "Authorization: Bearer "+leads); a.status != 201 {
		t.Errorf("a key without scopes named answers %d %s", a.status, a.body)
	}
	for _, wrong := range [][]string{
		{"key", "create", "--workspace", w.Slug, "--name", "x", "--scopes", "all"},
		{"key", "create", "--workspace", w.Slug, "--name", "x", "--owner", "nobody@x.example"},
		{"key", "create", "--workspace", w.Slug, "--name", "x", "--kind", "service"},
		{"key", "revoke", "999999999", "--workspace", w.Slug},
		{"workspace", "create", w.Slug},
		{"workspace", "show", "nowhere"},
	} {
		if out, err := tryInlet(t, "", wrong...); err == nil {
			t.Errorf("%v passes: %s", wrong, out)
		}
	}
}
