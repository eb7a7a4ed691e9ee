package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oapi-codegen/nullable"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/fault"
)

// Events serves the operations of the tag Events.
type Events struct {
	guard    *guard
	recorder *event.Recorder
	refusals *event.Refusals
	lists    *event.Lists
}

// CreateEvent reads the body that the guard has read whole.
func (s Events) CreateEvent(ctx context.Context, _ api.CreateEventRequestObject) (api.CreateEventResponseObject, error) {
	x := exchangeOf(ctx)
	e, f := event.Parse(x.body)
	x.one[0].Event = e
	x.events = x.one[:]
	if f != nil {
		return nil, s.guard.afterAdmission(ctx, x, f)
	}
	results, err := s.record(ctx, x)
	if err != nil {
		return nil, err
	}
	if results[0].Fault != nil {
		return nil, results[0].Fault
	}
	return eventReceipt{x.events, results}, nil
}

// CreateEventBatch records up to 100 events and says what became of each.
func (s Events) CreateEventBatch(ctx context.Context, _ api.CreateEventBatchRequestObject) (api.CreateEventBatchResponseObject, error) {
	x := exchangeOf(ctx)
	if err := s.recorder.Full(x.caller.Workspace); err != nil {
		return nil, err // reading a batch takes long
	}
	var f *fault.Fault
	if x.events, f = event.ParseBatch(x.body); f != nil {
		return nil, s.guard.afterAdmission(ctx, x, f)
	}
	results, err := s.record(ctx, x)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if r.Fault != nil {
			s.refusals.CountOne(x.caller, r.Fault, x.events[i].Name)
		}
	}
	return batchReceipt{x.events, results}, nil
}

// record records the events for a caller who may only have been recalled: where
// something about the credential may have changed, it is admitted first.
func (s Events) record(ctx context.Context, x *exchange) ([]event.Result, error) {
	results, err := s.recorder.Record(ctx, x.caller, x.events)
	if errors.Is(err, event.ErrStaleCaller) {
		if err := s.guard.admitRecalled(ctx, x); err != nil {
			return nil, err
		}
		return s.recorder.Record(ctx, x.caller, x.events)
	}
	return results, err
}

// ListEvents lists events of the last 30 days.
func (s Events) ListEvents(ctx context.Context, r api.ListEventsRequestObject) (api.ListEventsResponseObject, error) {
	q := event.Query{
		Limit: 50, Cursor: r.Params.Cursor, Name: value(r.Params.Name),
		Status: event.StatusNamed(string(value(r.Params.Status))),
	}
	if r.Params.Limit != nil {
		q.Limit = int(*r.Params.Limit)
	}
	rows, next, total, err := s.lists.Events(ctx, exchangeOf(ctx).caller.Workspace, q)
	if err != nil {
		return nil, err
	}
	page := api.ListEvents200JSONResponse{Rows: make([]api.Event, len(rows)), NextCursor: nextCursor(next), Total: total}
	for i, e := range rows {
		page.Rows[i] = api.Event{
			Id:         e.ID,
			EventId:    e.EventID,
			Name:       e.Name,
			Status:     e.Status.String(),
			OccurredAt: timestamp(e.OccurredAt),
			ReceivedAt: timestamp(e.ReceivedAt),
			CompanyId:  nullableOf(e.CompanyID),
			ContactId:  nullableOf(e.ContactID),
			DomainHint: nullableOf(e.DomainHint),
			ResolvedAt: nullable.NewNullNullable[string](),
		}
		if e.ResolvedAt != nil {
			page.Rows[i].ResolvedAt.Set(timestamp(*e.ResolvedAt))
		}
		if err := json.Unmarshal([]byte(e.Properties), &page.Rows[i].Properties); err != nil {
			return nil, fmt.Errorf("properties of an event: %w", err)
		}
	}
	return page, nil
}

// ListEventTypes lists event names.
func (s Events) ListEventTypes(ctx context.Context, r api.ListEventTypesRequestObject) (api.ListEventTypesResponseObject, error) {
	q := event.Query{Limit: 100, Cursor: r.Params.Cursor}
	if r.Params.Limit != nil {
		q.Limit = int(*r.Params.Limit)
	}
	rows, next, total, err := s.lists.Types(ctx, exchangeOf(ctx).caller.Workspace, q)
	if err != nil {
		return nil, err
	}
	page := api.ListEventTypes200JSONResponse{Rows: make([]api.EventType, len(rows)), NextCursor: nextCursor(next), Total: total}
	for i, t := range rows {
		page.Rows[i] = api.EventType{
			Id:          t.ID,
			Name:        t.Name,
			Label:       t.Label,
			Status:      t.Status,
			SignalFact:  "event." + t.Name,
			Properties:  api.PropertyTypes(t.Properties),
			FirstSeenAt: timestamp(t.FirstSeenAt),
			LastSeenAt:  timestamp(t.LastSeenAt),
		}
	}
	return page, nil
}

// timestamp writes a time as every answer has it: RFC 3339 in UTC, to the
// millisecond.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func nextCursor(cursor string) nullable.Nullable[string] {
	if cursor == "" {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(cursor)
}

func nullableOf[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*v)
}

// value gives an optional parameter, zero where it is not given.
func value[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}
