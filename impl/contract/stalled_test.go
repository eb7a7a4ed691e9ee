package contract

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Each body lacks its last byte.
func TestBodiesThatNeverArriveDoNotShutOutOtherWorkspaces(t *testing.T) {
	t.Parallel()
	s, w, other := sharedServer(t), workspace(t), workspace(t)
	if a := w.record(t, s, `{"id":"e","name":"n","visitor":{"id":"v"}}`); a.status != 202 {
		t.Fatalf("%s", a.body)
	}
	var stalled []net.Conn
	var sending sync.WaitGroup
	almost := bytes.Repeat([]byte(" "), 262143)
	for range 300 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		sending.Go(func() {
			fmt.Fprintf(conn, "POST /api/v1/events/batch HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 262144\r\n\r\n", w.Key("all"))
			conn.Write(almost)
		})
		stalled = append(stalled, conn)
	}
	event := `{"id":"e","name":"n","visitor":{"id":"v"}}`
	for begun := time.Now(); w.record(t, s, event).status != 503; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("a workspace may have as many bodies in flight as it likes")
		}
	}
	if a := other.record(t, s, event); a.status != 202 {
		t.Errorf("another workspace is answered %d %s", a.status, a.body)
	}
	for _, conn := range stalled {
		conn.Close()
	}
	sending.Wait()
	for begun := time.Now(); w.record(t, s, event).status != 202; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("what was taken is not given back")
		}
	}
}
