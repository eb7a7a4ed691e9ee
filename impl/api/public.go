package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// isPublic tells the operations that browsers call, without a credential.
func isPublic(op *api.Operation) bool { return len(op.Scopes) == 0 }

// allowAnyPage lets a page of any origin read an answer. Who may cause one is
// checked against the sites of the workspace, by the operation.
func allowAnyPage(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}

// preflight answers a browser that asks whether a page may send a request.
func preflight(h http.Header, methods string) {
	allowAnyPage(h)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	h.Set("Access-Control-Max-Age", "86400")
}

// passPublic is pass for public operations: the address takes the place of the
// credential.
func (g *guard) passPublic(w http.ResponseWriter, r *http.Request, x *exchange) error {
	allowAnyPage(w.Header())
	x.of.network = clientNetwork(r, g.proxies)
	kind, allowed := "read", limit.EmbedReadsPerAddress
	switch {
	case x.op.ID == "identifyVisitor":
		kind, allowed = "identify", limit.IdentifiesPerAddress
	case x.op.MaxBody > 0:
		kind, allowed = "write", limit.EmbedWritesPerAddress
	}
	if err := g.takeAddress(kind, x.of.network, allowed); err != nil {
		return err
	}
	if g.places.public.Full(x.of) {
		return shed(codeOf(x.op, http.StatusServiceUnavailable))
	}
	x.origin = originOf(r, g.publicURL)
	if err := g.check(w, r, x); err != nil {
		return err
	}
	return g.places.enter(r, x, &g.places.public, x.of)
}

// TakeRead counts a request for a page of anybody's, of the address that it came
// from, and lets it work on the database.
func (e *Edge) TakeRead(r *http.Request) error {
	of := sender{network: clientNetwork(r, e.guard.proxies)}
	if err := e.guard.takeAddress("read", of.network, limit.EmbedReadsPerAddress); err != nil {
		return err
	}
	return e.guard.places.enter(r, exchangeOf(r.Context()), &e.guard.places.public, of)
}

// TakeKey counts a request of a form, by its public key.
func (e *Edge) TakeKey(key string) error { return e.guard.takeKey(key) }

// Refused notes why a request outside operations is refused, and gives what its
// client is told; how, its handler knows.
func (e *Edge) Refused(r *http.Request, err error) *fault.Fault {
	x := exchangeOf(r.Context())
	x.fault = faultOf(x.op, err)
	return x.fault
}

// takeAddress counts a request of an address, apart from those of other kinds.
func (g *guard) takeAddress(kind, network string, allowed int) error {
	if left, ok := g.addresses.Take(kind+" "+network, allowed, g.now()); !ok {
		return auth.TooMany(allowed, left)
	}
	return nil
}

// takeKey counts a request of a site or form, by its public key. The key has to
// be one that there is: what anybody can make up would fill the counters, and
// with them the memory.
func (g *guard) takeKey(key string) error {
	if left, ok := g.keys.Take(key, limit.EmbedRequestsPerKey, g.now()); !ok {
		return auth.TooMany(limit.EmbedRequestsPerKey, left)
	}
	return nil
}

// originOf gives the origin of the page that sent a request; empty where it is
// one of Inlet's own pages, or no page at all. The name that a request is sent to
// makes no page Inlet's own: anybody can have a name lead here. An address without
// a name cannot be made to lead elsewhere, and serves where no public one is set.
func originOf(r *http.Request, publicURL string) string {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return origin
	}
	_, notAnAddress := netip.ParseAddr(u.Hostname())
	if u.Host == r.Host && (notAnAddress == nil || u.Hostname() == "localhost") {
		return ""
	}
	if own, err := url.Parse(publicURL); err == nil && own.Host != "" && strings.EqualFold(origin, asOrigin(own)) {
		return ""
	}
	return origin
}

// asOrigin writes the origin of an address as browsers do: without the port that
// the scheme has anyway.
func asOrigin(u *url.URL) string {
	host := u.Host
	if u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}

// clientNetwork gives the address that a request came from, of IPv6 the first 64
// bits, which one client has to itself. Where proxies of ours stand before the
// server, it is the last address that none of them has.
func clientNetwork(r *http.Request, proxies []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	client, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isOneOf(client, proxies); i-- {
		written := strings.TrimSpace(hops[i])
		hop, err := netip.ParseAddr(written)
		if err != nil { // some proxies add the port
			withPort, err := netip.ParseAddrPort(written)
			if err != nil {
				break
			}
			hop = withPort.Addr()
		}
		client = hop
	}
	client = client.Unmap().WithZone("")
	if client.Is6() {
		if network, err := client.Prefix(64); err == nil {
			return network.String()
		}
	}
	return client.String()
}

// isOneOf tells addresses of these networks, in either form of IPv4 and with the
// zone of a link that no network has.
func isOneOf(a netip.Addr, networks []netip.Prefix) bool {
	a = a.Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
