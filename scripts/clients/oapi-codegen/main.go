// Command oapi-codegen uses every operation of the server by the published Go
// client, gen/client, as an integrator would. scripts/clients/run.sh runs it.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/oapi-codegen/nullable"

	"github.com/inletdev/inlet/gen/client"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := &program{ctx: ctx, inlet: connect(os.Getenv("INLET_KEY"))}
	p.leads()
	p.events()
	p.lists()
	p.motions()
	p.refusals()
	p.embeds()
	fmt.Println(p.checks, "checks of 13 operations")
}

// program is what one step tells the next.
type program struct {
	ctx       context.Context
	inlet     *client.ClientWithResponses
	companyID client.ID
	checks    int
}

func connect(key string) *client.ClientWithResponses {
	c, err := client.NewClientWithResponses(os.Getenv("INLET_URL"), client.WithAPIKey(key), client.WithRetries(client.Retry{}))
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// equal ends the program when a value is not what it should be.
func (p *program) equal(what string, got, want any) {
	p.checks++
	if !reflect.DeepEqual(got, want) {
		log.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// of gives what a pointer from an answer points to, and ends the program when
// the answer was another.
func of[T any](what string, answer *T) T {
	if answer == nil {
		log.Fatal(what, ": another answer")
	}
	return *answer
}

func (p *program) leads() {
	key := "go-lead-1"
	lead := client.LeadInput{
		Email:     nullable.NewNullableWithValue("hank@globex.com"),
		FirstName: nullable.NewNullableWithValue("Hank"),
		Title:     nullable.NewNullNullable[string](), // null, not absent
		Company:   nullable.NewNullableWithValue(client.LeadCompany{Domain: nullable.NewNullableWithValue("globex.com")}),
		Utm:       nullable.NewNullableWithValue(client.LeadUTM{Source: nullable.NewNullableWithValue("newsletter")}),
	}
	lead.Set("favorite_color", "blue")
	params := &client.CreateLeadParams{IdempotencyKey: &key}
	made := must(p.inlet.CreateLeadWithResponse(p.ctx, params, lead))
	created := of("createLead", made.JSON201)
	p.equal("status of the lead", created.Status, "new")
	p.equal("reconciled", created.Reconciled, true)
	p.companyID = of("company of the lead", created.CompanyId)

	again := of("the repeated key", must(p.inlet.CreateLeadWithResponse(p.ctx, params, lead)).JSON409)
	p.equal("code of the repeat", again.Error, "duplicate_request")
	p.equal("lead of the repeat", of("lead_id", again.LeadId), created.LeadId)

	older := client.LeadInput{Name: nullable.NewNullableWithValue("Hank Scorpio"), CompanyName: nullable.NewNullableWithValue("Globex")}
	of("createLeadAlias", must(p.inlet.CreateLeadAliasWithResponse(p.ctx, &client.CreateLeadAliasParams{}, older)).JSON201)
}

func (p *program) order(id string, total float64) client.EventInput {
	var globex client.CompanyReference
	var amount, plan, renewal client.PropertyValue
	for _, err := range []error{
		globex.FromCompanyByDomain(client.CompanyByDomain{Domain: "globex.com"}),
		amount.FromPropertyNumber(total),
		plan.FromPropertyText("pro"),
		renewal.FromPropertyFlag(false),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	at := time.Now().UTC().Format(time.RFC3339)
	return client.EventInput{
		Id:         id,
		Name:       "order_placed",
		OccurredAt: &at,
		Company:    &globex,
		Properties: &client.EventProperties{"total": amount, "plan": plan, "renewal": renewal},
	}
}

func (p *program) events() {
	first := of("createEvent", must(p.inlet.CreateEventWithResponse(p.ctx, nil, p.order("order-1", 129.5))).JSON202)
	p.equal("status of the event", first.Status, "accepted")
	again := of("createEvent again", must(p.inlet.CreateEventWithResponse(p.ctx, nil, p.order("order-1", 129.5))).JSON202)
	p.equal("status of the repeat", again.Status, "duplicate")
	p.equal("event_id of the repeat", again.EventId, first.EventId)

	var hank client.ContactReference
	if err := hank.FromContactByEmail(client.ContactByEmail{Email: "hank@globex.com"}); err != nil {
		log.Fatal(err)
	}
	of("an event of a contact", must(p.inlet.CreateEventWithResponse(p.ctx, nil, client.EventInput{Id: "login-1", Name: "signed_in", Contact: &hank})).JSON202)
	visit := of("an event of a visitor", must(p.inlet.CreateEventWithResponse(p.ctx, nil, client.EventInput{Id: "visit-1", Name: "pricing_viewed", Visitor: &client.VisitorReference{Id: "go-visitor"}})).JSON202)
	p.equal("status of the visit", visit.Status, "pending_identity")

	batch := client.EventBatch{}
	for i := range 6 {
		batch.Events = append(batch.Events, p.order("order-"+strconv.Itoa(i+2), float64(i)))
	}
	private := p.order("order-8", 1)
	(*private.Properties)["email"] = (*private.Properties)["plan"]
	batch.Events = append(batch.Events, private)
	receipt := of("createEventBatch", must(p.inlet.CreateEventBatchWithResponse(p.ctx, nil, batch)).JSON202)
	p.equal("accepted of the batch", receipt.Accepted, client.EventCount(6))
	p.equal("refused of the batch", receipt.Refused, client.EventCount(1))
	last := receipt.Results[6]
	p.equal("event_id of a refused event", last.EventId, (*client.EventID)(nil))
	refusal := of("error of a refused event", last.Error)
	p.equal("its code", refusal.Code, "pii_property")
	p.equal("its param", must(refusal.Param.Get()), "properties.email")
}

func (p *program) lists() {
	limit, name, status := int32(3), "order_placed", client.Accepted
	var rows []client.Event
	var cursor *client.Cursor
	for {
		page := of("listEvents", must(p.inlet.ListEventsWithResponse(p.ctx, &client.ListEventsParams{Limit: &limit, Cursor: cursor, Name: &name, Status: &status})).JSON200)
		rows = append(rows, page.Rows...)
		p.equal("total", page.Total, client.Total(7))
		if page.NextCursor.IsNull() {
			break
		}
		next := page.NextCursor.MustGet()
		cursor = &next
	}
	p.equal("listed events", len(rows), 7)
	oldest := rows[6]
	p.equal("id of the oldest", oldest.Id, "order-1")
	p.equal("its company", oldest.CompanyId.MustGet(), p.companyID)
	p.equal("its contact is null", oldest.ContactId.IsNull(), true)
	p.equal("its number", must(oldest.Properties["total"].AsPropertyNumber()), 129.5)
	p.equal("its text", must(oldest.Properties["plan"].AsPropertyText()), "pro")
	p.equal("its flag", must(oldest.Properties["renewal"].AsPropertyFlag()), false)

	types := map[string]client.EventType{}
	var after *client.Cursor
	for {
		page := of("listEventTypes", must(p.inlet.ListEventTypesWithResponse(p.ctx, &client.ListEventTypesParams{Limit: &limit, Cursor: after})).JSON200)
		for _, row := range page.Rows {
			types[row.Name] = row
		}
		if page.NextCursor.IsNull() {
			break
		}
		next := page.NextCursor.MustGet()
		after = &next
	}
	p.equal("event types", len(types), 4)
	p.equal("type of a property", types["order_placed"].Properties["total"], "number")
}

func (p *program) motions() {
	motion := must(strconv.ParseInt(os.Getenv("INLET_MOTION"), 10, 64))
	params := &client.StartMotionParams{IdempotencyKey: "go-start-1"}
	for waits := 0; ; waits++ {
		resp := must(p.inlet.StartMotionWithResponse(p.ctx, motion, params, client.MotionStart{CompanyId: p.companyID}))
		if resp.JSON202 != nil && waits < 100 {
			p.equal("status of the start", resp.JSON202.Status, client.Queued)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		decided := of("startMotion", resp.JSON200)
		p.equal("status of the decision", decided.Status, client.Decided)
		p.equal("outcome", decided.Outcome, "entered")
		p.equal("an enrollment", decided.EnrollmentId.IsNull(), false)
		return
	}
}

func (p *program) refusals() {
	unknown := of("401", must(connect("amp_nobody").ListEventTypesWithResponse(p.ctx, nil)).JSON401)
	p.equal("its code", unknown.Error, "invalid_api_key")

	narrow := of("403", must(connect(os.Getenv("INLET_NARROW_KEY")).CreateEventWithResponse(p.ctx, nil, p.order("order-9", 1))).JSON403)
	p.equal("its code", narrow.Error, "forbidden_scope")
	p.equal("its scopes", of("scopes", narrow.Scopes), []client.Scope{"events.send"})

	old := "2020-01-01T00:00:00Z"
	event := p.order("order-9", 1)
	event.OccurredAt = &old
	refused := of("422", must(p.inlet.CreateEventWithResponse(p.ctx, nil, event)).JSON422)
	p.equal("its code", refused.Error.Code, "event_too_old")
	p.equal("its param", must(refused.Error.Param.Get()), "occurred_at")

	nowhere := of("404", must(p.inlet.StartMotionWithResponse(p.ctx, 9_000_000, &client.StartMotionParams{IdempotencyKey: "go-start-2"}, client.MotionStart{CompanyId: p.companyID})).JSON404)
	p.equal("its code", nowhere.Error, "motion_not_found")

	empty := must(p.inlet.CreateLeadWithResponse(p.ctx, nil, client.LeadInput{}))
	p.equal("its status", empty.StatusCode(), http.StatusBadRequest)
	p.equal("its param", of("param", of("400", empty.JSON400).Param), "email")
}

func (p *program) embeds() {
	form := os.Getenv("INLET_FORM")
	asked := of("getForm", must(p.inlet.GetFormWithResponse(p.ctx, form)).JSON200)
	p.equal("first field", asked.Fields[0].Name, "email")
	email, visitor := "hank@globex.com", "go-visitor"
	sent := of("submitForm", must(p.inlet.SubmitFormWithResponse(p.ctx, form, client.FormSubmission{
		Fields: client.FormValues{"email": &email, "company_name": nil}, VisitorId: &visitor,
	})).JSON201)
	p.equal("its answer", sent.Status, client.ReceivedStatusReceived)

	meeting, zone := os.Getenv("INLET_MEETING_FORM"), "Europe/Berlin"
	p.equal("minutes", of("getMeetingForm", must(p.inlet.GetMeetingFormWithResponse(p.ctx, meeting)).JSON200).Minutes, int32(30))
	slots := of("listMeetingSlots", must(p.inlet.ListMeetingSlotsWithResponse(p.ctx, meeting, &client.ListMeetingSlotsParams{TimeZone: &zone})).JSON200).Slots
	booking := client.MeetingBooking{StartsAt: slots[0].StartsAt, TimeZone: &zone, Fields: client.FormValues{"email": &email, "name": &email}}
	booked := of("bookMeeting", must(p.inlet.BookMeetingWithResponse(p.ctx, meeting, booking)).JSON201)
	p.equal("end of the meeting", booked.EndsAt, slots[0].EndsAt)
	taken := of("a taken slot", must(p.inlet.BookMeetingWithResponse(p.ctx, meeting, booking)).JSON409)
	p.equal("its code", taken.Error, "slot_unavailable")

	of("identifyVisitor", must(p.inlet.IdentifyVisitorWithResponse(p.ctx, client.Identify{Site: os.Getenv("INLET_SITE"), VisitorId: visitor, Email: &email})).JSON202)
}
