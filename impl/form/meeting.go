package form

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // meeting forms have time zones, and not every machine has their table

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// A MeetingForm offers slots beside what a form asks for.
type MeetingForm struct {
	Form
	Minutes  int
	TimeZone string // of the host, by its IANA name

	hours db.MeetingForm
}

// A Slot is a time at which a meeting can be booked.
type Slot = db.Span

// FindMeeting gives the meeting form of a public key. The fault is
// form_not_found.
func FindMeeting(ctx context.Context, d *db.DB, publicKey string) (MeetingForm, error) {
	if !isKey(publicKey) {
		return MeetingForm{}, fault.FormNotFound.New()
	}
	m, err := d.MeetingFormByKey(ctx, publicKey)
	if err != nil {
		return MeetingForm{}, notFound(err)
	}
	asked := fields([]string{"email", "name", "company_name"})
	asked[1].Required = true
	return MeetingForm{
		Form: Form{
			Workspace: m.Workspace, ID: m.ID, PublicKey: m.PublicKey, Name: m.Name, Fields: asked, Origins: m.Origins,
		},
		Minutes: m.Minutes, TimeZone: m.TimeZone, hours: m,
	}, nil
}

// Zone gives the time zone of an IANA name.
func Zone(name string) (*time.Location, error) {
	// LoadLocation has names of its own for UTC and the server's zone, and so has
	// the folder that it reads: other names of the latter, and copies of all zones,
	// some with leap seconds. IANA's names begin with a capital letter. A file has
	// more than one path: Europe//Berlin is no name.
	if name != "" && name[0] >= 'A' && name[0] <= 'Z' && name != "Local" && path.Clean(name) == name {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("%q is no time zone; want an IANA name such as Europe/Berlin", name)
}

// Days are days of a time zone as a calendar has them: YYYY-MM-DD, empty for the
// default.
type Days struct{ From, To, TimeZone string }

// Slots lists the free slots of days of somebody's time zone, in order; that
// zone is the host's where none is named. The fault is invalid_request.
func (m MeetingForm) Slots(ctx context.Context, d *db.DB, days Days) (timeZone string, free []Slot, err error) {
	if days.TimeZone == "" {
		days.TimeZone = m.TimeZone
	}
	now := d.Now()
	in, err := days.span(now)
	if err != nil {
		return "", nil, err
	}
	err = d.In(ctx, m.Workspace, func(s *db.Scope) error {
		free, err = m.free(ctx, s, in, now)
		return err
	})
	return days.TimeZone, free, err
}

// span gives the time from the beginning of the first day to the end of the last.
func (d Days) span(now time.Time) (Slot, error) {
	zone, err := Zone(d.TimeZone)
	if err != nil {
		return Slot{}, fault.InvalidRequest.At("time_zone", "want an IANA name such as Europe/Berlin")
	}
	from := dayOf(now.In(zone))
	if d.From != "" {
		if from, err = time.Parse(time.DateOnly, d.From); err != nil {
			return Slot{}, fault.InvalidRequest.At("from", "want a day such as 2026-03-02")
		}
	}
	last := from.AddDate(0, 0, limit.MeetingDefaultDays-1)
	if d.To != "" {
		if last, err = time.Parse(time.DateOnly, d.To); err != nil {
			return Slot{}, fault.InvalidRequest.At("to", "want a day such as 2026-03-15")
		}
	}
	if last.Before(from) || last.After(from.AddDate(0, 0, limit.MeetingSlotDays-1)) {
		return Slot{}, fault.InvalidRequest.At("to", "want a day that is not before from, and at most %d days in all", limit.MeetingSlotDays)
	}
	return Slot{StartsAt: startOf(from, zone), EndsAt: startOf(last.AddDate(0, 0, 1), zone)}, nil
}

// dayOf gives the day of a time by its own clock. A day is counted in UTC, which
// has no hour twice and leaves none out.
func dayOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// startOf gives the first instant of a day in a zone. That is not midnight where
// the zone's clock leaves out the hour after it, for which time.Date may give an
// hour of the day before, and midnight may be there twice.
func startOf(day time.Time, zone *time.Location) time.Time {
	at := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
	if dayOf(at).Before(day) {
		_, at = at.ZoneBounds()
	}
	if earlier := at.Add(-time.Hour); dayOf(earlier).Equal(day) {
		return earlier
	}
	return at
}

// free lists the slots that begin in a span of time and that nobody booked.
func (m MeetingForm) free(ctx context.Context, s *db.Scope, in Slot, now time.Time) ([]Slot, error) {
	offered, err := offered(m.hours, in, now)
	if err != nil || len(offered) == 0 {
		return nil, err
	}
	taken, err := s.Booked(ctx, m.ID, Slot{StartsAt: offered[0].StartsAt, EndsAt: offered[len(offered)-1].EndsAt})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(offered, func(slot Slot) bool {
		return slices.ContainsFunc(taken, func(t Slot) bool {
			return t.StartsAt.Before(slot.EndsAt) && t.EndsAt.After(slot.StartsAt)
		})
	}), nil
}

// offered lists the slots of a meeting form that begin in a span of time: on its
// weekdays, one after the other from the minute it opens, by the clock of the
// host. Where that clock jumps, the hour or day that is not there has no slots, and
// the hour that is there twice has them once; a slot that goes on through the jump
// takes the one that would begin before it ends.
func offered(m db.MeetingForm, in Slot, now time.Time) ([]Slot, error) {
	host, err := Zone(m.TimeZone)
	if err != nil {
		return nil, err
	}
	earliest, latest := now.Add(time.Duration(m.NoticeMinutes)*time.Minute), now.AddDate(0, 0, m.DaysAhead)
	length := time.Duration(m.Minutes) * time.Minute
	var slots []Slot
	var ends time.Time // of the slot before, which the jump may have moved into the day
	last := dayOf(in.EndsAt.In(host))
	for day := dayOf(in.StartsAt.In(host)).AddDate(0, 0, -1); !day.After(last); day = day.AddDate(0, 0, 1) {
		if !slices.Contains(m.Weekdays, int64((day.Weekday()+6)%7)+1) {
			continue
		}
		for minute := m.OpensMinute; minute+m.Minutes <= m.ClosesMinute; minute += m.Minutes {
			starts := time.Date(day.Year(), day.Month(), day.Day(), 0, minute, 0, 0, host)
			skipped := starts.Hour()*60+starts.Minute() != minute || !dayOf(starts).Equal(day)
			if skipped || starts.Before(ends) {
				continue
			}
			ends = starts.Add(length)
			if starts.Before(in.StartsAt) || !starts.Before(in.EndsAt) || starts.Before(earliest) || starts.After(latest) {
				continue
			}
			slots = append(slots, Slot{StartsAt: starts.UTC(), EndsAt: ends.UTC()})
		}
	}
	return slots, nil
}

// Book books the slot that begins at a time, for one answer alone, makes a lead
// of the answer and identifies its visitor. The faults are invalid_request and
// slot_unavailable. What a program filled in books nothing and is told the same.
func (m MeetingForm) Book(ctx context.Context, d *db.DB, startsAt time.Time, timeZone string, a Answer) (Slot, error) {
	l, err := m.lead(a)
	if err != nil {
		return Slot{}, err
	}
	l.Source = "meeting"
	if timeZone != "" {
		if _, err := Zone(timeZone); err != nil {
			return Slot{}, fault.InvalidRequest.At("time_zone", "want an IANA name such as Europe/Berlin")
		}
	}
	defer even(ctx, time.Now())
	var booked Slot
	err = contact.Transact(ctx, d, m.Workspace, func(s *db.Scope) error {
		if err := s.LockMeetingForm(ctx, m.ID); err != nil {
			return err
		}
		free, err := m.free(ctx, s, Slot{StartsAt: startsAt, EndsAt: startsAt.Add(time.Millisecond)}, d.Now())
		if err != nil {
			return err
		}
		if len(free) == 0 {
			return fault.SlotUnavailable.New()
		}
		booked = free[0]
		if a.Trap != "" {
			return nil
		}
		created, err := take(ctx, s, l, a.Visitor)
		if err != nil {
			return err
		}
		return s.AddBooking(ctx, m.ID, booked, created.ID, strings.TrimSpace(timeZone))
	})
	return booked, err
}
