package fault

import "net/http"

// Retry says what a client should do with the request that met a code.
type Retry string

// The classes of retries.
const (
	Never       Retry = "never"        // the same request will always be refused
	AfterFix    Retry = "after_fix"    // change the request, the key or the workspace first
	SameRequest Retry = "same_request" // send the very same request again
	After       Retry = "after"        // wait Retry-After seconds, then send the same request again
)

// A Code is one row of the error catalogue: what a client may match on.
// Document, server and docs site all derive from these rows.
type Code struct {
	Name    string // the stable string in `error`
	Status  int    // the HTTP status it is answered with
	Meaning string // what happened, for the catalogue and as the message when a call site has nothing to add
	Remedy  string // what the caller can do about it
	Retry   Retry
}

var catalog []*Code

func define(name string, status int, retry Retry, meaning, remedy string) *Code {
	c := &Code{Name: name, Status: status, Meaning: meaning, Remedy: remedy, Retry: retry}
	catalog = append(catalog, c)
	return c
}

// Catalog lists every code in the order of the interface. A name stands twice
// only where the interface gives one name two statuses (invalid_request).
func Catalog() []*Code { return catalog }

// Any request.
var (
	InvalidAPIKey = define("invalid_api_key", http.StatusUnauthorized, AfterFix,
		"The Authorization header carries no valid API key.",
		"Send `Authorization: Bearer <key>` with a key that exists and is neither revoked nor expired. The answer is the same whatever the reason.")
	ForbiddenScope = define("forbidden_scope", http.StatusForbidden, AfterFix,
		"The key lacks a scope that this operation needs.",
		"Ask a workspace admin to grant every scope listed in `scopes`, or use another key.")
	APIDisabled = define("api_disabled", http.StatusForbidden, AfterFix,
		"The REST API is switched off for credentials of this kind in the workspace.",
		"Ask a workspace admin to switch the REST API on.")
	RateLimited = define("rate_limited", http.StatusTooManyRequests, After,
		"Too many requests in this minute.",
		"Wait `retry_after` seconds. Ask for a higher limit of the key if this is your normal load.")
	NotFound = define("not_found", http.StatusNotFound, Never,
		"No operation has this path.",
		"Compare the path with the reference; paths carry no trailing slash.")
	MethodNotAllowed = define("method_not_allowed", http.StatusMethodNotAllowed, Never,
		"The path exists, but not with this method.",
		"Use one of the methods in the Allow header.")
	BodyTooLarge = define("body_too_large", http.StatusRequestEntityTooLarge, AfterFix,
		"The request body is larger than this operation accepts.",
		"Send a smaller body; the reference gives the limit of each operation.")
	UnsupportedMediaType = define("unsupported_media_type", http.StatusUnsupportedMediaType, AfterFix,
		"The Content-Type is not JSON.",
		"Send `Content-Type: application/json`.")
	InternalError = define("internal_error", http.StatusInternalServerError, SameRequest,
		"Something failed on the server.",
		"Send the request again; if it keeps failing, report the request id.")
	ServiceUnavailable = define("service_unavailable", http.StatusServiceUnavailable, After,
		"The service cannot answer right now.",
		"Wait Retry-After seconds, then send the same request again.")
)

// Leads.
var (
	InvalidLead = define("invalid_lead", http.StatusBadRequest, AfterFix,
		"The lead cannot be saved.",
		"Correct the field named in `param`; a lead needs at least `email` or `name`.")
	DuplicateRequest = define("duplicate_request", http.StatusConflict, Never,
		"The Idempotency-Key was already used for a lead of this workspace.",
		"Nothing to do: the first lead, `lead_id`, stands. Use a new key for a new lead.")
	IngestFailed = define("ingest_failed", http.StatusInternalServerError, SameRequest,
		"The lead could not be saved because of a failure on the server.",
		"Send the request again with the same Idempotency-Key; a failed request does not use the key up.")
)

// Motion start.
var (
	IdempotencyKeyRequired = define("idempotency_key_required", http.StatusBadRequest, AfterFix,
		"The Idempotency-Key header is missing or malformed.",
		"Send an Idempotency-Key of 1 to 100 visible ASCII characters.")
	InvalidRequest = define("invalid_request", http.StatusBadRequest, AfterFix,
		"The request body is invalid.",
		"Correct the field named in `param`.")
	MotionNotFound = define("motion_not_found", http.StatusNotFound, AfterFix,
		"The workspace has no such motion.",
		"Check the motion id and which workspace the key belongs to.")
	CompanyNotFound = define("company_not_found", http.StatusNotFound, AfterFix,
		"The workspace has no such company.",
		"Check companyId and which workspace the key belongs to.")
	APITriggerMissing = define("api_trigger_missing", http.StatusConflict, AfterFix,
		"The motion has no API-call trigger.",
		"Add the API-call trigger in the motion's entry settings.")
	IdempotencyKeyReused = define("idempotency_key_reused", http.StatusConflict, AfterFix,
		"The Idempotency-Key was already used for a different motion or company.",
		"Use a new key for a new start.")
	EngineOff = define("engine_off", http.StatusConflict, AfterFix,
		"The workspace's agents are switched off; nothing was queued.",
		"Switch the agents on, then send the request again.")
	StartFailed = define("start_failed", http.StatusInternalServerError, SameRequest,
		"The start could not be queued because of a failure on the server.",
		"Send the request again with the same Idempotency-Key.")
)

// Events.
var (
	InvalidBody = define("invalid_body", http.StatusBadRequest, AfterFix,
		"A field or parameter is missing, unknown or of the wrong type.",
		"Correct the field named in `param`.")
	InvalidCursor = define("invalid_cursor", http.StatusBadRequest, AfterFix,
		"The cursor was not issued by this list.",
		"Pass `nextCursor` of the previous page unchanged, with the same filters, or start again without a cursor.")
	BatchTooLarge = define("batch_too_large", http.StatusRequestEntityTooLarge, AfterFix,
		"The batch has more than 100 events or more than 256 KB.",
		"Split the batch.")
	InvalidEvent = define("invalid_request", http.StatusUnprocessableEntity, AfterFix,
		"The event breaks a rule that its shape cannot show.",
		"Correct the field named in `param`, such as a malformed domain or properties over 4 KB.")
	EventTooOld = define("event_too_old", http.StatusUnprocessableEntity, Never,
		"occurred_at is more than 30 days ago.",
		"Nothing to do: events older than 30 days are not recorded.")
	EventInFuture = define("event_in_future", http.StatusUnprocessableEntity, AfterFix,
		"occurred_at is more than 5 minutes ahead.",
		"Check the clock and the time zone of the sender, or leave occurred_at out.")
	EventBlocked = define("event_blocked", http.StatusUnprocessableEntity, AfterFix,
		"The workspace has blocked events of this name.",
		"Stop sending the event, or ask a workspace admin to unblock the name.")
	PIIProperty = define("pii_property", http.StatusUnprocessableEntity, AfterFix,
		"A property name is on the personal-data list.",
		"Leave the property out; say who the event is about in `contact`.")
	PIIValue = define("pii_value", http.StatusUnprocessableEntity, AfterFix,
		"A property value looks like an e-mail address or a card number.",
		"Leave the value out; say who the event is about in `contact`.")
	PropertyTypeMismatch = define("property_type_mismatch", http.StatusUnprocessableEntity, AfterFix,
		"A property has another type than when it was first seen.",
		"Send the property with its first type, or under another name.")
	TooManyProperties = define("too_many_properties", http.StatusUnprocessableEntity, AfterFix,
		"The event name would have more than 50 different properties.",
		"Use the properties the name already has; put nothing variable into property names.")
	EventTypeLimit = define("event_type_limit", http.StatusUnprocessableEntity, AfterFix,
		"The workspace already has 200 event names.",
		"Use a name that exists; put nothing variable into event names.")
	EventsRateLimited = define("events_rate_limited", http.StatusTooManyRequests, After,
		"The workspace has reached 1,000 events in the minute or 100,000 in the UTC day; nothing of the request was recorded.",
		"Wait Retry-After seconds, then send the same request again.")
	IngestBacklogged = define("ingest_backlogged", http.StatusTooManyRequests, After,
		"20,000 earlier events are still waiting to be processed; nothing of the request was recorded.",
		"Wait Retry-After seconds, then send the same request again.")
	EventsUnavailable = define("events_unavailable", http.StatusServiceUnavailable, After,
		"Events cannot be accepted right now.",
		"Wait Retry-After seconds, then send the same request again; event ids keep repeats safe.")
)

// Embeds.
var (
	OriginNotAllowed = define("origin_not_allowed", http.StatusForbidden, AfterFix,
		"The page's origin is none of the site's.",
		"Add the origin of the page, such as https://www.example.com, to a site of the workspace.")
	SiteNotFound = define("site_not_found", http.StatusNotFound, AfterFix,
		"No site has this key.",
		"Check the site key in the tracker's `data-site`.")
	FormNotFound = define("form_not_found", http.StatusNotFound, AfterFix,
		"No form has this public key.",
		"Check the public key in the address of the embed.")
	SlotUnavailable = define("slot_unavailable", http.StatusConflict, AfterFix,
		"The slot is taken by now, or is not offered.",
		"List the free slots again and let the person choose another.")
)
