package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/fault"
)

func TestARequestWithoutACredentialWaitsForNobody(t *testing.T) {
	g := &guard{admitter: auth.NewAdmitter(nil), places: newPlaces()}
	for range strangerPlaces {
		g.places.strangers.Enter(t.Context(), sender{network: "192.0.2.1"})
	}
	for _, header := range [][]string{nil, {"Bearer amp_mistyped"}, {"Basic Zm9v"}} {
		var f *fault.Fault
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		x := &exchange{authorization: header, recorder: recorder{ResponseWriter: httptest.NewRecorder()}}
		if err := g.admitStranger(r, x); !errors.As(err, &f) || f.Code != fault.InvalidAPIKey {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestABodyIsReadHoweverLongItsSenderWasWaitedFor(t *testing.T) {
	sent := bytes.Repeat([]byte("a"), 256<<10)
	got := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{recorder: recorder{ResponseWriter: w}}
		time.Sleep(time.Second) // it is asked who this is
		x.awaited()
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) != len(sent) {
			err = io.ErrUnexpectedEOF
		}
		got <- err
	}))
	server.Config.ReadTimeout = 200 * time.Millisecond
	server.Start()
	defer server.Close()
	if response, err := http.Post(server.URL, "application/json", bytes.NewReader(sent)); err == nil {
		response.Body.Close()
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}
