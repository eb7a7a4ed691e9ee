package event

import (
	"sync"
	"time"
)

// What may wait to be recorded, by weight; beyond it requests are turned away.
// One workspace gets no more than its part, and the reserve is for workspaces
// that have nothing waiting yet, so that some that flood do not shut out the
// others.
const (
	queueBytes     = 64 << 20
	reserveBytes   = 32 << 20
	workspaceBytes = 8 << 20
)

// How long offers wait is bounded by how many may: as many as it takes for none to
// wait longer than waitAtMost, which the queue finds out by trying. It keeps two
// groups in any case, for small groups cost more an event.
const (
	waitAtMost   = 200 * time.Millisecond
	fewestEvents = 2 * groupEvents
	mostEvents   = 32 * groupEvents
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
	room    int  // events that may wait
	refused bool // some were, for want of room, since the last take
	closed  bool
}

// line is what waits of one workspace, first come first served.
type line struct {
	offers        []*offer
	events, bytes int
	taken         bool // the workspace is with a lane
}

func newQueue() *queue {
	return &queue{lines: make(map[int64]*line), room: mostEvents}
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
	if !q.fits(o.workspace, len(o.events), bytes) {
		return false
	}
	l := q.lines[o.workspace]
	if l == nil {
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

// full tells whether an offer of a workspace would be turned away, whatever is in
// it.
func (q *queue) full(workspace int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.fits(workspace, 1, 0)
}

// fits tells whether there is room. Where there is none left, a workspace still
// has its part of it, and one that has nothing waiting may add to it.
func (q *queue) fits(workspace int64, events, bytes int) bool {
	l := q.lines[workspace]
	switch {
	case q.closed:
		return false
	case l == nil && (q.events+events > 2*q.room || q.bytes+bytes > queueBytes+reserveBytes),
		l != nil && q.events+events > q.room && l.events+events > q.room/len(q.lines):
		q.refused = true
		return false
	}
	return l == nil || q.bytes+bytes <= queueBytes && l.bytes+bytes <= workspaceBytes
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
	q.learn(offers)
	return offers, workspaces
}

// learn finds out how many events may wait from how long those taken did: fewer
// where it was too long, and more again where it was not and others were turned
// away.
func (q *queue) learn(taken []*offer) {
	oldest := taken[0].at
	for _, o := range taken {
		if o.at.Before(oldest) {
			oldest = o.at
		}
	}
	switch {
	case time.Since(oldest) > waitAtMost:
		q.room = max(fewestEvents, min(q.room, q.events)*3/4)
	case q.refused:
		q.room = min(mostEvents, q.room+groupEvents/8)
	case q.room < mostEvents:
		q.room = min(mostEvents, q.room+groupEvents)
	}
	q.refused = false
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
