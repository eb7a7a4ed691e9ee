package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// timesTooMany are how many times as many requests as the server serves are sent
// to it, over so many connections.
var timesTooMany = []int{2, 5, 10}

const overloadConns = 2048

// An overload is what became of requests of which there were too many.
type overload struct {
	shed   int // answered 503, with Retry-After
	unsent int // no connection was free for them
}

var retryAfter = []byte("\r\nRetry-After: ")

// isShed tells whether an answer turns a request away, as it should.
func (o *overload) isShed(c *client) (bool, error) {
	if o == nil || c.status() != "503" {
		return false, nil
	}
	o.shed++
	if !bytes.Contains(c.answer, retryAfter) {
		return true, fmt.Errorf("%s\nlacks Retry-After", c.answer)
	}
	return true, nil
}

// overloaded sends so many requests a second, whether or not they are served. What
// they took counts from when they were sent: those that no connection was free for
// are not sent at all, as by a balancer that has a limit of its own.
func (s *server) overloaded(ctx context.Context, tenants []tenant, perSecond float64, t traffic) (sample, error) {
	l, err := s.connect(tenants, overloadConns, t)
	if err != nil {
		return sample{}, err
	}
	defer l.hangUp()
	l.over = &overload{}
	if _, _, err := l.run(ctx, warmUp(*length), perSecond); err != nil {
		return sample{}, err
	}
	*l.over = overload{}
	s.forgetPeak()
	begun := time.Now()
	took, gap, err := l.run(ctx, *length, perSecond)
	if err != nil {
		return sample{}, err
	}
	elapsed := time.Since(begun).Seconds()
	if len(took) == 0 {
		return sample{}, errors.New("nothing is served")
	}
	got := summary(took)
	got.rate, got.gap, got.memory = float64(len(took)*t.events)/elapsed, gap, s.peak()
	got.shed = float64(l.over.shed) / float64(l.over.shed+len(took))
	got.offered = float64((l.over.shed+len(took))*t.events) / elapsed
	got.backlog, err = s.settle(ctx)
	return got, err
}

// overloads are the measurements of one kind of requests; capacity is the one that
// says how many the server serves.
func (b *bench) overloads(kind, capacity string, of func() *server, t traffic) (all []measurement) {
	for _, times := range timesTooMany {
		all = append(all, measurement{name: overloadOf(kind, times), needs: []string{capacity}, do: func(round int) (sample, error) {
			return of().overloaded(b.ctx, of().tenants, float64(times)*b.results[capacity][round].rate/float64(t.events), t)
		}})
	}
	return all
}

func overloadOf(kind string, times int) string { return fmt.Sprintf("%s overload %d", kind, times) }

// overloadFigures are the rows of one kind of requests.
func overloadFigures(kind, what, unit, capacity, alone string) (rows []figure) {
	for _, times := range timesTooMany {
		name, of := fmt.Sprintf("overload, %s, %d times as many as are served", what, times), overloadOf(kind, times)
		rows = append(rows,
			figure{name: name, clients: overloadConns, of: of, unit: unit, value: rate, to: capacity, toName: "what is served at most", ratio: over(rate)},
			figure{name: name + ": p99 of those served", clients: overloadConns, of: of, unit: " ms", value: p99, to: alone, toName: "of one client", ratio: over(p99)},
			figure{name: name + ": sent", clients: overloadConns, of: of, unit: unit, value: func(s sample) float64 { return s.offered },
				to: capacity, toName: "what is served at most", ratio: func(of, to sample) float64 { return of.offered / to.rate }},
			figure{name: name + ": turned away", clients: overloadConns, of: of, unit: " %", value: func(s sample) float64 { return 100 * s.shed }},
			figure{name: name + ": memory of the server", clients: overloadConns, of: of, unit: " MB", value: memory},
		)
	}
	return rows
}
