package api

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
)

// What the bodies of all requests in flight may take together; beyond it requests
// are turned away for a moment. No sender gets more than its part: bodies that
// never arrive must not shut out the others. Whoever needs no credential cannot
// take from those who have one.
const (
	bodyBytes          = 64 << 20
	workspaceBodyBytes = 16 << 20
	publicBodyBytes    = 16 << 20
	networkBodyBytes   = 1 << 20
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
	taken = op.MaxBody
	if r.ContentLength >= 0 {
		taken = r.ContentLength
	}
	if taken > op.MaxBody {
		return nil, 0, tooLarge(op)
	}
	if !b.take(of, taken) {
		return nil, 0, codeOf(op, http.StatusServiceUnavailable).In(bodyWait)
	}
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, op.MaxBody))
	}
	if more := (*http.MaxBytesError)(nil); errors.As(err, &more) {
		return nil, taken, tooLarge(op)
	}
	if err != nil {
		// The client stopped sending: whatever is answered, it hardly hears it.
		return nil, taken, codeOf(op, http.StatusBadRequest).Says("the body ended before its announced length")
	}
	return body, taken, nil
}

func tooLarge(op *api.Operation) *fault.Fault {
	return codeOf(op, http.StatusRequestEntityTooLarge).Says("want a body of at most %d bytes", op.MaxBody)
}
