// Package motion runs motions: workflows that a company enters, by an API call,
// an event, a lead or a signal, and then goes through step by step.
//
// An entry of a company into a motion:
//
//	(none)   by API call, event, lead or signal             → queued
//	queued   decided within moments, by the checks of       → decided: entered,
//	         decide_entries in their order                    or not, and why
//
// Every trigger takes this same path. An enrollment of a company that entered:
//
//	active   takes its steps in order, waits included       → active
//	active   has taken the last one                         → completed
//	active   the motion is archived or the company gone     → exited
//	active   a step failed as often as it is tried          → failed
//
// While a motion is paused or the workspace's agents are off, nothing new enters
// and steps that are due wait.
//
// Whatever process dies, nothing is lost and nothing is done twice: a decision
// is one transaction, and so is every step with its move to the next one.
// Webhooks alone leave the database; they are sent at least once, each with an
// id of its own that stays the same.
//
// The work stands in two tables, motion_entries and enrollments, each with an
// index on what is to be done, and all processes share it through locks. A
// library for durable jobs would keep the same facts a second time, in tables of
// its own that know no workspaces: River, the one of that kind for PostgreSQL,
// needs another driver than ours as well.
package motion

// Entry settings of a motion, as they are stored.
type Entry struct {
	APICall       bool      `json:"api_call"`
	LeadCreated   bool      `json:"lead_created"`
	Events        []Trigger `json:"events"`
	Signals       []int64   `json:"signals"`
	InSegments    []int64   `json:"in_segments"`     // all of which the company must be in
	NotInSegments []int64   `json:"not_in_segments"` // none of which it may be in
	ReentryDays   int64     `json:"reentry_days"`    // since the last entry; -1 never, 0 always
	DailyCap      *int      `json:"daily_cap"`       // entries a UTC day
}

// A Trigger is an event of a name with such properties.
type Trigger struct {
	Name  string      `json:"name"`
	Where []Condition `json:"where"`
}

// A Condition on a property of an event.
type Condition struct {
	Property string `json:"property"`
	Equals   any    `json:"equals"` // text, a number or a boolean
}

// A Step of a motion, as it is stored.
type Step struct {
	Kind    string   `json:"kind"`
	Hours   int      `json:"hours,omitempty"`   // wait
	Segment int64    `json:"segment,omitempty"` // add_to_segment, remove_from_segment
	Field   string   `json:"field,omitempty"`   // set_field
	Value   string   `json:"value,omitempty"`
	Text    string   `json:"text,omitempty"` // add_note
	Name    string   `json:"name,omitempty"` // create_opportunity
	Amount  *float64 `json:"amount,omitempty"`
	URL     string   `json:"url,omitempty"` // send_webhook
}

// The kinds of steps.
const (
	Wait              = "wait"
	AddToSegment      = "add_to_segment"
	RemoveFromSegment = "remove_from_segment"
	SetField          = "set_field"
	AddNote           = "add_note"
	CreateOpportunity = "create_opportunity"
	SendWebhook       = "send_webhook"
)

// How an enrollment ends.
const (
	Completed = "completed"
	Exited    = "exited"
	Failed    = "failed"
)

// Entered is the reason code, and the outcome, of a company that entered.
const (
	Entered    = "entered"
	NotEntered = "not_entered"
)

// reasons tell people what a reason code means, in the order of the checks.
var reasons = []struct{ code, text string }{
	{"agents_off", "The workspace's agents are switched off."},
	{"motion_paused", "The motion is paused."},
	{"company_gone", "The company is gone."},
	{"already_enrolled", "The company is already in this motion."},
	{"reentry_not_allowed", "The company was in this motion before, and its re-entry settings do not let it in again yet."},
	{"conditions_not_met", "The company is not in a segment that the motion asks for, or is in one that it rules out."},
	{"no_contacts", "The company has no contact, or none of those that were named."},
	{"daily_cap_reached", "As many companies as may enter the motion in a day have entered it today."},
	{Entered, "The company entered the motion."},
}

// Reason tells people what a reason code means.
func Reason(code string) string {
	for _, r := range reasons {
		if r.code == code {
			return r.text
		}
	}
	return ""
}
