package event

import (
	"time"

	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// judge applies the rules that an event's shape cannot show, in the order in
// which they answer; that its id was recorded before comes first of all and is
// the database's to say. The registry's own rules come last, in
// draft.register, which judge calls.
func (d *draft) judge(e *Event, now time.Time) (match reference, id int64, registers bool, f *fault.Fault) {
	if !e.OccurredAt.IsZero() {
		switch {
		case e.OccurredAt.Before(now.Add(-limit.EventAge)):
			f = fault.EventTooOld.At("occurred_at", "want a time at most 30 days ago")
		case e.OccurredAt.After(now.Add(limit.EventAhead)):
			f = fault.EventInFuture.At("occurred_at", "want a time at most 5 minutes ahead")
		}
		if f != nil {
			return
		}
	}
	if t, ok := d.find(e.Name); ok && t.blocked {
		f = fault.EventBlocked.At("name", "the workspace has blocked events of this name")
		return
	}
	for i := range e.Properties {
		if personalProperty(e.Properties[i].Key) {
			f = fault.PIIProperty.At("properties."+e.Properties[i].Key,
				"this property name is reserved for personal data; say who the event is about in contact")
			return
		}
	}
	for i := range e.Properties {
		if kind := personalValue(&e.Properties[i]); kind != "" {
			f = fault.PIIValue.At("properties."+e.Properties[i].Key,
				"the value looks like %s; say who the event is about in contact", kind)
			return
		}
	}
	if len(e.PropertiesJSON) > limit.PropertiesSize {
		f = fault.InvalidEvent.At("properties", "want at most %d bytes of compact JSON, not %d",
			limit.PropertiesSize, len(e.PropertiesJSON))
		return
	}
	if match, f = refer(e); f != nil {
		return
	}
	id, registers, f = d.register(e)
	return
}

// reference is who an event is about, as it is looked up.
type reference struct {
	domain, registrable string // normalized
}

func refer(e *Event) (r reference, f *fault.Fault) {
	if e.Company.Domain == "" {
		return r, nil
	}
	domain, ok := company.NormalizeDomain(e.Company.Domain)
	if !ok {
		return r, fault.InvalidEvent.At("company.domain", "want a host name with at least one dot, such as example.com")
	}
	r.domain = domain
	if r.registrable, ok = company.RegistrableDomain(domain); !ok {
		r.registrable = domain
	}
	return r, nil
}
