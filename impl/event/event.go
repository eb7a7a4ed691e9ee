// Package event records what happened in a customer's own systems.
//
// An event is recorded once and matched to a company or a person that exists;
// it never creates one. Its states:
//
//	received, names a company or contact that exists,
//	    or a visitor who is identified               → accepted
//	received, nothing in the workspace matched        → unmatched
//	received, names only a visitor who is not
//	    identified                                    → pending_identity
//	received, its id was recorded in the last 30 days → duplicate (an answer only; nothing is written)
//	received, breaks a rule                           → refused (an answer only; nothing is written)
//	pending_identity, its visitor identifies within
//	    30 days                                       → accepted
//	recorded, 30 days pass                            → deleted
package event

import (
	"slices"
	"time"
)

// An Event is a custom event as a caller sent it, its shape checked. The events
// of a body share the memory of one copy of it.
type Event struct {
	ID         string    // the caller's own
	Name       string    // of its event type
	OccurredAt time.Time // to the millisecond, UTC; zero when it was not given

	// Who it is about; zero values where it does not say.
	Company CompanyRef
	Contact ContactRef
	Visitor string

	Properties     []Property // in the order sent
	PropertiesJSON string     // as received, escapes too, but without white space between tokens; empty when not given
}

// A CompanyRef names a company by its id or by one of its domains.
type CompanyRef struct {
	ID     int64
	Domain string // as received
}

// A ContactRef names a contact by its id or e-mail address.
type ContactRef struct {
	ID    int64
	Email string // as received; used for look-up only and never stored
}

// PropertyType is the type of a property's value: a property keeps the one it
// was first seen with.
type PropertyType string

// The types of properties.
const (
	TypeString PropertyType = "string"
	TypeNumber PropertyType = "number"
	TypeBool   PropertyType = "bool"
)

// A Property is one entry of an event's properties.
type Property struct {
	Key  string
	Type PropertyType
	Text string // a string, decoded; the literal of a number or boolean, as received
}

// Status is what became of an event.
type Status int

// The answers an event can get. The first three are recorded.
const (
	unsettled Status = iota
	Accepted
	Unmatched
	PendingIdentity
	Duplicate
	Refused
)

var statusNames = [...]string{"", "accepted", "unmatched", "pending_identity", "duplicate", "refused"}

func (s Status) String() string { return statusNames[s] }

// StatusNamed gives the status of a name, zero for a name of none.
func StatusNamed(name string) Status { return Status(max(0, slices.Index(statusNames[:], name))) }

// statusOf gives the status that record_events numbers from zero.
func statusOf(recorded int64) Status { return Accepted + Status(recorded) }
