package api

import (
	"context"

	"github.com/oapi-codegen/nullable"

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

// CreateEventBatch records up to 100 events and says what became of each.
func (s Events) CreateEventBatch(ctx context.Context, _ api.CreateEventBatchRequestObject) (api.CreateEventBatchResponseObject, error) {
	events, fault := event.ParseBatch(exchangeOf(ctx).body)
	if fault != nil {
		return nil, fault
	}
	results, err := s.recorder.Record(ctx, auth.CallerOf(ctx).Workspace, events)
	if err != nil {
		return nil, err
	}
	receipt := api.CreateEventBatch202JSONResponse{Results: make([]api.EventResult, len(results))}
	counts := map[event.Status]*api.EventCount{
		event.Accepted:        &receipt.Accepted,
		event.Duplicate:       &receipt.Duplicate,
		event.Unmatched:       &receipt.Unmatched,
		event.PendingIdentity: &receipt.PendingIdentity,
		event.Refused:         &receipt.Refused,
	}
	for i, r := range results {
		*counts[r.Status]++
		entry := api.EventResult{Id: nullable.NewNullNullable[string](), Status: r.Status.String()}
		if id := events[i].ID; id != "" {
			entry.Id.Set(id)
		}
		if r.Fault != nil {
			detail := errorOf(r.Fault)
			entry.Error = &detail
		} else {
			entry.EventId = &r.EventID
		}
		receipt.Results[i] = entry
	}
	return receipt, nil
}

// ListEvents lists events of the last 30 days.
func (Events) ListEvents(context.Context, api.ListEventsRequestObject) (api.ListEventsResponseObject, error) {
	return nil, later()
}

// ListEventTypes lists event names.
func (Events) ListEventTypes(context.Context, api.ListEventTypesRequestObject) (api.ListEventTypesResponseObject, error) {
	return nil, later()
}
