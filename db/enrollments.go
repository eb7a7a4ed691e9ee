package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lib/pq"
)

// An Enrollment is a company's way through the steps of a motion.
type Enrollment struct {
	ID       int64         `db:"enrollment_id"`
	Motion   int64         `db:"motion_id"`
	Company  int64         `db:"company_id"`
	Contacts pq.Int64Array `db:"contact_ids"`
	Steps    []byte        `db:"steps"` // JSON, as they were at the entry
	Step     int           `db:"step"`  // the one to be taken next, from 0
	Attempts int           `db:"attempts"`

	MotionStatus  string `db:"motion_status"`
	AgentsEnabled bool   `db:"agents_enabled"`
	CompanyGone   bool   `db:"company_gone"`
	WebhookSecret string `db:"webhook_secret"`
}

// A Due enrollment has a step to be taken.
type Due struct {
	Workspace  int64 `db:"workspace_id"`
	Enrollment int64 `db:"enrollment_id"`
}

// Across workspaces: the job takes what is due first, whosesoever it is. The time
// is taken once: compared with each row's, it would not end the walk of the index,
// which is then read whole while nothing is due.
const dueEnrollments = `
	select workspace_id, enrollment_id from enrollments
	where status = 'active' and due_at <= (select inlet_now())
		and not (($2 or workspace_id = any($3)) and steps -> step ->> 'kind' = 'send_webhook')
	order by due_at limit $1`

// DueEnrollments lists up to so many enrollments with a step to be taken, but for
// webhooks of these workspaces, or of all. Others may be at it: LockEnrollment
// tells.
func (d *DB) DueEnrollments(ctx context.Context, most int, noWebhooksOf []int64, noWebhooks bool) ([]Due, error) {
	var all []Due
	err := d.selectHot(ctx, &all, dueEnrollments, most, noWebhooks, ints(noWebhooksOf))
	return all, err
}

const lockEnrollment = `
	select n.enrollment_id, n.motion_id, n.company_id, n.contact_ids, n.steps, n.step, n.attempts,
		m.status as motion_status, w.agents_enabled, w.webhook_secret,
		not exists (select from companies c where c.workspace_id = $1 and c.company_id = n.company_id) as company_gone
	from enrollments n
	join motions m on m.workspace_id = n.workspace_id and m.motion_id = n.motion_id
	join workspaces w on w.workspace_id = n.workspace_id
	where n.workspace_id = $1 and n.enrollment_id = $2 and n.status = 'active' and (n.due_at <= inlet_now() or not $3)
	for update of n skip locked`

// LockEnrollment gives an active enrollment, due now where that is asked for,
// and keeps others from it until the transaction ends. ErrNotFound says that it
// is not so any more, or that another is at it.
func (s *Scope) LockEnrollment(ctx context.Context, id int64, due bool) (Enrollment, error) {
	var e Enrollment
	err := s.get(ctx, &e, lockEnrollment, id, due)
	return e, err
}

const moveEnrollment = `
	update enrollments set step = $3, attempts = $4, due_at = inlet_now() + $5 * interval '1 second', problem = nullif($6, '')
	where workspace_id = $1 and enrollment_id = $2`

// MoveEnrollment says which step is taken next, after how many attempts at it,
// and after which wait.
func (s *Scope) MoveEnrollment(ctx context.Context, id int64, step, attempts int, wait time.Duration, problem string) error {
	_, err := s.exec(ctx, moveEnrollment, id, step, attempts, wait.Seconds(), problem)
	return err
}

const endEnrollment = `
	update enrollments set status = $3, step = $4, due_at = null, ended_at = inlet_now(), problem = nullif($5, '')
	where workspace_id = $1 and enrollment_id = $2`

// EndEnrollment makes an enrollment completed, exited or failed.
func (s *Scope) EndEnrollment(ctx context.Context, id int64, status string, step int, problem string) error {
	_, err := s.exec(ctx, endEnrollment, id, status, step, problem)
	return err
}

const addCompanyToSegment = `
	insert into segment_companies (workspace_id, segment_id, company_id) values ($1, $2, $3) on conflict do nothing`

// AddCompanyToSegment makes a company a member of a segment.
func (s *Scope) AddCompanyToSegment(ctx context.Context, segment, company int64) error {
	_, err := s.exec(ctx, addCompanyToSegment, segment, company)
	return err
}

const removeCompanyFromSegment = `
	delete from segment_companies where workspace_id = $1 and segment_id = $2 and company_id = $3`

// RemoveCompanyFromSegment ends a company's membership of a segment.
func (s *Scope) RemoveCompanyFromSegment(ctx context.Context, segment, company int64) error {
	_, err := s.exec(ctx, removeCompanyFromSegment, segment, company)
	return err
}

const setCompanyField = `
	update companies set
		industry = case when $3 = 'industry' then $4 else industry end,
		country = case when $3 = 'country' then $4 else country end,
		stage = case when $3 = 'stage' then $4 else stage end,
		custom_fields = case when $3 in ('industry', 'country', 'stage') then custom_fields
			else custom_fields || $5::jsonb end
	where workspace_id = $1 and company_id = $2`

// SetCompanyField sets industry, country or stage of a company, or a custom
// field of another name.
func (s *Scope) SetCompanyField(ctx context.Context, company int64, field, value string) error {
	custom, err := json.Marshal(map[string]string{field: value})
	if err == nil {
		_, err = s.exec(ctx, setCompanyField, company, field, value, string(custom))
	}
	return err
}

const addNote = `
	insert into notes (workspace_id, company_id, enrollment_id, text) values ($1, $2, nullif($3, 0), $4)`

// AddNote puts a note on a company; the enrollment that wrote it may be zero.
func (s *Scope) AddNote(ctx context.Context, company, enrollment int64, text string) error {
	_, err := s.exec(ctx, addNote, company, enrollment, text)
	return err
}

const addOpportunity = `
	insert into opportunities (workspace_id, company_id, enrollment_id, name, amount) values ($1, $2, nullif($3, 0), $4, $5)`

// AddOpportunity opens an opportunity with a company; the enrollment that did may
// be zero, and the amount nil.
func (s *Scope) AddOpportunity(ctx context.Context, company, enrollment int64, name string, amount *float64) error {
	_, err := s.exec(ctx, addOpportunity, company, enrollment, name, amount)
	return err
}
