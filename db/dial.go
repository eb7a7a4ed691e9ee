package db

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// answerWithin is how long an answer of the database is waited for: longer than
// it ever works on a statement. One that says nothing by then hangs, or is gone
// without a word, and nothing else would end the wait: the driver asks it to
// cancel a statement and then waits on.
const answerWithin = StatementTimeout + 2*time.Second

// A dialer makes connections that do not wait for ever.
type dialer struct {
	net.Dialer
	within time.Duration
}

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, min(d.within, ConnectTimeout))
	defer cancel()
	conn, err := d.Dialer.DialContext(ctx, network, address)
	for errors.Is(err, syscall.EAGAIN) { // Linux: the queue of a Unix socket is full; one of TCP would wait
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
		conn, err = d.Dialer.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	l := &line{Conn: conn, within: d.within}
	if o, ok := ctx.Value(lineKey{}).(*opening); ok {
		o.over(l)
	}
	return l, nil
}

// lineKey is by which whoever wants a connection asks for the line that it gets.
type lineKey struct{}

// A line waits so long for the answer to what was written last.
type line struct {
	net.Conn
	within time.Duration

	mu     sync.Mutex
	ending bool // soon, whatever is written yet
}

func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	var err error
	if !l.ending {
		err = l.SetDeadline(time.Now().Add(l.within))
	}
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return l.Conn.Write(b)
}

// endWithin ends it after a while, in the midst of whatever it is waiting for.
func (l *line) endWithin(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	l.SetDeadline(time.Now().Add(d)) //nolint:errcheck // it is closed
}
