package chaos

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A balancer shares requests out among servers, as those that people run do: it
// asks each whether it is ready, and a request goes to another server where it
// could not be sent, or where it can be repeated and nobody answered it.
type balancer struct {
	r     *rig
	next  atomic.Uint64
	ready []atomic.Bool
	reuse http.RoundTripper
	// Requests that must not be repeated go over a connection of their own: one
	// that was used before may be closed by the server at the very moment.
	fresh http.RoundTripper
}

func (b *balancer) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	var err error
	if q.Body != nil {
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
	}
	repeatable := q.Method == http.MethodGet || q.Header.Get("Idempotency-Key") != "" || strings.HasPrefix(q.URL.Path, "/api/v1/events")
	first := b.next.Add(1)
	for attempt := range uint64(2 * servers) {
		i := int(first+attempt) % servers
		if !b.ready[i].Load() && attempt < servers {
			continue
		}
		send := q.Clone(q.Context())
		send.Body, send.GetBody = io.NopCloser(bytes.NewReader(body)), nil
		send.URL.Host = strings.TrimPrefix(b.r.server(i).Base, "http://")
		by := b.reuse
		if !repeatable {
			by = b.fresh
		}
		response, failed := by.RoundTrip(send)
		if failed == nil {
			return response, nil
		}
		err = failed
		if unsent := (*net.OpError)(nil); !repeatable && (!errors.As(err, &unsent) || unsent.Op != "dial") {
			return nil, err
		}
	}
	return nil, err
}

// check asks the servers whether they are ready, until done is closed.
func (b *balancer) check(done chan struct{}) {
	for {
		for i := range servers {
			response, err := b.fresh.RoundTrip(httptest.NewRequest(http.MethodGet, b.r.server(i).Base+"/readyz", nil))
			if err == nil {
				response.Body.Close()
			}
			b.ready[i].Store(err == nil && response.StatusCode == http.StatusOK)
		}
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// rollingRestart restarts the servers in turn, each once the one before serves
// again, behind a balancer. No client notices: not one request is answered with
// anything but what it asked for.
func rollingRestart(t *testing.T, r *rig, lasts time.Duration) {
	b := &balancer{
		r: r, ready: make([]atomic.Bool, servers),
		reuse: &http.Transport{MaxIdleConnsPerHost: 32}, fresh: &http.Transport{DisableKeepAlives: true},
	}
	done := make(chan struct{})
	defer close(done)
	go b.check(done)
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(q *httputil.ProxyRequest) {
			q.Out.URL.Scheme = "http"
			q.Out.Header["X-Forwarded-For"] = q.In.Header["X-Forwarded-For"]
		},
		Transport: b, ErrorLog: log.New(io.Discard, "", 0), // each failure is seen below
	})
	defer front.Close()
	r.balancer.Store(&front.URL)
	time.Sleep(100 * time.Millisecond) // for what went past it to be answered
	begun := time.Now()
	for i := range servers {
		s := r.server(i)
		s.Process.Signal(syscall.SIGTERM)
		<-s.Exited()
		if err := s.Stop(); err != nil {
			t.Errorf("a server ends with %v", err)
		}
		r.start(t, i)
		time.Sleep(lasts / servers)
	}
	end := time.Now()
	for _, q := range r.requests(begun) {
		if q.end.Before(end) && (q.status == 0 || q.status >= 500) {
			t.Errorf("one of the %s is answered %d while the servers are restarted", q.kind, q.status)
		}
	}
	r.balancer.Store(nil)
}
