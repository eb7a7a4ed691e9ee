package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inletdev/inlet/impl/servertest"
)

const (
	patience    = 8 * time.Second        // of a client with one request
	longestWait = 250 * time.Millisecond // what a client waits however long Retry-After asks for: the tests have less time than people
	givesUp     = 0.05                   // how likely a client that has failed is to be gone for ever
)

// A client sends one request after the other, and the same one again until it is
// answered for good, as those of people do.
type client struct {
	rig    *rig
	book   *book
	do     func(*client, context.Context)
	others []*client // that act when it does
	name   string    // of the client, and of the events that it alone sends
	rand   *rand.Rand
	sent   int    // things that it wanted done
	last   string // id of an event that was recorded, to be sent again
	known  int    // of its events, those that are recorded
	maybe  int    // and those that may be
	server int    // which server the next request goes to
}

// A book is a workspace with its ledger.
type book struct {
	servertest.Workspace
	*ledger
	perMinute int // events that the workspace may send
}

// An answer to a request; status zero is none.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) final() bool { return a.status != 0 && a.status != 429 && a.status < 500 }

func (a answer) text(field string) string {
	var body map[string]any
	json.Unmarshal(a.body, &body)
	if n, ok := body[field].(float64); ok {
		return strconv.FormatInt(int64(n), 10)
	}
	s, _ := body[field].(string)
	return s
}

// ask sends one request and notes it.
func (c *client) ask(kind, method, path, body, key string, items ...*item) answer {
	r := request{kind: kind, repeated: c.book.asks(items...), start: time.Now()}
	a := c.rig.send(c.server, method, path, body, c.book.APIKeys["all"].Token, key)
	c.server++
	r.end, r.status = time.Now(), a.status
	c.book.answered(r, items...)
	switch {
	case a.status == 503 || a.status == 429:
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 {
			c.book.lie("%s answers %d with Retry-After %q", kind, a.status, a.header.Get("Retry-After"))
		}
	case a.status >= 500:
		c.book.lie("%s answers %d: %s (request %s)", kind, a.status, a.body, a.header.Get("X-Request-Id"))
	}
	return a
}

// until asks until the answer is final. A client may be gone before.
func (c *client) until(ctx context.Context, kind, path, body, key string, items ...*item) (answer, bool) {
	for {
		a := c.ask(kind, http.MethodPost, path, body, key, items...)
		if a.final() {
			return a, true
		}
		if ctx.Err() != nil || a.status != 429 && c.rand.Float64() < givesUp {
			return a, false
		}
		wait := longestWait / 2
		if after, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
			wait = min(time.Duration(after)*time.Second, longestWait)
		}
		time.Sleep(wait/2 + rand.N(wait))
	}
}

// run lets the client act again and again, with a little time in between.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.act(ctx)
		time.Sleep(10*time.Millisecond + time.Duration(c.rand.Int64N(int64(30*time.Millisecond))))
	}
}

func (c *client) act(ctx context.Context) {
	c.sent++
	c.do(c, ctx)
}

// sendTogether has others send at the same moment. Whoever waits for it learns of
// the moment in which most of them are answered.
func (c *client) sendTogether(ctx context.Context) {
	var sending sync.WaitGroup
	var answered atomic.Int32
	for _, o := range c.others {
		sending.Go(func() {
			o.act(ctx)
			if int(answered.Add(1)) == len(c.others)/2 {
				select {
				case c.rig.together <- struct{}{}:
				default:
				}
			}
		})
	}
	sending.Wait()
	time.Sleep(200 * time.Millisecond)
}

func (c *client) id() string { return fmt.Sprintf("%s-%d", c.name, c.sent) }

// event writes an event, and notes it; bad ones carry what is to be refused.
func (c *client) event(id string, bad bool) (*item, string) {
	about := fmt.Sprintf(`"company":{"id":%d}`, c.company())
	switch c.rand.IntN(6) {
	case 0:
		about = `"visitor":{"id":"v-nobody"}`
	case 1:
		about = `"company":{"domain":"nobody.com"}`
	}
	if c.rand.IntN(2) == 0 {
		// Now, by the one clock that clients share; a server must not judge it by a
		// clock of its own.
		about += `,"occurred_at":"` + time.Now().UTC().Format(time.RFC3339) + `"`
	}
	properties := fmt.Sprintf(`{"n":%d}`, c.sent)
	if bad {
		properties = `{"email":"x"}`
	}
	return c.book.add(&item{kind: events, id: id, bad: bad, name: c.name}),
		fmt.Sprintf(`{"id":%q,"name":%q,%s,"properties":%s}`, id, c.name, about, properties)
}

func (c *client) company() int64 {
	return c.book.Companies[fmt.Sprint("c", c.rand.IntN(companies))]
}

// told notes what an answer says of one event.
func (c *client) told(i *item, status, eventID, answer string) {
	switch status {
	case "accepted", "unmatched", "pending_identity":
		c.book.tells(i, true, eventID, status)
		c.known++
	case "duplicate":
		fresh := !i.done
		c.book.tells(i, false, eventID, "")
		if fresh {
			c.known++
		}
	default:
		c.book.refuses(i, answer)
	}
}

// sendEvents sends events one by one. Some were sent before, some are bad, and
// some are looked for at once, on another server.
func (c *client) sendEvents(ctx context.Context) {
	if c.last != "" && c.rand.IntN(10) == 0 {
		i := c.book.find(events, c.last)
		body := fmt.Sprintf(`{"id":%q,"name":%q,"visitor":{"id":"v-nobody"}}`, c.last, c.name)
		if a, ok := c.until(ctx, events, "/api/v1/events", body, "", i); ok {
			c.told(i, a.text("status"), a.text("event_id"), string(a.body))
		}
		return
	}
	i, body := c.event(c.id(), c.rand.IntN(10) == 0)
	a, ok := c.until(ctx, events, "/api/v1/events", body, "", i)
	if !ok {
		if i.unsure > 0 {
			c.maybe++
		}
		return
	}
	c.told(i, a.text("status"), a.text("event_id"), string(a.body))
	if !i.done {
		return
	}
	c.last = i.id
	if c.rand.IntN(3) == 0 {
		c.find(i)
	}
}

// find lists the client's own events, which nobody else sends: what was recorded
// is there, and nothing else.
func (c *client) find(i *item) {
	a := c.ask(lists, http.MethodGet, "/api/v1/events?limit=100&name="+c.name, "", "")
	var page struct {
		Rows []struct {
			ID      string
			EventID string `json:"event_id"`
		}
		Total int
	}
	if a.status != 200 || json.Unmarshal(a.body, &page) != nil {
		if a.final() {
			c.book.lie("the list answers %d %s", a.status, a.body)
		}
		return
	}
	found := 0
	for _, row := range page.Rows {
		if row.ID == i.id && row.EventID == i.as {
			found++
		}
	}
	if found != 1 {
		c.book.lie("%s was answered as %s, and is listed %d times right afterwards", i.id, i.as, found)
	}
	if page.Total < c.known || page.Total > c.known+c.maybe {
		c.book.lie("the total of %s is %d, when %d were recorded and %d more may have been", c.name, page.Total, c.known, c.maybe)
	}
}

// sendBatches sends events together, one of them bad and one twice.
func (c *client) sendBatches(ctx context.Context) {
	var items []*item
	var bodies []string
	n := 3 + c.rand.IntN(10)
	for k := range n {
		i, body := c.event(fmt.Sprintf("%s-%d", c.id(), k), k == n-2)
		items, bodies = append(items, i), append(bodies, body)
	}
	items, bodies = append(items, items[0]), append(bodies, bodies[0])
	a, ok := c.until(ctx, batches, "/api/v1/events/batch", `{"events":[`+strings.Join(bodies, ",")+`]}`, "", items[:n]...)
	if !ok {
		return
	}
	var said struct {
		Results []struct {
			ID, Status string
			EventID    string `json:"event_id"`
		}
	}
	if json.Unmarshal(a.body, &said) != nil || a.status != 202 || len(said.Results) != n+1 {
		c.book.lie("a batch of %d answers %d %s", n+1, a.status, a.body)
		return
	}
	for k, result := range said.Results {
		if result.ID != items[k].id {
			c.book.lie("result %d is of %s, want %s", k, result.ID, items[k].id)
		}
		if k == n && result.Status != "duplicate" {
			c.book.lie("the second %s of a batch is %s", result.ID, result.Status)
		}
		c.told(items[k], result.Status, result.EventID, string(a.body))
	}
}

// sendLeads sends leads, each of a person of its own, at a company of its own.
func (c *client) sendLeads(ctx context.Context) {
	i := c.book.add(&item{kind: leads, id: c.id(), bad: c.rand.IntN(10) == 0})
	body := fmt.Sprintf(`{"email":"lead@%s.com","first_name":"L"}`, i.id)
	if i.bad {
		body = `{"first_name":"L"}`
	}
	for range 1 + c.rand.IntN(2) { // some send it once more, to be sure
		a, ok := c.until(ctx, leads, "/api/v1/leads", body, i.id, i)
		switch {
		case !ok:
			return
		case a.status == 201 || a.status == 409:
			c.book.tells(i, a.status == 201, a.text("lead_id"), "")
		default:
			c.book.refuses(i, string(a.body))
		}
	}
}

// startMotions starts the motion whose steps can be counted, and asks some times
// what was decided.
func (c *client) startMotions(ctx context.Context) {
	i := c.book.add(&item{kind: motions, id: c.id(), bad: c.rand.IntN(10) == 0, company: c.company()})
	if i.bad {
		i.company = 1 << 50
	}
	path := fmt.Sprintf("/api/v1/motions/%d/start", c.book.Motions["steps"])
	for range 1 + c.rand.IntN(3) {
		a, ok := c.until(ctx, motions, path, fmt.Sprintf(`{"companyId":%d}`, i.company), i.id, i)
		switch {
		case !ok:
			return
		case a.status == 202 || a.status == 200:
			c.decided(i, a)
		default:
			c.book.refuses(i, string(a.body))
		}
	}
}

// decided notes what a start was told. A decision never changes.
func (c *client) decided(i *item, a answer) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	decision := ""
	if a.status == 200 {
		decision = strings.TrimSpace(string(a.body))
	}
	switch {
	case i.bad || i.refused:
		c.book.lies = append(c.book.lies, fmt.Sprintf("the start %s was to be refused: %s", i.id, a.body))
	case i.as != "" && decision != i.as:
		c.book.lies = append(c.book.lies, fmt.Sprintf("the start %s was decided as %s, and then as %d %s", i.id, i.as, a.status, a.body))
	}
	i.done, i.as = true, decision
}

// fillForms fills in a form, once: it has no id, so a browser must not repeat it.
func (c *client) fillForms(context.Context) {
	i := c.book.add(&item{kind: forms, id: fmt.Sprintf("f@%s.com", c.id())})
	a := c.ask(forms, http.MethodPost, "/api/v1/forms/"+c.book.Forms["demo"].PublicKey, fmt.Sprintf(`{"fields":{"email":%q}}`, i.id), "", i)
	switch {
	case a.status == 201:
		c.book.tells(i, true, i.id, "")
	case a.final():
		c.book.refuses(i, string(a.body))
	}
}

// send sends a request to one of the servers, or, while there is a balancer, to
// that.
func (r *rig) send(server int, method, path, body, token, key string) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	base := "http://" + r.doors[server%len(r.doors)].address()
	if b := r.balancer.Load(); b != nil {
		base = *b
	}
	q, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	q.GetBody = nil // else a request with a key is sent again by itself, and nobody would count it
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256)))
	q.Header.Set("Authorization", "Bearer "+token)
	if key != "" {
		q.Header.Set("Idempotency-Key", key)
	}
	response, err := r.http.Do(q)
	if err != nil {
		return a
	}
	defer response.Body.Close()
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return answer{} // half an answer is none
	}
	a.status, a.header = response.StatusCode, response.Header
	return a
}
