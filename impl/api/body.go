package api

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// What the bodies of all requests in flight may take together; beyond it requests
// are turned away for a moment. No sender gets more than its part: bodies that
// never arrive must not shut out the others. Whoever needs no credential cannot
// take from those who have one. A body takes its part as it arrives, not as it is
// announced: to hold on to much, one has to send much.
const (
	bodyBytes          = 64 << 20
	workspaceBodyBytes = 16 << 20
	publicBodyBytes    = 16 << 20
	networkBodyBytes   = 1 << 20
	firstBodyBytes     = 4 << 10 // room that a body gets before it is there; then four times as much each time
	bodyWait           = time.Second
)

// A sender is whose bodies are counted together: a workspace, or the network that
// a public request came from.
type sender struct {
	workspace int64
	network   string
}

// bodies counts the bytes that bodies of requests in flight may take.
type bodies struct {
	mu       sync.Mutex
	taken    int64 // with a credential
	public   int64 // without
	bySender map[sender]int64
}

func (b *bodies) take(of sender, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, most, part := b.total(of)
	if *all+bytes > most || b.bySender[of]+bytes > part {
		return false
	}
	if b.bySender == nil {
		b.bySender = make(map[sender]int64)
	}
	*all += bytes
	b.bySender[of] += bytes
	return true
}

func (b *bodies) total(of sender) (all *int64, most, part int64) {
	if of.network != "" {
		return &b.public, publicBodyBytes, networkBodyBytes
	}
	return &b.taken, bodyBytes, workspaceBodyBytes
}

func (b *bodies) release(of sender, bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all, _, _ := b.total(of)
	*all -= bytes
	if b.bySender[of] -= bytes; b.bySender[of] == 0 {
		delete(b.bySender, of)
	}
}

// read reads a body whole, so that its cap comes before its media type and its
// content. What it takes is to be released when the request has been answered.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, op *api.Operation, of sender) (body []byte, taken int64, err error) {
	announced := r.ContentLength
	if announced > op.MaxBody {
		return nil, 0, tooLarge(op)
	}
	if announced < 0 {
		announced = op.MaxBody + 1 // one byte more tells that it is too large
	}
	var rest patient
	for int64(len(body)) < announced {
		room := min(announced, max(firstBodyBytes, 4*int64(len(body))))
		if !b.take(of, room-taken) {
			return nil, taken, codeOf(op, http.StatusServiceUnavailable).In(bodyWait)
		}
		taken = room
		before := len(body)
		body = append(make([]byte, 0, room), body...)
		var n int
		if before == 0 { // it comes with the headers, as a rule, and within their time
			n, err = io.ReadFull(r.Body, body[:room])
			rest = patient{w: w, since: time.Now(), got: n}
		} else {
			n, err = rest.readFull(r.Body, body[before:room])
		}
		if body = body[:before+n]; err != nil {
			break
		}
	}
	switch {
	case r.ContentLength < 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
	case r.ContentLength < 0 && err == nil:
		return nil, taken, tooLarge(op)
	case err != nil:
		// The client stopped sending: whatever is answered, it hardly hears it.
		return nil, taken, codeOf(op, http.StatusBadRequest).Says("the body ended before its announced length")
	}
	return body, taken, nil
}

// patient waits for what comes after the first part of a body: as long as it comes
// at a rate that is worth waiting for.
type patient struct {
	w     http.ResponseWriter
	since time.Time
	got   int
}

func (p *patient) readFull(from io.Reader, room []byte) (n int, err error) {
	for n < len(room) && err == nil {
		worth := limit.RequestHeaders + time.Duration(p.got)*time.Second/limit.BodyBytesPerSecond
		// Without a connection, as in tests, there is nothing to wait for.
		_ = http.NewResponseController(p.w).SetReadDeadline(p.since.Add(min(worth, limit.RequestBody)))
		var more int
		more, err = from.Read(room[n:])
		n += more
		p.got += more
	}
	if n == len(room) {
		return n, nil
	}
	return n, err
}

func tooLarge(op *api.Operation) *fault.Fault {
	return codeOf(op, http.StatusRequestEntityTooLarge).Says("want a body of at most %d bytes", op.MaxBody)
}
