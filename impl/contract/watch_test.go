package contract

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// A watched transport holds every answer that any test sees against the document,
// however the test sends its request.
type watched struct{ http.RoundTripper }

// A test in the context of a request is told of a deviation. What has none is
// told by everyAnswerConforms.
type testKey struct{}

var deviations struct {
	sync.Mutex
	list []string
}

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	q := asked{method: r.Method, url: r.URL, header: r.Header}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if q.body, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	response, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil { // it broke off, which is for the test to judge
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), broken{err}))
		return response, nil
	}
	response.Body = io.NopCloser(bytes.NewReader(raw))
	if err := conforms(q, answer{response.StatusCode, response.Header, raw}); err != nil {
		deviation := fmt.Sprintf("%s %s answers against the document: %v\n%d %v\n%s", r.Method, r.URL, err, response.StatusCode, response.Header, raw)
		if t, ok := r.Context().Value(testKey{}).(testing.TB); ok {
			t.Error(deviation)
			return response, nil
		}
		deviations.Lock()
		defer deviations.Unlock()
		deviations.list = append(deviations.list, deviation)
	}
	return response, nil
}

type broken struct{ error }

func (b broken) Read([]byte) (int, error) { return 0, b.error }

func withTest(t testing.TB) context.Context { return context.WithValue(t.Context(), testKey{}, t) }
