package contract

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
)

// decisive are the headers by which browsers and caches decide what an answer may
// become, and those that would tell what the server is made of. The headers of a
// kind of answer are these, and none of the others.
var decisive = []string{
	"X-Content-Type-Options", "Cache-Control", "Content-Security-Policy", "Cross-Origin-Resource-Policy",
	"Referrer-Policy", "Permissions-Policy", "Strict-Transport-Security", "X-Robots-Tag",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Allow-Methods",
	"Access-Control-Allow-Headers", "Access-Control-Expose-Headers", "Access-Control-Max-Age",
	"Server", "X-Powered-By", "X-Frame-Options", "Set-Cookie",
}

type headers map[string]string

func (h headers) and(more headers) headers {
	all := maps.Clone(h)
	maps.Copy(all, more)
	return all
}

var (
	// What is of somebody: no page, in no frame, kept by nobody, read by no page.
	private = headers{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
	}
	// What pages of other origins ask for, without a credential.
	ofAnyPage = private.and(headers{"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"})
	preflight = ofAnyPage.and(headers{
		"Access-Control-Allow-Methods": "GET, HEAD, POST, OPTIONS", "Access-Control-Allow-Headers": "Content-Type", "Access-Control-Max-Age": "86400",
	})
	script    = ofAnyPage.and(headers{"Cache-Control": "public, max-age=300"})
	ofNoOther = headers{
		"Referrer-Policy": "no-referrer", "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
	}
	docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
	published = script.and(ofNoOther).and(headers{
		"Content-Security-Policy": docsPolicy, "Access-Control-Expose-Headers": "ETag, Inlet-Document",
	})
	found = private.and(ofNoOther).and(headers{"Content-Security-Policy": docsPolicy})
	// What stands in the frames of a workspace's sites.
	framed = func(ancestors string) headers {
		return private.and(ofNoOther).and(headers{
			"Cross-Origin-Resource-Policy": "cross-origin",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
				"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors " + ancestors,
		})
	}
)

func TestEveryAnswerSaysWhatMayBecomeOfIt(t *testing.T) {
	t.Parallel()
	w := seed(t, strings.Replace(everything, `      - {ref: shop, secret: shop-SLUG, origins: ["https://shop.SLUG.example"]}`, "", 1))
	link := strings.TrimSpace(inlet(t, "", "link", "create", w.Sites["www"].SiteKey,
		"--contact", "hank@globex.com", "--page", "https://www."+w.Slug+".example/"))
	link = link[strings.LastIndex(link, "/l/"):]
	form, meeting := "/api/v1/forms/"+w.Forms["demo"].PublicKey, "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey
	sites := "'self' https://www." + w.Slug + ".example"
	key, site := w.Key("all"), "Origin: https://www."+w.Slug+".example"

	type row struct {
		method, path, body string
		header             string
		status             int // zero where the kind of answer is the same for all
		want               headers
	}
	rows := []row{
		{"GET", "/api/v1/events", "", key, 200, private},
		{"POST", "/api/v1/events", `{"id":"e","name":"n","visitor":{"id":"v"}}`, key, 202, private},
		{"POST", "/api/v1/events", `{`, key, 400, private},
		{"POST", "/api/v1/leads", `{"email":"ann@newco.com"}`, key, 201, private},
		{"OPTIONS", "/api/v1/leads", "", "", 204, private},
		{"DELETE", "/api/v1/leads", "", key, 405, private},
		{"GET", "/api/v1/nothing", "", key, 404, private},
		{"GET", "/", "", "", 404, private},
		{"GET", "//docs", "", "", 404, private},
		{"OPTIONS", form, "", site, 204, preflight},
		{"GET", form, "", site, 200, ofAnyPage},
		{"GET", form, "", "Origin: https://elsewhere.example", 403, ofAnyPage},
		{"POST", form, `{"fields":{"email":"bob@newco.com"}}`, site, 201, ofAnyPage},
		{"GET", meeting + "/slots", "", site, 200, ofAnyPage},
		{"GET", "/livez", "", "", 200, private},
		{"GET", "/readyz", "", "", 200, private},
		{"GET", "/metrics", "", "", 200, private},
		{"GET", "/t/inlet.js", "", "", 200, script},
		{"GET", "/t/page.js", "", "", 200, script},
		{"GET", "/t/form.js", "", "", 200, script},
		{"GET", "/t/meeting.js", "", "", 200, script},
		{"GET", "/t/page.css", "", "", 200, script},
		{"GET", "/t/absent.js", "", "", 404, private},
		{"GET", form + "/embed.js", "", "", 200, script},
		{"GET", meeting + "/embed.js", "", "", 200, script},
		{"GET", form + "/page", "", "", 200, framed(sites)},
		{"GET", meeting + "/page", "", "", 200, framed(sites)},
		{"GET", form + "x/page", "", "", 404, framed("*")},
		{"GET", link, "", "", 302, private.and(headers{"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"})},
		{"GET", "/l/none", "", "", 404, framed("*")},
		{"GET", "/docs", "", "", 200, published},
		{"GET", "/docs/quickstart", "", "", 200, published},
		{"GET", "/docs/guides/events", "", "", 200, published},
		{"GET", "/docs/guides/events.md", "", "", 200, published},
		{"GET", "/docs/docs.css", "", "", 200, published},
		{"GET", "/docs/docs.js", "", "", 200, published},
		{"GET", "/docs/scalar.js", "", "", 200, published},
		{"GET", "/docs/llms.txt", "", "", 200, published},
		{"GET", "/docs/search.json", "", "", 200, published},
		{"GET", "/docs/openapi/v1.json", "", "", 200, published},
		{"GET", "/docs/search?q=lead", "", "", 200, found},
		{"GET", "/docs/nothing", "", "", 404, private},
	}
	for _, op := range api.Operations {
		path, body, more := request(op)
		want := private
		if isPublic(op.Path) {
			want = ofAnyPage
		}
		for _, header := range append(more, key, site, "Authorization: ") {
			rows = append(rows, row{op.Method, path, body, header, 0, want})
		}
	}

	for public, more := range map[string]headers{
		"http://inlet.example":   {},
		"https://inlet.example":  {"Strict-Transport-Security": "max-age=31536000"},
		"https://localhost:8443": {}, // where people have other servers too
	} {
		s := start(t, dbtest.URL(t), "INLET_PUBLIC_URL="+public)
		defer s.Stop()
		checked := rows
		if public == "http://inlet.example" {
			tried := published.and(headers{"Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; " +
				"img-src 'self' data:; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; connect-src 'self' " + public})
			checked = append(slices.Clone(rows), row{"GET", "/docs/reference", "", "", 200, tried})
			defer everyRoute(t, s)
		}
		for _, r := range checked {
			status, got := s.headersOf(t, r.method, r.path, r.body, r.header)
			if r.status != 0 && status != r.status {
				t.Errorf("%s %s (%s) answers %d, want %d", r.method, r.path, r.header, status, r.status)
			}
			want := r.want.and(more)
			for _, name := range decisive {
				if is := strings.Join(got.Values(name), " | "); is != want[name] {
					t.Errorf("%s: %s %s (%s), %d: %s is\n%q, want\n%q", public, r.method, r.path, r.header, status, name, is, want[name])
				}
			}
			if got.Get("X-Request-Id") == "" {
				t.Errorf("%s %s has no request id", r.method, r.path)
			}
		}
	}
}

// headersOf gives an answer as it comes: redirects are not followed.
func (s server) headersOf(t *testing.T, method, path, body, header string) (status int, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(withTest(t), method, s.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if name, value, _ := strings.Cut(header, ": "); value != "" {
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	return response.StatusCode, response.Header
}

// everyRoute makes sure that each route that is mounted anywhere was asked.
func everyRoute(t *testing.T, s server) {
	t.Helper()
	mounted := []string{"GET /docs"} // and more below it, which one function serves
	for _, op := range api.Operations {
		mounted = append(mounted, op.Pattern)
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	mounts := regexp.MustCompile(`mux\.Handle(?:Func)?\("([^"]+)"(\+)?`)
	for _, name := range append(files, "../server.go") {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, mount := range mounts.FindAllStringSubmatch(string(source), -1) {
			mounted = append(mounted, mount[1])
		}
	}
	if len(mounted) < 20 {
		t.Fatalf("only these routes are found: %q", mounted)
	}
	asked := ""
	eventually(t, "routes asked", "", func() string {
		asked = s.Log()
		var missing []string
		for _, pattern := range mounted {
			if !strings.Contains(asked, fmt.Sprintf(`"route":"%s`, pattern)) {
				missing = append(missing, pattern)
			}
		}
		return strings.Join(missing, ", ")
	})
}
