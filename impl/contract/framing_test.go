package contract

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// raw writes bytes to the server, and gives the answers that come until it closes
// the connection or has nothing more to say.
func (s server) raw(t testing.TB, request string) (all []answer, closed bool) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	for {
		// The first answer may take its time on a busy machine; what is not begun
		// soon after it does not come.
		wait := 10 * time.Second
		if len(all) > 0 {
			wait = time.Second
		}
		conn.SetReadDeadline(time.Now().Add(wait))
		if _, err := reader.Peek(1); err != nil {
			var network net.Error
			return all, !errors.As(err, &network) || !network.Timeout()
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return all, true
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return all, true
		}
		all = append(all, answer{response.StatusCode, response.Header, body})
	}
}

// A proxy in front may see another end of a request than the server does; what it
// takes for a body must never be a request here.
func TestARequestThatCouldEndInTwoPlacesEndsItsConnection(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	inner := "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
	const chunked = "Transfer-Encoding: chunked\r\n"
	for name, rest := range map[string]string{
		"a length and chunks":          fmt.Sprintf("Content-Length: %d\r\n%s\r\n0\r\n\r\n%s", 5+len(inner), chunked, inner),
		"chunks and a length":          fmt.Sprintf("%sContent-Length: %d\r\n\r\n0\r\n\r\n%s", chunked, 5+len(inner), inner),
		"two lengths":                  fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
		"a list of lengths":            fmt.Sprintf("Content-Length: 0, %d\r\n\r\n%s", len(inner), inner),
		"a length with a plus":         "Content-Length: +0\r\n\r\n" + inner,
		"a negative length":            "Content-Length: -1\r\n\r\n" + inner,
		"a hexadecimal length":         "Content-Length: 0x0\r\n\r\n" + inner,
		"a huge length":                "Content-Length: 18446744073709551616\r\n\r\n" + inner,
		"a length, then space":         "Content-Length : 0\r\n\r\n" + inner,
		"another encoding":             "Transfer-Encoding: identity\r\n\r\n" + inner,
		"nearly chunks":                "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"two encodings":                chunked + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"a list of encodings":          "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + inner,
		"an encoding behind a tab":     "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" + inner,
		"an encoding, then space":      "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		"an encoding on the next line": "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + inner,
		"lines without CR":             "X: a\nTransfer-Encoding: chunked\n\n0\r\n\r\n" + inner,
		"CR alone":                     "X: a\rTransfer-Encoding: chunked\r\n\r\n" + inner,
		"U+0000 in a header":           "X: a\x00b\r\n\r\n" + inner,
		"chunks that end in LF":        chunked + "\r\n0;a\n\r\n" + inner,
		"a size in hexadecimal twice":  chunked + "\r\n0x0\r\n\r\n" + inner,
		"a negative size":              chunked + "\r\n-0\r\n\r\n" + inner,
		"a huge size":                  chunked + "\r\nffffffffffffffff1\r\n\r\n" + inner,
		"a length behind the body":     chunked + "Trailer: Content-Length\r\n\r\n0\r\nContent-Length: 5\r\n\r\n" + inner,
		"no host":                      "\r\n" + inner,
	} {
		host := "Host: x\r\n"
		if name == "no host" {
			host = ""
		}
		all, closed := s.raw(t, "POST /api/v1/events HTTP/1.1\r\n"+host+"Content-Type: application/json\r\n"+w.Key("all")+"\r\n"+rest)
		if len(all) != 1 || all[0].status < 400 || !closed {
			t.Errorf("%s: %d answers, closed is %v", name, len(all), closed)
		}
	}
	// A line that goes on is part of the header before, and no header.
	all, _ := s.raw(t, "GET /livez HTTP/1.1\r\nHost: x\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n"+inner)
	if len(all) != 2 || all[0].status != 200 || all[1].status != 404 {
		t.Errorf("%d answers to two requests", len(all))
	}
}

func TestNoConnectionBecomesOneOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for name, request := range map[string]string{
		"HTTP/2 from the start": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"HTTP/2 by upgrade":     "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
		"a web socket":          "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
		"a tunnel":              "CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: 127.0.0.1:5432\r\n\r\n",
		"a proxy":               "GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
	} {
		all, _ := s.raw(t, request)
		if len(all) != 1 || all[0].status == 101 || all[0].status >= 500 && all[0].status != 505 || all[0].status < 400 && string(all[0].body) != "ok\n" {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// Whatever way a path is written, what it leads to wants its credential.
func TestNoSpellingOfAPathLeadsPastTheGuard(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	event := `{"id":"spelled","name":"n","visitor":{"id":"v"}}`
	send := func(path, credential string) answer {
		t.Helper()
		all, _ := s.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
			path, credential, len(event), event))
		if len(all) != 1 {
			t.Fatalf("%q gets %d answers", path, len(all))
		}
		return all[0]
	}
	for _, path := range []string{
		"/api/v1/events", "/api/v1/%65vents", "/api/v1/event%73?x=/livez", "http://elsewhere/api/v1/events",
		"/api/v1/events/", "//api/v1/events", "/api//v1/events", "/./api/v1/events", "/api/v1/./events", "/api/v1/x/../events", "/livez/../api/v1/events",
		"/docs/../api/v1/events", "/api/v1/forms/../events", "/api/v1/forms/..%2fevents", "/api/v1/forms/%2e%2e/events", "/api/v1/%2e/events", "/api%2fv1%2fevents",
		"/api/v1%2fevents", "/api/v1/events%2f", "/api/v1/events;x=1", "/api;x/v1/events", "/api/v1/events%00", "/api/v1/events%20", "/api/v1/events%09", "/api/v1/events%0d%0a",
		"/API/v1/events", "/api/v1/Events", "/api/v1/events.json", "/api/v1/events%252f", "\\api\\v1\\events", "/api\\v1\\events", "/api/v1/\xef\xbc\x8fevents", "/l/../api/v1/events", "*",
	} {
		if a := send(path, ""); a.status != 400 && a.status != 401 && a.status != 404 && a.status != 405 {
			t.Errorf("%q without a credential answers %d %s", path, a.status, a.body)
		}
		if a := send(path, w.Key("none")+"\r\n"); a.status != 400 && a.status != 403 && a.status != 404 && a.status != 405 {
			t.Errorf("%q without the scope answers %d %s", path, a.status, a.body)
		}
	}
	if a := send("/api/v1/%65vents", w.Key("all")+"\r\n"); a.status != 202 {
		t.Errorf("another spelling of the path, with a credential, answers %d", a.status)
	}
}

// Two credentials are none: which one counts would be anybody's guess.
func TestACredentialThatIsThereTwiceIsNone(t *testing.T) {
	t.Parallel()
	s, w, other := sharedServer(t), workspace(t), workspace(t)
	event := `{"id":"e","name":"n","visitor":{"id":"v"}}`
	for name, headers := range map[string]string{
		"the same twice":      w.Key("all") + "\r\n" + w.Key("all"),
		"two of two":          w.Key("all") + "\r\n" + other.Key("all"),
		"one good, one not":   w.Key("all") + "\r\nAuthorization: Bearer x",
		"one that goes on":    w.Key("all") + "\r\n x",
		"a list":              w.Key("all") + "," + other.APIKeys["all"].Token,
		"in other letters":    w.Key("all") + "\r\nauthorization: Bearer " + other.APIKeys["all"].Token,
		"of a proxy alone":    "Proxy-" + w.Key("all"),
		"in another header":   "X-Api-Key: " + w.APIKeys["all"].Token,
		"of a cookie":         "Cookie: authorization=Bearer " + w.APIKeys["all"].Token,
		"in what is unfolded": "X: y\r\n " + w.Key("all"),
	} {
		all, _ := s.raw(t, fmt.Sprintf("POST /api/v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\nContent-Length: %d\r\n\r\n%s", headers, len(event), event))
		if len(all) != 1 {
			t.Fatalf("%s: %d answers", name, len(all))
		}
		expect(t, all[0], 401, "invalid_api_key", "")
	}
}

// The method is that of the request line, and what an answer holds depends on
// nothing but the request.
func TestHeadersChangeNeitherMethodNorTargetNorExtentOfAnAnswer(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	w.record(t, s, `{"id":"e","name":"n","visitor":{"id":"v"}}`)
	plain := s.send(t, "GET", "/api/v1/events", "", w.Key("all"))
	for _, header := range []string{
		"X-HTTP-Method-Override: POST", "X-HTTP-Method: DELETE", "X-Method-Override: PUT", "X-Original-URL: /metrics", "X-Rewrite-URL: /metrics",
		"X-Forwarded-Host: evil.example", "X-Forwarded-Prefix: /evil", "Forwarded: host=evil.example", "Range: bytes=0-1", "If-None-Match: *",
		"If-Match: nothing", "If-Modified-Since: Fri, 31 Dec 2049 23:59:59 GMT", "Accept: text/html", "Accept-Encoding: gzip", "TE: trailers",
	} {
		a := s.send(t, "GET", "/api/v1/events", "", w.Key("all"), header)
		if a.status != plain.status || string(a.body) != string(plain.body) {
			t.Errorf("with %s the answer is %d %s", header, a.status, a.body)
		}
	}
	for _, query := range []string{"?_method=POST", "?method=POST", "?access_token=" + w.APIKeys["all"].Token} {
		expect(t, s.send(t, "GET", "/api/v1/events"+query, "", "X-HTTP-Method-Override: POST"), 401, "invalid_api_key", "")
	}
	// A file asked for in a thousand overlapping parts is not sent a thousand times.
	whole := s.send(t, "GET", "/docs/docs.css", "")
	parts := s.send(t, "GET", "/docs/docs.css", "", "Range: bytes="+strings.Repeat("0-,", 999)+"0-")
	if len(parts.body) > 2*len(whole.body) {
		t.Errorf("%d bytes are sent of a file of %d", len(parts.body), len(whole.body))
	}
}

// Anybody can have a name of theirs lead to the server, and a page of theirs call
// it by that name.
func TestTheNameThatARequestIsSentToIsNotBelieved(t *testing.T) {
	t.Parallel()
	s, w := start(t, dbtest.URL(t), "INLET_PUBLIC_URL=https://inlet.acme.example:443"), seed(t, onPages)
	defer s.Stop()
	path, body := "/api/v1/forms/"+w.Forms["demo"].PublicKey, `{"fields":{"email":"a@newco.com"}}`
	submit := func(host, origin string) int {
		t.Helper()
		all, _ := s.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", path, host, origin, len(body), body))
		if len(all) != 1 {
			t.Fatalf("%d answers", len(all))
		}
		return all[0].status
	}
	address := strings.TrimPrefix(s.Base, "http://")
	_, port, _ := strings.Cut(address, ":")
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"evil.example", "http://evil.example", 403},
		{"evil.example:" + port, "http://evil.example:" + port, 403},
		{"localhost.evil.example", "http://localhost.evil.example", 403},
		{"127.0.0.1.evil.example", "http://127.0.0.1.evil.example", 403},
		{"inlet.acme.example", "https://evil.example", 403},
		{"inlet.acme.example", "http://inlet.acme.example", 403},
		{"inlet.acme.example", "https://inlet.acme.example", 201},
		{"internal:8080", "https://inlet.acme.example", 201}, // behind a proxy that changes the name
		{address, "http://" + address, 201},                  // no name, so nobody's
		{"localhost:" + port, "http://localhost:" + port, 201},
		{"[::1]:" + port, "http://[::1]:" + port, 201},
	} {
		if got := submit(c.host, c.origin); got != c.want {
			t.Errorf("sent to %s by a page of %s, it answers %d, want %d", c.host, c.origin, got, c.want)
		}
	}
	for _, page := range []string{"/docs", "/docs/reference", "/docs/search?q=lead", "/docs/openapi/v1.json", "/docs/llms.txt", path + "/page", path + "/embed.js", "/t/inlet.js", "/l/x", "/nowhere"} {
		all, _ := s.raw(t, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\nConnection: close\r\n\r\n", page))
		if len(all) != 1 || strings.Contains(string(all[0].body)+fmt.Sprint(all[0].header), "evil.example") {
			t.Errorf("%s takes over the name that it is asked by", page)
		}
	}
}
