package contract

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/inletdev/inlet/db/dbtest"
)

// A collector takes what servers send by OTLP over HTTP.
type collector struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics map[string]bool
	raw     bytes.Buffer // all that was exported, as it came
}

func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t, metrics: map[string]bool{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// env is that of a server which exports to the collector soon.
func (c *collector) env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_METRIC_EXPORT_INTERVAL=500"}
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		in, _ = gzip.NewReader(r.Body)
	}
	body, err := io.ReadAll(in)
	if err != nil {
		c.t.Errorf("an export breaks off: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	switch r.URL.Path {
	case "/v1/traces":
		var sent tracespb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			c.t.Errorf("traces: %v", err)
		}
		for _, of := range sent.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	case "/v1/metrics":
		var sent metricspb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			c.t.Errorf("metrics: %v", err)
		}
		for _, of := range sent.ResourceMetrics {
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.metrics[m.Name] = true
				}
			}
		}
	default:
		c.t.Errorf("an export to %s", r.URL.Path)
	}
}

// all gives the spans of a name that meet the conditions.
func (c *collector) all(name string, where ...func(*tracepb.Span) bool) []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracepb.Span
	for _, s := range c.spans {
		if s.Name == name && !slices.ContainsFunc(where, func(holds func(*tracepb.Span) bool) bool { return !holds(s) }) {
			found = append(found, s)
		}
	}
	return found
}

// one waits for the one span of a name that meets the conditions.
func (c *collector) one(t testing.TB, name string, where ...func(*tracepb.Span) bool) *tracepb.Span {
	t.Helper()
	eventually(t, "spans "+name, 1, func() int { return len(c.all(name, where...)) })
	return c.all(name, where...)[0]
}

func childOf(parent *tracepb.Span) func(*tracepb.Span) bool {
	return func(s *tracepb.Span) bool {
		return bytes.Equal(s.ParentSpanId, parent.SpanId) && bytes.Equal(s.TraceId, parent.TraceId)
	}
}

func linkedTo(other *tracepb.Span) func(*tracepb.Span) bool {
	return func(s *tracepb.Span) bool {
		return slices.ContainsFunc(s.Links, func(l *tracepb.Span_Link) bool {
			return bytes.Equal(l.TraceId, other.TraceId) && bytes.Equal(l.SpanId, other.SpanId)
		})
	}
}

func isRoot(s *tracepb.Span) bool { return len(s.ParentSpanId) == 0 }

func has(key, want string) func(*tracepb.Span) bool {
	return func(s *tracepb.Span) bool { return attributeOf(s, key) == want }
}

func attributeOf(s *tracepb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return shown(a.Value)
		}
	}
	return ""
}

func shown(v *commonpb.AnyValue) string {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_ArrayValue:
		var all []string
		for _, one := range v.ArrayValue.Values {
			all = append(all, shown(one))
		}
		return strings.Join(all, " ")
	}
	return fmt.Sprint(v)
}

func TestTraces(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	c, r := collect(t), receive(t)
	s := start(t, address, append(c.env(), r.env...)...)
	defer s.Stop()
	w := seedOn(t, address, "traced", hooked(2, r.URL+"/private-path"))

	t.Run("an event is followed from its request to the group that it was recorded with", func(t *testing.T) {
		a := s.send(t, "POST", "/api/v1/events?secret-query=1", `{"id":"secret-event-id","name":"trial_started","contact":{"email":"ada.secret@northlight.example"},
			"company":{"domain":"secret-domain.example"},"properties":{"secret_property":"secret value"}}`, w.Key("all"), "User-Agent: secret-agent", "X-Request-Id: secret-request-id")
		if a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		request := c.one(t, "POST /api/v1/events", isRoot, has("http.response.status_code", "202"))
		if request.Kind != tracepb.Span_SPAN_KIND_SERVER || attributeOf(request, "http.route") != "/api/v1/events" ||
			attributeOf(request, "http.request.method") != "POST" || request.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET {
			t.Errorf("the request is %v", request)
		}
		admitted := c.one(t, "admit", childOf(request))
		c.one(t, "SELECT api_keys", childOf(admitted))
		waited := c.one(t, "wait for a lane", childOf(request))
		group := c.one(t, "record a group", isRoot, linkedTo(request))
		if !linkedTo(group)(request) {
			t.Error("the request is not linked to its group")
		}
		if attributeOf(group, "inlet.events") != "1" || attributeOf(group, "inlet.requests") != "1" || waited.EndTimeUnixNano > group.StartTimeUnixNano {
			t.Errorf("the group is %v after %v", group, waited)
		}
		statement := c.one(t, "SELECT record_events", childOf(group))
		if attributeOf(statement, "db.system.name") != "postgresql" || statement.Kind != tracepb.Span_SPAN_KIND_CLIENT {
			t.Errorf("the statement is %v", statement)
		}
		eventually(t, "lines of the log that are of the trace", 1, func() int {
			return strings.Count(s.Log(), `"trace_id":"`+hex.EncodeToString(request.TraceId)+`"`)
		})
	})

	t.Run("a group is linked to all requests that it answers", func(t *testing.T) {
		// While one is recorded, the others wait for a lane together.
		held := dbtest.Hold(t, address, `select pg_advisory_xact_lock(gate_key($1))`, w.ID)
		var sent sync.WaitGroup
		for i := range 6 {
			sent.Go(func() {
				if a := s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"many-%d","name":"n","visitor":{"id":"secret-visitor"}}`, i), w.Key("all")); a.status != 202 {
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
		stuck(t, address, "record_events")
		time.Sleep(300 * time.Millisecond)
		held()
		sent.Wait()
		eventually(t, "links of all groups", 7, func() int {
			n := 0
			for _, g := range c.all("record a group") {
				n += len(g.Links)
			}
			return n
		})
		if groups := len(c.all("record a group")); groups > 6 {
			t.Errorf("each of 7 requests has a group of its own: %d", groups)
		}
	})

	t.Run("a motion is followed from its start to its webhook", func(t *testing.T) {
		w.starts(t, s, "hook0", "c0")
		w.told(t, address, "hook0", "c0")
		request := c.one(t, "POST /api/v1/motions/{id}/start", isRoot)
		transaction := c.one(t, "transaction", childOf(request))
		c.one(t, "INSERT motion_entries", childOf(transaction))
		c.one(t, "COMMIT", childOf(transaction))
		decision := c.one(t, "decide entries", isRoot, linkedTo(request))
		c.one(t, "SELECT decide_entries", childOf(decision))
		first := c.one(t, "take steps", isRoot, linkedTo(request), has("inlet.steps", ""))
		webhook := c.one(t, "webhook", childOf(first))
		if webhook.Kind != tracepb.Span_SPAN_KIND_CLIENT || attributeOf(webhook, "inlet.outcome") != "delivered" || attributeOf(webhook, "inlet.attempt") != "1" {
			t.Errorf("the webhook is %v", webhook)
		}
		c.one(t, "take steps", isRoot, linkedTo(request), has("inlet.steps", "add_note"))
		for _, d := range r.deliveries("/private-path") {
			if d.header.Get("Traceparent") != "" {
				t.Error("a receiver is told of the trace")
			}
		}
	})

	t.Run("a refusal says its code, and only the server's own failure is an error", func(t *testing.T) {
		s.send(t, "POST", "/api/v1/leads", `{"email":"not an address of eve.secret@x"}`, w.Key("all"))
		refused := c.one(t, "POST /api/v1/leads", has("inlet.code", "invalid_lead"), has("http.response.status_code", "400"))
		if refused.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			t.Error("a refusal is an error of the server")
		}
		defer dbtest.Hold(t, address, `lock table leads in access exclusive mode`)()
		a := s.send(t, "POST", "/api/v1/leads", `{"email":"eve.secret@northlight.example"}`, w.Key("all"))
		if a.status != 503 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		failed := c.one(t, "POST /api/v1/leads", has("http.response.status_code", "503"))
		if failed.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || failed.Status.Message != "" || attributeOf(failed, "error.type") != "service_unavailable" {
			t.Errorf("it is %v", failed)
		}
		c.one(t, "INSERT leads", has("error.type", "lock"))
	})

	t.Run("metrics come with them", func(t *testing.T) {
		eventually(t, "metrics", true, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.metrics["inlet_http_requests_total"] && c.metrics["inlet_backlog_events"] && c.metrics["inlet_http_request_duration_seconds"]
		})
	})

	t.Run("nothing of a client, a record or a person is exported", func(t *testing.T) {
		if err := s.Stop(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, private := range []string{"secret", "northlight", "trial_started", w.APIKeys["all"].Token, w.APIKeys["all"].Token[:12], "many-", "private-path",
			strings.TrimPrefix(r.URL, "https://"), "evt_", "req_"} {
			if n := bytes.Count(c.raw.Bytes(), []byte(private)); n > 0 {
				t.Errorf("%q is exported %d times", private, n)
			}
		}
		if c.raw.Len() < 10_000 {
			t.Errorf("only %d bytes were exported", c.raw.Len())
		}
	})
}

// Whoever may say that a trace is recorded has it recorded, at the server's cost.
func TestOnlyATrustedProxySaysWhichTraceARequestIsPartOf(t *testing.T) {
	t.Parallel()
	const traceID, spanID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	header := "traceparent: 00-" + traceID + "-" + spanID + "-01"
	_, address := dbtest.Private(t)
	w := seedOn(t, address, "traced", doomed(1))
	for name, of := range map[string]struct {
		proxies string
		believe bool
	}{"a proxy": {"127.0.0.0/8", true}, "anybody": {"10.0.0.0/8", false}} {
		t.Run(name, func(t *testing.T) {
			c := collect(t)
			s := start(t, address, append(c.env(), "INLET_TRUSTED_PROXIES="+of.proxies, "OTEL_TRACES_SAMPLER=parentbased_always_off")...)
			event := `{"id":"e","name":"n","visitor":{"id":"v"}}`
			if a := s.send(t, "POST", "/api/v1/events", event, w.Key("all"), header, "tracestate: vendor=private"); a.status != 202 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if a := s.send(t, "POST", "/api/v1/events", event, w.Key("all")); a.status != 202 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if err := s.Stop(); err != nil { // and sends what it has
				t.Errorf("the server ends with %v", err)
			}
			requests := c.all("POST /api/v1/events")
			if !of.believe {
				if len(requests) != 0 || len(c.all("record a group")) != 0 || strings.Contains(s.Log(), "trace_id") {
					t.Errorf("%d requests are recorded", len(requests))
				}
				return
			}
			if len(requests) != 1 || hex.EncodeToString(requests[0].TraceId) != traceID || hex.EncodeToString(requests[0].ParentSpanId) != spanID ||
				requests[0].TraceState != "" {
				t.Fatalf("%v is recorded", requests)
			}
			// What it led to is recorded with it, although nothing is by itself.
			if groups := c.all("record a group", linkedTo(requests[0])); len(groups) != 1 || strings.Count(s.Log(), traceID) != 1 {
				t.Errorf("its groups are %v", groups)
			}
		})
	}
}

func TestACollectorThatIsAwayOrHangsChangesNoAnswer(t *testing.T) {
	t.Parallel()
	ctx, release := context.WithCancel(t.Context())
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer release()
	gone := httptest.NewServer(nil)
	gone.Close()
	_, address := dbtest.Private(t)
	w := seedOn(t, address, "alone", doomed(1))
	for name, at := range map[string]string{"hangs": hangs.URL, "away": gone.URL} {
		t.Run(name, func(t *testing.T) {
			s := start(t, address, "OTEL_EXPORTER_OTLP_ENDPOINT="+at, "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_METRIC_EXPORT_INTERVAL=50")
			// Far more spans than there is room for.
			for i := range 100 {
				if a := s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"%s-%d","name":"n","visitor":{"id":"v"}}`, name, i), w.Key("all")); a.status != 202 {
					t.Fatalf("%d %s", a.status, a.body)
				}
			}
			if err := s.Stop(); err != nil {
				t.Errorf("the server ends with %v", err)
			}
			if n := strings.Count(s.Log(), "telemetry is not sent"); n < 1 || n > 3 {
				t.Errorf("the log complains %d times", n)
			}
		})
	}
}

func TestAServerThatCannotDoWhatItsTelemetrySettingsSayDoesNotStart(t *testing.T) {
	for setting, complaint := range map[string]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":  "want http/protobuf",
		"OTEL_TRACES_EXPORTER=zipkin":       "want otlp or none",
		"OTEL_METRICS_EXPORTER=prometheus":  "want otlp or none",
		"OTEL_RESOURCE_ATTRIBUTES=no-value": "OTEL_RESOURCE_ATTRIBUTES",
	} {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
		if _, err := tryInlet(t, "", "serve"); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v", setting, err)
		}
		t.Setenv(name, "")
	}
}
