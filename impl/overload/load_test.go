package overload

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A load is what became of many requests.
type load struct {
	length   time.Duration
	mu       sync.Mutex
	answers  map[string]int // by status and code
	served   []time.Duration
	retry    [2]int // the shortest and the longest that a client was asked to wait
	problems []string
}

// served are the statuses of what a server does for its clients; a key that there
// is none of is served with a 401.
func (a answer) isServed() bool { return a.status >= 200 && a.status < 300 || a.status == 401 }

func (l *load) note(r request, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.err != nil {
		l.problems = append(l.problems, fmt.Sprintf("%s %s breaks after %v: %v", r.method, r.path, a.took, a.err))
		return
	}
	l.answers[fmt.Sprintf("%d %s", a.status, a.code)]++
	if a.isServed() {
		l.served = append(l.served, a.took)
		return
	}
	wait, err := strconv.Atoi(a.retryAfter)
	if err != nil || wait < 1 || wait > 60 {
		l.problems = append(l.problems, fmt.Sprintf("%s %s answers %d %s with Retry-After %q", r.method, r.path, a.status, a.code, a.retryAfter))
	}
	l.retry = [2]int{min(wait, l.retry[0]), max(wait, l.retry[1])}
}

func newLoad() *load { return &load{answers: make(map[string]int), retry: [2]int{60, 0}} }

// closed has so many clients send one request after the other.
func (s server) closed(clients int, length time.Duration, next func() request) *load {
	l := newLoad()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	begun := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for time.Since(begun) < length {
				r := next()
				l.note(r, s.send(client, r))
			}
		})
	}
	all.Wait()
	l.length = time.Since(begun)
	return l
}

// open sends so many requests a second, whether or not those before were answered.
func (s server) open(perSecond float64, length time.Duration, next func() request) *load {
	l := newLoad()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	begun := time.Now()
	var all sync.WaitGroup
	for i := 0; ; i++ {
		due := begun.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
		if due.Sub(begun) > length {
			break
		}
		time.Sleep(time.Until(due))
		all.Go(func() {
			r := next()
			l.note(r, s.send(client, r))
		})
	}
	l.length = time.Since(begun)
	all.Wait()
	return l
}

// rate is how many were served a second.
func (l *load) rate() float64 { return float64(len(l.served)) / l.length.Seconds() }

// p gives a percentile of the time that those took that were served.
func (l *load) p(percent int) time.Duration {
	if len(l.served) == 0 {
		return 0
	}
	slices.Sort(l.served)
	return l.served[len(l.served)*percent/101]
}

func (l *load) String() string {
	return fmt.Sprintf("%.0f/s served, p50 %v, p99 %v, answers %v, Retry-After %v", l.rate(), l.p(50).Round(time.Millisecond), l.p(99).Round(time.Millisecond), l.answers, l.retry)
}

// only makes sure that nothing was said but this, and nothing broke.
func (l *load) only(t *testing.T, answers ...string) {
	t.Helper()
	for said, n := range l.answers {
		if !slices.Contains(answers, said) {
			t.Errorf("%d requests are answered %s", n, said)
		}
	}
	for _, problem := range l.problems[:min(len(l.problems), 5)] {
		t.Errorf("%s (one of %d)", problem, len(l.problems))
	}
}

// inTurn sends the requests of several to each of them in turn, at random.
func inTurn(tenants []tenant, of func(tenant) request) func() request {
	return func() request { return of(tenants[rand.IntN(len(tenants))]) }
}
