package db

import (
	"context"
	"time"

	"github.com/lib/pq"
)

// A Form that is embedded in pages; a submission is a lead.
type Form struct {
	Workspace int64          `db:"workspace_id" json:"-"`
	ID        int64          `db:"form_id" json:"id"`
	PublicKey string         `db:"public_key" json:"public_key"`
	Name      string         `db:"name" json:"name"`
	Fields    pq.StringArray `db:"fields" json:"fields"`
	Origins   pq.StringArray `db:"origins" json:"-"` // of the workspace's sites
}

const insertForm = `
	insert into forms (workspace_id, public_key, name, fields) values ($1, $2, $3, $4) returning form_id`

const updateForm = `
	update forms set public_key = coalesce(nullif($3, ''), public_key), name = $4, fields = $5 where workspace_id = $1 and form_id = $2`

// SaveForm changes the form of this id, or adds one where it is zero.
func (s *Scope) SaveForm(ctx context.Context, id int64, key, name string, fields []string) (int64, error) {
	if id != 0 {
		_, err := s.exec(ctx, updateForm, id, key, name, texts(fields))
		return id, err
	}
	err := s.get(ctx, &id, insertForm, key, name, texts(fields))
	return id, err
}

const formByKey = `
	select f.workspace_id, f.form_id, f.public_key, f.name, f.fields,
		array(select distinct unnest(s.origins) from sites s where s.workspace_id = f.workspace_id) as origins
	from forms f where f.public_key = $1`

// FormByKey finds a form by its public key, in whatever workspace it is;
// ErrNotFound where there is none.
func (d *DB) FormByKey(ctx context.Context, key string) (Form, error) {
	var f Form
	err := d.getHot(ctx, &f, formByKey, key)
	return f, err
}

const allForms = `
	select workspace_id, form_id, public_key, name, fields from forms where workspace_id = $1 order by form_id`

// Forms lists the forms of the workspace.
func (s *Scope) Forms(ctx context.Context) ([]Form, error) {
	var all []Form
	err := s.selectAll(ctx, &all, allForms)
	return all, err
}

// A MeetingForm offers slots of Minutes, on Weekdays (Monday is 1) between two
// minutes of the day in TimeZone.
type MeetingForm struct {
	Workspace     int64          `db:"workspace_id" json:"-"`
	ID            int64          `db:"meeting_form_id" json:"id"`
	PublicKey     string         `db:"public_key" json:"public_key"`
	Name          string         `db:"name" json:"name"`
	Minutes       int            `db:"minutes" json:"minutes"`
	TimeZone      string         `db:"time_zone" json:"time_zone"`
	Weekdays      pq.Int64Array  `db:"weekdays" json:"weekdays"`
	OpensMinute   int            `db:"opens_minute" json:"opens_minute"`
	ClosesMinute  int            `db:"closes_minute" json:"closes_minute"`
	NoticeMinutes int            `db:"notice_minutes" json:"notice_minutes"` // from now to the first slot
	DaysAhead     int            `db:"days_ahead" json:"days_ahead"`         // from now to the last
	Origins       pq.StringArray `db:"origins" json:"-"`                     // of the workspace's sites
}

const insertMeetingForm = `
	insert into meeting_forms (workspace_id, public_key, name, minutes) values ($1, $2, $3, $4)
	returning meeting_form_id`

const updateMeetingForm = `
	update meeting_forms set public_key = coalesce(nullif($3, ''), public_key), name = $4, minutes = $5
	where workspace_id = $1 and meeting_form_id = $2`

// SaveMeetingForm changes the meeting form of this id, or adds one where it is
// zero: on workdays from nine to five, UTC, until SetMeetingHours.
func (s *Scope) SaveMeetingForm(ctx context.Context, id int64, key, name string, minutes int) (int64, error) {
	if id != 0 {
		_, err := s.exec(ctx, updateMeetingForm, id, key, name, minutes)
		return id, err
	}
	err := s.get(ctx, &id, insertMeetingForm, key, name, minutes)
	return id, err
}

const setMeetingHours = `
	update meeting_forms set minutes = $3, time_zone = $4, weekdays = $5, opens_minute = $6, closes_minute = $7,
		notice_minutes = $8, days_ahead = $9
	where workspace_id = $1 and meeting_form_id = $2`

// SetMeetingHours says which slots a meeting form offers.
func (s *Scope) SetMeetingHours(ctx context.Context, f MeetingForm) error {
	_, err := s.exec(ctx, setMeetingHours, f.ID, f.Minutes, f.TimeZone, f.Weekdays, f.OpensMinute, f.ClosesMinute,
		f.NoticeMinutes, f.DaysAhead)
	return err
}

const meetingFormByKey = `
	select m.workspace_id, m.meeting_form_id, m.public_key, m.name, m.minutes, m.time_zone, m.weekdays,
		m.opens_minute, m.closes_minute, m.notice_minutes, m.days_ahead,
		array(select distinct unnest(s.origins) from sites s where s.workspace_id = m.workspace_id) as origins
	from meeting_forms m
	where m.public_key = $1`

// MeetingFormByKey finds a meeting form by its public key, in whatever workspace
// it is; ErrNotFound where there is none.
func (d *DB) MeetingFormByKey(ctx context.Context, key string) (MeetingForm, error) {
	var m MeetingForm
	err := d.getHot(ctx, &m, meetingFormByKey, key)
	return m, err
}

const allMeetingForms = `
	select m.workspace_id, m.meeting_form_id, m.public_key, m.name, m.minutes, m.time_zone, m.weekdays,
		m.opens_minute, m.closes_minute, m.notice_minutes, m.days_ahead,
		array(select distinct unnest(s.origins) from sites s where s.workspace_id = m.workspace_id) as origins
	from meeting_forms m
	where m.workspace_id = $1 order by m.meeting_form_id`

// MeetingForms lists the meeting forms of the workspace.
func (s *Scope) MeetingForms(ctx context.Context) ([]MeetingForm, error) {
	var all []MeetingForm
	err := s.selectAll(ctx, &all, allMeetingForms)
	return all, err
}

// A Span is time that is taken.
type Span struct {
	StartsAt time.Time `db:"starts_at"`
	EndsAt   time.Time `db:"ends_at"`
}

const booked = `
	select starts_at, ends_at from bookings
	where workspace_id = $1 and meeting_form_id = $2 and ends_at > $3 and starts_at < $4 order by starts_at`

// Booked lists what is booked of a meeting form in a span of time.
func (s *Scope) Booked(ctx context.Context, meetingForm int64, in Span) ([]Span, error) {
	var all []Span
	err := s.selectAll(ctx, &all, booked, meetingForm, in.StartsAt, in.EndsAt)
	return all, err
}

const lockMeetingForm = `select 1 from meeting_forms where workspace_id = $1 and meeting_form_id = $2 for no key update`

// LockMeetingForm keeps others from booking until the transaction ends.
func (s *Scope) LockMeetingForm(ctx context.Context, id int64) error {
	var one int
	return s.get(ctx, &one, lockMeetingForm, id)
}

const insertBooking = `
	insert into bookings (workspace_id, meeting_form_id, starts_at, ends_at, lead_id, time_zone)
	values ($1, $2, $3, $4, $5, nullif($6, ''))`

// AddBooking books a span for a lead.
func (s *Scope) AddBooking(ctx context.Context, meetingForm int64, span Span, lead int64, timeZone string) error {
	_, err := s.exec(ctx, insertBooking, meetingForm, span.StartsAt, span.EndsAt, lead, timeZone)
	return err
}

// A Booking as it is listed.
type Booking struct {
	ID          int64     `db:"booking_id" json:"id"`
	MeetingForm string    `db:"meeting_form" json:"meeting_form"`
	StartsAt    time.Time `db:"starts_at" json:"starts_at"`
	EndsAt      time.Time `db:"ends_at" json:"ends_at"`
	Lead        int64     `db:"lead_id" json:"lead_id"`
	Name        *string   `db:"name" json:"name"`
	Email       *string   `db:"email" json:"email"`
	TimeZone    *string   `db:"time_zone" json:"time_zone"`
}

const comingBookings = `
	select b.booking_id, m.name as meeting_form, b.starts_at, b.ends_at, b.lead_id, l.name, l.email, b.time_zone
	from bookings b
	join meeting_forms m on m.workspace_id = b.workspace_id and m.meeting_form_id = b.meeting_form_id
	join leads l on l.workspace_id = b.workspace_id and l.lead_id = b.lead_id
	where b.workspace_id = $1 and b.ends_at > inlet_now()
	order by b.starts_at`

// ComingBookings lists the meetings of the workspace that have not ended.
func (s *Scope) ComingBookings(ctx context.Context) ([]Booking, error) {
	var all []Booking
	err := s.selectAll(ctx, &all, comingBookings)
	return all, err
}
