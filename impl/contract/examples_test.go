package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/inletdev/inlet/gen/api"
)

// demo loads the workspace of make run as one of the test's own.
func demo(t *testing.T) seeded {
	t.Helper()
	file, err := os.ReadFile("../../scripts/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(file), "slug: demo", "slug: SLUG", 1)
	// Keys of the public kind are unique among all workspaces.
	for _, key := range []string{"site_demo_www", "form_demo_request", "meet_demo_intro"} {
		text = strings.Replace(text, key, key+"_SLUG", 1)
	}
	text = strings.Replace(text, "    companies:", "    api_keys:\n      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 10000}\n    companies:", 1)
	return seed(t, text)
}

var blocks = regexp.MustCompile("(?s)```(\\w+)( run)?\n(.*?)```")

// Whoever copies an example from a guide gets what the guide says, in shape: the
// same fields with values of the same type, and the same texts where they are
// not ids and times.
func TestTheExamplesOfTheGuidesRun(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	pages, err := filepath.Glob("../docs/pages/*.md")
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob("../docs/pages/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, page := range append(pages, guides...) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		w := demo(t)
		all := blocks.FindAllSubmatch(source, -1)
		for i, block := range all {
			if len(block[2]) == 0 {
				continue
			}
			ran++
			if i+1 == len(all) || string(all[i+1][1]) != "json" {
				t.Errorf("%s: an example is not followed by its answer:\n%s", page, block[3])
				continue
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(block[3]))
			cmd.Env = append(os.Environ(), "BASE="+s.Base, "KEY="+w.APIKeys["all"].Token)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[3])
				continue
			}
			var got, want any
			if json.Unmarshal(out, &got) != nil || json.Unmarshal(all[i+1][3], &want) != nil {
				t.Errorf("%s: no JSON: %s\n%s", page, out, all[i+1][3])
				continue
			}
			if at := differs("", want, got); at != "" {
				t.Errorf("%s: the answer differs from what the page says at %s\n%s\n%s", page, at, all[i+1][3], out)
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d examples are found", ran)
	}
}

// made are values that differ from one server to the next.
var made = regexp.MustCompile(`^(evt_|req_|c1_|\d{4}-\d\d-\d\dT)`)

// differs gives the first place where an answer is not of the shape that a page
// shows; of a list, its first entry stands for all.
func differs(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(object) != len(want) {
			return at + " (fields)"
		}
		for name, value := range want {
			if _, there := object[name]; !there {
				return at + "." + name
			}
			if d := differs(at+"."+name, value, object[name]); d != "" {
				return d
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(want) > 0 && len(list) == 0 {
			return at
		}
		for i := range min(len(want), len(list)) {
			if d := differs(fmt.Sprintf("%s[%d]", at, i), want[i], list[i]); d != "" {
				return d
			}
		}
	case string:
		text, ok := got.(string)
		same := text == want || made.MatchString(want) && made.MatchString(text) || strings.HasSuffix(at, ".nextCursor")
		if !ok || !same {
			return at
		}
	case bool:
		if want != got {
			return at
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			return at
		}
	}
	return ""
}

// Every request that the document shows is one that the server takes.
func TestTheExamplesOfTheDocumentRun(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), demo(t)
	n := 0
	for _, op := range api.Operations {
		if op.BodySchema == "" {
			continue
		}
		described := document()["paths"].(map[string]any)[op.Path].(map[string]any)[strings.ToLower(op.Method)].(map[string]any)
		body, _ := resolve(described["requestBody"].(map[string]any), "")
		for name, example := range body["content"].(map[string]any)["application/json"].(map[string]any)["examples"].(map[string]any) {
			n++
			sent := maps.Clone(example.(map[string]any)["value"].(map[string]any))
			switch op.ID {
			case "startMotion": // ids are the server's
				sent["companyId"] = w.Companies["northlight"]
				if sent["contactIds"] != nil {
					sent["contactIds"] = []int64{w.Contacts["ingrid"], w.Contacts["lars"]}
				}
			case "bookMeeting": // and slots are those to come
				form := w.MeetingForms["intro"].PublicKey
				var list struct{ Slots []map[string]any }
				json.Unmarshal(s.send(t, "GET", "/api/v1/meeting-forms/"+form+"/slots", "").body, &list)
				sent["starts_at"] = list.Slots[0]["starts_at"]
			case "identifyVisitor":
				sent["site"] = w.Sites["www"].SiteKey
			}
			if op.ID == "submitForm" {
				sent["fields"] = map[string]any{"email": "hank@globex.com", "company_name": "Globex"}
			}
			raw := new(bytes.Buffer)
			json.NewEncoder(raw).Encode(sent)
			key := w.Forms["demo"].PublicKey
			if op.ID == "bookMeeting" {
				key = w.MeetingForms["intro"].PublicKey
			}
			path := strings.NewReplacer("{id}", strconv.FormatInt(w.Motions["outbound"], 10), "{publicKey}", key).Replace(op.Path)
			a := s.send(t, op.Method, path, raw.String(), w.Key("all"), fmt.Sprintf("Idempotency-Key: example-%d", n))
			if a.status >= 300 {
				t.Errorf("%s, %s: %d %s", op.ID, name, a.status, a.body)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d examples are found", n)
	}
}
