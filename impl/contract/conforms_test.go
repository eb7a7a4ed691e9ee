package contract

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What the checks of answers let pass, no test would tell: each kind of deviation
// is planted here.
func TestADeviationIsFound(t *testing.T) {
	t.Parallel()
	const (
		page    = `{"rows": [], "nextCursor": null, "total": 0}`
		batch   = `{"accepted": 0, "duplicate": 0, "unmatched": 0, "pending_identity": 0, "refused": 1, "results": [{"id": null, "status": "refused", "error": {"code": "CODE", "message": "m", "param": null}}]}`
		refusal = `{"error": "CODE", "message": "m", "request_id": "req_1"}`
	)
	coded := func(body, code string) string { return strings.ReplaceAll(body, "CODE", code) }
	for name, c := range map[string]struct {
		request, sent string
		status        int
		header, body  string
		want          string // part of what is said; empty where all is well
	}{
		"a page":                    {"GET /api/v1/events?limit=5&status=accepted", "", 200, "RateLimit-Limit: 60", page, ""},
		"a wrong status":            {"GET /api/v1/events", "", 201, "", page, "status 201 is not declared"},
		"a missing header":          {"GET /api/v1/events", "", 200, "X-Request-Id:", page, "X-Request-Id"},
		"a missing challenge":       {"GET /api/v1/events", "", 401, "", coded(refusal, "invalid_api_key"), "WWW-Authenticate is there 0 times"},
		"a header out of bounds":    {"GET /api/v1/events", "", 200, "RateLimit-Reset: 61", page, "RateLimit-Reset"},
		"a header that is no text":  {"GET /api/v1/events", "", 200, "RateLimit-Limit: many", page, "RateLimit-Limit"},
		"an undocumented header":    {"GET /api/v1/events", "", 200, "Access-Control-Allow-Origin: *", page, "is not declared"},
		"another type":              {"GET /api/v1/events", "", 200, "Content-Type: text/html", page, "Content-Type"},
		"an undocumented field":     {"GET /api/v1/events", "", 200, "", strings.Replace(page, "{", `{"more": 1, `, 1), "more"},
		"a missing field":           {"GET /api/v1/events", "", 200, "", `{"rows": []}`, "missing properties"},
		"no JSON":                   {"GET /api/v1/events", "", 200, "", "", "no JSON"},
		"a code of another status":  {"GET /api/v1/events", "", 400, "", `{"error": {"code": "event_too_old", "message": "m", "param": null}}`, "code event_too_old"},
		"a limit that is too high":  {"GET /api/v1/events?limit=1000", "", 200, "", page, "limit"},
		"a parameter that is twice": {"GET /api/v1/events?limit=1&limit=1", "", 200, "", page, "limit is there 2 times"},
		"HEAD":                      {"HEAD /api/v1/events", "", 200, "", "", ""},
		"HEAD of another type":      {"HEAD /api/v1/events", "", 200, "Content-Type: text/html", "", "Content-Type"},
		"HEAD of another status":    {"HEAD /api/v1/events", "", 204, "", "", "status 204"},
		"a batch":                   {"POST /api/v1/events/batch", `{"events": [1]}`, 202, "", coded(batch, "invalid_body"), ""},
		"a batch of what is none":   {"POST /api/v1/events/batch", `{"events": [1]}`, 202, "", coded(batch, "event_too_old"), "event 0"},
		"a batch and more":          {"POST /api/v1/events/batch", `{"events": [1], "x": 1}`, 202, "", coded(batch, "invalid_body"), "results for"},
		"an empty lead":             {"POST /api/v1/leads", `{}`, 201, "", `{"lead_id": 1, "status": "new", "is_test": false, "reconciled": false}`, "was accepted"},
		"a motion of no number":     {"POST /api/v1/motions/x/start", `{"companyId": 1}`, 202, "", `{"status": "queued", "motionId": 1, "companyId": 1}`, "id"},
		"another method":            {"PUT /api/v1/events", "", 405, "Allow: GET, HEAD, POST, OPTIONS", coded(refusal, "method_not_allowed"), ""},
		"another method, no Allow":  {"PUT /api/v1/events", "", 405, "", coded(refusal, "method_not_allowed"), "Allow"},
		"another method, 404":       {"PUT /api/v1/events", "", 404, "Allow: GET, HEAD, POST, OPTIONS", coded(refusal, "not_found"), "want 405"},
		"OPTIONS":                   {"OPTIONS /api/v1/leads", "", 204, "Allow: POST, OPTIONS", "", ""},
		"OPTIONS that open":         {"OPTIONS /api/v1/leads", "", 204, "Allow: POST, OPTIONS\nAccess-Control-Allow-Origin: *", "", "pages may read"},
		"OPTIONS that do not":       {"OPTIONS /api/v1/visitors/identify", "", 204, "Allow: POST, OPTIONS", "", "pages may read"},
		"OPTIONS with 200":          {"OPTIONS /api/v1/leads", "", 200, "Allow: POST, OPTIONS", "", "want 204"},
		"no route":                  {"GET /api/v1/nothing", "", 404, "", coded(refusal, "not_found"), ""},
		"no route, 200":             {"GET /api/v1/nothing", "", 200, "", page, "want 404"},
		"no route, another code":    {"GET /api/v1/nothing", "", 404, "", coded(refusal, "form_not_found"), "want the code"},
		"no route, another id":      {"GET /api/v1/nothing", "", 404, "X-Request-Id: req_2", coded(refusal, "not_found"), "the id of the request"},
		"no route, plain text":      {"GET /nothing", "", 404, "Content-Type: application/octet-stream", "nothing", "404 with"},
	} {
		method, address, _ := strings.Cut(c.request, " ")
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		sent := http.Header{"Idempotency-Key": {"k"}}
		got := http.Header{"X-Request-Id": {"req_1"}, "Content-Type": {"application/json"}}
		for line := range strings.Lines(c.header) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if got.Del(name); value != "" {
				got.Set(name, strings.TrimSpace(value))
			}
		}
		err = conforms(asked{method, u, sent, []byte(c.sent)}, answer{c.status, maps.Clone(got), []byte(c.body)})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
