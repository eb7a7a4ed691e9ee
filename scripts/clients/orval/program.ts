// Uses every operation of the server by the generated functions, as an
// integrator would. run.sh type-checks it strictly and runs it.
import { checks, env, equal, fail, of } from "./checks.js";
import * as api from "./inlet/inlet.js";
import type { Event, EventInput, EventType, FormValues, LeadInput, NextCursor } from "./inlet/model/index.js";

const connect = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });
const inlet = connect(env("INLET_KEY"));

async function leads(): Promise<number> {
  const lead: LeadInput = {
    email: "hank@globex.com",
    first_name: "Hank",
    title: null,
    company: { domain: "globex.com", employees: 120 },
    utm: { source: "newsletter" },
    favorite_color: "blue",
  };
  const headers = { "Idempotency-Key": "ts-lead-1" };
  const made = await api.createLead(lead, headers, inlet);
  if (made.status !== 201) fail(made.data.error);
  equal("status of the lead", made.data.status, "new");
  const companyId: number = of("company of the lead", made.data.company_id);

  const again = await api.createLead(lead, headers, inlet);
  if (again.status !== 409) fail("a repeat is no duplicate");
  equal("lead of the repeat", again.data.lead_id, made.data.lead_id);

  equal("createLeadAlias", (await api.createLeadAlias({ name: "Hank Scorpio", company_name: "Globex" }, {}, inlet)).status, 201);
  return companyId;
}

const order = (n: number, total: number): EventInput => ({
  id: `order-${n}`,
  name: "order_placed",
  occurred_at: new Date().toISOString(),
  company: { domain: "globex.com" },
  properties: { total, plan: "pro", renewal: false },
});

async function record(event: EventInput) {
  const answer = await api.createEvent(event, {}, inlet);
  // 429 has two shapes, told apart by the type of error.
  if (answer.status === 429) fail(typeof answer.data.error === "string" ? answer.data.error : answer.data.error.code);
  if (answer.status !== 202) fail(`createEvent: ${answer.status}`);
  return of("createEvent", answer.data);
}

async function events(): Promise<void> {
  const first = await record(order(1, 129.5));
  equal("status of the event", first.status, "accepted");
  const again = await record(order(1, 129.5));
  equal("the repeat", [again.status, again.event_id], ["duplicate", first.event_id]);
  await record({ id: "login-1", name: "signed_in", contact: { email: "hank@globex.com" } });
  const visit = await record({ id: "visit-1", name: "pricing_viewed", visitor: { id: "ts-visitor" } });
  equal("status of the visit", visit.status, "pending_identity");

  const batch = [2, 3, 4, 5, 6, 7].map((n) => order(n, n));
  batch.push({ ...order(8, 1), properties: { email: "x" } });
  const receipt = await api.createEventBatch({ events: batch }, {}, inlet);
  if (receipt.status !== 202) fail(`createEventBatch: ${receipt.status}`);
  equal("counts of the batch", [receipt.data.accepted, receipt.data.refused], [6, 1]);
  const last = of("the last result", receipt.data.results[6]);
  equal("its error", [last.error?.code, last.error?.param], ["pii_property", "properties.email"]);
}

async function lists(companyId: number): Promise<void> {
  const rows: Event[] = [];
  let cursor: NextCursor = null;
  do {
    const page: api.listEventsResponse = await api.listEvents({ limit: 3, name: "order_placed", status: "accepted", ...(cursor !== null && { cursor }) }, inlet);
    if (page.status !== 200) fail(`listEvents: ${page.status}`);
    rows.push(...page.data.rows);
    equal("total", page.data.total, 7);
    cursor = page.data.nextCursor;
  } while (cursor !== null);
  equal("listed events", rows.length, 7);
  const oldest = of("the oldest", rows[6]);
  equal("whose it is", [oldest.company_id, oldest.contact_id], [companyId, null]);
  const total: string | number | boolean | undefined = oldest.properties["total"];
  equal("its number", typeof total === "number" ? total / 2 : 0, 64.75);

  const types: EventType[] = [];
  cursor = null;
  do {
    const page: api.listEventTypesResponse = await api.listEventTypes({ limit: 3, ...(cursor !== null && { cursor }) }, inlet);
    if (page.status !== 200) fail(`listEventTypes: ${page.status}`);
    types.push(...page.data.rows);
    cursor = page.data.nextCursor;
  } while (cursor !== null);
  equal("event types", types.length, 4);
}

async function motions(companyId: number): Promise<void> {
  const start = () => api.startMotion(Number(env("INLET_MOTION")), { companyId }, { "Idempotency-Key": "ts-start-1" }, inlet);
  let answer = await start();
  for (let waits = 0; answer.status === 202 && waits < 100; waits++) {
    equal("status of the start", answer.data.status, "queued");
    await new Promise((resolve) => setTimeout(resolve, 100));
    answer = await start();
  }
  if (answer.status !== 200) fail(`startMotion: ${answer.status}`);
  equal("outcome", [answer.data.status, answer.data.outcome], ["decided", "entered"]);
  of("an enrollment", answer.data.enrollmentId);
}

async function refusals(companyId: number): Promise<void> {
  const unknown = await api.listEventTypes({}, connect("amp_nobody"));
  if (unknown.status !== 401) fail("a wrong key is taken");
  equal("401", unknown.data.error, "invalid_api_key");
  const narrow = await api.createEvent(order(9, 1), {}, connect(env("INLET_NARROW_KEY")));
  if (narrow.status !== 403) fail("a narrow key is taken");
  equal("its scopes", narrow.data.scopes, ["events.send"]);
  const refused = await api.createEvent({ ...order(9, 1), occurred_at: "2020-01-01T00:00:00Z" }, {}, inlet);
  if (refused.status !== 422) fail("an old event is taken");
  equal("what is wrong", [refused.data.error.code, refused.data.error.param], ["event_too_old", "occurred_at"]);
  const nowhere = await api.startMotion(9_000_000, { companyId }, { "Idempotency-Key": "ts-start-2" }, inlet);
  if (nowhere.status !== 404) fail("a motion that is none is started");
  equal("404", nowhere.data.error, "motion_not_found");
}

async function embeds(): Promise<void> {
  const form = env("INLET_FORM");
  const asked = await api.getForm(form);
  if (asked.status !== 200) fail(`getForm: ${asked.status}`);
  equal("first field", asked.data.fields[0]?.name, "email");
  const fields: FormValues = { email: "hank@globex.com", company_name: null };
  equal("submitForm", (await api.submitForm(form, { fields, visitor_id: "ts-visitor" })).status, 201);

  const meeting = env("INLET_MEETING_FORM");
  const what = await api.getMeetingForm(meeting);
  if (what.status !== 200) fail(`getMeetingForm: ${what.status}`);
  equal("minutes", what.data.minutes, 30);
  const slots = await api.listMeetingSlots(meeting, { time_zone: "Europe/Berlin" });
  if (slots.status !== 200) fail(`listMeetingSlots: ${slots.status}`);
  const slot = of("a slot", slots.data.slots[0]);
  const booking = { starts_at: slot.starts_at, fields: { ...fields, name: "Hank" } };
  const booked = await api.bookMeeting(meeting, booking);
  if (booked.status !== 201) fail(`bookMeeting: ${booked.status}`);
  equal("end of the meeting", booked.data.ends_at, slot.ends_at);
  equal("a taken slot", (await api.bookMeeting(meeting, booking)).status, 409);

  const claim = { site: env("INLET_SITE"), visitor_id: "ts-visitor", email: "hank@globex.com" };
  equal("identify", (await api.identifyVisitor(claim)).status, 202);
}

const companyId = await leads();
await events();
await lists(companyId);
await motions(companyId);
await refusals(companyId);
await embeds();
console.log(`${checks} checks of 13 operations`);
