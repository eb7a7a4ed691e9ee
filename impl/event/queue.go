package event

import "sync"

// What may wait to be recorded, by weight; beyond it requests are turned away.
// One workspace gets no more than its part, and the reserve is for workspaces
// that have nothing waiting yet, so that some that flood do not shut out the
// others.
const (
	queueBytes     = 64 << 20
	reserveBytes   = 32 << 20
	workspaceBytes = 8 << 20
)

// anotherFrom is how many events must wait for another lane to begin while one
// is at work: below it one larger group costs less than two small ones.
const anotherFrom = 400

// A queue holds the offers that wait for a lane. It is fair: what is taken from
// it is taken in turn from every workspace that has something waiting, so a
// flood of one workspace hardly delays the others. A workspace is with one lane
// at a time.
type queue struct {
	mu      sync.Mutex
	idle    []chan struct{} // lanes that wait for work, the one that worked last at the end
	lines   map[int64]*line
	turns   []int64 // the workspaces that wait for a lane, the next one first
	waiting int     // events of those
	working int     // lanes that are at work
	events  int     // of all lines
	bytes   int
	closed  bool
}

// line is what waits of one workspace, first come first served.
type line struct {
	offers        []*offer
	events, bytes int
	taken         bool // the workspace is with a lane
}

func newQueue() *queue {
	return &queue{lines: make(map[int64]*line)}
}

// await has a lane wait until it is woken. The lane that worked last is woken
// first: its connection is the one whose caches are warm.
func (q *queue) await() {
	wake := make(chan struct{})
	q.idle = append(q.idle, wake)
	q.mu.Unlock()
	<-wake
	q.mu.Lock()
}

func (q *queue) wake() {
	if last := len(q.idle) - 1; last >= 0 {
		close(q.idle[last])
		q.idle = q.idle[:last]
	}
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
	l.events += len(o.events)
	l.bytes += bytes
	q.events += len(o.events)
	q.bytes += bytes
	if !l.taken {
		q.waiting += len(o.events)
		if q.worthwhile() {
			q.wake()
		}
	}
	return true
}

// worthwhile tells whether a lane should begin now.
func (q *queue) worthwhile() bool {
	return len(q.turns) > 0 && (q.working == 0 || q.waiting >= anotherFrom)
}

// take waits for work and takes some offers with about so many events, in turn
// from the workspaces that wait. Where much waits it leaves half of the
// workspaces to the other lanes. The workspaces are the lane's until it gives
// them back. There are none once the queue is closed and empty.
func (q *queue) take(events int) (offers []*offer, workspaces []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.worthwhile() {
		q.await()
	}
	if len(q.turns) == 0 {
		return nil, nil
	}
	n := len(q.turns)
	if q.waiting >= 2*anotherFrom {
		n = (n + 1) / 2
	}
	workspaces = append(workspaces, q.turns[:n]...)
	q.turns = append(q.turns[:0], q.turns[n:]...)
	q.working++
	lines := make([]*line, n)
	for i, w := range workspaces {
		lines[i] = q.lines[w]
		lines[i].taken = true
		q.waiting -= lines[i].events
	}
	for events > 0 && len(lines) > 0 {
		left := lines[:0]
		for _, l := range lines {
			if events <= 0 {
				break
			}
			o := l.offers[0]
			l.offers = l.offers[1:]
			l.events -= len(o.events)
			l.bytes -= o.weight()
			q.events -= len(o.events)
			q.bytes -= o.weight()
			events -= len(o.events)
			offers = append(offers, o)
			if len(l.offers) > 0 {
				left = append(left, l)
			}
		}
		lines = left
	}
	return offers, workspaces
}

// giveBack ends a lane's work on its workspaces; those that have more waiting get
// in line again. The lane is to take again, for no other may be told.
func (q *queue) giveBack(workspaces []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working--
	for _, w := range workspaces {
		l := q.lines[w]
		if len(l.offers) == 0 {
			delete(q.lines, w)
			continue
		}
		l.taken = false
		q.turns = append(q.turns, w)
		q.waiting += l.events
	}
	if q.working > 0 && q.worthwhile() {
		q.wake()
	}
}

// close lets take come to an end; what is added from now on is turned away.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for range q.idle {
		q.wake()
	}
}
