package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// traffic is what a request carries.
type traffic struct {
	path   string
	events int
	check  int // one answer in so many is read whole
}

var (
	single = traffic{"/api/v1/events", 1, 64}
	batch  = traffic{"/api/v1/events/batch", 100, 16}
)

// A load sends requests over many connections from one thread, which waits for
// all of them at once: it shares the processors with what it measures, so it has
// to cost little. It speaks just enough HTTP for that.
type load struct {
	poll    int // epoll
	clients map[int32]*client
	over    *overload // where more are sent than are served; else nil
}

// A client is one connection, on which requests follow each other.
type client struct {
	socket  int
	traffic traffic
	tenants []tenant
	heads   [][]byte // of the requests for each tenant, up to the length of the body
	prefix  string   // of its events' ids
	events  int      // made, apart from repeats
	kept    int      // of those, the ones that no rule refuses
	random  *rand.Rand
	request []byte
	header  []byte // of the request: its idempotency key, if it has one
	body    []byte
	sent    []int // numbers of the events of the request
	refused bool  // what a rule is to say of a single event
	leads   leadState
	starts  startState
	answer  []byte
	since   time.Time // when the request that is under way began, or should have
}

var clientsMade atomic.Int64

// dial opens a connection for requests that go to the tenants in turn.
func dial(address string, tenants []tenant, t traffic) (*client, error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Connect(socket, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
	if err == nil {
		err = unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err != nil {
		unix.Close(socket)
		return nil, err
	}
	n := clientsMade.Add(1)
	c := &client{
		socket: socket, traffic: t, tenants: tenants,
		prefix: fmt.Sprintf("%x-%d-", time.Now().UnixNano(), n),
		random: rand.New(rand.NewPCG(uint64(n), 7)),
	}
	for _, tenant := range tenants {
		c.heads = append(c.heads, fmt.Appendf(nil,
			"POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: ",
			t.path, tenant.key))
	}
	return c, nil
}

func (c *client) hangUp() { unix.Close(c.socket) }

// connect opens so many connections, and spreads the tenants over them.
func (s *server) connect(tenants []tenant, clients int, t traffic) (*load, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &load{poll: poll, clients: make(map[int32]*client)}
	for i := range clients {
		own := []tenant{tenants[i%len(tenants)]}
		for k := i + clients; k < len(tenants) && t.events == 1; k += clients {
			own = append(own, tenants[k])
		}
		c, err := dial(s.address, own, t)
		if err == nil {
			l.clients[int32(c.socket)] = c
			err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, c.socket, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.socket)})
		}
		if err != nil {
			l.hangUp()
			return nil, err
		}
	}
	return l, nil
}

func (l *load) hangUp() {
	for _, c := range l.clients {
		c.hangUp()
	}
	unix.Close(l.poll)
}

// run sends requests for so long and gives what each took, and the longest time
// without any answer. Without a rate each client sends the next when it has its
// answer. With one, requests are due at fixed times, whether or not earlier ones
// have been answered, and what they took is measured from then.
func (l *load) run(ctx context.Context, length time.Duration, perSecond float64) (took []time.Duration, gap time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var (
		begun    = time.Now()
		until    = begun.Add(length)
		last     = begun // answer
		underWay = 0
		idle     []*client
		timer    = -1
		due      = begun // the next request
		requests = 0
		ready    = make([]unix.EpollEvent, 256)
	)
	send := func(c *client, since time.Time) {
		c.since = since
		underWay++
		if err == nil {
			err = c.send()
		}
	}
	for _, c := range l.clients {
		if perSecond == 0 {
			send(c, time.Now())
		} else {
			idle = append(idle, c)
		}
	}
	if perSecond > 0 {
		if timer, err = l.every(time.Duration(float64(time.Second) / perSecond)); err != nil {
			return nil, 0, err
		}
		defer unix.Close(timer)
	}
	for {
		now := time.Now()
	waiting:
		for perSecond > 0 && !due.After(now) && due.Before(until) {
			switch {
			case len(idle) == 0 && l.over == nil:
				break waiting
			case len(idle) == 0:
				l.over.unsent++
			case l.over != nil:
				send(idle[0], time.Now())
				idle = idle[1:]
			default:
				send(idle[0], due) // in turn: a connection that is never used is closed
				idle = idle[1:]
			}
			requests++
			due = begun.Add(time.Duration(float64(requests) / perSecond * float64(time.Second)))
		}
		over := !now.Before(until) && underWay == 0 && (perSecond == 0 || !due.Before(until))
		if err != nil || ctx.Err() != nil || over {
			return took, gap, errors.Join(err, ctx.Err())
		}
		n, failed := unix.EpollWait(l.poll, ready, 100)
		if failed != nil && !errors.Is(failed, unix.EINTR) {
			return nil, 0, failed
		}
		for _, event := range ready[:max(0, n)] {
			if int(event.Fd) == timer {
				var passed [8]byte
				unix.Read(timer, passed[:]) //nolint:errcheck // it is readable
				continue
			}
			c := l.clients[event.Fd]
			answered, failed := c.receive()
			if failed != nil {
				return nil, 0, failed
			}
			if !answered {
				continue
			}
			now := time.Now()
			gap, last = max(gap, now.Sub(last)), now
			underWay--
			shed, failed := l.over.isShed(c)
			err = cmp.Or(err, failed)
			if !shed {
				took = append(took, now.Sub(c.since))
				err = cmp.Or(err, c.check())
			}
			switch {
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

// next writes an event and tells its number, and whether it is one to be
// refused. One in ten is a repeat of one of the last few hundred.
func (c *client) next() (n int, refused bool) {
	if c.events > 0 && c.random.IntN(10) == 0 {
		n = c.events - c.random.IntN(min(c.events, 500))
		return n, c.event(n)
	}
	c.events++
	if refused = c.event(c.events); !refused {
		c.kept++
	}
	return c.events, refused
}

// tenant gives the one that an event goes to: a repeat goes where the first went.
func (c *client) tenant(n int) int { return n % len(c.tenants) }

// send sends a request.
func (c *client) send() error {
	c.body, c.sent, c.refused = c.body[:0], c.sent[:0], false
	to := 0
	switch {
	case c.traffic.path == lead.path:
		c.lead()
	case c.traffic.path == start.path:
		c.start()
	case c.traffic.events == 1:
		var n int
		n, c.refused = c.next()
		to = c.tenant(n)
	default:
		c.body = append(c.body, `{"events":[`...)
		for i := range c.traffic.events {
			if i > 0 {
				c.body = append(c.body, ',')
			}
			c.next()
		}
		c.body = append(c.body, "]}"...)
	}
	c.request = append(c.request[:0], c.heads[to]...)
	c.request = strconv.AppendInt(c.request, int64(len(c.body)), 10)
	c.request = append(c.request, c.header...)
	c.request = append(append(c.request, "\r\n\r\n"...), c.body...)
	return c.write(c.request)
}

// write writes to the socket, which blocks until all has left.
func (c *client) write(rest []byte) error {
	c.answer = c.answer[:0]
	for len(rest) > 0 {
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
	lastChunk  = []byte("0\r\n\r\n")
)

// receive reads what has come, and tells whether the answer is whole.
func (c *client) receive() (whole bool, err error) {
	c.answer = slices.Grow(c.answer, 4096)
	n, err := unix.Read(c.socket, c.answer[len(c.answer):cap(c.answer)])
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
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
	length, err := c.length(head)
	if length < 0 { // it comes in chunks
		return bytes.HasSuffix(body, lastChunk), err
	}
	return len(body) >= length, err
}

// length gives the announced length of the answer's body, -1 where there is none.
func (c *client) length(head int) (int, error) {
	at := bytes.Index(c.answer[:head], lengthName)
	if at < 0 {
		return -1, nil
	}
	text := c.answer[at+len(lengthName) : head+2]
	return strconv.Atoi(string(text[:bytes.IndexByte(text, '\r')]))
}

// status gives the status of a whole answer.
func (c *client) status() string { return string(c.answer[9:12]) }

// content gives the body of a whole answer.
func (c *client) content() ([]byte, error) {
	head := bytes.Index(c.answer, endOfHead)
	rest := c.answer[head+len(endOfHead):]
	if length, err := c.length(head); length >= 0 || err != nil {
		return rest, err
	}
	var body []byte
	for {
		line, after, _ := bytes.Cut(rest, []byte("\r\n"))
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil || int(size)+2 > len(after) {
			return nil, fmt.Errorf("a chunk of the answer is broken: %q", line)
		}
		if size == 0 {
			return body, nil
		}
		body, rest = append(body, after[:size]...), after[size+2:]
	}
}

// check makes sure that the status is the one that is due, and of some answers
// that they are for what was sent.
func (c *client) check() error {
	if c.traffic.path == lead.path {
		return c.checkLead()
	}
	if c.traffic.path == start.path {
		return c.checkStart()
	}
	wanted := "202"
	if c.refused {
		wanted = "422"
	}
	if c.status() != wanted {
		return fmt.Errorf("%s\nwhere %s was due for %.1000s", c.answer, wanted, c.body)
	}
	if c.refused || c.random.IntN(c.traffic.check) != 0 {
		return nil
	}
	body, err := c.content()
	if err != nil {
		return err
	}
	return c.verify(body)
}

// mixed spreads the number of an event, so that what an event is like follows
// from its number and a repeat is the same.
func mixed(n int) uint64 {
	x := uint64(n) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}

// event writes an event: all kinds of references, now and then a new name or
// property, one in fifty refused, which it tells.
func (c *client) event(n int) (refused bool) {
	c.sent = append(c.sent, n)
	to := &c.tenants[c.tenant(n)]
	mix := mixed(n)
	kind := mix % 1000
	// One reference in six is to nobody.
	who := int(mix >> 20 % uint64(to.people*6/5))
	b := c.body
	b = append(b, `{"id":"`...)
	b = strconv.AppendInt(append(b, c.prefix...), int64(n), 10)
	b = append(b, `","name":"`...)
	switch {
	case kind < 10:
		b = append(b, "blocked_event"...)
	case kind == 10:
		b = strconv.AppendUint(append(b, "rare_event_"...), mix>>40%150, 10)
	default:
		b = strconv.AppendUint(append(b, "event_"...), mix>>30%20, 10)
	}
	b = append(b, `",`...)
	switch mix >> 50 % 9 {
	case 0:
		b = named(b, `"company":{"domain":"www.c`, who, `.example"}`)
	case 1:
		b = named(b, `"contact":{"email":"p`, who, `@c`)
		b = named(b, ``, who, `.example"}`)
	case 2:
		b = named(b, `"visitor":{"id":"v-`, who%to.people, `"}`)
	case 3:
		b = named(b, `"company":{"domain":"c`, who, `.example"},"visitor":{"id":"v-`)
		b = named(b, ``, who, `"}`)
	case 4:
		b = named(b, `"company":{"domain":"o`, who, `.example"}`)
	case 5:
		b = named(b, `"company":{"id":`, int(to.companies[who%to.people]), `}`)
	case 6:
		b = named(b, `"contact":{"id":`, int(to.contacts[who%to.people]), `}`)
	case 7:
		b = named(b, `"visitor":{"id":"stranger-`, who, `"}`)
	default:
		b = named(b, `"company":{"domain":"nobody-`, who, `.example"}`)
	}
	b = append(b, `,"properties":{"plan":"pro","seats":25,"total":129.5,"renewal":false,"page":"/pricing/enterprise"`...)
	switch {
	case kind == 11:
		b = strconv.AppendUint(append(b, `,"extra_`...), mix>>40%40, 10)
		b = append(b, `":true`...)
	case kind > 11 && kind < 22:
		b = append(b, `,"note":"write to someone@mail.example"`...)
	}
	b = append(b, "}}"...)
	c.body = b
	return kind < 10 || kind > 11 && kind < 22
}

// named appends a number between two texts.
func named(b []byte, before string, n int, after string) []byte {
	return append(strconv.AppendInt(append(b, before...), int64(n), 10), after...)
}

// get sends a request without a body and gives the answer's.
func (c *client) get(path, key string) ([]byte, error) {
	if err := c.write(fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", path, key)); err != nil {
		return nil, err
	}
	for whole := false; !whole; {
		var err error
		if whole, err = c.receive(); err != nil {
			return nil, err
		}
	}
	if c.status() != "200" {
		return nil, fmt.Errorf("answered %s", c.answer)
	}
	return c.content()
}

// A receipt is the answer for an event.
type receipt struct {
	ID      string
	Status  string
	EventID string `json:"event_id"`
}

// verify makes sure that an answer is for what was sent.
func (c *client) verify(body []byte) error {
	var answer struct {
		receipt
		Results []receipt
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	results := answer.Results
	if c.traffic.events == 1 {
		results = []receipt{answer.receipt}
	}
	if len(results) != len(c.sent) {
		return fmt.Errorf("%d results for %d events: %s", len(results), len(c.sent), body)
	}
	for i, r := range results {
		if r.ID != c.prefix+strconv.Itoa(c.sent[i]) || r.EventID == "" && r.Status != "refused" {
			return fmt.Errorf("event %s%d was answered %+v", c.prefix, c.sent[i], r)
		}
	}
	return nil
}

// warmUp is how long a measurement of a length goes uncounted at first. Caches
// and plans are made meanwhile, and names registered.
func warmUp(length time.Duration) time.Duration { return max(length/5, 500*time.Millisecond) }

// closed has each client send one request after the other.
func (s *server) closed(ctx context.Context, tenants []tenant, clients int, t traffic) (sample, error) {
	l, err := s.connect(tenants, clients, t)
	if err != nil {
		return sample{}, err
	}
	defer l.hangUp()
	since := time.Now()
	if _, _, err := l.run(ctx, warmUp(*length), 0); err != nil {
		return sample{}, err
	}
	s.forgetPeak()
	postmaster, err := s.postmaster(ctx)
	if err != nil {
		return sample{}, err
	}
	allocations, postgresCPU := s.allocations(), familyProcessor(postmaster)
	serverCPU, loadCPU, begun := s.processor(), ownProcessor(), time.Now()
	took, _, err := l.run(ctx, *length, 0)
	if err != nil {
		return sample{}, err
	}
	elapsed := time.Since(begun)
	serverCPU, loadCPU, postgresCPU = s.processor()-serverCPU, ownProcessor()-loadCPU, familyProcessor(postmaster)-postgresCPU
	requests := time.Duration(len(took))
	got := summary(took)
	got.rate = float64(len(took)*t.events) / elapsed.Seconds()
	got.memory = s.peak()
	got.allocations = (s.allocations() - allocations) / float64(requests)
	got.serverCPU, got.loadCPU, got.postgresCPU = serverCPU/requests, loadCPU/requests, postgresCPU/requests
	got.backlog, err = s.settle(ctx)
	return got, cmp.Or(err, s.checkRecorded(ctx, l, t, since))
}

// ownProcessor is the processor time that this process has taken.
func ownProcessor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// open sends requests at fixed times. meanwhile, if given, is done a third of
// the way.
func (s *server) open(ctx context.Context, clients int, perSecond float64, length time.Duration, meanwhile func() error) (sample, error) {
	l, err := s.connect(s.tenants, clients, single)
	if err != nil {
		return sample{}, err
	}
	defer l.hangUp()
	since := time.Now()
	if _, _, err := l.run(ctx, warmUp(length), perSecond); err != nil {
		return sample{}, err
	}
	other := make(chan error, 1)
	go func() {
		if meanwhile == nil {
			other <- nil
			return
		}
		select {
		case <-ctx.Done():
			other <- nil
		case <-time.After(length / 3):
			other <- meanwhile()
		}
	}()
	took, gap, err := l.run(ctx, length, perSecond)
	if err := errors.Join(err, <-other); err != nil {
		return sample{}, err
	}
	got := summary(took)
	got.rate, got.gap = float64(len(took))/length.Seconds(), gap
	got.backlog, err = s.settle(ctx)
	return got, cmp.Or(err, s.checkRecorded(ctx, l, single, since))
}

// checkRecorded makes sure that every event or lead that was answered is
// recorded, and once: a rate of anything else is worth nothing.
func (s *server) checkRecorded(ctx context.Context, l *load, t traffic, since time.Time) error {
	if s.naive {
		return nil
	}
	wanted := 0
	for _, c := range l.clients {
		wanted += c.kept
	}
	count, from := `select count(*) from events where event_no >= $1`, since.UnixMilli()<<20
	if t.path == lead.path { // there are no others
		count, from = `select count(*) from leads where lead_id >= $1`, 0
	}
	got, err := querySQL[int](ctx, s.url, count, from)
	if err == nil && got != wanted {
		err = fmt.Errorf("%d were answered and %d are recorded", wanted, got)
	}
	return err
}

// summary gives the latencies of requests.
func summary(took []time.Duration) sample {
	if len(took) == 0 {
		return sample{}
	}
	slices.Sort(took)
	return sample{
		p50: took[len(took)/2], p99: took[len(took)*99/100], p999: took[len(took)*999/1000], max: took[len(took)-1],
	}
}
