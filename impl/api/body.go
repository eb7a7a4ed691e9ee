package api

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
)

// bodyBytes bounds the bodies of all requests in flight together; beyond it
// requests are turned away for a moment.
const (
	bodyBytes = 64 << 20
	bodyWait  = time.Second
)

// bodies counts the bytes that bodies of requests in flight may take.
type bodies struct{ taken atomic.Int64 }

// read reads a body whole, so that its cap comes before its media type and its
// content. What it takes is to be released when the request has been answered.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, op *api.Operation) (body []byte, taken int64, err error) {
	taken = op.MaxBody
	if r.ContentLength >= 0 {
		taken = r.ContentLength
	}
	if taken > op.MaxBody {
		return nil, 0, tooLarge(op)
	}
	if b.taken.Add(taken) > bodyBytes {
		b.release(taken)
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

func (b *bodies) release(taken int64) { b.taken.Add(-taken) }

func tooLarge(op *api.Operation) *fault.Fault {
	return codeOf(op, http.StatusRequestEntityTooLarge).Says("want a body of at most %d bytes", op.MaxBody)
}
