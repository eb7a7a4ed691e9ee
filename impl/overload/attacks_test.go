package overload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// An attacker holds connections, as raw as they come.
type attacker struct {
	host    string
	secured bool         // by TLS, with HTTP/2
	heard   atomic.Int64 // bytes of the server, over that
	end     <-chan struct{}
	all     sync.WaitGroup
}

func (s server) attacker(t *testing.T, end <-chan struct{}) *attacker {
	return &attacker{host: host(t, s), secured: strings.HasPrefix(s.Base, "https:"), end: end}
}

// dial opens a connection, nil where the server takes no more.
func (a *attacker) dial() net.Conn {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), "tcp", a.host)
	if err != nil {
		return nil
	}
	if !a.secured {
		return conn
	}
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil
	}
	return secured
}

// hold has so many connections do something, again as soon as the server has
// ended them, until the attack ends.
func (a *attacker) hold(connections int, do func(i int, conn net.Conn)) {
	for i := range connections {
		a.all.Go(func() {
			for {
				if conn := a.dial(); conn != nil {
					ended := make(chan struct{})
					go func() { do(i, conn); close(ended) }()
					select {
					case <-a.end:
					case <-ended:
					}
					conn.Close()
					<-ended
				}
				select {
				case <-a.end:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
}

// trickle sends byte after byte, until the server or the attack ends it.
func trickle(conn net.Conn, text string) {
	for i := range len(text) {
		if _, err := conn.Write([]byte{text[i]}); err != nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// listen waits for the end of the connection, and reads what comes.
func listen(conn net.Conn) { io.Copy(io.Discard, conn) }

// silent waits for the end of the connection without reading: only the attack ends
// it.
func (a *attacker) silent() { <-a.end }

type attack struct {
	name string
	run  func(a *attacker, w tenant)
}

var attacks = []attack{
	{"headers, a byte at a time", func(a *attacker, _ tenant) {
		a.hold(1000, func(_ int, conn net.Conn) { trickle(conn, "GET /livez HTTP/1.1\r\nHost: "+strings.Repeat("x", 1000)) })
	}},
	{"bodies, a byte at a time, with a key", func(a *attacker, w tenant) {
		a.hold(500, func(_ int, conn net.Conn) {
			fmt.Fprintf(conn, "POST /api/v1/events/batch HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 262144\r\n\r\n", w.Key("all"))
			trickle(conn, strings.Repeat(" ", 1000))
		})
	}},
	{"bodies, announced by many networks and never sent", func(a *attacker, w tenant) {
		a.hold(1000, func(i int, conn net.Conn) {
			fmt.Fprintf(conn, "POST /api/v1/forms/%s HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 172.16.%d.%d\r\nContent-Length: 65536\r\n\r\n{",
				w.Forms["f"].PublicKey, i/250, i%250)
			listen(conn)
		})
	}},
	{"answers that are not read", func(a *attacker, w tenant) {
		a.hold(200, func(i int, conn net.Conn) {
			fmt.Fprintf(conn, "GET /docs/scalar.js HTTP/1.1\r\nHost: x\r\n\r\n")
			for range 20 {
				fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", w.Key("all"))
			}
			a.silent()
		})
	}},
	{"connections that say nothing", func(a *attacker, _ tenant) {
		a.hold(flood(), func(_ int, conn net.Conn) { listen(conn) })
	}},
	{"connections that were used once", func(a *attacker, _ tenant) {
		a.hold(1500, func(_ int, conn net.Conn) {
			fmt.Fprintf(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
			listen(conn)
		})
	}},
	{"requests whose clients close their half and read nothing", func(a *attacker, w tenant) {
		a.hold(100, func(_ int, conn net.Conn) {
			fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", w.Key("all"))
			conn.(*net.TCPConn).CloseWrite()
			time.Sleep(time.Second)
		})
	}},
	{"requests after requests, with no answer read", func(a *attacker, w tenant) {
		many := []byte(strings.Repeat(fmt.Sprintf("GET /api/v1/event-types HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", w.Key("all")), 100))
		a.hold(20, func(_ int, conn net.Conn) {
			for {
				if _, err := conn.Write(many); err != nil {
					return
				}
			}
		})
	}},
	{"bodies that wait to be asked for", func(a *attacker, w tenant) {
		a.hold(500, func(_ int, conn net.Conn) {
			fmt.Fprintf(conn, "POST /api/v1/leads HTTP/1.1\r\nHost: x\r\n%s\r\nExpect: 100-continue\r\nContent-Length: 262144\r\n\r\n", w.Key("all"))
			listen(conn)
		})
	}},
	{"bodies in chunks of a byte, with extensions", func(a *attacker, w tenant) {
		chunk := "1;" + strings.Repeat("x", 1000) + "\r\n \r\n"
		a.hold(100, func(_ int, conn net.Conn) {
			fmt.Fprintf(conn, "POST /api/v1/leads HTTP/1.1\r\nHost: x\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n", w.Key("all"))
			for {
				if _, err := io.WriteString(conn, chunk); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}},
	{"bodies that are small until they are unpacked", func(a *attacker, w tenant) {
		bomb := packed(50 << 20)
		a.hold(10, func(_ int, conn net.Conn) {
			for {
				fmt.Fprintf(conn, "POST /api/v1/leads HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s",
					w.Key("all"), len(bomb), bomb)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					return
				}
				io.Copy(io.Discard, response.Body)
			}
		})
	}},
}

// flood is how many connections a flood has: 5,000 where that many files may be
// open.
func flood() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return 500
	}
	return min(5000, int(files.Cur)/3)
}

// packed is a lead of so many bytes, compressed.
func packed(size int) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w.Write([]byte(`{"name":"`))
	blanks := bytes.Repeat([]byte(" "), 1<<20)
	for range size >> 20 {
		w.Write(blanks)
	}
	w.Write([]byte(`"}`))
	w.Close()
	return b.Bytes()
}

func TestWhileItIsAttackedTheServerServesTheOthersAndAfterwardsNothingIsLeft(t *testing.T) {
	t.Parallel()
	withstands(t, start(t), attacks)
}

func withstands(t *testing.T, s server, attacks []attack) {
	t.Helper()
	attacked, honest := s.tenant(t), s.tenant(t)
	everything := func(t *testing.T) {
		t.Helper()
		s.one(t, honest.event(), 202)
		s.one(t, honest.lead(), 201)
		s.one(t, honest.list(), 200)
		s.one(t, honest.start(), 202)
		s.one(t, honest.form(), 200)
		s.one(t, honest.submission(), 201)
		s.one(t, honest.page(), 200)
		s.one(t, request{"GET", "/livez", "", nil}, 200)
	}
	everything(t)
	length := 500 * time.Millisecond
	if *long {
		length = 40 * time.Second
	}
	before := s.state(t)
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			end := make(chan struct{})
			a := s.attacker(t, end)
			attack.run(a, attacked)
			time.Sleep(200 * time.Millisecond)
			for begun := time.Now(); time.Since(begun) < length; time.Sleep(100 * time.Millisecond) {
				everything(t)
				if now := s.state(t); now.goroutines > mostGoroutines {
					t.Errorf("it runs %d goroutines", now.goroutines)
				}
			}
			during := s.state(t)
			close(end)
			a.all.Wait()
			if a.secured && a.heard.Load() == 0 {
				t.Error("the server never spoke HTTP/2 with the attacker")
			}
			s.givesBack(t, before)
			t.Logf("%+v", during)
		})
	}
}

// What the server says to a request that is too much for it.
func TestWhatIsTooMuchIsRefusedAsDocumented(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := s.tenant(t)
	key := w.Key("all")
	lead := `{"email":"hank@globex.com"}`
	post := "POST /api/v1/leads HTTP/1.1\r\nHost: x\r\n" + key + "\r\nContent-Type: application/json\r\n"
	for _, test := range []struct {
		name, request string
		want          int
	}{
		{"large headers", "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n" + key + "\r\nX-Large: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", 431},
		{"many headers", "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n" + key + "\r\n" + strings.Repeat("X-Many: x\r\n", 5000) + "\r\n", 431},
		{"a long path", "GET /api/v1/events?" + strings.Repeat("x", 40<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		{"an announced body past the cap", post + "Content-Length: 999999999999\r\n\r\n", 413},
		{"a body in chunks past the cap", post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat(" ", 64<<10)+"\r\n", 5) + "0\r\n\r\n", 413},
		{"a compressed body", post + fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(packed(1<<20))) + string(packed(1<<20)), 415},
		{"a body of two lengths", post + "Content-Length: 27\r\nTransfer-Encoding: chunked\r\n\r\n1b\r\n" + lead + "\r\n0\r\n\r\n", 201},
		{"chunk extensions and trailers", post + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n1b;a=b\r\n" + lead + "\r\n0\r\nX-T: v\r\n\r\n", 201},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404},
		{"an upgrade to HTTP/2", "GET /api/v1/event-types HTTP/1.1\r\nHost: x\r\n" + key + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", 200},
		{"a part of a list", "GET /api/v1/event-types HTTP/1.1\r\nHost: x\r\n" + key + "\r\nRange: bytes=0-1\r\nIf-None-Match: *\r\nIf-Modified-Since: Sun, 01 Jan 2090 00:00:00 GMT\r\n\r\n", 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := (&attacker{host: host(t, s)}).dial()
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			go io.WriteString(conn, test.request) // the server may stop reading
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != test.want {
				t.Errorf("it answers %d, want %d", response.StatusCode, test.want)
			}
		})
	}
}

// A body may take its time as long as it comes.
func TestABodyThatKeepsComingIsTakenAndOneThatDoesNotIsCutOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := s.tenant(t)
	body := strings.Repeat(" ", 180<<10) + w.batch().body
	send := func(t *testing.T, path string, part int, pause time.Duration) (status int, took time.Duration) {
		conn := (&attacker{host: host(t, s)}).dial()
		defer conn.Close()
		begun := time.Now()
		conn.SetReadDeadline(begun.Add(time.Minute))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: %d\r\n\r\n", path, w.Key("all"), len(body))
		go func() {
			for rest := body; rest != ""; {
				n, err := conn.Write([]byte(rest[:min(part, len(rest))]))
				if rest = rest[n:]; err != nil {
					return
				}
				time.Sleep(pause)
			}
		}()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the server waits for ever")
			}
			return 0, time.Since(begun)
		}
		response.Body.Close()
		return response.StatusCode, time.Since(begun)
	}
	for _, test := range []struct {
		name   string
		part   int
		pause  time.Duration
		served bool
	}{
		{"4 KB every 250 ms", 4 << 10, 250 * time.Millisecond, true}, // in all longer than the headers may take
		{"1 KB a second", 1 << 10, time.Second, false},
		{"nothing", 1, time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			status, took := send(t, "/api/v1/events/batch", test.part, test.pause)
			if (status == 202) != test.served {
				t.Errorf("it is answered %d after %v", status, took)
			}
			if !test.served && took > 25*time.Second {
				t.Errorf("it is cut off after %v only", took)
			}
		})
	}
}

// Where few files may be open the server takes fewer connections, and those that
// are without a request for longest make room. With so few places a connection has
// its place for as long as the attackers take to fill them anew: they are not to
// be so many that this is less than a busy machine takes to begin to read.
func TestConnectionsThatDoNothingMakeRoomForOthers(t *testing.T) {
	_, address := dbtest.Private(t)
	s := server{servertest.StartProgram(t, limited(t, 600), address), address, &slowdown{}}
	defer s.Stop()
	w := s.tenant(t)
	s.one(t, w.event(), 202)
	before := s.state(t)
	end := make(chan struct{})
	a := s.attacker(t, end)
	over := sync.OnceFunc(func() { close(end); a.all.Wait() })
	defer over()
	a.hold(400, func(_ int, conn net.Conn) { listen(conn) })
	for range 25 {
		time.Sleep(50 * time.Millisecond)
		// A connection that is turned away at once may be tried again. (Without an
		// end to those that do nothing, one in so many would find a place too.)
		s.soon(t, w.event(), 202)
		s.soon(t, request{"GET", "/livez", "", nil}, 200)
		s.soon(t, w.list(), 200)
	}
	if now := s.state(t); now.files > 600 {
		t.Errorf("%d files are open", now.files)
	}
	over()
	s.givesBack(t, before)
	if strings.Contains(s.Log(), "too many open files") {
		t.Error("it ran out of files")
	}
}

// soon is one for a client that tries again.
func (s server) soon(t *testing.T, r request, want int) {
	t.Helper()
	client := fresh()
	var a answer
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(50 * time.Millisecond) {
		if a = s.send(client, r); a.status == want {
			return
		}
	}
	t.Fatalf("%s %s answers %d %s %v for long, want %d", r.method, r.path, a.status, a.code, a.err, want)
}
