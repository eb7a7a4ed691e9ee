package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var network = regexp.MustCompile(`^([0-9.]+|[0-9a-f:]+/64)$`)

// FuzzClientNetwork writes anything into X-Forwarded-For: where no proxy of ours
// passed the request on it says nothing, where one did it cannot take the place of
// the address that the proxy saw, and what is counted is always an address or the
// first half of one.
func FuzzClientNetwork(f *testing.F) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}
	f.Fuzz(func(t *testing.T, remote, first, second string) {
		of := func(remote string, forwarded ...string) string {
			return clientNetwork(&http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": forwarded}}, proxies)
		}
		for proxy, client := range map[string][2]string{
			"10.1.2.3:4567":               {"203.0.113.9", "203.0.113.9"},
			"[2001:db8:ffff::1]:4567":     {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
			"[::ffff:10.1.2.3]:80":        {"203.0.113.9:1234", "203.0.113.9"},
			"10.1.2.3":                    {"[2001:db8:1:2:3::9]:1234", "2001:db8:1:2::/64"},
			"[2001:db8:ffff::1%eth0]:443": {"::ffff:203.0.113.9", "203.0.113.9"},
		} {
			for _, headers := range [][]string{{first, client[0]}, {first + "," + second + ", " + client[0]}, {first, second + "," + client[0] + " , 10.9.9.9"}} {
				if got, want := of(proxy, headers...), client[1]; got != want {
					t.Errorf("%s, forwarding for %q, is counted as %s, want %s", proxy, headers, got, want)
				}
			}
		}
		for _, client := range []string{"203.0.113.9:1", "[::ffff:203.0.113.9]:1"} {
			if got := of(client, first, second); got != "203.0.113.9" {
				t.Errorf("%s, which forwards for %q and %q, is counted as %s", client, first, second, got)
			}
		}
		got := of(remote, first, second)
		host, _, err := net.SplitHostPort(remote)
		if err != nil {
			host = remote
		}
		if _, err := netip.ParseAddr(host); err != nil {
			if got != host { // no connection has such an address
				t.Errorf("%q is counted as %q", remote, got)
			}
		} else if !network.MatchString(got) {
			t.Errorf("%q, forwarding for %q and %q, is counted as %q", remote, first, second, got)
		}
		if got := of("10.1.2.3:4567", first, second); !network.MatchString(got) {
			t.Errorf("a proxy that forwards for %q and %q is counted as %q", first, second, got)
		}
	})
}

// FuzzHeaders sends any origin, request id, media type and encoding: a page of
// another origin is never taken for one of ours, what is echoed is visible ASCII,
// and no body passes for JSON that does not say so.
func FuzzHeaders(f *testing.F) {
	const own = "https://inlet.example.com"
	op := withBody[0]
	f.Fuzz(func(t *testing.T, origin, host, id, kind, encoding string) {
		r := &http.Request{Host: host, Header: http.Header{"Origin": {origin}, "X-Request-Id": {id}, "Content-Type": {kind}, "Content-Encoding": {encoding}}}
		switch got := originOf(r, own); got {
		case origin:
		case "":
			u, err := url.Parse(origin)
			if !strings.EqualFold(origin, own) && (err != nil || host == "" || u.Host != host) {
				t.Errorf("the origin %q is taken for ours at the host %q", origin, host)
			}
		default:
			t.Errorf("the origin %q is taken for %q", origin, got)
		}
		echoed := requestID(r)
		if visible.MatchString(id) != (echoed == id) || !visible.MatchString(echoed) {
			t.Errorf("the request id %q is echoed as %q", id, echoed)
		}
		if err := mediaType(r.Header, op); err == nil {
			essence, _, _ := strings.Cut(strings.ToLower(kind), ";")
			essence = strings.Trim(essence, " \t\r\n\v\f\u0085\u00a0")
			if !isJSON.MatchString(essence) || encoding != "" && !strings.EqualFold(encoding, "identity") {
				t.Errorf("a body of %q, encoded as %q, passes for JSON", kind, encoding)
			}
		} else if (strings.EqualFold(kind, "application/json") || kind == "application/json; charset=utf-8") && encoding == "" {
			t.Errorf("a body of %q is refused: %v", kind, err)
		}
	})
}

var (
	visible = regexp.MustCompile(`^[!-~]{1,128}\z`)
	isJSON  = regexp.MustCompile(`^application/([!-~]*\+)?json\z`)
)
