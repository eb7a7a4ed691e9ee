package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/net/html"

	"github.com/inletdev/inlet/impl/embed/embedtest"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/form"
	"github.com/inletdev/inlet/openapi"
)

func TestMain(m *testing.M) {
	code := m.Run()
	embedtest.Close()
	os.Exit(code)
}

// An inlet is the package's routes beside answers that a test gives in place of
// the operations.
type inlet struct {
	t      *testing.T
	base   string
	answer func(request) (int, any)

	mu   sync.Mutex
	seen []request
}

// A request is one that an operation got.
type request struct {
	method, path string
	query        map[string]string
	body         map[string]any
	origin       string
}

// newInlet serves as inlet.example, or with TLS.
func newInlet(t *testing.T, tls bool, forms map[string]form.Form, meetings map[string]form.MeetingForm) *inlet {
	t.Helper()
	i := &inlet{t: t, answer: received}
	mux := http.NewServeMux()
	mount(mux, anyEdge{}, formsOf(forms, meetings))
	mux.HandleFunc("/", i.operations)
	server := httptest.NewUnstartedServer(mux)
	if tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	i.base = embedtest.At(server.URL, "inlet.example")
	return i
}

// anyEdge lets everything pass.
type anyEdge struct{}

func (anyEdge) TakeRead(*http.Request) error { return nil }
func (anyEdge) TakeKey(string) error         { return nil }
func (anyEdge) Refused(_ *http.Request, err error) *fault.Fault {
	if f := (*fault.Fault)(nil); errors.As(err, &f) {
		return f
	}
	return fault.InternalError.Because(err)
}

func formsOf(forms map[string]form.Form, meetings map[string]form.MeetingForm) definitions {
	return definitions{
		find: func(_ context.Context, key string) (form.Form, error) {
			if f, ok := forms[key]; ok {
				return f, nil
			}
			return form.Form{}, fault.NotFound.New()
		},
		findMeeting: func(_ context.Context, key string) (form.MeetingForm, error) {
			if key == "meet_down" {
				return form.MeetingForm{}, fault.ServiceUnavailable.In(time.Second)
			}
			if f, ok := meetings[key]; ok {
				return f, nil
			}
			return form.MeetingForm{}, fault.NotFound.New()
		},
	}
}

func (i *inlet) operations(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	got := request{method: r.Method, path: r.URL.Path, query: make(map[string]string), origin: r.Header.Get("Origin")}
	for name := range r.URL.Query() {
		got.query[name] = r.URL.Query().Get(name)
	}
	if r.Method == http.MethodPost {
		raw, _ := io.ReadAll(r.Body)
		if err := asTheDocumentSays(r.URL.Path, raw); err != nil {
			i.t.Errorf("POST %s: %v\n%s", r.URL.Path, err, raw)
		}
		if kind := r.Header.Get("Content-Type"); kind != "application/json" {
			i.t.Errorf("POST %s: Content-Type %q", r.URL.Path, kind)
		}
		json.Unmarshal(raw, &got.body)
	}
	i.mu.Lock()
	i.seen = append(i.seen, got)
	answer := i.answer
	i.mu.Unlock()
	status, body := answer(got)
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// answers sets what operations answer from now on.
func (i *inlet) answers(answer func(request) (int, any)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// posts are the requests that brought a body, once there are n of them.
func (i *inlet) posts(n int) []request {
	i.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var posts []request
		i.mu.Lock()
		for _, r := range i.seen {
			if r.method == http.MethodPost {
				posts = append(posts, r)
			}
		}
		i.mu.Unlock()
		if len(posts) > n {
			i.t.Fatalf("%d requests instead of %d: %v", len(posts), n, posts)
		}
		if len(posts) == n {
			return posts
		}
		if time.Now().After(deadline) {
			i.t.Fatalf("%d requests instead of %d", len(posts), n)
		}
	}
}

// quiet waits as long as a stray request would take, and wants n in all.
func (i *inlet) quiet(n int) {
	i.t.Helper()
	time.Sleep(300 * time.Millisecond)
	i.posts(n)
}

func received(r request) (int, any) {
	if strings.HasPrefix(r.path, "/api/v1/visitors/") {
		return http.StatusAccepted, map[string]any{"status": "received"}
	}
	return http.StatusCreated, map[string]any{"status": "received"}
}

func refused(status int, code string, more map[string]any) func(request) (int, any) {
	return func(request) (int, any) {
		body := map[string]any{"error": code, "message": "want something else", "request_id": "req_1"}
		maps.Copy(body, more)
		return status, body
	}
}

// asTheDocumentSays holds a body against the schema that its operation has.
func asTheDocumentSays(path string, raw []byte) error {
	name := "Identify"
	switch {
	case strings.HasPrefix(path, "/api/v1/forms/"):
		name = "FormSubmission"
	case strings.HasPrefix(path, "/api/v1/meeting-forms/"):
		name = "MeetingBooking"
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("document.json", document); err != nil {
		return err
	}
	schema, err := c.Compile("document.json#/components/schemas/" + name)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func get(t *testing.T, address string, headers ...string) (*http.Response, string) {
	t.Helper()
	address = strings.Replace(address, "inlet.example", "127.0.0.1", 1)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestAnyPageMayLoadTheScriptsAndKeepThemAWhile(t *testing.T) {
	i := newInlet(t, false, map[string]form.Form{"form_1": demo()}, nil)
	for path, kind := range map[string]string{
		"/t/inlet.js": "text/javascript; charset=utf-8", "/t/page.css": "text/css; charset=utf-8",
		"/t/page.js": "text/javascript; charset=utf-8", "/t/form.js": "text/javascript; charset=utf-8",
		"/t/meeting.js": "text/javascript; charset=utf-8", "/api/v1/forms/form_1/embed.js": "text/javascript; charset=utf-8",
	} {
		r, body := get(t, i.base+path)
		h := r.Header
		if r.StatusCode != http.StatusOK || body == "" || h.Get("Content-Type") != kind ||
			h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Cache-Control"), "public, max-age=") {
			t.Errorf("%s: %d %v", path, r.StatusCode, h)
		}
		if again, body := get(t, i.base+path, "If-None-Match: "+h.Get("ETag")); again.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
	}
}

func TestWhatIsNoFormIsNotFound(t *testing.T) {
	i := newInlet(t, false, nil, nil)
	for _, path := range []string{
		"/api/v1/forms/form_x/page", "/api/v1/forms/form_x/embed.js",
		"/api/v1/meeting-forms/meet_x/page", "/api/v1/meeting-forms/meet_x/embed.js",
	} {
		if r, body := get(t, i.base+path); r.StatusCode != http.StatusNotFound || !strings.Contains(body, "There is nothing here") {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}
	if r, body := get(t, i.base+"/api/v1/meeting-forms/meet_down/page"); r.StatusCode != http.StatusServiceUnavailable || strings.Contains(body, "nothing here") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	tab := embedtest.Open(t)
	tab.Expect("404")
	tab.Go(i.base + "/api/v1/forms/form_x/page")
	tab.Until(`document.querySelector('h1').textContent === 'There is nothing here'`)
}

func TestAPolicyTakesOriginsAndNothingElse(t *testing.T) {
	given := []string{
		"https://www.acme.example", "http://localhost:3000", "https://a.example; script-src *", "*", "'none'",
		"https://a.example/path", "https://a.example,https://b.example", "javascript:alert(1)", "",
	}
	if got, want := ancestors(given), "'self' https://www.acme.example http://localhost:3000"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if got := ancestors(nil); got != "'self'" {
		t.Error(got)
	}
}

// demo is a form with a field of every kind.
func demo(origins ...string) form.Form {
	return form.Form{
		PublicKey: "form_1", Name: "Request a demo", Origins: origins,
		Fields: []form.Field{
			{Name: "first_name", Label: "First name", Type: "text", MaxLength: 512},
			{Name: "email", Label: "E-mail", Type: "email", Required: true, MaxLength: 320},
			{Name: "company_name", Label: "Company", Type: "text", Required: true, MaxLength: 512},
			{Name: "phone", Label: "Phone", Type: "tel", MaxLength: 64},
			{Name: "linkedin_url", Label: "LinkedIn profile", Type: "url", MaxLength: 2048},
		},
	}
}

func field(name string) string { return fmt.Sprintf(`[name="fields.%s"]`, name) }

// FuzzPage shows a form of any name, any fields and any origins: the page is made of
// the same elements whatever these say, and its policy of the origins that are ones
// and of nothing else.
func FuzzPage(f *testing.F) {
	show := func(name, field, origin string) (policies, elements []string) {
		w := httptest.NewRecorder()
		of := form.Form{PublicKey: "form_demo", Name: name, Fields: []form.Field{{Name: "email", Label: field, Type: "email", Required: true, MaxLength: 320}}}
		page{"form.html", of.PublicKey, []string{"https://a.example", origin}, of}.show(w)
		for z := html.NewTokenizer(w.Body); ; {
			switch kind := z.Next(); kind {
			case html.ErrorToken:
				return strings.Split(w.Header().Get("Content-Security-Policy"), "; "), elements
			case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken, html.CommentToken:
				token := z.Token()
				element := token.Data
				for _, a := range token.Attr {
					element += " " + a.Key
				}
				elements = append(elements, element)
			}
		}
	}
	policies, elements := show("Request a demo", "E-mail", "https://b.example")
	f.Fuzz(func(t *testing.T, name, field, origin string) {
		gotPolicies, gotElements := show(name, field, origin)
		if !slices.Equal(gotElements, elements) && name != "" && field != "" {
			t.Errorf("%q and %q make a page of %q", name, field, gotElements)
		}
		last := len(policies) - 1
		if len(gotPolicies) != len(policies) || !slices.Equal(gotPolicies[:last], policies[:last]) || !frames.MatchString(gotPolicies[last]) {
			t.Errorf("%q makes the policy %q", origin, gotPolicies)
		}
	})
}

var frames = regexp.MustCompile(`^frame-ancestors 'self' https://a\.example( https?://[\w.-]+(:[0-9]+)?)?\z`)
