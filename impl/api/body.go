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

// bodyBytes bounds the bodies of all requests in flight together; beyond it
// requests are turned away for a moment. Those of one workspace get no more than
// their part: bodies that never arrive must not shut out the others.
const (
	bodyBytes          = 64 << 20
	workspaceBodyBytes = 16 << 20
	bodyWait           = time.Second
)

// bodies counts the bytes that bodies of requests in flight may take.
type bodies struct {
	mu          sync.Mutex
	taken       int64
	byWorkspace map[int64]int64
}

func (b *bodies) take(workspace, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken+bytes > bodyBytes || b.byWorkspace[workspace]+bytes > workspaceBodyBytes {
		return false
	}
	if b.byWorkspace == nil {
		b.byWorkspace = make(map[int64]int64)
	}
	b.taken += bytes
	b.byWorkspace[workspace] += bytes
	return true
}

func (b *bodies) release(workspace, bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= bytes
	if b.byWorkspace[workspace] -= bytes; b.byWorkspace[workspace] == 0 {
		delete(b.byWorkspace, workspace)
	}
}

// read reads a body whole, so that its cap comes before its media type and its
// content. What it takes is to be released when the request has been answered.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, op *api.Operation, workspace int64) (body []byte, taken int64, err error) {
	taken = op.MaxBody
	if r.ContentLength >= 0 {
		taken = r.ContentLength
	}
	if taken > op.MaxBody {
		return nil, 0, tooLarge(op)
	}
	if !b.take(workspace, taken) {
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
