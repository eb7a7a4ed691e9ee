package chaos

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy stands between two that talk, and does to what they say what networks
// do.
type proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu    sync.Mutex
	way   way
	again chan struct{} // closed when the way changes
	links map[*link]bool
}

// A way is how a proxy treats what passes. The zero way passes everything on.
type way struct {
	silent bool          // nothing passes; it may later
	delay  time.Duration // of each piece, and up to as much again
	piece  int           // bytes that pass at a time; zero for all there are
	refuse bool          // whoever connects is cut off

	// lose tells requests whose answer is lost: it is taken, and when it is whole
	// both sides are cut off.
	lose  func(request []byte) bool
	whole func(answer []byte) bool
}

// A link is one connection through a proxy.
type link struct {
	near, far net.Conn
	deaf      atomic.Bool // nothing passes any more, and nobody is told
	losing    atomic.Bool // the answer that is on its way is not passed on
	gone      chan struct{}
	close     func()
}

// newProxy starts a proxy to whatever dial reaches at the time; it ends with the
// test.
func newProxy(t testing.TB, dial func() (net.Conn, error)) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, dial: dial, again: make(chan struct{}), links: make(map[*link]bool)}
	go p.serve()
	t.Cleanup(func() { listener.Close(); p.cut() })
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// set changes the way from now on, for connections that there are too.
func (p *proxy) set(w way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.way = w
	close(p.again)
	p.again = make(chan struct{})
}

// cut resets all connections.
func (p *proxy) cut() {
	for _, l := range p.all() {
		l.close()
	}
}

// deafen makes all connections that there are dead without a word, as when a
// firewall forgets them. New ones work.
func (p *proxy) deafen() {
	for _, l := range p.all() {
		l.deaf.Store(true)
	}
}

func (p *proxy) all() (links []*link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *proxy) current() (way, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.way, p.again
}

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(near)
	}
}

func (p *proxy) connect(near net.Conn) {
	w, again := p.current()
	for w.silent {
		<-again
		w, again = p.current()
	}
	var far net.Conn
	var err error
	if !w.refuse {
		far, err = p.dial()
	}
	if w.refuse || err != nil {
		reset(near)
		return
	}
	l := &link{near: near, far: far, gone: make(chan struct{})}
	l.close = sync.OnceFunc(func() {
		close(l.gone)
		reset(near)
		reset(far)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
	p.mu.Lock()
	p.links[l] = true
	p.mu.Unlock()
	go p.carry(l, near, far, p.request)
	go p.carry(l, far, near, p.answer)
}

// reset ends a connection as a crash would, not in order.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// carry takes what comes from one side to the other, as far as look lets it.
func (p *proxy) carry(l *link, from, to net.Conn, look func(*link, way, []byte) bool) {
	defer func() {
		// Of one that is deaf, neither side hears that the other has gone.
		if !l.deaf.Load() || from == l.near {
			l.close()
		}
	}()
	room := make([]byte, 64<<10)
	for {
		n, err := from.Read(room)
		if err != nil {
			return
		}
		for said := room[:n]; len(said) > 0; {
			w, again := p.current()
			for w.silent || l.deaf.Load() {
				if l.deaf.Load() {
					again = nil
				}
				select {
				case <-again:
				case <-l.gone:
					return
				case <-time.After(50 * time.Millisecond):
				}
				w, again = p.current()
			}
			piece := said
			if w.piece > 0 {
				piece = said[:min(w.piece, len(said))]
			}
			if w.delay > 0 {
				time.Sleep(w.delay + rand.N(w.delay))
			}
			if look(l, w, piece) {
				if _, err := to.Write(piece); err != nil {
					return
				}
			}
			said = said[len(piece):]
		}
	}
}

// request marks a request whose answer is to be lost, and lets it pass.
func (p *proxy) request(l *link, w way, said []byte) bool {
	if w.lose != nil && w.lose(said) {
		l.losing.Store(true)
	}
	return true
}

// answer lets pass what is not to be lost. What is, ends the connection once it
// is whole: by then whatever was asked for is done.
func (p *proxy) answer(l *link, w way, said []byte) bool {
	if !l.losing.Load() {
		return true
	}
	if w.whole == nil || w.whole(said) {
		l.close()
	}
	return false
}

// readyForQuery ends every answer of PostgreSQL: by then what was asked for is
// committed, if it was to be.
func readyForQuery(answer []byte) bool {
	return len(answer) >= 6 && bytes.Equal(answer[len(answer)-6:len(answer)-1], []byte{'Z', 0, 0, 0, 5})
}
