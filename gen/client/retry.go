package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a Retry does where its fields say nothing.
const (
	DefaultAttempts = 5
	DefaultTotal    = 2 * time.Minute // a key's requests are counted by the minute

	firstWait     = 250 * time.Millisecond
	longestWait   = 15 * time.Second
	readOfFailure = 64 << 10 // bytes; answers of failures are far smaller
)

// sameRequest are the codes of status 500 after which the very same request is
// to be sent again. A test holds them to the server's catalogue.
var sameRequest = []string{"internal_error", "ingest_failed", "start_failed"}

// A Retry sends requests, and sends those again that can be repeated and met
// something that passes: a limit (429), a server that is away (502, 503, 504, a
// connection that fails or times out), or a failure that the server asks to
// repeat (500 with such a code). It waits as long as Retry-After says, or ever
// longer where nothing does, a little at random so that clients do not come back
// all at once.
//
// Repeated are GET; events, whose ids make that safe; leads and motion starts
// that carry an Idempotency-Key. A lead that was created although its answer got
// lost answers 409 duplicate_request with its lead_id. Everything else is sent
// once, and so is a request whose body cannot be read twice (http.NewRequest
// sees to that for bytes.Buffer, bytes.Reader and strings.Reader).
//
// When the attempts or the time are used up, or the request's context would end
// before the wait does, the last answer is returned as it is: match on its code
// and Retry-After. Its zero value is ready to use, by many goroutines at once.
type Retry struct {
	// Doer sends each attempt; nil stands for http.DefaultClient. A Timeout of an
	// http.Client bounds one attempt, not all of them.
	Doer HttpRequestDoer
	// Attempts is how often a request is sent at most.
	Attempts int
	// Total is how long all attempts and the waits between them may take. No wait
	// is begun that would end later.
	Total time.Duration

	// Tests have a clock of their own.
	now  func() time.Time
	wait func(context.Context, time.Duration) error
}

var _ HttpRequestDoer = (*Retry)(nil)

// WithRetries makes a client send again what can be. It wraps the HTTP client
// that an option before it set.
func WithRetries(r Retry) ClientOption {
	return func(c *Client) error {
		if r.Doer == nil {
			r.Doer = c.Client
		}
		c.Client = &r
		return nil
	}
}

// WithAPIKey makes a client authenticate with a key.
func WithAPIKey(key string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+key)
		return nil
	})
}

// Do sends the request until it is answered for good.
func (r *Retry) Do(req *http.Request) (*http.Response, error) {
	doer, attempts, total, now, wait := r.Doer, r.Attempts, r.Total, r.now, r.wait
	if doer == nil {
		doer = http.DefaultClient
	}
	if attempts <= 0 {
		attempts = DefaultAttempts
	}
	if total <= 0 {
		total = DefaultTotal
	}
	if now == nil || wait == nil {
		now, wait = time.Now, sleep
	}
	if !repeatable(req) {
		attempts = 1
	}
	ctx := req.Context()
	end := now().Add(total)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	for attempt := 1; ; attempt++ {
		resp, err := doer.Do(req)
		if attempt == attempts || !passing(ctx, resp, err) {
			return resp, err
		}
		pause := pauseAfter(attempt, resp, now())
		if now().Add(pause).After(end) {
			return resp, err
		}
		if resp != nil {
			// So that the connection can be used again.
			_, _ = io.CopyN(io.Discard, resp.Body, readOfFailure)
			_ = resp.Body.Close()
		}
		if err := wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("%s %s: waiting to send it again: %w", req.Method, req.URL.Path, err)
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
}

// repeatable tells whether sending the request twice does no more than once.
func repeatable(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	path := req.URL.Path
	switch {
	case req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == "":
		return true
	case req.Method != http.MethodPost:
		return false
	case strings.HasSuffix(path, "/api/v1/events"), strings.HasSuffix(path, "/api/v1/events/batch"):
		return true
	case strings.HasSuffix(path, "/api/v1/leads"), strings.HasSuffix(path, "/api/v1/lead"),
		strings.Contains(path, "/api/v1/motions/") && strings.HasSuffix(path, "/start"):
		return strings.TrimSpace(req.Header.Get("Idempotency-Key")) != ""
	}
	return false
}

// passing tells whether the same request may well be answered otherwise later.
func passing(ctx context.Context, resp *http.Response, err error) bool {
	if err != nil {
		var dns *net.DNSError
		var failed net.Error
		switch {
		case ctx.Err() != nil:
			return false
		case errors.As(err, &dns) && dns.IsNotFound:
			return false // a name that is wrong stays wrong
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return true // the connection broke
		case errors.As(err, new(*net.OpError)):
			return true
		}
		return errors.As(err, &failed) && failed.Timeout()
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return slices.Contains(sameRequest, codeOf(resp))
	}
	return false
}

// codeOf reads the code of an error, in either shape, and leaves the body as it
// was.
func codeOf(resp *http.Response) string {
	body := resp.Body
	start, err := io.ReadAll(io.LimitReader(body, readOfFailure))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), body), body}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if err != nil || json.Unmarshal(start, &answer) != nil {
		return ""
	}
	var code string
	if json.Unmarshal(answer.Error, &code) == nil {
		return code
	}
	var detail struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(answer.Error, &detail) // no code is no code to repeat for
	return detail.Code
}

// pauseAfter is how long to wait after an attempt. It is never shorter than
// Retry-After.
func pauseAfter(attempt int, resp *http.Response, now time.Time) time.Duration {
	if resp != nil {
		if wait, ok := retryAfter(resp.Header.Get("Retry-After"), now); ok {
			return wait + random(min(wait/10, time.Second))
		}
	}
	wait := longestWait
	if attempt < 16 { // a shift that overflows would be none
		wait = min(firstWait<<(attempt-1), longestWait)
	}
	return wait/2 + random(wait/2)
}

// longestAsked is the longest wait that an answer can ask for: more would overflow
// what is added to it, and comes to the same, 68 years.
const longestAsked = math.MaxInt32 * time.Second

// retryAfter reads whole seconds, as Inlet sends them, or a date, as proxies may.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32) // out of range it gives the end of the range
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(max(seconds, 0)) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), longestAsked), true
	}
	return 0, false
}

func random(below time.Duration) time.Duration {
	if below <= 0 {
		return 0
	}
	return rand.N(below)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// again is the same request with its body from the start.
func again(req *http.Request) (*http.Request, error) {
	repeat := req.Clone(req.Context())
	if req.GetBody == nil {
		return repeat, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	repeat.Body = body
	return repeat, nil
}
