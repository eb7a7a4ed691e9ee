package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A panic is a fault of the server: whoever runs it is told where, and the client
// nothing.
func TestAPanicTellsTheClientNothing(t *testing.T) {
	var log strings.Builder
	mux := http.NewServeMux()
	mux.HandleFunc("GET /broken", func(http.ResponseWriter, *http.Request) { panic("secret\n{\"msg\":\"forged\"}") })
	edge := &Edge{mux: mux, guard: &guard{}, log: slog.New(slog.NewJSONHandler(&log, nil)), metrics: newMetrics(prometheus.NewRegistry(), new(bodies))}
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/broken?email=hank@globex.com", http.NoBody)
	r.Header.Set("Authorization", "Bearer amp_credential")
	edge.ServeHTTP(answer, r)
	if answer.Code != 500 || strings.Contains(answer.Body.String(), "secret") || strings.Contains(answer.Body.String(), "goroutine") || !strings.Contains(answer.Body.String(), "internal_error") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	lines := 0
	for line := range strings.Lines(log.String()) {
		lines++
		var entry struct{ Msg, RequestID string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg != "panic" && entry.Msg != "request" {
			t.Errorf("the log has the line %q", line)
		}
	}
	for _, sent := range []string{"hank@globex.com", "amp_credential"} {
		if strings.Contains(log.String(), sent) {
			t.Errorf("the log holds %s", sent)
		}
	}
	if lines != 2 || !strings.Contains(log.String(), "panic_test.go") {
		t.Errorf("the log does not tell where:\n%s", log.String())
	}
}
