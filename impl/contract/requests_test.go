package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
)

// request gives a well-formed request of an operation.
func request(op api.Operation) (path, body string, headers []string) {
	path = strings.NewReplacer("{id}", "1", "{publicKey}", "form_unknown").Replace(op.Path)
	switch op.ID {
	case "createLead", "createLeadAlias":
		body = `{"email": "hank@globex.com"}`
	case "startMotion":
		body, headers = `{"companyId": 1}`, []string{"Idempotency-Key: k"}
	case "createEvent":
		body = `{"id": "e", "name": "signed_up", "company": {"domain": "globex.com"}}`
	case "identifyVisitor":
		body = `{"site": "site_unknown", "visitor_id": "v"}`
	case "submitForm":
		body = `{"fields": {"email": "hank@globex.com"}}`
	case "bookMeeting":
		body = `{"starts_at": "2026-03-03T09:30:00Z", "fields": {"email": "hank@globex.com", "name": "Hank"}}`
	case "createEventBatch":
		body = `{"events": [{"id": "e", "name": "signed_up", "company": {"domain": "globex.com"}}]}`
	}
	return path, body, headers
}

// credentialed are the operations that are called with a credential.
func credentialed() []api.Operation {
	return slices.DeleteFunc(slices.Clone(api.Operations), func(op api.Operation) bool { return len(op.Scopes) == 0 })
}

func expect(t *testing.T, a answer, status int, code, param string) {
	t.Helper()
	gotCode, gotParam := a.refusal()
	if a.status != status || gotCode != code || gotParam != param {
		t.Errorf("got %d %s at %q, want %d %s at %q\n%s", a.status, gotCode, gotParam, status, code, param, a.body)
	}
}

func TestEveryOperationWantsACredential(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	mistyped := []byte(w.APIKeys["all"].Token)
	mistyped[10] ^= 1
	credentials := map[string]string{
		"missing":            "",
		"empty":              "Bearer ",
		"another scheme":     "Basic " + w.APIKeys["all"].Token,
		"no scheme":          w.APIKeys["all"].Token,
		"mistyped":           "Bearer " + string(mistyped),
		"unknown":            "Bearer " + auth.NewToken(auth.APIKey),
		"two at once":        "Bearer " + w.APIKeys["all"].Token + " " + w.APIKeys["all"].Token,
		"revoked":            "Bearer " + w.APIKeys["revoked"].Token,
		"expired":            "Bearer " + w.APIKeys["expired"].Token,
		"of a left owner":    "Bearer " + w.APIKeys["service_left"].Token,
		"with a tail":        "Bearer " + w.APIKeys["all"].Token + ", x",
		"unknown, of a kind": "Bearer " + auth.NewToken(auth.ServiceKey),
	}
	requestIDs := regexp.MustCompile(`"request_id":"[^"]*"`)
	var first []byte
	for _, op := range credentialed() {
		path, body, headers := request(op)
		for name, credential := range credentials {
			a := s.send(t, op.Method, path, body, append(headers, "Authorization: "+credential)...)
			expect(t, a, 401, "invalid_api_key", "")
			if got := a.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("%s, %s: WWW-Authenticate is %q", op.ID, name, got)
			}
			same := requestIDs.ReplaceAll(a.body, nil)
			if first == nil {
				first = same
			}
			if !bytes.Equal(same, first) {
				t.Errorf("%s, %s: the body differs: %s", op.ID, name, a.body)
			}
		}
	}
}

func TestTheCredentialIsReadFromItsHeaderAlone(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	token := w.APIKeys["all"].Token
	for _, path := range []string{"/api/v1/events?access_token=" + token, "/api/v1/events?api_key=" + token} {
		expect(t, s.send(t, "POST", path, `{"id":"e","name":"n","visitor":{"id":"v"}}`), 401, "invalid_api_key", "")
	}
	a := s.send(t, "POST", "/api/v1/events", `{"id":"e","name":"n","visitor":{"id":"v"}}`, "Authorization: bEARER "+token)
	if a.status != 202 {
		t.Errorf("the scheme in other letters answers %d", a.status)
	}
}

func TestEveryMissingScopeIsNamed(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, op := range credentialed() {
		path, body, headers := request(op)
		a := s.send(t, op.Method, path, body, append(headers, w.Key("none"))...)
		expect(t, a, 403, "forbidden_scope", "")
		var got struct{ Scopes []string }
		json.Unmarshal(a.body, &got)
		if !slices.Equal(got.Scopes, op.Scopes) {
			t.Errorf("%s names %v, want %v", op.ID, got.Scopes, op.Scopes)
		}
		want := `Bearer error="insufficient_scope", scope="` + strings.Join(op.Scopes, " ") + `"`
		if got := a.header.Get("WWW-Authenticate"); got != want {
			t.Errorf("%s: WWW-Authenticate is %s, want %s", op.ID, got, want)
		}
	}
}

func TestAKeySendsEventsOnlyWhileItsOwnerMay(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	const event = `{"id":"e","name":"n","visitor":{"id":"v"}}`
	for _, ref := range []string{"ownerless", "member", "left"} {
		expect(t, s.send(t, "POST", "/api/v1/events", event, w.Key(ref)), 403, "forbidden_scope", "")
		// The same key acts with what else is ticked on it.
		expect(t, s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key(ref)), 201, "", "")
	}
	// A service key is narrowed to its owner's role in everything.
	expect(t, s.send(t, "POST", "/api/v1/motions/1/start", `{"companyId":1}`, "Idempotency-Key: k", w.Key("service_member")),
		403, "forbidden_scope", "")
	expect(t, s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("service_member")), 201, "", "")
}

func TestNarrowingHoldsFromTheVeryNextRequestOnEveryProcess(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	n := 0
	both := func(ref string, status int) {
		t.Helper()
		for _, server := range []server{s, other} {
			n++
			a := server.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"e%d","name":"n","visitor":{"id":"v"}}`, n), w.Key(ref))
			if a.status != status {
				t.Errorf("got %d, want %d: %s", a.status, status, a.body)
			}
		}
	}
	both("all", 202)
	narrowed := "workspaces: [{slug: " + w.Slug + ", roles: [{name: admin, scopes: [leads.manage]}]}]"
	inlet(t, narrowed, "seed", "-")
	both("all", 403)
	inlet(t, strings.Replace(narrowed, "leads.manage", "events.send", 1), "seed", "-")
	both("all", 202)
	id := inlet(t, "", "key", "list", "--workspace", w.Slug, "--json")
	var keys []struct {
		ID   int64
		Name string
	}
	json.Unmarshal([]byte(id), &keys)
	for _, k := range keys {
		if k.Name == "all" {
			inlet(t, "", "key", "revoke", strconv.FormatInt(k.ID, 10), "--workspace", w.Slug)
		}
	}
	both("all", 401)
	// It does not matter what else is wrong with the request.
	for _, server := range []server{s, other} {
		expect(t, server.send(t, "POST", "/api/v1/events", `{`, w.Key("all")), 401, "invalid_api_key", "")
		expect(t, server.send(t, "POST", "/api/v1/events/batch", `{}`, w.Key("all")), 401, "invalid_api_key", "")
		expect(t, server.send(t, "POST", "/api/v1/events", `x`, w.Key("all"), "Content-Type: text/plain"), 401, "invalid_api_key", "")
	}
}

func TestEveryRequestOfAValidCredentialCountsWhateverItsAnswer(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for range 3 {
		w := seed(t, strings.Replace(standard, "requests_per_minute: 2}", "requests_per_minute: 6}", 1))
		var got []int
		minutes := map[string]bool{}
		for _, body := range []string{
			`{"id":"1","name":"n","visitor":{"id":"v"}}`,
			`{"id":"2","name":"n"}`,
			`{"id":"3","name":"legacy_event","visitor":{"id":"v"}}`,
			`{"id":"1","name":"n","visitor":{"id":"v"}}`,
			`{`,
			`{"id":"5","name":"n","visitor":{"id":"v"}}`,
			`{"id":"6","name":"n","visitor":{"id":"v"}}`,
			`{`,
		} {
			a := s.send(t, "POST", "/api/v1/events", body, w.Key("two"))
			got = append(got, a.status)
			minutes[a.header.Get("Date")[:22]] = true
		}
		if len(minutes) > 1 {
			continue
		}
		if want := []int{202, 400, 422, 202, 400, 202, 429, 429}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		return
	}
	t.Error("no minute was long enough")
}

func TestTheMinuteOfAKeyIsExactAcrossProcesses(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	other := start(t, dbtest.URL(t))
	defer other.Stop()
	// A minute that ends during the test would start the count anew: then the
	// test is done again.
	for range 3 {
		w := seed(t, strings.Replace(standard, "requests_per_minute: 2}", "requests_per_minute: 20}", 1))
		var mu sync.Mutex
		passed, refused, minutes := 0, 0, map[string]bool{}
		var parallel sync.WaitGroup
		for i := range 40 {
			parallel.Go(func() {
				a := []server{s, other}[i%2].send(t, "POST", "/api/v1/events",
					fmt.Sprintf(`{"id":"e%d","name":"n","visitor":{"id":"v"}}`, i), w.Key("two"))
				mu.Lock()
				defer mu.Unlock()
				minutes[a.header.Get("Date")[:len("Sat, 21 Nov 2026 03:08")]] = true
				switch a.status {
				case 202:
					passed++
				case 429:
					refused++
					expect(t, a, 429, "rate_limited", "")
					wait, err := strconv.Atoi(a.header.Get("Retry-After"))
					if err != nil || wait < 1 || wait > 60 || a.field("retry_after") != float64(wait) {
						t.Errorf("Retry-After is %q, the body %s", a.header.Get("Retry-After"), a.body)
					}
				}
			})
		}
		parallel.Wait()
		if len(minutes) > 1 {
			continue
		}
		if passed != 20 || refused != 20 {
			t.Errorf("%d passed and %d were refused, want 20 and 20", passed, refused)
		}
		return
	}
	t.Error("no minute was long enough")
}

func TestServiceKeysAreToldTheirRateAndCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for want := 2; want >= 0; want-- {
		a := s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("service"))
		if a.status == 429 {
			t.Fatalf("refused: %s", a.body)
		}
		// A new minute may begin in between, and the count with it.
		if got := a.header.Get("RateLimit-Remaining"); a.header.Get("RateLimit-Limit") != "3" ||
			got != strconv.Itoa(want) && got != "2" || a.header.Get("RateLimit-Reset") == "" {
			t.Errorf("limit %s, remaining %s", a.header.Get("RateLimit-Limit"), got)
		}
	}
	a := s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("service"))
	if a.status == 429 && a.field("scope") != "credential" {
		t.Errorf("the limit of the key is not named: %s", a.body)
	}
	if a := s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("all")); a.header.Get("RateLimit-Limit") != "" {
		t.Error("an API key is told a rate")
	}
	inlet(t, "", "workspace", "set", w.Slug, "--api=off")
	expect(t, s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("service_member")), 403, "api_disabled", "")
	expect(t, s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key("all")), 201, "", "")
}

func TestRateAndSwitchComeBeforeTheScopesOfEveryOperation(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, op := range credentialed() {
		path, body, headers := request(op)
		// The key may send two requests a minute, and has the scope of events
		// only.
		var a answer
		for range 6 {
			if a = s.send(t, op.Method, path, body, append(headers, w.Key("two"))...); a.status == 429 {
				break
			}
		}
		expect(t, a, 429, "rate_limited", "")
	}
	inlet(t, "", "workspace", "set", w.Slug, "--api=off")
	for _, op := range credentialed() {
		path, body, headers := request(op)
		a := s.send(t, op.Method, path, body, append(headers, w.Key("service_member"))...)
		expect(t, a, 403, "api_disabled", "")
		if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s challenges: %s", op.ID, a.header.Get("WWW-Authenticate"))
		}
	}
}

func TestServiceKeysOfAWorkspaceShareALimit(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	file.WriteString(strings.Replace(standard, "    companies:", "      - {ref: s1, kind: service, owner: ada, scopes: [leads.manage], requests_per_minute: 1000}\n      - {ref: s2, kind: service, owner: ada, scopes: [leads.manage], requests_per_minute: 1000}\n    companies:", 1))
	s := sharedServer(t)
	for range 10 {
		w := seed(t, file.String())
		dates := map[string]bool{}
		var passed atomic.Int64
		send := func(i int) answer {
			a := s.send(t, "POST", "/api/v1/leads", `{"name":"x"}`, w.Key([]string{"s1", "s2"}[i%2]))
			if a.status == 201 {
				passed.Add(1)
			}
			return a
		}
		dates[send(0).header.Get("Date")[:22]] = true
		var parallel sync.WaitGroup
		for range 4 {
			parallel.Go(func() {
				for i := range 152 {
					send(i)
				}
			})
		}
		parallel.Wait()
		last := send(1)
		dates[last.header.Get("Date")[:22]] = true
		if len(dates) > 1 {
			continue
		}
		if passed.Load() != 600 || last.field("scope") != "organization" {
			t.Errorf("%d passed, want 600; the last answer is %s", passed.Load(), last.body)
		}
		return
	}
	t.Error("610 requests took longer than a minute, ten times")
}

func TestAnUnknownPathIs404AndAnotherMethod405(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for _, path := range []string{"/", "/api", "/api/v1", "/api/v1/", "/api/v1/nope", "/api/v1/events/", "//api/v1/events",
		"/api/v1/../v1/events", "/api/v1/events/batch/x", "/api/v2/events", "/api/v1/motions//start"} {
		expect(t, s.send(t, "GET", path, ""), 404, "not_found", "")
	}
	allow := map[string]string{
		"/api/v1/events":          "GET, HEAD, POST, OPTIONS",
		"/api/v1/events/batch":    "POST, OPTIONS",
		"/api/v1/event-types":     "GET, HEAD, OPTIONS",
		"/api/v1/leads":           "POST, OPTIONS",
		"/api/v1/lead":            "POST, OPTIONS",
		"/api/v1/motions/1/start": "POST, OPTIONS",
	}
	for path, want := range allow {
		for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"} {
			r, _ := http.NewRequestWithContext(t.Context(), method, s.Base+path, nil)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			status := 405
			if method == "OPTIONS" {
				status = 204
			}
			if response.StatusCode != status || response.Header.Get("Allow") != want {
				t.Errorf("%s %s: %d, Allow %q, want %d, %q", method, path, response.StatusCode, response.Header.Get("Allow"), status, want)
			}
			if response.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s is open to browsers", method, path)
			}
		}
	}
	if a := s.send(t, "HEAD", "/readyz", ""); a.status != 200 {
		t.Errorf("HEAD answers %d", a.status)
	}
}

func TestRequestIDsOfCallersAreEchoed(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for id, echoed := range map[string]bool{
		"my-id": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "with space": false, "ü": false,
	} {
		a := s.send(t, "GET", "/api/v1/events", "", "X-Request-Id: "+id)
		if (a.header.Get("X-Request-Id") == id) != echoed {
			t.Errorf("%q comes back as %q", id, a.header.Get("X-Request-Id"))
		}
		if a.field("request_id") != a.header.Get("X-Request-Id") {
			t.Errorf("the body has another id: %s", a.body)
		}
	}
}

func TestBodiesAreCappedThenTyped(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, op := range api.Operations {
		if op.MaxBody == 0 {
			continue
		}
		path, body, headers := request(op)
		headers = append(headers, w.Key("all"))
		tooLarge := "body_too_large"
		if op.ID == "createEventBatch" {
			tooLarge = "batch_too_large"
		}
		pad := func(n int64) string { return body + strings.Repeat(" ", int(n)-len(body)) }
		// Size comes before type, type before content.
		expect(t, s.send(t, "POST", path, pad(op.MaxBody+1), append(headers, "Content-Type: text/plain")...), 413, tooLarge, "")
		if a := s.send(t, "POST", path, pad(op.MaxBody), headers...); a.status == 413 {
			t.Errorf("%s refuses a body at its cap", op.ID)
		}
		for _, kind := range []string{"text/plain", "application/xml", "application/x-www-form-urlencoded", "json", "application/jsonp", "text/json"} {
			expect(t, s.send(t, "POST", path, "", append(headers, "Content-Type: "+kind)...), 415, "unsupported_media_type", "")
		}
		expect(t, s.send(t, "POST", path, body, append(headers, "Content-Encoding: gzip")...), 415, "unsupported_media_type", "")
		for _, kind := range []string{"", "application/json; charset=utf-8", "Application/JSON", "application/vnd.acme+json"} {
			if a := s.send(t, "POST", path, body, append(headers, "Content-Type: "+kind)...); a.status == 415 {
				t.Errorf("%s refuses Content-Type %q", op.ID, kind)
			}
		}
		a := s.send(t, "POST", path, "", headers...)
		if code, _ := a.refusal(); a.status != 400 || code == "internal_error" {
			t.Errorf("%s answers no body with %d %s", op.ID, a.status, a.body)
		}
	}
}

func TestNoOperationAnswers501(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, op := range api.Operations {
		path, body, headers := request(op)
		if a := s.send(t, op.Method, path, body, append(headers, w.Key("all"))...); a.status == 501 || len(op.Errors[501]) > 0 {
			t.Errorf("%s is not there yet", op.ID)
		}
	}
}

func TestWholeNumbersMayBeWrittenAsFloats(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, id := range []string{"12.0", "1.2e1", "1e3", "9007199254740991"} {
		expect(t, s.send(t, "POST", "/api/v1/motions/1/start", `{"companyId": `+id+`, "contactIds": [1.0, 2]}`,
			w.Key("all"), "Idempotency-Key: k"), 404, "motion_not_found", "")
	}
	for _, id := range []string{"0", "-1", "1.5", "9007199254740992", `"12"`, "null", "1e400", "1e-400"} {
		expect(t, s.send(t, "POST", "/api/v1/motions/1/start", `{"companyId": `+id+`}`, w.Key("all"), "Idempotency-Key: k"),
			400, "invalid_request", "companyId")
	}
}

func TestMotionStartChecksItsKeyBeforeItsBodyAndItsBodyBeforeItsMotion(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for _, key := range []string{"", strings.Repeat("k", 101), "with space", "ü"} {
		expect(t, s.send(t, "POST", "/api/v1/motions/x/start", `{`, w.Key("all"), "Idempotency-Key: "+key),
			400, "idempotency_key_required", "Idempotency-Key")
	}
	for body, param := range map[string]string{
		`{}`:                                   "companyId",
		`{"companyId":1,"x":2}`:                "x",
		`{"companyId":1,"contactIds":3}`:       "contactIds",
		`{"companyId":1,"contactIds":[1,1]}`:   "contactIds",
		`{"companyId":1,"contactIds":[1,"2"]}`: "contactIds[1]",
		`{"companyId":1,"companyId":2}`:        "companyId",
		`[]`:                                   "",
		`{"companyId":1,"contactIds":[` + strings.Repeat("1,", 50) + `1]}`: "contactIds",
	} {
		expect(t, s.send(t, "POST", "/api/v1/motions/x/start", body, w.Key("all"), "Idempotency-Key: k"), 400, "invalid_request", param)
	}
	for _, id := range []string{"x", "1.5", "99999999999999999999"} {
		expect(t, s.send(t, "POST", "/api/v1/motions/"+id+"/start", `{"companyId":1}`, w.Key("all"), "Idempotency-Key: k"), 404, "motion_not_found", "")
	}
}

func TestALongNameOfAFieldIsNamedInShort(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	field, short := strings.Repeat("k", 1500), strings.Repeat("k", 64)+"…"
	form := "/api/v1/forms/" + w.Forms["demo"].PublicKey
	expect(t, s.send(t, "POST", form, `{"fields": {}, "`+field+`": 1}`), 400, "invalid_request", short)
	expect(t, s.send(t, "POST", form, `{"fields": {"email": "hank@globex.com", "`+field+`": "x"}}`), 400, "invalid_request", "fields."+short)
	expect(t, s.send(t, "POST", form, `{"fields": {"`+field+`": 1}}`), 400, "invalid_request", "fields."+short)

	w = workspace(t)
	expect(t, s.send(t, "POST", "/api/v1/motions/1/start", `{"companyId": 1, "`+field+`": 1}`, w.Key("all"), "Idempotency-Key: k"),
		400, "invalid_request", short)
	expect(t, s.send(t, "POST", "/api/v1/leads", `{"name": "Hank", "`+field+`": "\u0000"}`, w.Key("all")), 400, "invalid_lead", short)
	expect(t, s.send(t, "POST", "/api/v1/events", `{"`+field+`": 1, "id": "1", "name": "a", "visitor": {"id": "v"}}`, w.Key("all")),
		400, "invalid_body", short)
}

func TestListsCheckTheirQuery(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	for query, param := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "limit=": "limit", "limit=1.0": "limit",
		"limit=%zz": "limit", "limit=5;x": "limit", "name=n%": "name", "limit=5&limit=%zz": "limit",
		"limit=1&limit=1": "limit", "limit=+1": "limit",
		"status=pending_identity": "status", "status=": "status", "name=Bad": "name", "name=a&name=b": "name",
		"cursor=a&cursor=b": "cursor",
	} {
		expect(t, s.send(t, "GET", "/api/v1/events?"+query, "", w.Key("all")), 400, "invalid_body", param)
	}
	if a := s.send(t, "GET", "/api/v1/events?unknown=1&limit=100&name=a&status=unmatched", "", w.Key("all")); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	expect(t, s.send(t, "GET", "/api/v1/event-types?limit=1000", "", w.Key("all")), 400, "invalid_body", "limit")
}
