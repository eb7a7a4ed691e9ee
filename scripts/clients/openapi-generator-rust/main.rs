//! Uses every operation of the server by the generated client, as an integrator
//! would. run.sh compiles and runs it.

use std::collections::HashMap;
use std::env::var;
use std::fmt::Debug;
use std::thread::sleep;
use std::time::Duration;

use inlet::apis::configuration::Configuration;
use inlet::apis::embeds_api::*;
use inlet::apis::events_api::*;
use inlet::apis::leads_api::*;
use inlet::apis::motions_api::*;
use inlet::apis::{Error, ResponseContent};
use inlet::models::*;

fn connect(key: Option<&str>) -> Configuration {
    Configuration {
        base_path: var("INLET_URL").unwrap(),
        bearer_access_token: key.map(str::to_owned),
        ..Configuration::new()
    }
}

/// The answer of a call that succeeded.
fn of<T, E: Debug>(answer: Result<ResponseContent<T>, Error<E>>) -> T {
    let answer = answer.unwrap();
    answer.entity.unwrap_or_else(|| panic!("another answer: {}", answer.content))
}

/// Status and error of a call that was refused. Shapes that several statuses
/// share come as the first of them.
fn refusal<T, E: Debug>(answer: Result<ResponseContent<T>, Error<E>>) -> (u16, E) {
    match answer {
        Err(Error::ResponseError(e)) => (e.status.as_u16(), e.entity.unwrap()),
        Err(e) => panic!("{e}"),
        Ok(answer) => panic!("it was answered {}", answer.content),
    }
}

fn order(number: i32, total: f64) -> EventInput {
    EventInput {
        occurred_at: Some(chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)),
        company: Some(Box::new(CompanyReference::CompanyByDomain(Box::new(CompanyByDomain::new("globex.com".into()))))),
        properties: Some(HashMap::from([
            ("total".into(), PropertyValue::PropertyNumber(total)),
            ("plan".into(), PropertyValue::PropertyText("pro".into())),
            ("renewal".into(), PropertyValue::PropertyFlag(false)),
        ])),
        ..EventInput::new(format!("order-{number}"), "order_placed".into())
    }
}

fn main() {
    let inlet = connect(Some(&var("INLET_KEY").unwrap()));
    let company = leads(&inlet);
    events(&inlet);
    lists(&inlet, company);
    motions(&inlet, company);
    refusals(&inlet, company);
    embeds();
    println!("13 operations");
}

fn leads(inlet: &Configuration) -> i64 {
    let lead = LeadInput {
        email: Some(Some("hank@globex.com".into())),
        title: Some(None), // null, not absent
        company: Some(Some(LeadCompany { domain: Some(Some("globex.com".into())), ..LeadCompany::new() })),
        ..LeadInput::new()
    };
    let CreateLeadSuccess::Status201(created) = of(create_lead(inlet, lead.clone(), Some("rust-lead-1"))) else { panic!() };
    assert_eq!(created.status, "new");
    let (409, CreateLeadError::Status400(again)) = refusal(create_lead(inlet, lead, Some("rust-lead-1"))) else { panic!() };
    assert_eq!((again.error.as_str(), again.lead_id), ("duplicate_request", Some(created.lead_id)));
    let older = LeadInput { name: Some(Some("Hank Scorpio".into())), company_name: Some(Some("Globex".into())), ..LeadInput::new() };
    let CreateLeadAliasSuccess::Status201(_) = of(create_lead_alias(inlet, older, None)) else { panic!() };
    created.company_id.unwrap()
}

fn record(inlet: &Configuration, event: EventInput) -> EventReceipt {
    match of(create_event(inlet, event, None)) {
        CreateEventSuccess::Status202(receipt) => receipt,
        CreateEventSuccess::UnknownValue(other) => panic!("{other}"),
    }
}

fn events(inlet: &Configuration) {
    let first = record(inlet, order(1, 129.5));
    assert_eq!(first.status, "accepted");
    let again = record(inlet, order(1, 129.5));
    assert_eq!((again.status.as_str(), &again.event_id), ("duplicate", &first.event_id));
    let hank = ContactReference::ContactByEmail(Box::new(ContactByEmail::new("hank@globex.com".into())));
    record(inlet, EventInput { contact: Some(Box::new(hank)), ..EventInput::new("login-1".into(), "signed_in".into()) });
    let visitor = VisitorReference::new("rust-visitor".into());
    let visit = EventInput { visitor: Some(Box::new(visitor)), ..EventInput::new("visit-1".into(), "pricing_viewed".into()) };
    assert_eq!(record(inlet, visit).status, "pending_identity");

    let mut batch: Vec<_> = (2..8).map(|n| order(n, n.into())).collect();
    let mut private = order(8, 1.0);
    private.properties.as_mut().unwrap().insert("email".into(), PropertyValue::PropertyText("x".into()));
    batch.push(private);
    let CreateEventBatchSuccess::Status202(receipt) = of(create_event_batch(inlet, EventBatch::new(batch), None)) else { panic!() };
    assert_eq!((receipt.accepted, receipt.refused), (6, 1));
    let last = &receipt.results[6];
    assert_eq!(last.event_id, None);
    let error = last.error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.param.as_deref()), ("pii_property", Some("properties.email")));
}

fn lists(inlet: &Configuration, company: i64) {
    let mut rows = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let answer = list_events(inlet, Some(3), cursor.as_deref(), Some("order_placed"), Some(EventStatusFilter::Accepted));
        let ListEventsSuccess::Status200(page) = of(answer) else { panic!() };
        assert_eq!(page.total, 7);
        rows.extend(page.rows);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(rows.len(), 7);
    let oldest: &Event = &rows[6];
    assert_eq!((oldest.company_id, oldest.contact_id), (Some(company), None));
    assert_eq!(oldest.properties["total"], PropertyValue::PropertyNumber(129.5));
    assert_eq!(oldest.properties["plan"], PropertyValue::PropertyText("pro".into()));
    assert_eq!(oldest.properties["renewal"], PropertyValue::PropertyFlag(false));

    let mut types = HashMap::new();
    loop {
        let ListEventTypesSuccess::Status200(page) = of(list_event_types(inlet, Some(3), cursor.as_deref())) else { panic!() };
        types.extend(page.rows.into_iter().map(|row| (row.name.clone(), row)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(types.len(), 4);
    assert_eq!(types["order_placed"].properties["total"], "number");
}

fn motions(inlet: &Configuration, company: i64) {
    let motion = var("INLET_MOTION").unwrap().parse().unwrap();
    for _ in 0..100 {
        match of(start_motion(inlet, motion, "rust-start-1", MotionStart::new(company))) {
            StartMotionSuccess::Status202(queued) => assert_eq!(queued.company_id, company),
            StartMotionSuccess::Status200(decided) => {
                assert_eq!(decided.outcome, "entered");
                assert!(decided.enrollment_id.is_some());
                return;
            }
            StartMotionSuccess::UnknownValue(other) => panic!("{other}"),
        }
        sleep(Duration::from_millis(100));
    }
    panic!("the start is not decided");
}

fn refusals(inlet: &Configuration, company: i64) {
    let (401, ListEventTypesError::Status401(unknown)) = refusal(list_event_types(&connect(Some("amp_nobody")), None, None)) else { panic!() };
    assert_eq!(unknown.error, "invalid_api_key");
    let narrow = connect(Some(&var("INLET_NARROW_KEY").unwrap()));
    let (403, CreateEventError::Status401(scopes)) = refusal(create_event(&narrow, order(9, 1.0), None)) else { panic!() };
    assert_eq!(scopes.scopes, Some(vec!["events.send".to_owned()]));
    let late = EventInput { occurred_at: Some("2020-01-01T00:00:00Z".into()), ..order(9, 1.0) };
    let (422, CreateEventError::Status400(refused)) = refusal(create_event(inlet, late, None)) else { panic!() };
    assert_eq!((refused.error.code.as_str(), refused.error.param.as_deref()), ("event_too_old", Some("occurred_at")));
    let (404, StartMotionError::Status400(nowhere)) = refusal(start_motion(inlet, 9_000_000, "rust-start-2", MotionStart::new(company))) else { panic!() };
    assert_eq!(nowhere.error, "motion_not_found");
}

fn embeds() {
    let page = connect(None);
    let form = var("INLET_FORM").unwrap();
    let GetFormSuccess::Status200(asked) = of(get_form(&page, &form)) else { panic!() };
    assert_eq!(asked.fields[0].name, "email");
    let mut fields = HashMap::from([("email".to_owned(), "hank@globex.com".to_owned())]);
    let submission = FormSubmission { visitor_id: Some("rust-visitor".into()), ..FormSubmission::new(fields.clone()) };
    let SubmitFormSuccess::Status201(_) = of(submit_form(&page, &form, submission)) else { panic!() };

    let meeting = var("INLET_MEETING_FORM").unwrap();
    let GetMeetingFormSuccess::Status200(what) = of(get_meeting_form(&page, &meeting)) else { panic!() };
    assert_eq!(what.minutes, 30);
    let ListMeetingSlotsSuccess::Status200(offered) = of(list_meeting_slots(&page, &meeting, None, None, Some("Europe/Berlin"))) else { panic!() };
    let slot = &offered.slots[0];
    fields.insert("name".into(), "Hank".into());
    let booking = MeetingBooking::new(slot.starts_at.clone(), fields);
    let BookMeetingSuccess::Status201(booked) = of(book_meeting(&page, &meeting, booking.clone())) else { panic!() };
    assert_eq!(booked.ends_at, slot.ends_at);
    let (409, BookMeetingError::Status400(taken)) = refusal(book_meeting(&page, &meeting, booking)) else { panic!() };
    assert_eq!(taken.error, "slot_unavailable");

    let claim = Identify { email: Some("hank@globex.com".into()), ..Identify::new(var("INLET_SITE").unwrap(), "rust-visitor".into()) };
    let IdentifyVisitorSuccess::Status202(_) = of(identify_visitor(&page, claim)) else { panic!() };
}
