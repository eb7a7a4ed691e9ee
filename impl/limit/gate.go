package limit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// How long a request may wait to be let in. A burst may wait, for it passes, and so
// may those who come while the database stops for a moment. Where a line stays for
// longer although it moves, more come than are served: from then on whoever has
// waited for longer than a moment is turned away, so that those who are served are
// served soon. (A line of fixed length would make everybody wait for as long as it
// is.) A moment is some times what the work of those inside takes, within bounds:
// where the database is slow, the same few clients wait for longer, and are not too
// many for it.
const (
	momentOfWork   = 10 // times
	shortestMoment = 100 * time.Millisecond
	longestMoment  = 2 * time.Second
	standingFor    = time.Second
	standingAfter  = 20 // let in meanwhile
	longestWait    = 5 * time.Second
)

// Who may wait: each costs a goroutine and what it holds. One sender leaves room
// for others.
const (
	lineLength    = 1024
	allLines      = 4096
	crowdOfPlaces = 4
)

// A Gate lets so many requests work at a time and has the others wait for a
// moment, in a line for each sender. Those who are next come from every line in
// turn, so whoever floods waits behind nobody's requests but their own. Of a line
// that is too long to let anybody more into it, whoever got in last is next: most
// of those who are served are then served at once, instead of each after nearly as
// long as anybody may wait, and the price is that some wait for so long in vain
// (adaptive LIFO: Maurer, "Fail at Scale", ACM Queue 13, 2015). That those are
// turned away is no reason to go on like this: a line that all fit into would never
// become one again.
type Gate[S comparable] struct {
	// Most may be inside, and so many of one sender.
	Most, Share int
	// Reserve are places for senders who have nobody inside, kept from those who
	// have.
	Reserve int

	mu      sync.Mutex
	inside  int
	senders map[S]*line[S]
	turns   []*line[S] // the lines, the next one first
	waiting int
	work    time.Duration // what it takes, lately
	crowd   standing      // of crowdOfPlaces times as many as may be inside, in all lines
}

// standing is how long something has been there without an end, and how many were
// let in meanwhile. That it is gone for less than a moment is no end: turning many
// away at once leaves nobody waiting.
type standing struct {
	since, gone time.Time // zero: it never was there; it is there
	letIn       int
}

func (s *standing) is(there bool) {
	now := time.Now()
	switch {
	case !there && s.gone.IsZero():
		s.gone = now
	case there && (s.since.IsZero() || s.ended(now)):
		*s = standing{since: now}
	case there:
		s.gone = time.Time{}
	}
}

func (s *standing) ended(now time.Time) bool {
	return !s.gone.IsZero() && now.Sub(s.gone) > shortestMoment
}

// long tells what is no burst.
func (s *standing) long(now time.Time) bool {
	return !s.since.IsZero() && s.letIn > standingAfter && now.Sub(s.since) > standingFor && !s.ended(now)
}

// A line is what there is of one sender.
type line[S comparable] struct {
	sender  S
	inside  int
	waiting []*waiter
	some    standing  // of anybody who waits
	turned  time.Time // when somebody was last not even let into it, because it stands
}

type waiter struct {
	since time.Time
	told  chan bool // whether it is let in
}

// moment is as long as anybody should wait where a line is standing.
func (g *Gate[S]) moment() time.Duration {
	return min(max(momentOfWork*g.work, shortestMoment), longestMoment)
}

// Enter waits to be let in. It is false if that would take too long, or the
// context ended; if it is true, Leave must follow.
func (g *Gate[S]) Enter(ctx context.Context, who S) bool {
	g.mu.Lock()
	l := g.senders[who]
	if l == nil {
		if g.senders == nil {
			g.senders = make(map[S]*line[S])
		}
		l = &line[S]{sender: who}
		g.senders[who] = l
	}
	if len(l.waiting) == 0 && g.fits(l) {
		g.letIn(l)
		g.mu.Unlock()
		return true
	}
	now := time.Now()
	if g.full(l, now) {
		g.forget(l)
		g.mu.Unlock()
		return false
	}
	w := &waiter{now, make(chan bool, 1)}
	if len(l.waiting) == 0 {
		g.turns = append(g.turns, l)
	}
	l.waiting = append(l.waiting, w)
	g.waiting++
	g.note(l)
	g.mu.Unlock()

	tooLong := time.NewTimer(longestWait)
	defer tooLong.Stop()
	select {
	case in := <-w.told:
		return in
	case <-tooLong.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case in := <-w.told:
		return in
	default:
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	g.waiting--
	if len(l.waiting) == 0 {
		g.turns = slices.DeleteFunc(g.turns, func(other *line[S]) bool { return other == l })
	}
	g.note(l)
	g.forget(l)
	return false
}

// Full tells whether somebody would be turned away at once, so that nothing needs
// to be done for them before.
func (g *Gate[S]) Full(who S) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.senders[who]
	if l == nil {
		l = &line[S]{}
	}
	return g.waiting > 0 && g.full(l, time.Now())
}

// Leave ends work that took so long, and makes room for whoever is next.
func (g *Gate[S]) Leave(who S, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.work += (took - g.work) / 16; took > g.work {
		g.work += (took - g.work) / 4 // who works longer than expected is noticed first
	}
	l := g.senders[who]
	g.inside--
	l.inside--
	g.forget(l)
	for i := 0; i < len(g.turns) && g.inside < g.Most; {
		next := g.turns[i]
		if !g.fits(next) {
			i++
			continue
		}
		g.turns = slices.Delete(g.turns, i, i+1)
		if w := g.first(next); w != nil {
			g.letIn(next)
			w.told <- true
		}
		if len(next.waiting) > 0 {
			g.turns = append(g.turns, next)
		}
		g.note(next)
		g.forget(next)
	}
}

// first takes whoever is next of a line, and turns away those who have waited for
// too long.
func (g *Gate[S]) first(l *line[S]) *waiter {
	now, moment := time.Now(), g.moment()
	if g.stands(l, now) {
		for len(l.waiting) > 0 && now.Sub(l.waiting[0].since) >= moment {
			l.waiting[0].told <- false
			l.waiting = l.waiting[1:]
			g.waiting--
		}
	}
	if len(l.waiting) == 0 {
		return nil
	}
	i := 0
	if now.Sub(l.turned) < moment {
		i = len(l.waiting) - 1
	}
	w := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	g.waiting--
	l.some.letIn++
	g.crowd.letIn++
	return w
}

// note follows how a line and all of them change.
func (g *Gate[S]) note(l *line[S]) {
	l.some.is(len(l.waiting) > 0)
	g.crowd.is(g.waiting > crowdOfPlaces*g.Most)
}

// stands tells whether a line, or a crowd in all of them, is no burst.
func (g *Gate[S]) stands(l *line[S], now time.Time) bool {
	return l.some.long(now) || g.crowd.long(now)
}

// full tells whether a line takes nobody more. Where it has stood for long, or a
// crowd in all of them, those before may be too many for the time that anybody should
// wait: turning somebody away at once costs least.
func (g *Gate[S]) full(l *line[S], now time.Time) bool {
	if len(l.waiting) == lineLength || g.waiting == allLines {
		return true
	}
	own, inTurn := len(l.waiting), min(g.waiting, (len(l.waiting)+1)*len(g.turns))
	ahead := max(time.Duration(own)*g.work/time.Duration(g.Share), time.Duration(inTurn)*g.work/time.Duration(g.Most))
	if !g.stands(l, now) || ahead <= g.moment() {
		return false
	}
	l.turned = now
	return true
}

func (g *Gate[S]) fits(l *line[S]) bool {
	return l.inside < g.Share && (g.inside < g.Most-g.Reserve || g.inside < g.Most && l.inside == 0)
}

func (g *Gate[S]) letIn(l *line[S]) {
	g.inside++
	l.inside++
}

func (g *Gate[S]) forget(l *line[S]) {
	if l.inside == 0 && len(l.waiting) == 0 {
		delete(g.senders, l.sender)
	}
}
