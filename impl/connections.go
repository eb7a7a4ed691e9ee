package impl

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How many connections there may be. Each costs a goroutine and some 20 KB, and a
// file descriptor, of which the server needs some for other things: connections
// to the database and to receivers of webhooks, logs. Addresses are not told
// apart: behind a balancer all connections come from one.
const (
	mostConnections  = 8192
	crowdConnections = 512  // beyond those, for whoever asks how the server is; others are told to come back
	otherFiles       = 1024 // or half of what there may be, if that is less
	evicted          = 128  // one in so many, those that have waited longest, are closed at a time to make room
)

// connections bounds the connections of a listener. Where there are as many as
// may be, a new one takes the place of one that has been without a request for
// longest, whether it idles, never sent anything, or sends its headers very
// slowly; those that a request is under way on stay.
type connections struct {
	most, crowd int
	now         func() time.Time

	mu     sync.Mutex
	open   map[*connection]struct{}
	ending bool // there will be no more
}

// A connection is one that was accepted.
type connection struct {
	*net.TCPConn
	of      *connections
	crowded bool         // it is one too many for requests that make work
	used    atomic.Bool  // a request has come over it
	waiting atomic.Int64 // since when no request is under way, in ns; 0 where one is
	closed  sync.Once
}

// newConnections allows as many connections as there are file descriptors for.
// (Go itself has raised their number to what the process may have.)
func newConnections(log *slog.Logger) *connections {
	c := &connections{most: mostConnections, crowd: crowdConnections, now: time.Now, open: make(map[*connection]struct{})}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil && files.Cur < mostConnections+crowdConnections+otherFiles {
		left := int(files.Cur) - min(otherFiles, int(files.Cur)/2)
		c.crowd = min(c.crowd, left/8)
		c.most = left - c.crowd
		log.Warn("few connections are possible: few file descriptors are allowed", "connections", c.most, "descriptors", files.Cur)
	}
	return c
}

// A bounded listener accepts what fits.
type bounded struct {
	net.Listener
	of *connections
}

func (b bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, nil
		}
		if c := b.of.add(tcp); c != nil {
			return c, nil
		}
		tcp.SetLinger(0) //nolint:errcheck // it is about to go
		tcp.Close()      //nolint:errcheck // there is no place for it
	}
}

func (c *connections) add(tcp *net.TCPConn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		c.evict()
	}
	if c.ending || len(c.open) >= c.most+c.crowd {
		return nil
	}
	conn := &connection{TCPConn: tcp, of: c, crowded: len(c.open) >= c.most}
	conn.waiting.Store(c.now().UnixNano())
	c.open[conn] = struct{}{}
	return conn
}

// evict closes those that have waited longest. Looking for them takes a moment,
// so it is to find some at a time.
func (c *connections) evict() {
	type candidate struct {
		conn  *connection
		since int64
	}
	var waiting []candidate
	for conn := range c.open {
		if since := conn.waiting.Load(); since != 0 {
			waiting = append(waiting, candidate{conn, since})
		}
	}
	slices.SortFunc(waiting, func(a, b candidate) int { return int(min(1, max(-1, a.since-b.since))) })
	for _, w := range waiting[:min(len(waiting), 1+c.most/evicted)] {
		c.cut(w.conn)
	}
}

// closeUnused closes the connections that no request has come over, now that the
// server ends. net/http would wait five seconds for the first request of each,
// which it no longer answers; balancers keep some that they may never use.
func (c *connections) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	for conn := range c.open {
		if !conn.used.Load() {
			c.cut(conn)
		}
	}
}

// cut closes a connection below net/http, which notices.
func (c *connections) cut(conn *connection) {
	delete(c.open, conn)
	conn.TCPConn.Close() //nolint:errcheck // it is gone either way
}

// Close gives the place back.
func (c *connection) Close() error {
	c.closed.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.open, c)
	})
	return c.TCPConn.Close()
}

// state notes whether a request is under way; for http.Server.ConnState. A request
// is once its headers are there.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	own := ownConnection(conn)
	switch {
	case own == nil:
	case state == http.StateActive:
		own.used.Store(true)
		own.waiting.Store(0)
	case state == http.StateIdle:
		own.waiting.Store(c.now().UnixNano())
	}
}

// ownConnection gives the connection that was accepted, below TLS too.
func ownConnection(conn net.Conn) *connection {
	if below, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = below.NetConn()
	}
	own, _ := conn.(*connection)
	return own
}

type crowdedKey struct{}

// mark tells requests that come over a connection that is one too many; for
// http.Server.ConnContext.
func (c *connections) mark(ctx context.Context, conn net.Conn) context.Context {
	if own := ownConnection(conn); own != nil && own.crowded {
		return context.WithValue(ctx, crowdedKey{}, true)
	}
	return ctx
}

func crowded(ctx context.Context) bool { return ctx.Value(crowdedKey{}) != nil }
