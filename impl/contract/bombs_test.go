package contract

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
)

// busy gives the processor time that the server has used so far.
func (s server) busy(t testing.TB) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Pid))
	if err != nil {
		t.Skip("processor time is read from /proc")
	}
	// Behind the name, which may hold spaces: user and system time are the 12th and
	// 13th, in hundredths of a second.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// filled repeats text to so many bytes.
func filled(text string, bytes int) string { return strings.Repeat(text, bytes/len(text)) }

// bombs are bodies that a reader could spend far more on than on others of their
// size, made to fit into so many bytes.
func bombs(room int) map[string]string {
	numbered := func(format string, bytes int) string {
		var b strings.Builder
		for i := 0; b.Len() < bytes; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	room -= 200
	return map[string]string{
		"arrays in arrays":               filled("[", room),
		"arrays that end":                filled("[", room/2) + filled("]", room/2),
		"objects in objects":             filled(`{"a":`, room),
		"a field that nests":             `{"email":"a@b.com","name":"n","x":` + filled("[", room/2) + filled("]", room/2) + `}`,
		"thousands of fields":            `{"email":"a@b.com",` + numbered(`"k%d":1,`, room) + `}`,
		"thousands of fields at the end": `{` + numbered(`"k%d":1,`, room) + `,"id":"e","name":"n","visitor":{"id":"v"},"companyId":1}`,
		"a field thousands of times":     `{"email":"a@b.com"` + filled(`,"x":1`, room) + `}`,
		"thousands of properties":        `{"id":"e","name":"n","visitor":{"id":"v"},"properties":{` + numbered(`"p%d":1,`, room) + `}}`,
		"a number of many digits":        `{"companyId":` + filled("9", room) + `,"email":"a@b.com"}`,
		"a fraction of many digits":      `{"companyId":0.` + filled("1", room) + `,"email":"a@b.com"}`,
		"a huge exponent":                `{"companyId":1e1000000000,"email":"a@b.com","x":1e1000000000,"y":"` + filled("y", room) + `"}`,
		"exponents that nearly vanish":   `{"companyId":1,"contactIds":[` + filled("1e-399,", room) + `1],"email":"a@b.com"}`,
		"a tiny exponent":                `{"companyId":1e-1000000000,"email":"a@b.com","x":1e-999999999}`,
		"many huge exponents":            `{"contactIds":[` + filled("1e999999999,", room) + `1]}`,
		"exponents that just fit":        `{"companyId":1,"contactIds":[` + filled("1e308,", room) + `1],"email":"a@b.com"}`,
		"one id many times":              `{"companyId":1,"contactIds":[` + filled("1,", room) + `1]}`,
		"many ids":                       `{"companyId":1,"contactIds":[` + numbered("%d,", room) + `]}`,
		"text without an end":            `{"email":"` + filled("a", room),
		"escapes":                        `{"email":"` + filled(`\u0061`, room) + `"}`,
		"quotes":                         `{"name":"` + filled(`\"`, room) + `"}`,
		"space":                          filled(" ", room) + `{}`,
		"space inside":                   `{"email":"a@b.com"` + filled("\t", room) + `}`,
		"an address of many at signs":    `{"email":"` + filled("a@", room) + `b.com"}`,
		"an address of many dots":        `{"email":"a@` + filled("a.", 300) + `com","company_domain":"` + filled("a.", 500) + `com"}`,
		"an address of many comments":    `{"email":"` + filled("(", 300) + `a@b.com"}`,
		"a domain of many points":        `{"id":"e","name":"n","company":{"domain":"` + filled("xn--a.", 2000) + `com"}}`,
		"a domain in other letters":      `{"id":"e","name":"n","company":{"domain":"` + filled("ü.", 2000) + `com"}}`,
		"what is nearly a time":          `{"id":"e","name":"n","visitor":{"id":"v"},"occurred_at":"` + filled("2026-03-02T", 35) + `"}`,
		"what is nearly a name":          `{"id":"e","name":"` + filled("a", room) + `!","visitor":{"id":"v"}}`,
		"what is nearly a card number":   `{"id":"e","name":"n","visitor":{"id":"v"},"properties":{` + numbered(`"p%d":"`+filled("4111 1111 1111 111", 400)+`",`, min(room, 3800)) + `}}`,
		"what is nearly an address":      `{"id":"e","name":"n","visitor":{"id":"v"},"properties":{` + numbered(`"p%d":"`+filled("a@b@", 500)+`",`, min(room, 3800)) + `}}`,
		"a phone number without an end":  `{"email":"a@b.com","phone":"+` + filled("49 (0) ", 500) + `"}`,
		"a profile without an end":       `{"email":"a@b.com","linkedin_url":"https://www.linkedin.com/in/` + filled("%25", 1900) + `"}`,
		"marks upon marks":               `{"name":"a` + filled("\u0301", 1000) + `","company_name":"` + filled("\ufdfa", 1500) + `"}`,
		"a batch of nothing":             `{"events":[` + filled("{},", room) + `{}]}`,
		"a batch of nests":               `{"events":[` + filled("["+filled("[", 60)+filled("]", 60)+"],", room) + `1]}`,
		"a token of many parts":          `{"site":"SITE","visitor_id":"v","token":"` + filled("e30.", 4000) + `"}`,
		"a token of a huge number":       `{"site":"SITE","visitor_id":"v","token":"` + jwt("HS256", "s", map[string]any{"exp": 1e300, "iat": -1e300, "email": filled("a@", 1000)}) + `"}`,
		"fields of a form":               `{"fields":{` + numbered(`"f%d":"x",`, room) + `}}`,
		"two bytes a character":          "\xff\xfe" + filled("{\x00", room),
		"no text":                        filled("\x80", room),
	}
}

// Ten times a plain body's cost, and half a second over all: what is wrong here costs
// hundreds of times as much.
const (
	bombsSent = 5
	dearer    = 10
	allowance = 500 * time.Millisecond
)

func TestNoBodyCostsFarMoreThanAnotherOfItsSize(t *testing.T) {
	s := startReleased(t, dbtest.URL(t))
	defer s.Stop()
	k := sweepOf(t, s, dbtest.URL(t), "t"+strings.ToLower(noise(12)), "zentrix", "odette")
	plain := map[string]time.Duration{}
	cost := func(op *api.Operation, body string) (time.Duration, answer) {
		before := s.busy(t)
		var last answer
		for range bombsSent {
			a := k.plain(op)
			path := op.Path
			for name, value := range a.inPath {
				path = strings.ReplaceAll(path, "{"+name+"}", value)
			}
			last = s.send(t, op.Method, path, body, "Authorization: Bearer "+k.credential, "Idempotency-Key: "+k.unique())
		}
		return s.busy(t) - before, last
	}
	for i := range api.Operations {
		op := &api.Operations[i]
		if op.MaxBody == 0 {
			continue
		}
		room := int(op.MaxBody)
		// A body of the same size that is read to its end.
		usual := written(k.plain(op).body)
		plain[op.ID], _ = cost(op, usual[:len(usual)-2]+strings.Repeat(" ", room-len(usual))+"}\n")
		for name, body := range bombs(room) {
			body = strings.Replace(body, "SITE", k.workspace.Sites["www"].SiteKey, 1)
			took, last := cost(op, body)
			if code, _ := last.refusal(); last.status >= 500 || last.status == 413 && code != "batch_too_large" {
				t.Errorf("%s answers %s with %d %.200s", op.ID, name, last.status, last.body)
			}
			if took > dearer*plain[op.ID]+allowance {
				t.Errorf("%s with %s takes %v of a processor for %d requests, a plain body %v", op.ID, name, took, bombsSent, plain[op.ID])
			}
		}
	}
	t.Logf("%d plain bodies of the largest size take %v of a processor", bombsSent, plain)
	if a := s.send(t, "GET", "/readyz", ""); a.status != 200 || strings.Contains(s.Log(), `"msg":"panic"`) {
		t.Errorf("after all of them: %d\n%s", a.status, errorsOf(s.Log()))
	}
}

func TestNoHeadOfARequestCostsFarMoreThanAnother(t *testing.T) {
	s, w := startReleased(t, dbtest.URL(t)), seed(t, onPages)
	defer s.Stop()
	const room = 30 << 10 // of the 32 KiB that a head may have
	cost := func(request string) (time.Duration, answer) {
		before := s.busy(t)
		var last answer
		for range 20 {
			all, _ := s.raw(t, request)
			if len(all) != 1 {
				t.Fatalf("%.100s gets %d answers", request, len(all))
			}
			last = all[0]
		}
		return s.busy(t) - before, last
	}
	get := func(path string, headers ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + strings.Join(append(headers, w.Key("all")), "\r\n") + "\r\n\r\n"
	}
	var many strings.Builder
	for i := 0; many.Len() < room; i++ {
		fmt.Fprintf(&many, "&p%d=%d", i, i)
	}
	plain, _ := cost(get("/docs/search?q=event", "X: "+filled("x", room)))
	for name, request := range map[string]string{
		"many parameters":                get("/api/v1/events?limit=1" + many.String()),
		"a parameter many times":         get("/api/v1/events?" + filled("limit=1&", room)),
		"broken parameters":              get("/api/v1/events?" + filled("%zz=%zz&;", room)),
		"a long cursor":                  get("/api/v1/events?cursor=" + filled("A", room)),
		"a search for many words":        get("/docs/search?q=" + filled("e+", room)),
		"a search for one word again":    get("/docs/search?q=" + filled("event+", room)),
		"a long path":                    get("/" + filled("a/", room)),
		"a path of escapes":              get("/api/v1/forms/" + filled("%61", room)),
		"a long key of a form":           get("/api/v1/forms/" + filled("a", room) + "/page"),
		"a long time zone":               get("/api/v1/meeting-forms/" + w.MeetingForms["call"].PublicKey + "/slots?time_zone=" + filled("A/", room)),
		"the longest list of slots":      get("/api/v1/meeting-forms/" + w.MeetingForms["call"].PublicKey + "/slots?from=2026-01-01&to=9999-12-31"),
		"many hops":                      get("/api/v1/forms/x", "X-Forwarded-For: "+filled("10.0.0.1,", room)),
		"hops that are none":             get("/api/v1/forms/x", "X-Forwarded-For: "+filled(",", room)),
		"many headers":                   get("/livez", filled("a: b\r\n", room)+"c: d"),
		"a long credential":              get("/livez", "X-Authorization: Bearer "+filled("a ", room)),
		"many languages":                 get("/docs", "Accept-Language: "+filled("en;q=0.1,", room), "Accept-Encoding: "+filled("a,", 100)),
		"many ranges":                    get("/docs/docs.css", "Range: bytes="+filled("0-,", room)+"0-"),
		"many tags":                      get("/docs/docs.css", "If-None-Match: "+filled(`"a",`, room)),
		"the largest file, uncompressed": get("/docs/scalar.js", "If-None-Match: *"),
		"a media type without an end":    "POST /api/v1/forms/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json" + filled(`; a="\\"`, room) + "\r\nContent-Length: 0\r\n\r\n",
		"a head that is too large":       get("/livez", filled("a: b\r\n", 64<<10)+"c: d"),
	} {
		took, last := cost(request)
		if last.status >= 500 {
			t.Errorf("%s is answered with %d %.200s", name, last.status, last.body)
		}
		if took > dearer*plain+allowance {
			t.Errorf("%s takes %v of a processor for 20 requests, a plain one %v", name, took, plain)
		}
	}
	t.Logf("20 plain heads take %v of a processor", plain)
}
