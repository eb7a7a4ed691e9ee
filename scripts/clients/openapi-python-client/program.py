"""Uses every operation of the server by the generated client, as an integrator
would. run.sh type-checks it strictly and runs it."""

import os
import time
from datetime import datetime, timezone
from typing import TypeVar

from inlet_api import AuthenticatedClient, Client
from inlet_api.api.embeds import (
    book_meeting,
    get_form,
    get_meeting_form,
    identify_visitor,
    list_meeting_slots,
    submit_form,
)
from inlet_api.api.events import create_event, create_event_batch, list_event_types, list_events
from inlet_api.api.leads import create_lead, create_lead_alias
from inlet_api.api.motions import start_motion
from inlet_api.models import (
    Booking,
    CompanyByDomain,
    ContactByEmail,
    Error,
    Event,
    EventBatch,
    EventBatchReceipt,
    EventError,
    EventErrorDetail,
    EventInput,
    EventPage,
    EventProperties,
    EventReceipt,
    EventStatusFilter,
    EventType,
    EventTypePage,
    Form,
    FormSubmission,
    FormValues,
    Identify,
    Lead,
    LeadCompany,
    LeadInput,
    MeetingBooking,
    MeetingForm,
    MeetingSlots,
    MotionStart,
    MotionStartDecided,
    MotionStartQueued,
    Received,
    VisitorReference,
)
from inlet_api.types import UNSET, Unset

T = TypeVar("T")
checks = 0


def equal(what: str, got: object, want: object) -> None:
    global checks
    checks += 1
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def of(kind: type[T], answer: object) -> T:
    """The answer, which is of that kind: the unions of the client are narrowed so."""
    assert isinstance(answer, kind), f"want {kind.__name__}, got {answer!r}"
    return answer


url = os.environ["INLET_URL"]
inlet = AuthenticatedClient(base_url=url, token=os.environ["INLET_KEY"])


def leads() -> int:
    company = LeadCompany(domain="globex.com")
    company["employees"] = 120
    lead = LeadInput(email="hank@globex.com", first_name="Hank", title=None, company=company)
    lead["favorite_color"] = "blue"
    created = of(Lead, create_lead.sync(client=inlet, body=lead, idempotency_key="py-lead-1"))
    equal("status of the lead", created.status, "new")
    assert not isinstance(created.company_id, Unset)
    company_id: int = created.company_id

    again = create_lead.sync_detailed(client=inlet, body=lead, idempotency_key="py-lead-1")
    equal("status of the repeat", again.status_code, 409)
    refusal = of(Error, again.parsed)
    equal("code of the repeat", refusal.error, "duplicate_request")
    equal("lead of the repeat", refusal.lead_id, created.lead_id)
    equal("no scopes", refusal.scopes, UNSET)

    of(Lead, create_lead_alias.sync(client=inlet, body=LeadInput(name="Hank Scorpio", company_name="Globex")))
    return company_id


def order(number: int, total: float) -> EventInput:
    properties = EventProperties()
    properties["total"] = total
    properties["plan"] = "pro"
    properties["renewal"] = False
    return EventInput(
        id=f"order-{number}",
        name="order_placed",
        occurred_at=datetime.now(timezone.utc).isoformat(),
        company=CompanyByDomain(domain="globex.com"),
        properties=properties,
    )


def events() -> None:
    first = of(EventReceipt, create_event.sync(client=inlet, body=order(1, 129.5)))
    equal("status of the event", first.status, "accepted")
    again = of(EventReceipt, create_event.sync(client=inlet, body=order(1, 129.5)))
    equal("status of the repeat", again.status, "duplicate")
    equal("event_id of the repeat", again.event_id, first.event_id)

    login = EventInput(id="login-1", name="signed_in", contact=ContactByEmail(email="hank@globex.com"))
    of(EventReceipt, create_event.sync(client=inlet, body=login))
    visit = EventInput(id="visit-1", name="pricing_viewed", visitor=VisitorReference(id="py-visitor"))
    equal("status of the visit", of(EventReceipt, create_event.sync(client=inlet, body=visit)).status, "pending_identity")

    private = order(8, 1)
    assert not isinstance(private.properties, Unset)
    private.properties["email"] = "x"
    batch = EventBatch(events=[order(n, n) for n in range(2, 8)] + [private])
    receipt = of(EventBatchReceipt, create_event_batch.sync(client=inlet, body=batch))
    equal("accepted of the batch", (receipt.accepted, receipt.refused), (6, 1))
    last = receipt.results[6]
    equal("event_id of a refused event", last.event_id, UNSET)
    detail = of(EventErrorDetail, last.error)
    equal("its code", (detail.code, detail.param), ("pii_property", "properties.email"))


def lists(company_id: int) -> None:
    rows: list[Event] = []
    cursor: str | Unset = UNSET
    while True:
        page = of(
            EventPage,
            list_events.sync(
                client=inlet, limit=3, cursor=cursor, name="order_placed", status=EventStatusFilter.ACCEPTED
            ),
        )
        rows += page.rows
        equal("total", page.total, 7)
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    equal("listed events", [row.id for row in rows][-1], "order-1")
    equal("how many", len(rows), 7)
    oldest = rows[6]
    equal("its company", oldest.company_id, company_id)
    equal("its contact", oldest.contact_id, None)
    value: bool | float | str = oldest.properties["total"]
    equal("its number", value, 129.5)
    equal("its flag", oldest.properties["renewal"], False)

    types: dict[str, EventType] = {}
    after: str | Unset = UNSET
    while True:
        kinds = of(EventTypePage, list_event_types.sync(client=inlet, limit=3, cursor=after))
        types |= {row.name: row for row in kinds.rows}
        if kinds.next_cursor is None:
            break
        after = kinds.next_cursor
    equal("event types", sorted(types), ["order_placed", "pricing_viewed", "raw_click", "signed_in"])
    equal("type of a property", types["order_placed"].properties["total"], "number")


def motions(company_id: int) -> None:
    motion = int(os.environ["INLET_MOTION"])
    body = MotionStart(company_id=company_id)
    for _ in range(100):
        answer = start_motion.sync(motion, client=inlet, body=body, idempotency_key="py-start-1")
        if not isinstance(answer, MotionStartQueued):
            break
        equal("status of the start", answer.status, "queued")
        time.sleep(0.1)
    decided = of(MotionStartDecided, answer)
    equal("decision", (decided.status, decided.outcome), ("decided", "entered"))
    assert decided.enrollment_id is not None


def refusals(company_id: int) -> None:
    nobody = AuthenticatedClient(base_url=url, token="amp_nobody")
    unknown = list_event_types.sync_detailed(client=nobody)
    equal("401", (unknown.status_code, of(Error, unknown.parsed).error), (401, "invalid_api_key"))

    narrow = AuthenticatedClient(base_url=url, token=os.environ["INLET_NARROW_KEY"])
    scopes = of(Error, create_event.sync(client=narrow, body=order(9, 1)))
    equal("403", (scopes.error, scopes.scopes), ("forbidden_scope", ["events.send"]))

    late = order(9, 1)
    late.occurred_at = "2020-01-01T00:00:00Z"
    refused = create_event.sync_detailed(client=inlet, body=late)
    detail = of(EventError, refused.parsed).error
    equal("422", (refused.status_code, detail.code, detail.param), (422, "event_too_old", "occurred_at"))

    nowhere = start_motion.sync(
        9_000_000, client=inlet, body=MotionStart(company_id=company_id), idempotency_key="py-start-2"
    )
    equal("404", of(Error, nowhere).error, "motion_not_found")
    equal("400", of(Error, create_lead.sync(client=inlet, body=LeadInput())).param, "email")


def embeds() -> None:
    page = Client(base_url=url)
    form = os.environ["INLET_FORM"]
    equal("first field", of(Form, get_form.sync(form, client=page)).fields[0].name, "email")
    fields = FormValues()
    fields["email"] = "hank@globex.com"
    fields["company_name"] = None
    sent = submit_form.sync(form, client=page, body=FormSubmission(fields=fields, visitor_id="py-visitor"))
    equal("answer of the form", of(Received, sent).status, "received")

    meeting = os.environ["INLET_MEETING_FORM"]
    equal("minutes", of(MeetingForm, get_meeting_form.sync(meeting, client=page)).minutes, 30)
    slots = of(MeetingSlots, list_meeting_slots.sync(meeting, client=page, time_zone="Europe/Berlin")).slots
    fields["name"] = "Hank"
    booking = MeetingBooking(starts_at=slots[0].starts_at, fields=fields, time_zone="Europe/Berlin")
    equal("end", of(Booking, book_meeting.sync(meeting, client=page, body=booking)).ends_at, slots[0].ends_at)
    equal("a taken slot", of(Error, book_meeting.sync(meeting, client=page, body=booking)).error, "slot_unavailable")

    claim = Identify(site=os.environ["INLET_SITE"], visitor_id="py-visitor", email="hank@globex.com")
    equal("identify", of(Received, identify_visitor.sync(client=page, body=claim)).status, "received")



company = leads()
events()
lists(company)
motions(company)
refusals(company)
embeds()
print(f"{checks} checks of 13 operations")
