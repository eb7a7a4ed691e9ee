"""What Schemathesis needs to know of Inlet beyond the document.

Three checks stand beside its own. They make the statuses that schemathesis.toml
adds narrow: an added status passes only with the reason that it was added for.
"""

import functools
import ipaddress
import itertools
import json
import os
import random
import re
import urllib.request
import zlib

import jsonschema_rs
import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.generation.meta import REQUEST_SHAPE_PROBES, coverage_scenario

KEY = "Bearer " + os.environ["INLET_CONTRACT_KEY"]

requests = itertools.count(1)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    close(raw_schema["components"]["schemas"])


def close(schema):
    """Clients must bear a field that they do not know, but here it is a deviation."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            close(value)
    elif isinstance(schema, list):
        for value in schema:
            close(value)


@schemathesis.hook
def after_load_schema(context, schema):
    """Says which checks run, and lets none be switched off in silence."""
    names = CHECKS.get_all_names()
    for config in [schema.config.checks, *(operation.checks for operation in schema.config.operations.operations)]:
        for name in names:
            assert config.get_by_name(name=name).enabled, f"the check {name} is switched off"
    print(f"\n     Checks:           {len(names)}, none switched off: {', '.join(sorted(names))}")


@schemathesis.hook
def before_call(context, case, kwargs):
    n = next(requests)
    # Public operations are limited by address; every request comes from another,
    # so that what lies behind the limits is reached.
    case.headers["X-Forwarded-For"] = str(ipaddress.ip_address("10.0.0.0") + n)
    # Generated keys repeat. Most leads are to be new ones.
    if is_positive(case) and operation_of(case) in ("createLead", "createLeadAlias") and n % 4:
        if "Idempotency-Key" in case.headers:
            case.headers["Idempotency-Key"] = f"lead-{n}"


@schemathesis.hook
def after_call(context, case, response):
    """Plants the deviation that scripts/contract.sh wants to see caught."""
    plant = os.environ.get("INLET_CONTRACT_PLANT")
    if plant == "status":
        response.status_code = 299
    if plant == "header":
        response.headers.pop("x-request-id")
    if plant == "field" and response.status_code < 300:
        response.content = response.content.replace(b"{", b'{"undocumented":1,', 1)
    if plant == "type":
        response.headers["content-type"] = ["text/html"]
    if plant == "code":
        response.content = re.sub(rb'"(error|code)":"\w+"', rb'"\1":"surprise"', response.content)


def operation_of(case):
    return case.operation.definition.raw["operationId"]


def is_positive(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


def chance(value, one_in):
    """Whether a value is one of so many: the same value is so in every run."""
    return zlib.crc32(json.dumps(value, sort_keys=True, default=str).encode()) % one_in == 0


@schemathesis.hook
def map_case(context, case):
    """Gives valid requests what no schema knows of, most of the time: the fields
    that the form asks for, a slot that is offered, and no cursor that nobody
    issued."""
    if not is_positive(case):
        return case
    operation = operation_of(case)
    if operation in ("submitForm", "bookMeeting") and not chance(case.body, 4):
        case.body["fields"] = {"email": "hank@globex.com", "first_name" if operation == "submitForm" else "name": "Hank"}
        case.body.pop("time_zone", None)
    if operation == "bookMeeting" and not chance(case.body, 4):
        case.body["starts_at"] = random.Random(str(case.body)).choice(slots())
    if operation in ("listEvents", "listEventTypes") and "cursor" in case.query and not chance(case.query["cursor"], 4):
        del case.query["cursor"]
    return case


@schemathesis.hook
def before_add_examples(context, examples):
    for case in examples:
        if operation_of(case) in ("listEvents", "listEventTypes"):
            case.query.pop("cursor", None)  # the document's example was issued by no server


@functools.cache
def slots():
    """When the meeting form of scripts/contract/seed.yaml can be booked."""
    address = f"http://{os.environ['INLET_CONTRACT_ADDRESS']}/api/v1/meeting-forms/meet_contract/slots"
    with urllib.request.urlopen(address) as answer:
        return [slot["starts_at"] for slot in json.load(answer)["slots"]]


def refusal(response):
    """Code and field of an error, whichever of the two shapes it has."""
    error = response.json()["error"]
    if isinstance(error, dict):
        return error["code"], error["param"] or ""
    return error, response.json().get("param", "")


def is_probe(case):
    """A request that is deliberately none of the operation: another method, say."""
    return coverage_scenario(case) in REQUEST_SHAPE_PROBES


@schemathesis.check
def code_is_declared(ctx, response, case):
    """A refusal has a code that x-errors lists for its status."""
    if response.status_code < 400 or is_probe(case):
        return
    code, _ = refusal(response)
    declared = case.operation.definition.raw["x-errors"].get(str(response.status_code), [])
    assert code in declared, f"{code} is not among {declared}"


# Why a request that its schema takes may be refused all the same: what no schema
# can hold, by operation, status, code and field.
CANNOT_BE_IN_A_SCHEMA = {
    # An e-mail address; and that blank text counts as absent.
    "createLead": {(400, "invalid_lead"): r"email", (409, "duplicate_request"): ""},
    "createLeadAlias": {(400, "invalid_lead"): r"email", (409, "duplicate_request"): ""},
    # Whose contacts they are, and what the workspace has and is set to.
    "startMotion": {
        (400, "invalid_request"): r"contactIds\[\d+\]",
        (404, "motion_not_found"): "",
        (404, "company_not_found"): "",
        (409, "api_trigger_missing"): "",
        (409, "idempotency_key_reused"): "",
    },
    # Time, size, personal data, and what the workspace has seen so far.
    "createEvent": {
        (422, "event_too_old"): r"occurred_at",
        (422, "event_in_future"): r"occurred_at",
        (422, "event_blocked"): r"name",
        (422, "pii_property"): r"properties\..+",
        (422, "pii_value"): r"properties\..+",
        (422, "invalid_request"): r"company\.domain|properties",
        (422, "event_type_limit"): r"name",
        (422, "too_many_properties"): r"properties",
        (422, "property_type_mismatch"): r"properties\..+",
    },
    # Which cursors were issued.
    "listEvents": {(400, "invalid_cursor"): r"cursor"},
    "listEventTypes": {(400, "invalid_cursor"): r"cursor"},
    # Which keys exist, which fields a form has, and which zones there are.
    "identifyVisitor": {(404, "site_not_found"): ""},
    "getForm": {(404, "form_not_found"): ""},
    "submitForm": {(404, "form_not_found"): "", (400, "invalid_request"): r"fields\..*"},
    "getMeetingForm": {(404, "form_not_found"): ""},
    "listMeetingSlots": {(404, "form_not_found"): "", (400, "invalid_request"): r"to|time_zone"},
    "bookMeeting": {
        (404, "form_not_found"): "",
        (400, "invalid_request"): r"fields\..*|time_zone",
        (409, "slot_unavailable"): "",
    },
}


@schemathesis.check
def valid_data_is_refused_for_a_listed_reason(ctx, response, case):
    if not is_positive(case) or is_probe(case) or response.status_code < 400:
        return
    code, param = refusal(response)
    if response.status_code == 401 and response.request.headers.get("Authorization") != KEY:
        return  # a credential that was made up
    reasons = CANNOT_BE_IN_A_SCHEMA.get(operation_of(case), {})
    pattern = reasons.get((response.status_code, code))
    if pattern is not None and re.fullmatch(pattern, param):
        return
    # Fields that a lead's schema does not name can hold anything but U+0000,
    # which a schema can forbid only where it knows the place.
    if code == "invalid_lead" and "\\u0000" in json.dumps(case.body) and param not in known_lead_fields(case):
        return
    raise AssertionError(f"{response.status_code} {code} at {param!r} is not listed for valid data")


def known_lead_fields(case):
    schemas = case.operation.schema.raw_schema["components"]["schemas"]
    fields = set(schemas["LeadInput"]["properties"])
    fields |= {"company." + name for name in schemas["LeadCompany"]["properties"]}
    return fields | {"utm." + name for name in schemas["LeadUTM"]["properties"]}


@schemathesis.check
def batch_refuses_exactly_its_invalid_events(ctx, response, case):
    """A batch is answered 202 whatever its events are, and so may hold events
    that its schema refuses: exactly these have to be refused as invalid."""
    if operation_of(case) != "createEventBatch" or response.status_code != 202:
        return
    components = case.operation.schema.raw_schema["components"]
    event = jsonschema_rs.Draft202012Validator({"$ref": "#/components/schemas/EventInput", "components": components})
    events = json.loads(response.request.body)["events"]
    results = response.json()["results"]
    assert len(results) == len(events), f"{len(results)} results for {len(events)} events"
    for sent, result in zip(events, results, strict=True):
        refused = result.get("error", {}).get("code") == "invalid_body"
        assert refused != event.is_valid(sent), f"{json.dumps(sent)} became {json.dumps(result)}"
