import inlet.ApiClient;
import inlet.ApiException;
import inlet.JSON;
import inlet.api.EmbedsApi;
import inlet.api.EventsApi;
import inlet.api.LeadsApi;
import inlet.api.MotionsApi;
import inlet.model.*;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import okhttp3.Response;

/**
 * Uses every operation of the server by the generated client, as an integrator would. run.sh
 * compiles and runs it.
 */
public final class Program {
  private static int checks;

  static <T> void equal(String what, T got, T want) {
    checks++;
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
  }

  static ApiClient connect(String key) {
    ApiClient client = new ApiClient().setBasePath(System.getenv("INLET_URL"));
    client.setBearerToken(key);
    return client;
  }

  interface Call {
    void run() throws ApiException;
  }

  /** The body of the error that a call meets. */
  static <T> T refusal(int status, Class<T> type, Call call) throws Exception {
    try {
      call.run();
    } catch (ApiException e) {
      equal("status", e.getCode(), status);
      return JSON.getGson().fromJson(e.getResponseBody(), type);
    }
    throw new AssertionError("it was answered, and should be " + status);
  }

  static EventInput order(int number, double total) {
    Map<String, PropertyValue> properties = new HashMap<>();
    properties.put("total", new PropertyValue(total));
    properties.put("plan", new PropertyValue("pro"));
    properties.put("renewal", new PropertyValue(false));
    return new EventInput()
        .id("order-" + number)
        .name("order_placed")
        .occurredAt(Instant.now().toString().replaceAll("\\d{3}(\\d{3})?Z$", "Z"))
        .company(new CompanyReference(new CompanyByDomain().domain("globex.com")))
        .properties(properties);
  }

  public static void main(String[] args) throws Exception {
    ApiClient inlet = connect(System.getenv("INLET_KEY"));
    long company = leads(new LeadsApi(inlet));
    EventsApi events = new EventsApi(inlet);
    events(events);
    lists(events, company);
    motions(new MotionsApi(inlet), company);
    refusals(inlet, company);
    embeds(new EmbedsApi(inlet));
    System.out.println(checks + " checks of 13 operations");
  }

  static long leads(LeadsApi api) throws Exception {
    LeadInput lead =
        new LeadInput()
            .email("hank@globex.com")
            .title(null)
            .company(new LeadCompany().domain("globex.com"))
            .utm(new LeadUTM().source("newsletter"))
            .putAdditionalProperty("favorite_color", "blue");
    Lead created = api.createLead(lead, "java-lead-1");
    equal("status of the lead", created.getStatus(), "new");
    inlet.model.Error again = refusal(409, inlet.model.Error.class, () -> api.createLead(lead, "java-lead-1"));
    equal("code of the repeat", again.getError(), "duplicate_request");
    equal("lead of the repeat", again.getLeadId(), created.getLeadId());
    api.createLeadAlias(new LeadInput().name("Hank Scorpio").companyName("Globex"), null);
    return created.getCompanyId();
  }

  static void events(EventsApi api) throws Exception {
    EventReceipt first = api.createEvent(order(1, 129.5), null);
    equal("status of the event", first.getStatus(), "accepted");
    EventReceipt again = api.createEvent(order(1, 129.5), null);
    equal("status of the repeat", again.getStatus(), "duplicate");
    equal("event_id of the repeat", again.getEventId(), first.getEventId());
    ContactReference hank = new ContactReference(new ContactByEmail().email("hank@globex.com"));
    api.createEvent(new EventInput().id("login-1").name("signed_in").contact(hank), null);
    VisitorReference visitor = new VisitorReference().id("java-visitor");
    EventReceipt visit = api.createEvent(new EventInput().id("visit-1").name("pricing_viewed").visitor(visitor), null);
    equal("status of the visit", visit.getStatus(), "pending_identity");

    EventBatch batch = new EventBatch();
    for (int n = 2; n < 8; n++) {
      batch.addEventsItem(order(n, n));
    }
    batch.addEventsItem(order(8, 1).putPropertiesItem("email", new PropertyValue("x")));
    EventBatchReceipt receipt = api.createEventBatch(batch, null);
    equal("accepted of the batch", receipt.getAccepted(), 6);
    EventErrorDetail detail = receipt.getResults().get(6).getError();
    equal("code of a refused event", detail.getCode(), "pii_property");
    equal("its param", detail.getParam(), "properties.email");
  }

  static void lists(EventsApi api, long company) throws Exception {
    List<Event> rows = new ArrayList<>();
    String cursor = null;
    do {
      EventPage page = api.listEvents(3, cursor, "order_placed", EventStatusFilter.ACCEPTED);
      equal("total", page.getTotal(), 7L);
      rows.addAll(page.getRows());
      cursor = page.getNextCursor();
    } while (cursor != null);
    equal("listed events", rows.size(), 7);
    Event oldest = rows.get(6);
    equal("its company", oldest.getCompanyId(), company);
    equal("its contact", oldest.getContactId(), null);
    equal("its number", oldest.getProperties().get("total").getDouble(), 129.5);
    equal("its text", oldest.getProperties().get("plan").getString(), "pro");
    equal("its flag", oldest.getProperties().get("renewal").getBoolean(), false);

    // Others may write whole numbers without a point.
    equal("a whole number", JSON.getGson().fromJson("5", PropertyValue.class).getDouble(), 5.0);

    Map<String, EventType> types = new HashMap<>();
    do {
      EventTypePage page = api.listEventTypes(3, cursor);
      page.getRows().forEach(row -> types.put(row.getName(), row));
      cursor = page.getNextCursor();
    } while (cursor != null);
    equal("event types", types.size(), 4);
    equal("type of a property", types.get("order_placed").getProperties().get("total"), "number");
  }

  static void motions(MotionsApi api, long company) throws Exception {
    long motion = Long.parseLong(System.getenv("INLET_MOTION"));
    MotionStart start = new MotionStart().companyId(company);
    // The generated method returns the type of 200 only, so 202 is told apart here.
    MotionStartDecided decided = null;
    for (int waits = 0; decided == null && waits < 100; waits++) {
      try (Response answer = api.startMotionCall(motion, "java-start-1", start, null).execute()) {
        String body = answer.body().string();
        if (answer.code() == 200) {
          decided = JSON.getGson().fromJson(body, MotionStartDecided.class);
          break;
        }
        equal("status of the start", JSON.getGson().fromJson(body, MotionStartQueued.class).getStatus(), MotionStartQueued.StatusEnum.QUEUED);
        Thread.sleep(100);
      }
    }
    equal("status", decided.getStatus(), MotionStartDecided.StatusEnum.DECIDED);
    equal("outcome", decided.getOutcome(), "entered");
    equal("an enrollment", decided.getEnrollmentId() != null, true);
  }

  static void refusals(ApiClient client, long company) throws Exception {
    EventsApi nobody = new EventsApi(connect("amp_nobody"));
    equal("401", refusal(401, inlet.model.Error.class, () -> nobody.listEventTypes(null, null)).getError(), "invalid_api_key");
    EventsApi narrow = new EventsApi(connect(System.getenv("INLET_NARROW_KEY")));
    inlet.model.Error scopes = refusal(403, inlet.model.Error.class, () -> narrow.createEvent(order(9, 1), null));
    equal("403", scopes.getScopes(), List.of("events.send"));
    EventInput late = order(9, 1).occurredAt("2020-01-01T00:00:00Z");
    EventError refused = refusal(422, EventError.class, () -> new EventsApi(client).createEvent(late, null));
    equal("code of 422", refused.getError().getCode(), "event_too_old");
    equal("its param", refused.getError().getParam(), "occurred_at");
    MotionStart start = new MotionStart().companyId(company);
    inlet.model.Error nowhere =
        refusal(404, inlet.model.Error.class, () -> new MotionsApi(client).startMotion(9_000_000L, "java-start-2", start));
    equal("404", nowhere.getError(), "motion_not_found");
  }

  static void embeds(EmbedsApi api) throws Exception {
    String form = System.getenv("INLET_FORM");
    equal("first field", api.getForm(form).getFields().get(0).getName(), "email");
    Map<String, String> fields = new HashMap<>();
    fields.put("email", "hank@globex.com");
    fields.put("company_name", null);
    Received sent = api.submitForm(form, new FormSubmission().fields(fields).visitorId("java-visitor"));
    equal("answer of the form", sent.getStatus(), Received.StatusEnum.RECEIVED);
    String meeting = System.getenv("INLET_MEETING_FORM");
    equal("minutes", api.getMeetingForm(meeting).getMinutes(), 30);
    MeetingSlot slot = api.listMeetingSlots(meeting, null, null, "Europe/Berlin").getSlots().get(0);
    fields.put("name", "Hank");
    MeetingBooking booking = new MeetingBooking().startsAt(slot.getStartsAt()).fields(fields);
    equal("end of the meeting", api.bookMeeting(meeting, booking).getEndsAt(), slot.getEndsAt());
    equal("a taken slot", refusal(409, inlet.model.Error.class, () -> api.bookMeeting(meeting, booking)).getError(), "slot_unavailable");
    Identify claim = new Identify().site(System.getenv("INLET_SITE")).visitorId("java-visitor").email("hank@globex.com");
    equal("identify", api.identifyVisitor(claim).getStatus(), Received.StatusEnum.RECEIVED);
  }
}
