package chaos

import (
	"fmt"
	"sync"
	"time"
)

// The kinds of requests, each of which has to come back after a fault.
const (
	events  = "events"
	batches = "batches"
	leads   = "leads"
	motions = "motions"
	forms   = "forms"
	lists   = "lists"
)

// An item is one thing that a client wants done once, however often it asks.
type item struct {
	kind    string
	id      string // of an event; the idempotency key of a lead or a start; the e-mail address in a form
	company int64  // of a start
	bad     bool   // it has to be refused
	asked   int    // requests that carried it
	unsure  int    // of those, requests without an answer or with one of 5xx: it may be done
	done    bool   // an answer said that it is done
	refused bool   // an answer said that it never will be
	as      string // how an answer named it: event_id, lead_id, the decision
	status  string // of an event
	name    string // of an event
}

// A request that was sent, and what came of it.
type request struct {
	kind       string
	start, end time.Time
	status     int  // zero: no answer
	repeated   bool // it was sent before, and not answered for good
}

// A ledger is what the clients of a workspace did and were told. A lie is an
// answer that cannot be true.
type ledger struct {
	mu       sync.Mutex
	items    map[string]*item // by kind and id
	requests []request
	lies     []string
}

func newLedger() *ledger { return &ledger{items: make(map[string]*item)} }

// add notes what a client is about to ask for.
func (l *ledger) add(i *item) *item {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items[i.kind+" "+i.id] = i
	return i
}

func (l *ledger) find(kind, id string) *item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items[kind+" "+id]
}

// all gives the items of a kind as they stand.
func (l *ledger) all(kind string) (items []item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.items {
		if i.kind == kind {
			items = append(items, *i)
		}
	}
	return items
}

func (l *ledger) lie(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = append(l.lies, fmt.Sprintf(format, args...))
}

// asks notes that a request carries these items, and tells whether it is one that
// was not answered before.
func (l *ledger) asks(items ...*item) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range items {
		again = again || i.asked > 0 && !i.done && !i.refused
		i.asked++
	}
	return again
}

// answered notes a request and what it says of its items where that is the same
// for all: that nothing is known of them, or, with 429, that nothing was done.
func (l *ledger) answered(r request, items ...*item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	for _, i := range items {
		if r.status == 0 || r.status >= 500 {
			i.unsure++
		}
	}
}

// tells notes that an answer calls an item done, and by which name. first says
// that it was done just now.
func (l *ledger) tells(i *item, first bool, as, status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lie := func(format string, args ...any) {
		l.lies = append(l.lies, fmt.Sprintf("%s %s: ", i.kind, i.id)+fmt.Sprintf(format, args...))
	}
	switch {
	case i.bad:
		lie("was to be refused and is done as %s", as)
	case i.refused:
		lie("was refused and is done as %s", as)
	case first && i.done:
		lie("was done before as %s, and is done once more as %s", i.as, as)
	case !first && !i.done && i.unsure == 0:
		lie("was done before, says the answer (%s), though nobody had asked for it", as)
	case i.done && i.as != as:
		lie("is %s, and was %s before", as, i.as)
	}
	i.done = true
	if i.as == "" {
		i.as, i.status = as, status
	}
}

// refuses notes that an answer says that an item will not be done.
func (l *ledger) refuses(i *item, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !i.bad || i.done {
		l.lies = append(l.lies, fmt.Sprintf("%s %s is refused: %s", i.kind, i.id, answer))
	}
	i.refused = true
}
