package overload

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// startTLS is start for a server that clients reach over TLS, with HTTP/2.
func startTLS(t *testing.T) server {
	t.Helper()
	borrowed := httptest.NewTLSServer(nil) // for its certificate
	pair := borrowed.TLS.Certificates[0]
	borrowed.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, "INLET_TLS_CERT="+certFile, "INLET_TLS_KEY="+keyFile)
	s.Base = strings.Replace(s.Base, "http://", "https://", 1)
	return s
}

// Over HTTP/2 a connection has many requests under way, and frames that are none.
type streams struct {
	*http2.Framer
	next    uint32
	headers bytes.Buffer
	encoder *hpack.Encoder
}

// holdStreams has so many connections speak HTTP/2, what comes being read and left.
func (a *attacker) holdStreams(connections int, settings []http2.Setting, do func(*streams)) {
	a.hold(connections, func(_ int, conn net.Conn) {
		if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			return
		}
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			return
		}
		s := &streams{Framer: http2.NewFramer(conn, conn), next: 1}
		s.encoder = hpack.NewEncoder(&s.headers)
		if s.WriteSettings(settings...) != nil {
			return
		}
		var doing sync.WaitGroup
		doing.Go(func() { do(s) })
		n, _ := io.Copy(io.Discard, conn)
		conn.Close()
		doing.Wait()
		a.heard.Add(n)
	})
}

// open begins a stream; more says that its headers, or its body, go on.
func (s *streams) open(method, path, credential string, ends, endsHeaders bool) error {
	s.headers.Reset()
	token := strings.TrimPrefix(credential, "Authorization: ")
	for _, f := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "x"}, {":path", path}, {"authorization", token}} {
		if err := s.encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	err := s.WriteHeaders(http2.HeadersFrameParam{
		StreamID: s.next, BlockFragment: s.headers.Bytes(), EndStream: ends, EndHeaders: endsHeaders,
	})
	s.next += 2
	return err
}

var attacksOverHTTP2 = []attack{
	{"requests that are taken back at once", func(a *attacker, w tenant) { // CVE-2023-44487
		a.holdStreams(4, nil, func(s *streams) {
			for s.open("GET", "/api/v1/events", w.Key("all"), true, true) == nil && s.WriteRSTStream(s.next-2, http2.ErrCodeCancel) == nil {
			}
		})
	}},
	{"headers that never end", func(a *attacker, w tenant) { // CVE-2023-45288
		a.holdStreams(4, nil, func(s *streams) {
			err := s.open("GET", "/livez", w.Key("all"), true, false)
			for n := 0; err == nil; n++ {
				s.headers.Reset()
				s.encoder.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", n), Value: strings.Repeat("x", 4000)})
				err = s.WriteContinuation(s.next-2, false, s.headers.Bytes())
			}
		})
	}},
	{"answers that there is no window for", func(a *attacker, w tenant) {
		a.holdStreams(50, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}, func(s *streams) {
			for range 100 {
				if s.open("GET", "/api/v1/events", w.Key("all"), true, true) != nil {
					return
				}
			}
		})
	}},
	{"bodies that never come, on every stream", func(a *attacker, w tenant) {
		a.holdStreams(50, nil, func(s *streams) {
			for range 100 {
				if s.open("POST", "/api/v1/leads", w.Key("all"), false, true) != nil {
					return
				}
			}
		})
	}},
	{"bodies of nothing, piece by piece", func(a *attacker, w tenant) { // CVE-2019-9518
		a.holdStreams(4, nil, func(s *streams) {
			err := s.open("POST", "/api/v1/leads", w.Key("all"), false, true)
			for err == nil {
				err = s.WriteData(s.next-2, false, nil)
			}
		})
	}},
	{"pings and settings", func(a *attacker, _ tenant) { // CVE-2019-9512, CVE-2019-9515
		a.holdStreams(4, nil, func(s *streams) {
			for s.WritePing(false, [8]byte{}) == nil && s.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 15}) == nil {
			}
		})
	}},
	{"handshakes that never end", func(a *attacker, _ tenant) {
		a.secured = false
		a.hold(500, func(_ int, conn net.Conn) { listen(conn) })
	}},
}

// Not beside others, for it takes all processors.
func TestWhileItIsAttackedOverHTTP2TheServerServesTheOthers(t *testing.T) {
	withstands(t, startTLS(t), attacksOverHTTP2)
}
