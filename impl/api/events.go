package api

import (
	"context"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/event"
)

// Events serves the operations of the tag Events.
type Events struct {
	recorder *event.Recorder
}

// CreateEvent reads the body that the guard has read whole; the request's
// reader holds the same bytes again.
func (s Events) CreateEvent(ctx context.Context, _ api.CreateEventRequestObject) (api.CreateEventResponseObject, error) {
	e, fault := event.Parse(exchangeOf(ctx).body)
	if fault != nil {
		return nil, fault
	}
	results, err := s.recorder.Record(ctx, auth.CallerOf(ctx).Workspace, []event.Parsed{{Event: e}})
	if err != nil {
		return nil, err
	}
	if results[0].Fault != nil {
		return nil, results[0].Fault
	}
	return api.CreateEvent202JSONResponse{
		Id:      e.ID,
		Status:  results[0].Status.String(),
		EventId: results[0].EventID,
	}, nil
}

// CreateEventBatch records up to 100 events.
func (Events) CreateEventBatch(context.Context, api.CreateEventBatchRequestObject) (api.CreateEventBatchResponseObject, error) {
	return nil, later()
}

// ListEvents lists events of the last 30 days.
func (Events) ListEvents(context.Context, api.ListEventsRequestObject) (api.ListEventsResponseObject, error) {
	return nil, later()
}

// ListEventTypes lists event names.
func (Events) ListEventTypes(context.Context, api.ListEventTypesRequestObject) (api.ListEventTypesResponseObject, error) {
	return nil, later()
}
