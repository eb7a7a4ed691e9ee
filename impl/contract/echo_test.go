package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/inletdev/inlet/db/dbtest"
)

// forgeries would begin a line, a field or a header of their own where text is
// pasted into one, or do something to the terminal of whoever reads it.
var forgeries = []string{
	"x\r\nForged: 1", "x\nForged: 1", "x\rForged: 1", "x\r\n\r\n<h1>forged</h1>", "x\x00Forged", "x\u2028{\"msg\":\"forged\"}", "x\u2029Forged", "x\u0085Forged: 1",
	"\n{\"level\":\"INFO\",\"msg\":\"forged\"}\n", `","msg":"forged","x":"`, `"}` + "\n" + `{"msg":"forged"`, `\n{"msg":"forged"}`, `%0d%0aForged:%201`, `%E5%98%8A%E5%98%8DForged:1`,
	"\x1b[31mforged\x1b[0m", "\x1b]0;forged\x07", "\u202eforged", "\x9b31mforged", "%s%s%n%x forged", "${jndi:ldap://forged}", "{{.forged}}", "$(forged)", "`forged`",
}

func TestWhatIsSentForgesNeitherALogLineNorAHeader(t *testing.T) {
	t.Parallel()
	s := startReleased(t, dbtest.URL(t))
	k := sweepOf(t, s, dbtest.URL(t), "t"+strings.ToLower(noise(12)), "zentrix", "odette")
	clean := func(where string, a answer) {
		t.Helper()
		for name, values := range a.header {
			if strings.Contains(strings.ToLower(name), "forged") || slices.ContainsFunc(values, func(v string) bool {
				return strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' })
			}) {
				t.Errorf("%s is answered with the header %q: %q", where, name, values)
			}
		}
		if a.header.Get("Content-Type") == "application/json" && len(a.body) > 0 {
			// One value, and nothing in it that a terminal or another line would take for more.
			var value any
			if err := json.Unmarshal(a.body, &value); err != nil || bytes.ContainsAny(a.body[:len(a.body)-1], "\n\r\x1b\x00") {
				t.Errorf("%s is answered with %q", where, a.body)
			}
		}
	}
	for _, p := range declared(places()) {
		for _, payload := range forgeries {
			if a, ok := k.with(p, payload); ok && (p.kind == "string" || p.in != "body") {
				clean(fmt.Sprintf("%s with %q", p, payload), k.ask(t, a))
			}
		}
	}
	// As bytes, which no client of ours would send.
	for _, payload := range forgeries {
		for _, line := range []string{
			"GET /" + payload + " HTTP/1.1\r\nHost: x", "GET /l/" + url.PathEscape(payload) + " HTTP/1.1\r\nHost: x", "GET /livez?" + payload + " HTTP/1.1\r\nHost: x",
			payload + " /livez HTTP/1.1\r\nHost: x", "GET /livez HTTP/1.1\r\nHost: " + payload, "GET /livez HTTP/1.1\r\nHost: x\r\n" + payload + ": y",
			"GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + payload, "GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + payload,
			"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nUser-Agent: " + payload + "\r\nTraceparent: " + payload + "\r\nX-Forwarded-For: " + payload + "\r\nOrigin: " + payload,
		} {
			all, _ := s.raw(t, line+"\r\nConnection: close\r\n\r\n")
			if len(all) > 2 { // a line break in a raw request may well end it
				t.Errorf("%q gets %d answers", line, len(all))
			}
			for _, a := range all {
				clean(fmt.Sprintf("%q", line), a)
			}
		}
	}
	const quotes = `"},{"msg":"forged"}<script>\u2028`
	a := s.send(t, "GET", "/api/v1/events", "", "X-Request-Id: "+quotes)
	if a.field("request_id") != quotes {
		t.Errorf("the body has another request id than was sent: %s", a.body)
	}
	clean("a request id of quotes", a)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	lines := 0
	for line := range strings.Lines(s.Log()) {
		lines++
		decoder := json.NewDecoder(strings.NewReader(line))
		var entry map[string]any
		if err := decoder.Decode(&entry); err != nil || entry["msg"] == "forged" || entry["level"] == nil || strings.Count(line, `"msg":"`) > 1+strings.Count(line, `\"msg\":\"`) {
			t.Errorf("the log has the line %q", line)
		}
		if _, err := decoder.Token(); err != io.EOF {
			t.Errorf("the log has more than a value on the line %q", line)
		}
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool {
			return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029'
		}) {
			t.Errorf("the log has control characters: %q", line)
		}
	}
	if lines < 1000 {
		t.Errorf("the log has %d lines", lines)
	}
}

// Who did what: the answer's request id leads to the line with workspace, key,
// operation and outcome.
func TestEveryRequestOfAKeyIsOnRecordWithItsOutcome(t *testing.T) {
	t.Parallel()
	s := startReleased(t, dbtest.URL(t))
	k := sweepOf(t, s, dbtest.URL(t), "t"+strings.ToLower(noise(12)), "zentrix", "odette")
	type line struct {
		Route, Code    string
		Status         int
		Workspace, Key int64
	}
	want := map[string]line{}
	id := dbtest.Query[int64](t, dbtest.URL(t), `select key_id from api_keys where workspace_id = $1`, k.workspace.ID)
	for _, op := range credentialed() {
		good := k.ask(t, k.plain(&op))
		want[good.header.Get("X-Request-Id")] = line{op.Pattern, "", good.status, k.workspace.ID, id}
		path, _, _ := request(op)
		bad := s.send(t, op.Method, path+"?limit=x", "{", "Authorization: Bearer "+k.credential, "Idempotency-Key: k")
		code, _ := bad.refusal()
		want[bad.header.Get("X-Request-Id")] = line{op.Pattern, code, bad.status, k.workspace.ID, id}
	}
	s.Stop() //nolint:errcheck // the log is what counts
	for text := range strings.Lines(s.Log()) {
		var entry struct {
			RequestID string `json:"request_id"`
			line
		}
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatal(err)
		}
		if wanted, ok := want[entry.RequestID]; ok {
			if entry.line != wanted {
				t.Errorf("%s is on record as %+v, want %+v", entry.RequestID, entry.line, wanted)
			}
			delete(want, entry.RequestID)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d requests are not on record: %v", len(want), want)
	}
}

// probes would become markup or script where text is pasted into a page.
var probes = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onfocus=alert(1) autofocus='`, `</title><script>alert(1)</script>`, `</script><script>alert(1)</script>`,
	`<!--`, `-->`, `]]>`, `javascript:alert(1)`, `&lt;script&gt;`, `{{7*7}}`, `<svg/onload=alert(1)>`, "`${alert(1)}`", "\u2028alert(1)", `<base href=//evil.example>`, `</form><form action=//evil.example>`,
}

// markup gives the elements of a page with the names of their attributes, and the
// values of those that run or load something.
func markup(t testing.TB, page []byte) string {
	t.Helper()
	var all []string
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return strings.Join(all, "\n")
		case html.StartTagToken, html.SelfClosingTagToken, html.CommentToken:
			token := tokens.Token()
			element := token.Data
			if token.Type == html.CommentToken {
				element = "a comment"
			}
			for _, a := range token.Attr {
				element += " " + a.Key
				if slices.Contains([]string{"src", "href", "action", "srcdoc", "style"}, a.Key) || strings.HasPrefix(a.Key, "on") {
					element += "=" + a.Val
				}
			}
			all = append(all, element)
		}
	}
}

func TestPagesShowWhatIsStoredOrAskedAsText(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	// A form and a meeting form of each name.
	names := append([]string{"plain name"}, probes...)
	var forms, meetings strings.Builder
	for i, name := range names {
		quoted, err := json.Marshal(name) // which YAML reads too
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&forms, "\n      - {ref: f%d, name: %s, fields: [email]}", i, quoted)
		fmt.Fprintf(&meetings, "\n      - {ref: m%d, name: %s, minutes: 30}", i, quoted)
	}
	w := seed(t, strings.NewReplacer("forms:\n      - {ref: demo", "forms:"+forms.String()+"\n      - {ref: demo", "meeting_forms:", "meeting_forms:"+meetings.String()).Replace(onPages))
	pages := func(i int) map[string]string {
		t.Helper()
		name := names[i]
		found := map[string]string{}
		for what, path := range map[string]string{
			"form": "/api/v1/forms/" + w.Forms[fmt.Sprint("f", i)].PublicKey, "meeting form": "/api/v1/meeting-forms/" + w.MeetingForms[fmt.Sprint("m", i)].PublicKey,
		} {
			page := s.send(t, "GET", path+"/page?visitor="+url.QueryEscape(name)+"&x="+url.QueryEscape(name), "")
			if page.status != 200 || !strings.Contains(page.header.Get("Content-Security-Policy"), "script-src 'self'") {
				t.Errorf("%s answers %d %v", path, page.status, page.header)
			}
			found[what] = strings.ReplaceAll(markup(t, page.body), path, "")
			script := s.send(t, "GET", path+"/embed.js?"+url.QueryEscape(name), "")
			found["script of the "+what] = string(script.body)
		}
		segment := url.PathEscape(name)
		for what, path := range map[string]string{
			"link": "/l/" + segment, "no form": "/api/v1/forms/" + segment + "/page", "no meeting form": "/api/v1/meeting-forms/" + segment + "/page",
			"search": "/docs/search?q=notthere" + url.QueryEscape(name), "docs": "/docs?" + url.QueryEscape(name),
		} {
			a := s.send(t, "GET", path, "")
			if kind := a.header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
				found[what] = markup(t, a.body)
			} else if a.header.Get("X-Content-Type-Options") != "nosniff" || kind != "application/json" {
				t.Errorf("%s answers with the type %q", path, kind)
			}
		}
		return found
	}
	plain := pages(0)
	if !strings.Contains(plain["form"], "script") || !strings.Contains(plain["search"], "input") {
		t.Fatalf("the pages are %v", plain)
	}
	for i, probe := range probes {
		for what, got := range pages(i + 1) {
			if want, ok := plain[what]; ok && got != want {
				t.Errorf("with %q, the %s is made of\n%s\ninstead of\n%s", probe, what, got, want)
			}
		}
	}
}

// What visitors send is read in a terminal by whoever runs the server.
func TestCommandsPrintNothingThatATerminalObeys(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	hostile := "Eve\u001b]0;owned\u0007\u001b[2J\u009b31m\r\nfalse line \u202etxt.exe"
	raw, _ := json.Marshal(hostile)
	slots := w.slots(t, s, "")
	for i, body := range []string{
		fmt.Sprintf(`{"starts_at":%q,"fields":{"email":"eve@evilco.com","name":%s,"company_name":%s}}`, slots[0], raw, raw),
		fmt.Sprintf(`{"starts_at":%q,"fields":{"email":%s,"name":"x"}}`, slots[1], raw),
	} {
		if a := s.send(t, "POST", "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey, body); i == 0 && a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	s.send(t, "POST", "/api/v1/leads", fmt.Sprintf(`{"email":"bob@evilco2.com","company_name":%s,%s:1}`, raw, raw), w.Key("all"))
	s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"e","name":"n","visitor":{"id":"v"},%s:1}`, raw), w.Key("all"))
	s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"e","name":%s,"visitor":{"id":"v"},"properties":{%s:1}}`, raw, raw), w.Key("all"))
	w.refused(t, 2)
	said := inlet(t, "", "meeting", "bookings", "--workspace", w.Slug) + inlet(t, "", "refusals", "--workspace", w.Slug) +
		inlet(t, "", "event-type", "list", "--workspace", w.Slug)
	for _, id := range strings.Fields(dbtest.Query[string](t, dbtest.URL(t), `select string_agg(company_id::text, ' ') from companies where workspace_id = $1`, w.ID)) {
		said += inlet(t, "", "company", "show", id, "--workspace", w.Slug)
	}
	if !strings.Contains(said, "Eve") || !strings.Contains(said, "invalid_body") {
		t.Fatalf("the commands print %s", said)
	}
	if strings.ContainsFunc(said, func(r rune) bool {
		return r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0 || r >= '\u202a' && r <= '\u202e'
	}) {
		t.Errorf("the commands print %q", said)
	}
	for line := range strings.Lines(said) {
		if strings.HasPrefix(strings.TrimSpace(line), "false line") {
			t.Errorf("a name begins a line: %q", line)
		}
	}
}
