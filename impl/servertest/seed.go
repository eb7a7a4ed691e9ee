package servertest

import (
	"encoding/json"
	"strings"
	"testing"
)

// A Workspace is what `inlet seed --json` says of one, by the file's references.
type Workspace struct {
	Slug       string `json:"-"`
	ID         int64
	APIKeys    map[string]struct{ Token string } `json:"api_keys"`
	Companies  map[string]int64
	Contacts   map[string]int64
	Motions    map[string]int64
	EventTypes map[string]int64 `json:"event_types"`
	Sites      map[string]struct {
		ID      int64
		SiteKey string `json:"site_key"`
		Secret  string
	}
	Forms        map[string]Form
	MeetingForms map[string]Form `json:"meeting_forms"`
}

// A Form is a form or a meeting form.
type Form struct {
	ID        int64
	PublicKey string `json:"public_key"`
}

// Key gives the header of a key of the workspace.
func (w Workspace) Key(ref string) string { return "Authorization: Bearer " + w.APIKeys[ref].Token }

// Seed loads a workspace into a database, anew where it is there already. SLUG
// in the file stands for the slug.
func Seed(t testing.TB, databaseURL, slug, file string) Workspace {
	t.Helper()
	return SeedBy(t, Binary, databaseURL, slug, file)
}

// SeedBy is Seed with another build of the program.
func SeedBy(t testing.TB, program, databaseURL, slug, file string) Workspace {
	t.Helper()
	out, err := CommandOf(t, program, databaseURL, strings.ReplaceAll(file, "SLUG", slug), "seed", "-", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Workspaces map[string]Workspace }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	w := report.Workspaces[slug]
	w.Slug = slug
	return w
}
