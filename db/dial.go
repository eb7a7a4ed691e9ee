package db

import (
	"context"
	"net"
	"time"
)

// answerWithin is how long an answer of the database is waited for: longer than
// it ever works on a statement. One that says nothing by then hangs, or is gone
// without a word, and nothing else would end the wait: the driver asks it to
// cancel a statement and then waits on.
const answerWithin = 32 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, d.within)
	defer cancel()
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return impatient{conn, d.within}, nil
}

// impatient waits so long for the answer to what was written last.
type impatient struct {
	net.Conn
	within time.Duration
}

func (c impatient) Write(b []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.within)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
