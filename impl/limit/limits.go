// Package limit holds the limits of the interface: every number that a client
// can run into, once.
package limit

import "time"

// Requests.
const (
	KeyRequestsPerMinute       = 60            // of one key, unless the key has its own
	WorkspaceRequestsPerMinute = 600           // of all service keys of a workspace together
	KeyRequestsMost            = 1_000_000_000 // that a key's own limit may be
)

// Leads. Lengths count Unicode code points.
const (
	LeadEmailLength          = 320
	LeadLinkedInLength       = 2048
	LeadTextLength           = 512 // of every other field
	LeadExtraFields          = 50  // kept of a lead's unknown fields
	LeadIdempotencyKeyLength = 128 // characters that count
)

// Identification of visitors.
const (
	IdentifyTokenLifetime = 24 * time.Hour   // of a signed token, from iat to exp
	IdentifyTokenLeeway   = time.Minute      // between the clocks of signer and server
	PeopleAddedPerDay     = 500              // by signed tokens, in one workspace and UTC day
	LinkLifetime          = 10 * time.Minute // from the click of a link to the page's tracker
)

// What the embeds may ask of one process in a minute. A person behind the
// address of an office is one of many.
const (
	EmbedReadsPerAddress  = 600
	EmbedWritesPerAddress = 120  // submissions and bookings
	IdentifiesPerAddress  = 1000 // a customer's own server may stand before the browsers
	EmbedRequestsPerKey   = 6000 // of one site, form or meeting form
)

// Forms.
const (
	FormNameLength     = 512
	FormFields         = 50
	FormFieldLength    = 64 // of a field's name
	PageURLLength      = 2048
	MeetingSlotDays    = 31 // that one list of slots may span
	MeetingDefaultDays = 14
	MeetingMinutes     = 24 * 60       // of one meeting
	MeetingNotice      = 365 * 24 * 60 // minutes from now to the first slot
	MeetingDaysAhead   = 3650          // from now to the last slot

	// FormAnswer is how long an answer takes at least: several times of what adding a
	// person takes.
	FormAnswer = 50 * time.Millisecond
)

// Events. Lengths count Unicode code points, sizes bytes.
const (
	EventIDLength       = 100
	EventNameLength     = 48
	EventAge            = 30 * 24 * time.Hour // occurred_at, back from receipt
	EventAhead          = 5 * time.Minute     // occurred_at, ahead of receipt
	EventLabelLength    = 200
	VisitorIDLength     = 64
	ContactEmailLength  = 320
	CompanyDomainLength = 2048
	PropertyCount       = 50 // of one event, and of all events of one name together
	PropertyKeyLength   = 40
	PropertyTextLength  = 512
	PropertiesSize      = 4 << 10 // of the compact JSON of all properties
	BatchEvents         = 100
	EventNames          = 200                 // of one workspace
	BacklogWait         = 60 * time.Second    // what a client is asked to wait while the backlog is full
	EventRetention      = 30 * 24 * time.Hour // how long an event is listed, waits for its visitor, and bars its id
)

// What the seed file may say of motions and signals: beyond it, times are none that
// PostgreSQL knows, and whatever works on them would fail for ever.
const (
	MotionDays     = 36500 // of a wait, before a re-entry, and that a signal looks back
	MotionDailyCap = 1_000_000_000
	SignalEvents   = 10_000    // that make a signal hold
	SignalScore    = 1_000_000 // that a signal adds or takes away
)

// Whole numbers that identify records.
const (
	MinID = 1
	MaxID = 1<<53 - 1 // the largest that every JSON reader holds exactly
)
