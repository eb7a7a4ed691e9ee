package overload

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// A slowdown stands between a server and its database, and passes on what either
// says after a while.
type slowdown struct{ delay atomic.Int64 }

// by sets how long everything takes that the database says.
func (s *slowdown) by(d time.Duration) { s.delay.Store(int64(d)) }

// slowly gives the address of a database by way of a slowdown.
func slowly(t *testing.T, database string) (*slowdown, string) {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	network, to := "tcp", address.Host
	query := address.Query()
	if folder := query.Get("host"); folder != "" {
		port := query.Get("port")
		if port == "" {
			port = "5432"
		}
		network, to = "unix", folder+"/.s.PGSQL."+port
		query.Del("host")
		query.Del("port")
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowdown{}
	go func() {
		for {
			server, err := listener.Accept()
			if err != nil {
				return
			}
			database, err := new(net.Dialer).DialContext(context.Background(), network, to)
			if err != nil {
				server.Close()
				continue
			}
			go func() { io.Copy(database, server); database.Close() }()
			go func() { s.pass(server, database); server.Close() }()
		}
	}()
	t.Cleanup(func() { listener.Close() })
	address.Host = listener.Addr().String()
	query.Set("sslmode", "disable")
	address.RawQuery = query.Encode()
	return s, address.String()
}

func (s *slowdown) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		for waited := time.Duration(0); waited < time.Duration(s.delay.Load()); waited += 10 * time.Millisecond {
			time.Sleep(min(10*time.Millisecond, time.Duration(s.delay.Load())))
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}
