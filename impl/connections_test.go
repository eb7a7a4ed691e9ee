package impl

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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

// ask sends a request and reads the whole answer.
func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
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
	ask(t, idle)
	eventually(t, func() bool { // it is at rest again
		c.mu.Lock()
		defer c.mu.Unlock()
		for conn := range c.open {
			return conn.used.Load() && conn.waiting.Load() != 0
		}
		return false
	})
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

// Those that were used net/http closes itself, and tells clients of HTTP/2 before.
func TestOnceTheServerEndsConnectionsThatWereNeverUsedAreClosedAndNoOthers(t *testing.T) {
	working, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	c, address := listening(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			close(working)
			<-done
		}
	})
	c.mu.Lock()
	c.most = 3
	c.mu.Unlock()
	silent, idle, busy := dial(t, address), dial(t, address), dial(t, address)
	ask(t, idle)
	io.WriteString(busy, "GET /busy HTTP/1.1\r\nHost: x\r\n\r\n")
	<-working
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.open) == 3 })
	c.closeUnused()
	if isOpen(silent) || !isOpen(idle) || !isOpen(busy) {
		t.Error("it is not the one that was never used that is closed")
	}
	if late, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil && isOpen(late) {
		t.Error("there are new connections")
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
