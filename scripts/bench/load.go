package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A client sends requests over one connection, one after the other. It speaks
// just enough HTTP for that, because it shares the processors with what it
// measures.
type client struct {
	conn    net.Conn
	answers *bufio.Reader
	head    []byte // of every request, up to the length of the body
	id      string // what its events' ids begin with
	sent    int
	random  *rand.Rand
	request []byte
	body    []byte
}

// traffic is what a request carries.
type traffic struct {
	path   string
	events int
}

var (
	single = traffic{"/api/v1/events", 1}
	batch  = traffic{"/api/v1/events/batch", 100}
)

var clientsMade atomic.Int64

func dial(address, key string, t traffic) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	n := clientsMade.Add(1)
	return &client{
		conn: conn, answers: bufio.NewReaderSize(conn, 16<<10),
		head: fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: ",
			t.path, key),
		id:     fmt.Sprintf("%x-%d-", time.Now().UnixNano(), n),
		random: rand.New(rand.NewPCG(uint64(n), 7)),
	}, nil
}

// send sends one request and reads its answer.
func (c *client) send(t traffic) error {
	c.body = c.body[:0]
	if t.events == 1 {
		c.event()
	} else {
		c.body = append(c.body, `{"events":[`...)
		for i := range t.events {
			if i > 0 {
				c.body = append(c.body, ',')
			}
			c.event()
		}
		c.body = append(c.body, "]}"...)
	}
	c.request = append(c.request[:0], c.head...)
	c.request = strconv.AppendInt(c.request, int64(len(c.body)), 10)
	c.request = append(append(c.request, "\r\n\r\n"...), c.body...)
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	return c.answer()
}

var lengthName = []byte("Content-Length: ")

// answer reads an answer: 202, or 422 for an event that a rule refuses.
func (c *client) answer() error {
	line, err := c.answers.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 {
		return fmt.Errorf("the answer begins with %q", line)
	}
	status, length := string(line[9:12]), -1
	for {
		if line, err = c.answers.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, lengthName); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if status == "202" || status == "422" {
		if length >= 0 {
			_, err = c.answers.Discard(length)
			return err
		}
		return c.chunks()
	}
	rest := make([]byte, max(0, length))
	io.ReadFull(c.answers, rest)
	return fmt.Errorf("%s %s", status, rest)
}

// chunks reads a body that comes in chunks.
func (c *client) chunks() error {
	for {
		line, err := c.answers.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return err
		}
		if _, err := c.answers.Discard(int(size) + 2); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
	}
}

// event writes one event: all kinds of references, one in ten a repeat, one in
// fifty refused, now and then a new name or property.
func (c *client) event() {
	c.sent++
	n := c.sent
	if c.random.IntN(10) == 0 {
		n = max(1, n-1-c.random.IntN(500))
	}
	b := c.body
	b = append(b, `{"id":"`...)
	b = strconv.AppendInt(append(b, c.id...), int64(n), 10)
	b = append(b, `","name":"`...)
	kind, what := c.random.IntN(1000), n%60
	switch {
	case kind < 10:
		b = append(b, "blocked_event"...)
	case kind == 10:
		b = strconv.AppendInt(append(b, "rare_event_"...), int64(c.random.IntN(150)), 10)
	default:
		b = strconv.AppendInt(append(b, "event_"...), int64(n%20), 10)
	}
	b = append(b, `",`...)
	switch n % 7 {
	case 0:
		b = strconv.AppendInt(append(b, `"company":{"domain":"www.c`...), int64(what), 10)
		b = append(b, `.example"}`...)
	case 1:
		b = strconv.AppendInt(append(b, `"contact":{"email":"p`...), int64(what), 10)
		b = strconv.AppendInt(append(b, `@c`...), int64(what), 10)
		b = append(b, `.example"}`...)
	case 2:
		b = strconv.AppendInt(append(b, `"visitor":{"id":"v-`...), int64(what), 10)
		b = append(b, `"}`...)
	case 3:
		b = strconv.AppendInt(append(b, `"company":{"domain":"c`...), int64(what), 10)
		b = strconv.AppendInt(append(b, `.example"},"visitor":{"id":"v-`...), int64(what), 10)
		b = append(b, `"}`...)
	case 4:
		b = strconv.AppendInt(append(b, `"company":{"domain":"o`...), int64(what), 10)
		b = append(b, `.example"}`...)
	case 5:
		b = strconv.AppendInt(append(b, `"company":{"id":`...), int64(what+1), 10)
		b = append(b, '}')
	default:
		b = strconv.AppendInt(append(b, `"company":{"domain":"nobody-`...), int64(what), 10)
		b = append(b, `.example"}`...)
	}
	b = append(b, `,"properties":{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"`...)
	switch {
	case kind == 11:
		b = strconv.AppendInt(append(b, `,"extra_`...), int64(c.random.IntN(40)), 10)
		b = append(b, `":true`...)
	case kind > 11 && kind < 22:
		b = append(b, `,"note":"write to someone@mail.example"`...)
	}
	b = append(b, "}}"...)
	c.body = b
}

// connect opens so many connections, spread over the keys.
func (s *server) connect(keys []string, clients int, t traffic) ([]*client, error) {
	var all []*client
	for i := range clients {
		c, err := dial(s.address, keys[i%len(keys)], t)
		if err != nil {
			hangUp(all)
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func hangUp(all []*client) {
	for _, c := range all {
		c.conn.Close()
	}
}

// closed has each client send one request after the other.
func (s *server) closed(ctx context.Context, keys []string, clients int, t traffic) (sample, error) {
	all, err := s.connect(keys, clients, t)
	if err != nil {
		return sample{}, err
	}
	defer hangUp(all)
	var (
		begun, until time.Time
		took         = make([][]time.Duration, clients)
		errs         = make([]error, clients)
		sending      sync.WaitGroup
	)
	work := func() {
		for i, c := range all {
			sending.Go(func() {
				for now := time.Now(); now.Before(until) && errs[i] == nil && ctx.Err() == nil; {
					start := now
					errs[i] = c.send(t)
					now = time.Now()
					took[i] = append(took[i], now.Sub(start))
				}
			})
		}
		sending.Wait()
	}
	// A first moment goes uncounted: connections, caches and plans are made.
	until = time.Now().Add(*length / 5)
	work()
	clear(took)
	s.forgetPeak()
	before := s.allocations()
	begun = time.Now()
	until = begun.Add(*length)
	work()
	elapsed := time.Since(begun)
	if err := cmp.Or(append(errs, ctx.Err())...); err != nil {
		return sample{}, err
	}
	got := summary(slices.Concat(took...))
	requests := got.rate
	got.rate = requests * float64(t.events) / elapsed.Seconds()
	got.memory = s.peak()
	got.allocations = (s.allocations() - before) / requests
	return got, nil
}

// open sends requests at fixed times, whether or not earlier ones have been
// answered, and measures from the time at which each was due.
func (s *server) open(ctx context.Context, keys []string, clients int, perSecond float64) (sample, error) {
	return s.openWhile(ctx, keys, clients, perSecond, *length, nil)
}

// openWhile does something else meanwhile, a third of the way.
func (s *server) openWhile(ctx context.Context, keys []string, clients int, perSecond float64, length time.Duration,
	meanwhile func() error,
) (sample, error) {
	all, err := s.connect(keys, clients, single)
	if err != nil {
		return sample{}, err
	}
	defer hangUp(all)
	var (
		took    = make([][]time.Duration, clients)
		errs    = make([]error, clients+1)
		next    atomic.Int64
		sending sync.WaitGroup
	)
	begun := time.Now().Add(10 * time.Millisecond)
	for i, c := range all {
		sending.Go(func() {
			for errs[i] == nil && ctx.Err() == nil {
				due := begun.Add(time.Duration(float64(next.Add(1)) / perSecond * float64(time.Second)))
				if due.Sub(begun) > length {
					return
				}
				time.Sleep(time.Until(due))
				errs[i] = c.send(single)
				took[i] = append(took[i], time.Since(due))
			}
		})
	}
	if meanwhile != nil {
		sending.Go(func() {
			time.Sleep(length / 3)
			errs[clients] = meanwhile()
		})
	}
	sending.Wait()
	if err := cmp.Or(append(errs, ctx.Err())...); err != nil {
		return sample{}, err
	}
	got := summary(slices.Concat(took...))
	got.rate /= length.Seconds()
	return got, nil
}

// summary sorts what requests took; its rate is their number.
func summary(took []time.Duration) sample {
	if len(took) == 0 {
		return sample{}
	}
	slices.Sort(took)
	return sample{
		rate: float64(len(took)), p50: took[len(took)/2], p99: took[len(took)*99/100], max: took[len(took)-1],
	}
}
