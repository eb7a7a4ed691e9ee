package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/inletdev/inlet/impl/event"
)

// The answers to events are written by hand: with the generated types, encoding
// them takes an eighth of the server's time. Like every answer in the tests they
// are held to the document.

// eventReceipt is the answer to one event.
type eventReceipt struct {
	events  []event.Parsed
	results []event.Result
}

// VisitCreateEventResponse writes the answer.
func (r eventReceipt) VisitCreateEventResponse(w http.ResponseWriter) error {
	body := appendResult(make([]byte, 0, 192), &r.events[0], &r.results[0])
	return accepted(w, append(body, '\n'))
}

// batchReceipt is the answer to a batch: how many events came to what, and what
// became of each.
type batchReceipt eventReceipt

// VisitCreateEventBatchResponse writes the answer.
func (r batchReceipt) VisitCreateEventBatchResponse(w http.ResponseWriter) error {
	var counts [event.Refused + 1]int64
	for i := range r.results {
		counts[r.results[i].Status]++
	}
	body := append(make([]byte, 0, 128+len(r.results)*192), '{')
	for status := event.Accepted; status <= event.Refused; status++ {
		body = append(append(append(body, '"'), status.String()...), `":`...)
		body = append(strconv.AppendInt(body, counts[status], 10), ',')
	}
	body = append(body, `"results":[`...)
	for i := range r.results {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendResult(body, &r.events[i], &r.results[i])
	}
	return accepted(w, append(body, "]}\n"...))
}

// appendResult writes what became of an event. Ids are visible ASCII, so quoting
// them cannot fail.
func appendResult(body []byte, e *event.Parsed, r *event.Result) []byte {
	body = append(body, `{"id":`...)
	if e.ID == "" {
		body = append(body, "null"...)
	} else {
		body, _ = jsontext.AppendQuote(body, e.ID)
	}
	body = append(append(append(body, `,"status":"`...), r.Status.String()...), '"')
	if r.Fault == nil {
		return append(append(append(body, `,"event_id":"`...), r.EventID...), `"}`...)
	}
	detail, err := json.Marshal(errorOf(r.Fault))
	if err != nil {
		panic(err) // strings always encode
	}
	return append(append(append(body, `,"error":`...), detail...), '}')
}

func accepted(w http.ResponseWriter, body []byte) error {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(http.StatusAccepted)
	_, err := w.Write(body)
	return err
}
