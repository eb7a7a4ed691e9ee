package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// traffic is what a request carries.
type traffic struct {
	path   string
	events int
}

var (
	single = traffic{"/api/v1/events", 1}
	batch  = traffic{"/api/v1/events/batch", 100}
)

// A load sends requests over many connections from one thread, which waits for
// all of them at once: it shares the processors with what it measures, so it has
// to cost little. It speaks just enough HTTP for that.
type load struct {
	traffic traffic
	poll    int // epoll
	clients map[int32]*client
}

// A client is one connection, on which requests follow each other.
type client struct {
	socket  int
	head    []byte // of every request, up to the length of the body
	id      string // what its events' ids begin with
	sent    int    // events
	random  *rand.Rand
	request []byte
	body    []byte
	answer  []byte
	since   time.Time // when the request that is under way began, or should have
}

var clientsMade atomic.Int64

// connect opens so many connections, spread over the keys.
func (s *server) connect(keys []string, clients int, t traffic) (*load, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &load{traffic: t, poll: poll, clients: make(map[int32]*client)}
	address, err := net.ResolveTCPAddr("tcp4", s.address)
	if err != nil {
		return nil, err
	}
	for i := range clients {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(socket, &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(address.IP.To4())})
		}
		if err == nil {
			err = unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		}
		if err == nil {
			err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)})
		}
		if err != nil {
			l.hangUp()
			return nil, err
		}
		n := clientsMade.Add(1)
		l.clients[int32(socket)] = &client{
			socket: socket,
			head: fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: application/json\r\nContent-Length: ", t.path, keys[i%len(keys)]),
			id:     fmt.Sprintf("%x-%d-", time.Now().UnixNano(), n),
			random: rand.New(rand.NewPCG(uint64(n), 7)),
		}
	}
	return l, nil
}

func (l *load) hangUp() {
	for _, c := range l.clients {
		unix.Close(c.socket)
	}
	unix.Close(l.poll)
}

// run sends requests for so long and gives what each took. Without a rate each
// client sends the next when it has its answer. With one, requests are due at
// fixed times, whether or not earlier ones have been answered, and what they took
// is measured from then.
func (l *load) run(ctx context.Context, length time.Duration, perSecond float64) (took []time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var (
		begun    = time.Now()
		until    = begun.Add(length)
		underWay = 0
		idle     []*client
		late     []time.Time // due, and no client is idle
		timer    = -1
		due      = 0
		ready    = make([]unix.EpollEvent, 256)
	)
	send := func(c *client, since time.Time) {
		c.since = since
		underWay++
		if err == nil {
			err = c.send(l.traffic)
		}
	}
	if perSecond == 0 {
		for _, c := range l.clients {
			send(c, time.Now())
		}
	} else {
		for _, c := range l.clients {
			idle = append(idle, c)
		}
		if timer, err = l.every(time.Duration(float64(time.Second) / perSecond)); err != nil {
			return nil, err
		}
		defer unix.Close(timer)
	}
	for {
		now := time.Now()
		if err != nil || ctx.Err() != nil || !now.Before(until) && underWay == 0 && len(late) == 0 {
			return took, errors.Join(err, ctx.Err())
		}
		n, wait := unix.EpollWait(l.poll, ready, 100)
		if wait != nil && !errors.Is(wait, unix.EINTR) {
			return nil, wait
		}
		now = time.Now()
		for _, event := range ready[:max(0, n)] {
			if int(event.Fd) == timer {
				var passed [8]byte
				unix.Read(timer, passed[:]) //nolint:errcheck // it is readable
				for range binary.NativeEndian.Uint64(passed[:]) {
					due++
					at := begun.Add(time.Duration(float64(due) / perSecond * float64(time.Second)))
					switch {
					case !now.Before(until):
					case len(idle) > 0:
						send(idle[0], at) // in turn: a connection that is never used is closed
						idle = idle[1:]
					default:
						late = append(late, at)
					}
				}
				continue
			}
			c := l.clients[event.Fd]
			answered, failed := c.receive()
			if failed != nil {
				return nil, failed
			}
			if !answered {
				continue
			}
			underWay--
			took = append(took, now.Sub(c.since))
			switch {
			case len(late) > 0:
				send(c, late[0])
				late = late[1:]
			case perSecond > 0:
				idle = append(idle, c)
			case now.Before(until):
				send(c, now)
			}
		}
	}
}

// every gives a timer that becomes readable again and again.
func (l *load) every(period time.Duration) (timer int, err error) {
	if timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC); err != nil {
		return -1, err
	}
	each := unix.NsecToTimespec(period.Nanoseconds())
	if err = unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Interval: each, Value: each}, nil); err == nil {
		err = unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(timer)})
	}
	return timer, err
}

// send sends a request; the socket blocks, so it leaves whole.
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
	for rest := c.request; len(rest) > 0; {
		n, err := unix.Write(c.socket, rest)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		rest = rest[max(0, n):]
	}
	return nil
}

var (
	endOfHead  = []byte("\r\n\r\n")
	lengthName = []byte("Content-Length: ")
)

// receive reads what has come, and tells whether the answer is whole: a 202, or
// a 422 for an event that a rule refuses.
func (c *client) receive() (whole bool, err error) {
	c.answer = slices.Grow(c.answer, 4096)
	n, err := unix.Read(c.socket, c.answer[len(c.answer):cap(c.answer)])
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, errors.New("the server hung up")
	}
	c.answer = c.answer[:len(c.answer)+n]
	head := bytes.Index(c.answer, endOfHead)
	if head < 0 {
		return false, nil
	}
	body := c.answer[head+len(endOfHead):]
	if at := bytes.Index(c.answer[:head], lengthName); at >= 0 {
		text := c.answer[at+len(lengthName) : head+2]
		length, err := strconv.Atoi(string(text[:bytes.IndexByte(text, '\r')]))
		if err != nil || len(body) < length {
			return false, err
		}
	} else if !bytes.HasSuffix(body, []byte("0\r\n\r\n")) { // it comes in chunks
		return false, nil
	}
	if status := string(c.answer[9:12]); status != "202" && status != "422" {
		return false, fmt.Errorf("answered %s", c.answer)
	}
	c.answer = c.answer[:0]
	return true, nil
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

// closed has each client send one request after the other.
func (s *server) closed(ctx context.Context, keys []string, clients int, t traffic) (sample, error) {
	l, err := s.connect(keys, clients, t)
	if err != nil {
		return sample{}, err
	}
	defer l.hangUp()
	// A first moment goes uncounted: caches and plans are made.
	if _, err := l.run(ctx, *length/5, 0); err != nil {
		return sample{}, err
	}
	s.forgetPeak()
	before, begun := s.allocations(), time.Now()
	took, err := l.run(ctx, *length, 0)
	if err != nil {
		return sample{}, err
	}
	elapsed := time.Since(begun).Seconds()
	got := summary(took)
	got.rate = float64(len(took)*t.events) / elapsed
	got.memory = s.peak()
	got.allocations = (s.allocations() - before) / float64(len(took))
	return got, nil
}

// open sends requests at fixed times, while something else is done a third of
// the way.
func (s *server) open(ctx context.Context, keys []string, clients int, perSecond float64, length time.Duration,
	meanwhile func() error,
) (sample, error) {
	l, err := s.connect(keys, clients, single)
	if err != nil {
		return sample{}, err
	}
	defer l.hangUp()
	other := make(chan error, 1)
	go func() {
		time.Sleep(length / 3)
		other <- meanwhile()
	}()
	took, err := l.run(ctx, length, perSecond)
	if err := errors.Join(err, <-other); err != nil {
		return sample{}, err
	}
	got := summary(took)
	got.rate = float64(len(took)) / length.Seconds()
	return got, nil
}

func nothing() error { return nil }

// summary gives the latencies of requests.
func summary(took []time.Duration) sample {
	if len(took) == 0 {
		return sample{}
	}
	slices.Sort(took)
	return sample{p50: took[len(took)/2], p99: took[len(took)*99/100], max: took[len(took)-1]}
}
