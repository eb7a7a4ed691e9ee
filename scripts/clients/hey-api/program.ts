// Uses every operation of the server by the generated types, as an integrator
// would. run.sh type-checks it strictly and runs it.
import { checks, env, equal, fail, of } from "./checks.js";
import { createClient } from "./inlet/client/index.js";
import * as api from "./inlet/sdk.gen.js";
import type { Event, EventInput, EventPage, EventType, EventTypePage, FormValues, LeadInput, NextCursor } from "./inlet/types.gen.js";

const connect = (key: string) => createClient({ baseUrl: env("INLET_URL"), auth: key });
const client = connect(env("INLET_KEY"));

async function leads(): Promise<number> {
  const body: LeadInput = {
    email: "hank@globex.com",
    first_name: "Hank",
    title: null,
    company: { domain: "globex.com", employees: 120 },
    utm: { source: "newsletter" },
    favorite_color: "blue",
  };
  const headers = { "Idempotency-Key": "ts-lead-1" };
  const made = of("createLead", (await api.createLead({ client, headers, body })).data);
  equal("status of the lead", made.status, "new");
  const companyId: number = of("company of the lead", made.company_id);

  const again = await api.createLead({ client, headers, body });
  equal("status of the repeat", again.response?.status, 409);
  const refusal = of("the repeat", again.error);
  equal("code of the repeat", refusal.error, "duplicate_request");
  equal("lead of the repeat", refusal.lead_id, made.lead_id);

  of("createLeadAlias", (await api.createLeadAlias({ client, body: { name: "Hank Scorpio", company_name: "Globex" } })).data);
  return companyId;
}

const order = (n: number, total: number): EventInput => ({
  id: `order-${n}`,
  name: "order_placed",
  occurred_at: new Date().toISOString(),
  company: { domain: "globex.com" },
  properties: { total, plan: "pro", renewal: false },
});

async function events(): Promise<void> {
  const first = of("createEvent", (await api.createEvent({ client, body: order(1, 129.5) })).data);
  equal("status of the event", first.status, "accepted");
  const again = of("createEvent again", (await api.createEvent({ client, body: order(1, 129.5) })).data);
  equal("status of the repeat", again.status, "duplicate");
  equal("event_id of the repeat", again.event_id, first.event_id);

  const login: EventInput = { id: "login-1", name: "signed_in", contact: { email: "hank@globex.com" } };
  of("an event of a contact", (await api.createEvent({ client, body: login })).data);
  const visit: EventInput = { id: "visit-1", name: "pricing_viewed", visitor: { id: "ts-visitor" } };
  equal("status of the visit", (await api.createEvent({ client, body: visit })).data?.status, "pending_identity");

  // @ts-expect-error A property is a text, a number or a boolean.
  const wrong: EventInput = { id: "x", name: "x", properties: { list: [1] } };
  void wrong;

  const batch = [2, 3, 4, 5, 6, 7].map((n) => order(n, n));
  batch.push({ ...order(8, 1), properties: { email: "x" } });
  const receipt = of("createEventBatch", (await api.createEventBatch({ client, body: { events: batch } })).data);
  equal("counts of the batch", [receipt.accepted, receipt.refused], [6, 1]);
  const last = of("the last result", receipt.results[6]);
  equal("event_id of a refused event", last.event_id, undefined);
  equal("its error", [last.error?.code, last.error?.param], ["pii_property", "properties.email"]);
}

async function lists(companyId: number): Promise<void> {
  const rows: Event[] = [];
  let cursor: NextCursor = null;
  do {
    const query = { limit: 3, name: "order_placed", status: "accepted" as const, ...(cursor !== null && { cursor }) };
    const page: EventPage = of("listEvents", (await api.listEvents({ client, query })).data);
    rows.push(...page.rows);
    equal("total", page.total, 7);
    cursor = page.nextCursor;
  } while (cursor !== null);
  equal("listed events", rows.length, 7);
  const oldest = of("the oldest", rows[6]);
  equal("id of the oldest", oldest.id, "order-1");
  equal("whose it is", [oldest.company_id, oldest.contact_id], [companyId, null]);
  const total: string | number | boolean | undefined = oldest.properties["total"];
  equal("its number", typeof total === "number" ? total / 2 : 0, 64.75);

  const types = new Map<string, EventType>();
  cursor = null;
  do {
    const query = { limit: 3, ...(cursor !== null && { cursor }) };
    const page: EventTypePage = of("listEventTypes", (await api.listEventTypes({ client, query })).data);
    for (const row of page.rows) types.set(row.name, row);
    cursor = page.nextCursor;
  } while (cursor !== null);
  equal("event types", types.size, 4);
  equal("type of a property", types.get("order_placed")?.properties["total"], "number");
}

async function motions(companyId: number): Promise<void> {
  const params = { path: { id: Number(env("INLET_MOTION")) }, headers: { "Idempotency-Key": "ts-start-1" } };
  for (let waits = 0; ; waits++) {
    const answer = of("startMotion", (await api.startMotion({ client, ...params, body: { companyId } })).data);
    switch (answer.status) {
      case "queued":
        if (waits > 100) fail("the start is not decided");
        await new Promise((resolve) => setTimeout(resolve, 100));
        continue;
      case "decided":
        equal("outcome", answer.outcome, "entered");
        equal("an enrollment", answer.enrollmentId === null, false);
        return;
    }
  }
}

async function refusals(companyId: number): Promise<void> {
  const unknown = await api.listEventTypes({ client: connect("amp_nobody") });
  equal("401", unknown.response?.status, 401);

  const narrow = of("403", (await api.createEvent({ client: connect(env("INLET_NARROW_KEY")), body: order(9, 1) })).error);
  // Two shapes of errors: the general one has its code in error.
  if (typeof narrow.error !== "string") fail("403 has another shape");
  equal("its code", narrow.error, "forbidden_scope");
  equal("its scopes", "scopes" in narrow ? narrow.scopes : undefined, ["events.send"]);

  const late = { ...order(9, 1), occurred_at: "2020-01-01T00:00:00Z" };
  const refused = of("422", (await api.createEvent({ client, body: late })).error);
  if (typeof refused.error === "string") fail("422 has another shape");
  equal("what is wrong", [refused.error.code, refused.error.param], ["event_too_old", "occurred_at"]);

  const nowhere = await api.startMotion({ client, path: { id: 9_000_000 }, headers: { "Idempotency-Key": "ts-start-2" }, body: { companyId } });
  equal("404", [nowhere.response?.status, of("404", nowhere.error).error], [404, "motion_not_found"]);
  equal("400", (await api.createLead({ client, body: {} })).error?.param, "email");
}

async function embeds(): Promise<void> {
  const client = createClient({ baseUrl: env("INLET_URL") });
  const path = { publicKey: env("INLET_FORM") };
  const form = of("getForm", (await api.getForm({ client, path })).data);
  equal("first field", form.fields[0]?.name, "email");
  const fields: FormValues = { email: "hank@globex.com", company_name: null };
  const sent = await api.submitForm({ client, path, body: { fields, visitor_id: "ts-visitor" } });
  equal("answer of the form", sent.data?.status, "received");

  const meeting = { publicKey: env("INLET_MEETING_FORM") };
  const asked = of("getMeetingForm", (await api.getMeetingForm({ client, path: meeting })).data);
  equal("minutes", asked.minutes, 30);
  const query = { time_zone: "Europe/Berlin" };
  const offered = of("listMeetingSlots", (await api.listMeetingSlots({ client, path: meeting, query })).data);
  const slot = of("a slot", offered.slots[0]);
  const body = { starts_at: slot.starts_at, fields: { ...fields, name: "Hank" } };
  const booked = await api.bookMeeting({ client, path: meeting, body });
  equal("end of the meeting", of("bookMeeting", booked.data).ends_at, slot.ends_at);
  const taken = await api.bookMeeting({ client, path: meeting, body });
  equal("a taken slot", of("409", taken.error).error, "slot_unavailable");

  const claim = { site: env("INLET_SITE"), visitor_id: "ts-visitor", email: "hank@globex.com" };
  equal("identify", (await api.identifyVisitor({ client, body: claim })).data?.status, "received");
}

const companyId = await leads();
await events();
await lists(companyId);
await motions(companyId);
await refusals(companyId);
await embeds();
console.log(`${checks} checks of 13 operations`);
