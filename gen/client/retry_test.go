package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/fault"
)

func TestTheCodesToRepeatAreThoseOfTheCatalogue(t *testing.T) {
	var want []string
	for _, c := range fault.Catalog() {
		switch {
		case c.Retry == fault.SameRequest && c.Status == http.StatusInternalServerError:
			want = append(want, c.Name)
		case c.Retry == fault.After && c.Status != http.StatusTooManyRequests && c.Status != http.StatusServiceUnavailable,
			c.Retry == fault.SameRequest:
			t.Errorf("%s (%d) is to be repeated, and a Retry does not", c.Name, c.Status)
		}
	}
	got := slices.Clone(sameRequest)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("repeated are %v, want %v", got, want)
	}
}

// An answer is one that the server of a test gives.
type answer struct {
	status     int
	retryAfter string
	body       string
}

const created = `{"id": "order-1001", "status": "accepted", "event_id": "evt_06dkz5a3q1yfhbx9n8m2r7c4tw"}`

var (
	done    = answer{http.StatusAccepted, "", created}
	limited = answer{http.StatusTooManyRequests, "17", `{"error": "rate_limited", "message": "", "request_id": "r", "retry_after": 17}`}
	away    = answer{http.StatusServiceUnavailable, "", `{"error": {"code": "events_unavailable", "message": "", "param": null}}`}
	failed  = answer{http.StatusInternalServerError, "", `{"error": {"code": "internal_error", "message": "", "param": null}}`}
)

// A server answers in turn, the last answer from then on, and keeps what it was
// sent.
type server struct {
	*httptest.Server
	bodies []string
}

func serve(t *testing.T, answers ...answer) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a := answers[min(len(s.bodies), len(answers)-1)]
		s.bodies = append(s.bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(a.body, "<") {
			w.Header().Set("Content-Type", "text/html") // not from Inlet
		}
		if a.retryAfter != "" {
			w.Header().Set("Retry-After", a.retryAfter)
		}
		w.WriteHeader(a.status)
		fmt.Fprint(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s
}

// impatient gives a Retry whose waits take no time, and the waits.
func impatient(r Retry) (*Retry, *[]time.Duration) {
	clock := time.Now()
	var waits []time.Duration
	r.now = func() time.Time { return clock }
	r.wait = func(ctx context.Context, d time.Duration) error {
		clock = clock.Add(d)
		waits = append(waits, d)
		return ctx.Err()
	}
	return &r, &waits
}

func event(t *testing.T, s *server, r *Retry) *CreateEventResponse {
	t.Helper()
	c, err := NewClientWithResponses(s.URL, WithHTTPClient(r))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.CreateEventWithResponse(t.Context(), nil, EventInput{Id: "order-1001", Name: "order_placed", Visitor: &VisitorReference{Id: "v1"}})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestRepeatsWaitForRetryAfter(t *testing.T) {
	s := serve(t, limited, limited, done)
	r, waits := impatient(Retry{})
	resp := event(t, s, r)
	if resp.JSON202 == nil || resp.JSON202.Status != "accepted" {
		t.Errorf("the answer is %s", resp.Status())
	}
	if len(*waits) != 2 {
		t.Fatalf("it waited %v, want twice", *waits)
	}
	for _, wait := range *waits {
		if wait < 17*time.Second || wait > 18*time.Second {
			t.Errorf("it waited %v, want 17 s and a little", wait)
		}
	}
	if len(s.bodies) != 3 || !strings.Contains(s.bodies[0], "order-1001") || s.bodies[1] != s.bodies[0] || s.bodies[2] != s.bodies[0] {
		t.Errorf("it sent %q, want the same event three times", s.bodies)
	}
}

func TestRepeatsWaitEverLongerWhereNothingSaysHowLong(t *testing.T) {
	s := serve(t, failed, away, failed, away, done)
	r, waits := impatient(Retry{})
	if resp := event(t, s, r); resp.JSON202 == nil {
		t.Errorf("the answer is %s", resp.Status())
	}
	if len(*waits) != 4 {
		t.Fatalf("it waited %v, want four times", *waits)
	}
	for i, wait := range *waits {
		if most := firstWait << i; wait < most/2 || wait > most {
			t.Errorf("wait %d is %v, want %v to %v", i, wait, most/2, most)
		}
	}
	for attempt := range 100 {
		if wait := pauseAfter(attempt+1, nil, time.Now()); wait <= 0 || wait > longestWait {
			t.Errorf("after attempt %d it waits %v", attempt+1, wait)
		}
	}
}

func TestTheLastAnswerIsReturnedWhole(t *testing.T) {
	for name, c := range map[string]struct {
		retry  Retry
		answer answer
		sent   int
	}{
		"attempts are used up":     {Retry{Attempts: 3}, failed, 3},
		"time is used up":          {Retry{Total: 40 * time.Second}, limited, 3},
		"the wait is for too long": {Retry{}, answer{limited.status, "86400", limited.body}, 1},
		"no second attempt":        {Retry{Attempts: 1}, limited, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.answer)
			r, _ := impatient(c.retry)
			resp := event(t, s, r)
			if resp.StatusCode() != c.answer.status || string(resp.Body) != c.answer.body {
				t.Errorf("the answer is %s %s", resp.Status(), resp.Body)
			}
			if len(s.bodies) != c.sent {
				t.Errorf("it was sent %d times, want %d", len(s.bodies), c.sent)
			}
		})
	}
}

func TestOnlyWhatMayPassIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		sent   int
	}{
		"a limit":                      {limited, 2},
		"away":                         {away, 2},
		"a proxy without a server":     {answer{http.StatusBadGateway, "", "<html>"}, 2},
		"a failure in the event shape": {failed, 2},
		"a failure in the other shape": {answer{500, "", `{"error": "internal_error", "message": "", "request_id": "r"}`}, 2},
		"a failure of something else":  {answer{500, "", "<html>"}, 1},
		"a failure without a code":     {answer{500, "", `{"error": {"message": ""}}`}, 1},
		"a refusal":                    {answer{422, "", `{"error": {"code": "pii_value", "message": "", "param": "properties.note"}}`}, 1},
		"a key that is none":           {answer{401, "", `{"error": "invalid_api_key", "message": "", "request_id": "r"}`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.answer, done)
			r, _ := impatient(Retry{})
			resp := event(t, s, r)
			if len(s.bodies) != c.sent {
				t.Errorf("it was sent %d times, want %d", len(s.bodies), c.sent)
			}
			if c.sent == 1 && string(resp.Body) != c.answer.body {
				t.Errorf("the body is %s, want %s", resp.Body, c.answer.body)
			}
		})
	}
}

func TestOnlyRequestsThatAreSafeToRepeatAreRepeated(t *testing.T) {
	const key = "Idempotency-Key"
	for _, c := range []struct {
		method, path, key string
		sent              int
	}{
		{"GET", "/api/v1/events", "", 2},
		{"GET", "/api/v1/event-types", "", 2},
		{"GET", "/api/v1/forms/f", "", 2},
		{"POST", "/api/v1/events", "", 2},
		{"POST", "/api/v1/events/batch", "", 2},
		{"POST", "/behind/a/proxy/api/v1/events", "", 2},
		{"POST", "/api/v1/leads", "k", 2},
		{"POST", "/api/v1/lead", "k", 2},
		{"POST", "/api/v1/leads", "", 1},
		{"POST", "/api/v1/leads", " ", 1},
		{"POST", "/api/v1/lead", "", 1},
		{"POST", "/api/v1/motions/5/start", "k", 2},
		{"POST", "/api/v1/motions/5/start", "", 1},
		{"POST", "/api/v1/forms/f", "k", 1},
		{"POST", "/api/v1/meeting-forms/f", "", 1},
		{"POST", "/api/v1/visitors/identify", "", 1},
		{"DELETE", "/api/v1/events", "", 1},
	} {
		s := serve(t, away, done)
		r, _ := impatient(Retry{})
		req := httptest.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, nil)
		req.RequestURI = ""
		if c.method == "POST" {
			req, _ = http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader("{}"))
		}
		req.Header.Set(key, c.key)
		resp, err := r.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(s.bodies) != c.sent {
			t.Errorf("%s %s with the key %q was sent %d times, want %d", c.method, c.path, c.key, len(s.bodies), c.sent)
		}
	}
}

func TestABodyThatCannotBeReadTwiceIsSentOnce(t *testing.T) {
	s := serve(t, away, done)
	r, _ := impatient(Retry{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v1/events", io.MultiReader(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(s.bodies) != 1 || resp.StatusCode != away.status {
		t.Errorf("it was sent %d times and answered %s", len(s.bodies), resp.Status)
	}
}

func TestAConnectionThatFailsIsTriedAgain(t *testing.T) {
	broken := serve(t, done)
	var calls atomic.Int32
	broken.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, created)
	})
	r, waits := impatient(Retry{})
	if resp := event(t, broken, r); resp.JSON202 == nil || len(*waits) != 2 {
		t.Errorf("it was answered %s after the waits %v", resp.Status(), *waits)
	}

	gone := serve(t, done)
	gone.Close()
	r, waits = impatient(Retry{Attempts: 3})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gone.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do(req); !errors.As(err, new(*net.OpError)) || len(*waits) != 2 {
		t.Errorf("it failed with %v after the waits %v, want a refused connection after two", err, *waits)
	}
}

func TestAnAttemptThatTimesOutIsTriedAgain(t *testing.T) {
	s := serve(t, done)
	var calls atomic.Int32
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			time.Sleep(300 * time.Millisecond)
			return
		}
		inner.ServeHTTP(w, r)
	})
	r, waits := impatient(Retry{Doer: &http.Client{Timeout: 100 * time.Millisecond}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.Do(req)
	if err != nil || resp.StatusCode != http.StatusAccepted || len(*waits) != 1 {
		t.Fatalf("it came to %v after the waits %v", err, *waits)
	}
	resp.Body.Close()
}

func TestTheContextEndsAWait(t *testing.T) {
	s := serve(t, limited)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := new(Retry).Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("it came to %v, want the context's end", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestNoWaitIsBegunThatTheContextWouldCutShort(t *testing.T) {
	s := serve(t, limited)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	resp, err := new(Retry).Do(req)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("it came to %v, want the answer", err)
	}
	resp.Body.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"17":                            17 * time.Second,
		" 1 ":                           time.Second,
		"0":                             0,
		"-3":                            0,
		"Mon, 02 Mar 2026 09:15:30 GMT": 30 * time.Second,
		"Mon, 02 Mar 2026 09:14:30 GMT": 0,
		"soon":                          -1,
		"":                              -1,
		"99999999999999999999":          longestAsked,
	} {
		got, ok := retryAfter(value, now)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %v, want %v", value, got, want)
		}
	}
}

func TestItWaitsForRealToo(t *testing.T) {
	s := serve(t, answer{limited.status, "1", limited.body}, done)
	c, err := NewClientWithResponses(s.URL, WithAPIKey("amp_test"), WithRetries(Retry{}))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	resp, err := c.ListEventTypesWithResponse(t.Context(), nil)
	if err != nil || resp.StatusCode() != http.StatusAccepted {
		t.Fatalf("it came to %v", err)
	}
	if took := time.Since(began); took < time.Second || took > 3*time.Second {
		t.Errorf("it took %v, want one second", took)
	}
	if got := resp.HTTPResponse.Request.Header.Get("Authorization"); got != "Bearer amp_test" {
		t.Errorf("it authenticated with %q", got)
	}
}

// FuzzAnswer answers a request with any Retry-After and any body: the wait is never
// shorter than that asks for nor, where nothing asks, longer than the longest; a
// wait that is too long for the client ends in the answer itself, whole; and codes
// are read as encoding/json reads them.
func FuzzAnswer(f *testing.F) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		resp := func() *http.Response {
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Body: io.NopCloser(strings.NewReader(body))}
		}
		asked, ok := retryAfter(after, now)
		if asked < 0 || !ok && asked != 0 {
			t.Errorf("%q asks for a wait of %v", after, asked)
		}
		if at, err := http.ParseTime(after); err == nil && at.After(now) && (!ok || asked != min(at.Sub(now), longestAsked)) {
			t.Errorf("%q asks for a wait of %v, %t", after, asked, ok)
		}
		if seconds, isNumber := new(big.Int).SetString(after, 10); isNumber && seconds.Sign() > 0 && !strings.Contains(after, "_") &&
			(!ok || seconds.IsInt64() && asked != min(time.Duration(min(seconds.Int64(), 1<<31))*time.Second, longestAsked)) {
			t.Errorf("%q asks for a wait of %v, %t", after, asked, ok)
		}
		for attempt := 1; attempt < 100; attempt += 7 {
			pause := pauseAfter(attempt, resp(), now)
			if ok && (pause < asked || pause-asked > time.Second) || !ok && (pause <= 0 || pause > longestWait) {
				t.Errorf("after attempt %d and %q it waits %v", attempt, after, pause)
			}
		}

		answered := resp()
		code := codeOf(answered)
		var shape struct {
			Error any `json:"error"`
		}
		want := ""
		if json.Unmarshal([]byte(body), &shape) == nil {
			switch e := shape.Error.(type) {
			case string:
				want = e
			case map[string]any:
				for name, value := range e {
					if text, isText := value.(string); isText && strings.EqualFold(name, "code") {
						want = text
					}
				}
			}
		}
		if code != want && strings.Count(strings.ToLower(body), "code") < 2 {
			t.Errorf("%q has the code %q, want %q", body, code, want)
		}
		if left, err := io.ReadAll(answered.Body); err != nil || string(left) != body {
			t.Errorf("of %q is left %q, %v", body, left, err)
		}

		sent := 0
		r, waits := impatient(Retry{Doer: doer(func(*http.Request) (*http.Response, error) { sent++; return resp(), nil })})
		req := httptest.NewRequest(http.MethodGet, "https://inlet.example.com/api/v1/events", nil)
		last, err := r.Do(req)
		if err != nil || sent < 1 || sent > DefaultAttempts || len(*waits) != sent-1 {
			t.Fatalf("%d and %q: sent %d times, waited %v, %v", status, after, sent, *waits, err)
		}
		total := time.Duration(0)
		for _, wait := range *waits {
			total += wait
		}
		if wait, ok := retryAfter(after, r.now().Add(-total)); total < 0 || total > DefaultTotal || ok && wait > DefaultTotal && sent > 1 {
			t.Errorf("%d and %q: it waits %v", status, after, *waits)
		}
		if left, err := io.ReadAll(last.Body); err != nil || string(left) != body {
			t.Errorf("%d: of %q is returned %q, %v", status, body, left, err)
		}
	})
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
