package event

import "sync"

// What may wait in a lane, by weight; beyond it requests are turned away. One
// workspace gets no more than its part, and the reserve is for workspaces that
// have nothing waiting yet, so that some that flood do not shut out the others.
const (
	queueBytes     = 32 << 20
	reserveBytes   = 16 << 20
	workspaceBytes = 4 << 20
)

// A queue holds the offers that wait for a lane. It is fair: what is taken from
// it is taken in turn from every workspace that has something waiting, so a
// flood of one workspace hardly delays the others.
type queue struct {
	mu     sync.Mutex
	more   sync.Cond // something was added, or the queue was closed
	lines  map[int64]*line
	turns  []int64 // the workspaces with a line, the next one first
	bytes  int
	closed bool
}

// line is what waits of one workspace, first come first served.
type line struct {
	offers []*offer
	bytes  int
}

func newQueue() *queue {
	q := &queue{lines: make(map[int64]*line)}
	q.more.L = &q.mu
	return q
}

// add puts an offer at the end of its workspace's line, and tells whether there
// was room.
func (q *queue) add(o *offer) bool {
	bytes := o.weight()
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[o.workspace]
	switch {
	case q.closed,
		l == nil && q.bytes+bytes > queueBytes+reserveBytes,
		l != nil && (q.bytes+bytes > queueBytes || l.bytes+bytes > workspaceBytes):
		return false
	case l == nil:
		l = &line{}
		q.lines[o.workspace] = l
		q.turns = append(q.turns, o.workspace)
	}
	l.offers = append(l.offers, o)
	l.bytes += bytes
	q.bytes += bytes
	q.more.Signal()
	return true
}

// take waits for offers and takes some with about so many events, in turn from
// each workspace. It gives none once the queue is closed and empty.
func (q *queue) take(events int) []*offer {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.turns) == 0 && !q.closed {
		q.more.Wait()
	}
	var taken []*offer
	for events > 0 && len(q.turns) > 0 {
		workspace := q.turns[0]
		q.turns = q.turns[1:]
		l := q.lines[workspace]
		o := l.offers[0]
		l.offers = l.offers[1:]
		l.bytes -= o.weight()
		q.bytes -= o.weight()
		if len(l.offers) > 0 {
			q.turns = append(q.turns, workspace)
		} else {
			delete(q.lines, workspace)
		}
		taken = append(taken, o)
		events -= len(o.events)
	}
	return taken
}

// close lets take come to an end; what is added from now on is turned away.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}
