package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAPanicGivesBackWhatTheRequestHadTaken(t *testing.T) {
	of := sender{workspace: 1}
	for name, broken := range map[string]func(http.ResponseWriter){
		"before its answer": func(http.ResponseWriter) { panic("broken") },
		"in its answer":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK); panic("broken") },
		"given up":          func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			g := &guard{places: newPlaces()}
			mux := http.NewServeMux()
			mux.HandleFunc("GET /broken", func(w http.ResponseWriter, r *http.Request) {
				x := exchangeOf(r.Context())
				if !g.bodies.take(of, 100) || !g.places.callers.Enter(r.Context(), of) {
					t.Error("there is no room")
				}
				x.of, x.bodyTaken, x.place = of, 100, place{&g.places.callers, of, time.Now()}
				broken(w)
			})
			edge := &Edge{mux: mux, guard: g, log: slog.New(slog.DiscardHandler), metrics: newMetrics(prometheus.NewRegistry(), &g.bodies)}
			for range 2 * callerPlaces {
				func() {
					defer func() { recover() }() //nolint:errcheck // as net/http does
					edge.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/broken", http.NoBody))
				}()
			}
			if g.bodies.taken != 0 {
				t.Errorf("%d bytes are taken yet", g.bodies.taken)
			}
		})
	}
}
