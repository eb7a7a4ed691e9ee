package api

import (
	"context"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/form"
	"github.com/inletdev/inlet/impl/visitor"
)

// Embeds serves the operations of the tag Embeds.
type Embeds struct {
	guard      *guard
	db         *db.DB
	identifier *visitor.Identifier
}

var received = api.Received{Status: api.ReceivedStatusReceived}

// IdentifyVisitor weighs what a browser says of its visitor.
func (e Embeds) IdentifyVisitor(ctx context.Context, r api.IdentifyVisitorRequestObject) (api.IdentifyVisitorResponseObject, error) {
	site, err := e.identifier.Site(ctx, r.Body.Site)
	if err != nil {
		return nil, err
	}
	if err := e.guard.takeKey(site.Key); err != nil {
		return nil, err
	}
	err = e.identifier.Identify(ctx, site, visitor.Claim{
		Origin: exchangeOf(ctx).origin, Visitor: r.Body.VisitorId,
		Token: valueOf(r.Body.Token), Link: valueOf(r.Body.Link),
		FirstName: textOf(r.Body.FirstName), LastName: textOf(r.Body.LastName), Company: textOf(r.Body.Company),
	})
	if err != nil {
		return nil, err
	}
	return api.IdentifyVisitor202JSONResponse(received), nil
}

// GetForm says what a form asks for.
func (e Embeds) GetForm(ctx context.Context, r api.GetFormRequestObject) (api.GetFormResponseObject, error) {
	f, err := e.form(ctx, r.PublicKey)
	if err != nil {
		return nil, err
	}
	return api.GetForm200JSONResponse{PublicKey: f.PublicKey, Name: f.Name, Fields: fieldsOf(f.Fields)}, nil
}

// SubmitForm takes an answer to a form.
func (e Embeds) SubmitForm(ctx context.Context, r api.SubmitFormRequestObject) (api.SubmitFormResponseObject, error) {
	f, err := e.form(ctx, r.PublicKey)
	if err != nil {
		return nil, err
	}
	answer := form.Answer{
		Values: valuesOf(r.Body.Fields), Visitor: valueOf(r.Body.VisitorId),
		PageURL: valueOf(r.Body.PageUrl), Trap: valueOf(r.Body.Trap),
	}
	if err := form.Submit(ctx, e.db, f, answer); err != nil {
		return nil, err
	}
	return api.SubmitForm201JSONResponse(received), nil
}

// GetMeetingForm says what a meeting form offers and asks for.
func (e Embeds) GetMeetingForm(ctx context.Context, r api.GetMeetingFormRequestObject) (api.GetMeetingFormResponseObject, error) {
	m, err := e.meetingForm(ctx, r.PublicKey)
	if err != nil {
		return nil, err
	}
	return api.GetMeetingForm200JSONResponse{
		PublicKey: m.PublicKey, Name: m.Name, Minutes: int32(m.Minutes), TimeZone: m.TimeZone, Fields: fieldsOf(m.Fields),
	}, nil
}

// ListMeetingSlots lists what is free.
func (e Embeds) ListMeetingSlots(ctx context.Context, r api.ListMeetingSlotsRequestObject) (api.ListMeetingSlotsResponseObject, error) {
	m, err := e.meetingForm(ctx, r.PublicKey)
	if err != nil {
		return nil, err
	}
	zone, free, err := m.Slots(ctx, e.db, form.Days{
		From: valueOf(r.Params.From), To: valueOf(r.Params.To), TimeZone: valueOf(r.Params.TimeZone),
	})
	if err != nil {
		return nil, err
	}
	slots := make([]api.MeetingSlot, len(free))
	for i, slot := range free {
		slots[i] = api.MeetingSlot{StartsAt: timestamp(slot.StartsAt), EndsAt: timestamp(slot.EndsAt)}
	}
	return api.ListMeetingSlots200JSONResponse{TimeZone: zone, Slots: slots}, nil
}

// BookMeeting books a slot.
func (e Embeds) BookMeeting(ctx context.Context, r api.BookMeetingRequestObject) (api.BookMeetingResponseObject, error) {
	m, err := e.meetingForm(ctx, r.PublicKey)
	if err != nil {
		return nil, err
	}
	// The document takes a lower-case t and z, as RFC 3339 does and Go does not.
	startsAt, err := time.Parse(time.RFC3339, strings.ToUpper(r.Body.StartsAt))
	if err != nil {
		return nil, fault.InvalidRequest.At("starts_at", "want an RFC 3339 time such as 2026-03-03T09:30:00.000Z")
	}
	slot, err := m.Book(ctx, e.db, startsAt, valueOf(r.Body.TimeZone), form.Answer{
		Values: valuesOf(r.Body.Fields), Visitor: valueOf(r.Body.VisitorId),
		PageURL: valueOf(r.Body.PageUrl), Trap: valueOf(r.Body.Trap),
	})
	if err != nil {
		return nil, err
	}
	return api.BookMeeting201JSONResponse{
		Status: api.Booked, StartsAt: timestamp(slot.StartsAt), EndsAt: timestamp(slot.EndsAt),
	}, nil
}

// form finds a form for the page that asks.
func (e Embeds) form(ctx context.Context, key string) (form.Form, error) {
	f, err := form.Find(ctx, e.db, key)
	if err != nil {
		return form.Form{}, err
	}
	if err := e.guard.takeKey(f.PublicKey); err != nil {
		return form.Form{}, err
	}
	return f, visitor.AllowOrigin(exchangeOf(ctx).origin, f.Origins)
}

func (e Embeds) meetingForm(ctx context.Context, key string) (form.MeetingForm, error) {
	m, err := form.FindMeeting(ctx, e.db, key)
	if err != nil {
		return form.MeetingForm{}, err
	}
	if err := e.guard.takeKey(m.PublicKey); err != nil {
		return form.MeetingForm{}, err
	}
	return m, visitor.AllowOrigin(exchangeOf(ctx).origin, m.Origins)
}

func fieldsOf(fields []form.Field) []api.FormField {
	all := make([]api.FormField, len(fields))
	for i, f := range fields {
		all[i] = api.FormField{Name: f.Name, Label: f.Label, Type: f.Type, Required: f.Required, MaxLength: int32(f.MaxLength)}
	}
	return all
}

func valuesOf(sent api.FormValues) map[string]string {
	values := make(map[string]string, len(sent))
	for name, value := range sent {
		values[name] = valueOf(value)
	}
	return values
}

// valueOf gives an optional text; empty where it is absent.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
