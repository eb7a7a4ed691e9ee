package impl

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/limit"
)

// A place for two connections and one that is too many.
func listening(t *testing.T, handler http.HandlerFunc) (*connections, string) {
	t.Helper()
	c := newConnections(slog.New(slog.DiscardHandler))
	c.most, c.crowd = 2, 1
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newHTTP(handler, slog.New(slog.DiscardHandler))
	server.ConnState, server.ConnContext = c.state, c.mark
	go server.Serve(bounded{l, c})
	t.Cleanup(func() { server.Close() })
	return c, l.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

func isOpen(conn net.Conn) bool {
	conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	timeout, ok := err.(net.Error) //nolint:errorlint // of the connection itself
	return ok && timeout.Timeout()
}

func TestANewConnectionTakesThePlaceOfTheOneThatHasWaitedLongest(t *testing.T) {
	c, address := listening(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })
	idle := dial(t, address)
	io.WriteString(idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	io.ReadFull(idle, make([]byte, 120))
	silent := dial(t, address)
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.open) == 2 })
	third := dial(t, address)
	io.WriteString(third, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if answer, _ := io.ReadAll(io.LimitReader(third, 15)); string(answer) != "HTTP/1.1 200 OK" {
		t.Errorf("a new connection is answered %q", answer)
	}
	if isOpen(idle) || !isOpen(silent) {
		t.Error("it is not the one that has waited longest that is closed")
	}
}

func TestAConnectionThatIsNeverUsedHoldsUpNoShutdownAndOneAtWorkIsLeft(t *testing.T) {
	working, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	c, address := listening(t, func(http.ResponseWriter, *http.Request) { close(working); <-done })
	c.mu.Lock()
	c.most = 3
	c.mu.Unlock()
	silent, busy := dial(t, address), dial(t, address)
	io.WriteString(busy, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-working
	fresh := dial(t, address)
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.open) == 3 })
	c.mu.Lock()
	var newest *connection
	for conn := range c.open {
		if conn.waiting.Load() != 0 && (newest == nil || conn.waiting.Load() > newest.waiting.Load()) {
			newest = conn
		}
	}
	accepted := time.Unix(0, newest.waiting.Load())
	c.now = func() time.Time { return accepted.Add(limit.StopSilent) } // and a little more for the others
	c.mu.Unlock()
	over := make(chan struct{})
	close(over)
	c.closeSilent(over)
	if isOpen(silent) || !isOpen(busy) || !isOpen(fresh) {
		t.Error("it is not those that were without a request for long that are closed")
	}
}

func TestWhereEveryConnectionIsAtWorkOneMoreIsToldSoAndOthersAreClosed(t *testing.T) {
	working, done := make(chan struct{}, 2), make(chan struct{})
	defer close(done)
	_, address := listening(t, func(w http.ResponseWriter, r *http.Request) {
		if crowded(r.Context()) {
			w.Write([]byte("crowded"))
			return
		}
		working <- struct{}{}
		<-done
	})
	for range 2 {
		io.WriteString(dial(t, address), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-working
	}
	one := dial(t, address)
	io.WriteString(one, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n")
	io.WriteString(one, "012345678")
	if answer, _ := io.ReadAll(one); !strings.HasSuffix(string(answer), "crowded") {
		t.Errorf("one too many is answered %q", answer)
	}
}

func TestPlacesAreGivenBackOnce(t *testing.T) {
	c, address := listening(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })
	for range 20 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address, http.NoBody)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.open) == 0 })
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("it never is")
		}
	}
}
