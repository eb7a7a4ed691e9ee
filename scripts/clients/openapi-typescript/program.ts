// Uses every operation of the server by the generated types, as an integrator
// would. run.sh type-checks it strictly and runs it.
import createClient from "openapi-fetch";
import { checks, env, equal, fail, of } from "./checks.js";
import type { components, paths } from "./inlet.js";

type Schemas = components["schemas"];

const connect = (key: string) =>
  createClient<paths>({ baseUrl: env("INLET_URL"), headers: { Authorization: `Bearer ${key}` } });
const inlet = connect(env("INLET_KEY"));

async function leads(): Promise<number> {
  const body: Schemas["LeadInput"] = {
    email: "hank@globex.com",
    first_name: "Hank",
    title: null,
    company: { domain: "globex.com", employees: 120 },
    utm: { source: "newsletter" },
    favorite_color: "blue",
  };
  const params = { header: { "Idempotency-Key": "ts-lead-1" } };
  const made = of("createLead", (await inlet.POST("/api/v1/leads", { params, body })).data);
  equal("status of the lead", made.status, "new");
  const companyId: number = of("company of the lead", made.company_id);

  const again = await inlet.POST("/api/v1/leads", { params, body });
  equal("status of the repeat", again.response.status, 409);
  const refusal = of("the repeat", again.error);
  equal("code of the repeat", refusal.error, "duplicate_request");
  equal("lead of the repeat", refusal.lead_id, made.lead_id);

  of("createLeadAlias", (await inlet.POST("/api/v1/lead", { body: { name: "Hank Scorpio", company_name: "Globex" } })).data);
  return companyId;
}

const order = (n: number, total: number): Schemas["EventInput"] => ({
  id: `order-${n}`,
  name: "order_placed",
  occurred_at: new Date().toISOString(),
  company: { domain: "globex.com" },
  properties: { total, plan: "pro", renewal: false },
});

async function events(): Promise<void> {
  const first = of("createEvent", (await inlet.POST("/api/v1/events", { body: order(1, 129.5) })).data);
  equal("status of the event", first.status, "accepted");
  const again = of("createEvent again", (await inlet.POST("/api/v1/events", { body: order(1, 129.5) })).data);
  equal("status of the repeat", again.status, "duplicate");
  equal("event_id of the repeat", again.event_id, first.event_id);

  const login: Schemas["EventInput"] = { id: "login-1", name: "signed_in", contact: { email: "hank@globex.com" } };
  of("an event of a contact", (await inlet.POST("/api/v1/events", { body: login })).data);
  const visit: Schemas["EventInput"] = { id: "visit-1", name: "pricing_viewed", visitor: { id: "ts-visitor" } };
  equal("status of the visit", (await inlet.POST("/api/v1/events", { body: visit })).data?.status, "pending_identity");

  // @ts-expect-error A property is a text, a number or a boolean.
  const wrong: Schemas["EventInput"] = { id: "x", name: "x", properties: { list: [1] } };
  void wrong;

  const batch = [2, 3, 4, 5, 6, 7].map((n) => order(n, n));
  batch.push({ ...order(8, 1), properties: { email: "x" } });
  const receipt = of("createEventBatch", (await inlet.POST("/api/v1/events/batch", { body: { events: batch } })).data);
  equal("counts of the batch", [receipt.accepted, receipt.refused], [6, 1]);
  const last = of("the last result", receipt.results[6]);
  equal("event_id of a refused event", last.event_id, undefined);
  equal("its error", [last.error?.code, last.error?.param], ["pii_property", "properties.email"]);
}

async function lists(companyId: number): Promise<void> {
  const rows: Schemas["Event"][] = [];
  let cursor: Schemas["NextCursor"] = null;
  do {
    const query = { limit: 3, name: "order_placed", status: "accepted" as const, ...(cursor !== null && { cursor }) };
    const page: Schemas["EventPage"] = of("listEvents", (await inlet.GET("/api/v1/events", { params: { query } })).data);
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

  const types = new Map<string, Schemas["EventType"]>();
  cursor = null;
  do {
    const query = { limit: 3, ...(cursor !== null && { cursor }) };
    const page: Schemas["EventTypePage"] = of("listEventTypes", (await inlet.GET("/api/v1/event-types", { params: { query } })).data);
    for (const row of page.rows) types.set(row.name, row);
    cursor = page.nextCursor;
  } while (cursor !== null);
  equal("event types", types.size, 4);
  equal("type of a property", types.get("order_placed")?.properties["total"], "number");
}

async function motions(companyId: number): Promise<void> {
  const params = { path: { id: Number(env("INLET_MOTION")) }, header: { "Idempotency-Key": "ts-start-1" } };
  for (let waits = 0; ; waits++) {
    const answer = of("startMotion", (await inlet.POST("/api/v1/motions/{id}/start", { params, body: { companyId } })).data);
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
  const unknown = await connect("amp_nobody").GET("/api/v1/event-types");
  equal("401", unknown.response.status, 401);

  const narrow = of("403", (await connect(env("INLET_NARROW_KEY")).POST("/api/v1/events", { body: order(9, 1) })).error);
  // Two shapes of errors: the general one has its code in error.
  if (typeof narrow.error !== "string") fail("403 has another shape");
  equal("its code", narrow.error, "forbidden_scope");
  equal("its scopes", "scopes" in narrow ? narrow.scopes : undefined, ["events.send"]);

  const late = { ...order(9, 1), occurred_at: "2020-01-01T00:00:00Z" };
  const refused = of("422", (await inlet.POST("/api/v1/events", { body: late })).error);
  if (typeof refused.error === "string") fail("422 has another shape");
  equal("what is wrong", [refused.error.code, refused.error.param], ["event_too_old", "occurred_at"]);

  const nowhere = await inlet.POST("/api/v1/motions/{id}/start", {
    params: { path: { id: 9_000_000 }, header: { "Idempotency-Key": "ts-start-2" } },
    body: { companyId },
  });
  equal("404", [nowhere.response.status, of("404", nowhere.error).error], [404, "motion_not_found"]);
  equal("400", (await inlet.POST("/api/v1/leads", { body: {} })).error?.param, "email");
}

async function embeds(): Promise<void> {
  const page = createClient<paths>({ baseUrl: env("INLET_URL") });
  const path = { publicKey: env("INLET_FORM") };
  const form = of("getForm", (await page.GET("/api/v1/forms/{publicKey}", { params: { path } })).data);
  equal("first field", form.fields[0]?.name, "email");
  const fields: Schemas["FormValues"] = { email: "hank@globex.com", company_name: null };
  const sent = await page.POST("/api/v1/forms/{publicKey}", { params: { path }, body: { fields, visitor_id: "ts-visitor" } });
  equal("answer of the form", sent.data?.status, "received");

  const meeting = { publicKey: env("INLET_MEETING_FORM") };
  const asked = of("getMeetingForm", (await page.GET("/api/v1/meeting-forms/{publicKey}", { params: { path: meeting } })).data);
  equal("minutes", asked.minutes, 30);
  const query = { time_zone: "Europe/Berlin" };
  const offered = of("listMeetingSlots", (await page.GET("/api/v1/meeting-forms/{publicKey}/slots", { params: { path: meeting, query } })).data);
  const slot = of("a slot", offered.slots[0]);
  const body = { starts_at: slot.starts_at, fields: { ...fields, name: "Hank" } };
  const booked = await page.POST("/api/v1/meeting-forms/{publicKey}", { params: { path: meeting }, body });
  equal("end of the meeting", of("bookMeeting", booked.data).ends_at, slot.ends_at);
  const taken = await page.POST("/api/v1/meeting-forms/{publicKey}", { params: { path: meeting }, body });
  equal("a taken slot", of("409", taken.error).error, "slot_unavailable");

  const claim = { site: env("INLET_SITE"), visitor_id: "ts-visitor", email: "hank@globex.com" };
  equal("identify", (await page.POST("/api/v1/visitors/identify", { body: claim })).data?.status, "received");
}

const companyId = await leads();
await events();
await lists(companyId);
await motions(companyId);
await refusals(companyId);
await embeds();
console.log(`${checks} checks of 13 operations`);
