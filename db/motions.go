package db

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/inletdev/inlet/impl/trace"
)

// A Motion as it is defined; entry settings and steps are JSON.
type Motion struct {
	ID     int64  `db:"motion_id"`
	Name   string `db:"name"`
	Status string `db:"status"` // active, paused or archived
	Entry  []byte `db:"entry"`
	Steps  []byte `db:"steps"`
}

const insertMotion = `
	insert into motions (workspace_id, name, status, entry, steps) values ($1, $2, $3, $4::jsonb, $5::jsonb)
	returning motion_id`

const updateMotion = `
	update motions set name = $3, status = $4, entry = $5::jsonb, steps = $6::jsonb
	where workspace_id = $1 and motion_id = $2`

// SaveMotion changes the motion of its id, or adds one where that is zero.
func (s *Scope) SaveMotion(ctx context.Context, m Motion) (int64, error) {
	if m.ID != 0 {
		_, err := s.exec(ctx, updateMotion, m.ID, m.Name, m.Status, string(m.Entry), string(m.Steps))
		return m.ID, err
	}
	err := s.get(ctx, &m.ID, insertMotion, m.Name, m.Status, string(m.Entry), string(m.Steps))
	return m.ID, err
}

const motion = `
	select motion_id, name, status, entry, steps from motions where workspace_id = $1 and motion_id = $2`

// Motion gives a motion; ErrNotFound where there is none.
func (s *Scope) Motion(ctx context.Context, id int64) (Motion, error) {
	var m Motion
	err := s.get(ctx, &m, motion, id)
	return m, err
}

// A MotionSummary is a motion in a list.
type MotionSummary struct {
	ID       int64     `db:"motion_id" json:"id"`
	Name     string    `db:"name" json:"name"`
	Status   string    `db:"status" json:"status"`
	Queued   int       `db:"queued" json:"queued"`     // entries that wait for their decision
	Active   int       `db:"active" json:"active"`     // enrollments under way
	Ended    int       `db:"ended" json:"ended"`       // completed and exited
	Failed   int       `db:"failed" json:"failed"`     // ended by a step that could not be taken
	Problems int       `db:"problems" json:"problems"` // under way, and their last attempt failed
	Created  time.Time `db:"created_at" json:"created_at"`
}

const motionList = `
	select m.motion_id, m.name, m.status, m.created_at,
		(select count(*) from motion_entries e
			where e.workspace_id = $1 and e.motion_id = m.motion_id and e.decided_at is null) as queued,
		count(*) filter (where n.status = 'active') as active,
		count(*) filter (where n.status in ('completed', 'exited')) as ended,
		count(*) filter (where n.status = 'failed') as failed,
		count(*) filter (where n.status = 'active' and n.problem is not null) as problems
	from motions m
	left join enrollments n on n.workspace_id = m.workspace_id and n.motion_id = m.motion_id
	where m.workspace_id = $1
	group by m.workspace_id, m.motion_id, m.name, m.status, m.created_at
	order by m.motion_id`

// Motions lists the motions of the workspace.
func (s *Scope) Motions(ctx context.Context) ([]MotionSummary, error) {
	var all []MotionSummary
	err := s.selectAll(ctx, &all, motionList)
	return all, err
}

const setMotionStatus = `
	update motions set status = $3 where workspace_id = $1 and motion_id = $2 and status <> 'archived'`

// SetMotionStatus makes a motion active, paused or archived; ErrNotFound where
// there is none that is not archived, which is for good.
func (s *Scope) SetMotionStatus(ctx context.Context, id int64, status string) error {
	n, err := s.exec(ctx, setMotionStatus, id, status)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// A MotionToStart is what the start of a motion looks at.
type MotionToStart struct {
	APICall       bool `db:"api_call"`
	AgentsEnabled bool `db:"agents_enabled"`
}

const motionToStart = `
	select coalesce((m.entry -> 'api_call')::boolean, false) as api_call, w.agents_enabled
	from motions m join workspaces w on w.workspace_id = m.workspace_id
	where m.workspace_id = $1 and m.motion_id = $2 and m.status <> 'archived'`

// MotionToStart gives a motion that is not archived; ErrNotFound where there is
// none.
func (s *Scope) MotionToStart(ctx context.Context, id int64) (MotionToStart, error) {
	var m MotionToStart
	err := s.get(ctx, &m, motionToStart, id)
	return m, err
}

// An Entry of a company into a motion: queued, and then decided.
type Entry struct {
	ID         int64         `db:"entry_id"`
	Motion     int64         `db:"motion_id"`
	Company    int64         `db:"company_id"`
	Contacts   pq.Int64Array `db:"contact_ids"`
	Trigger    string        `db:"trigger"` // api, event, lead or signal
	QueuedAt   time.Time     `db:"queued_at"`
	DecidedAt  *time.Time    `db:"decided_at"`
	ReasonCode *string       `db:"reason_code"`
	Enrollment *int64        `db:"enrollment_id"`
}

const entryByKey = `
	select entry_id, motion_id, company_id, contact_ids, trigger, queued_at, decided_at, reason_code, enrollment_id
	from motion_entries where workspace_id = $1 and key_id = $2 and idempotency_key = $3`

// EntryByKey gives the entry that an API key queued with an idempotency key;
// ErrNotFound where there is none.
func (s *Scope) EntryByKey(ctx context.Context, apiKey int64, key string) (Entry, error) {
	var e Entry
	err := s.get(ctx, &e, entryByKey, apiKey, key)
	return e, err
}

const companyExists = `select exists (select from companies where workspace_id = $1 and company_id = $2)`

// CompanyExists tells whether the workspace has a company.
func (s *Scope) CompanyExists(ctx context.Context, id int64) (bool, error) {
	var exists bool
	err := s.get(ctx, &exists, companyExists, id)
	return exists, err
}

const contactsAt = `
	select contact_id from contacts where workspace_id = $1 and company_id = $2 and contact_id = any($3)`

// ContactsAt gives those of the contacts that are at the company.
func (s *Scope) ContactsAt(ctx context.Context, company int64, contacts []int64) ([]int64, error) {
	var all []int64
	err := s.selectAll(ctx, &all, contactsAt, company, ints(contacts))
	return all, err
}

const queueEntry = `
	insert into motion_entries (workspace_id, motion_id, company_id, contact_ids, trigger, key_id, idempotency_key, trace)
	values ($1, $2, $3, $4, 'api', $5, $6, $7)
	on conflict (workspace_id, key_id, idempotency_key) where idempotency_key is not null do nothing`

// QueueEntry queues an entry for an API key and its idempotency key, unless
// another request did meanwhile: EntryByKey tells what came of it. The span that
// the request has is kept with it.
func (s *Scope) QueueEntry(ctx context.Context, e Entry, apiKey int64, key string) error {
	_, err := s.exec(ctx, queueEntry, e.Motion, e.Company, ints(e.Contacts), apiKey, key, trace.Carry(ctx))
	return err
}

const queueLead = `select queue_lead($1, $2, nullif($3, 0)) /* the workspace_id, $1 */`

// QueueLead enters the company of a lead into the motions that leads trigger;
// the contact may be zero.
func (s *Scope) QueueLead(ctx context.Context, company, contact int64) error {
	_, err := s.exec(ctx, queueLead, company, contact)
	return err
}

// Across workspaces: the job that decides goes from one to the next, each found
// by one probe of the index behind the one before.
const queuedWorkspaces = `
	with recursive w(workspace_id) as (
		(select workspace_id from motion_entries where decided_at is null order by workspace_id limit 1)
		union all
		select (select e.workspace_id from motion_entries e
			where e.decided_at is null and e.workspace_id > w.workspace_id order by e.workspace_id limit 1)
		from w where w.workspace_id is not null
	)
	select workspace_id from w where workspace_id is not null`

// The same where no statement can go from one to the next, because they are on
// several nodes: a probe for each workspace there is.
const queuedWorkspacesApart = `
	select g.workspace_id from workspace_gates g
	cross join lateral (
		select from motion_entries e where e.workspace_id = g.workspace_id and e.decided_at is null limit 1
	) queued`

// QueuedWorkspaces gives the workspaces with entries that wait for their
// decision.
func (d *DB) QueuedWorkspaces(ctx context.Context) ([]int64, error) {
	statement := queuedWorkspaces
	if d.distributed {
		statement = queuedWorkspacesApart
	}
	var all []int64
	err := d.selectHot(ctx, &all, statement)
	return all, err
}

const decideEntries = `select decide_entries($1, $2) /* the workspace_id, $1 */`

// DecideEntries decides up to so many entries of a workspace and gives how many
// it did; none where another process is at it.
func (d *DB) DecideEntries(ctx context.Context, workspace int64, most int) (int, error) {
	var n int
	err := d.getHot(ctx, &n, decideEntries, workspace, most)
	return n, err
}

const dropDecidedEntries = `
	delete from motion_entries where idempotency_key is null and decided_at < (select inlet_now()) - interval '30 days'`

// DropDecidedEntries forgets decisions that nobody can ask for by a key, after
// 30 days.
func (d *DB) DropDecidedEntries(ctx context.Context) error { return d.exec(ctx, dropDecidedEntries) }

// An EntryShown is an entry with how far it came.
type EntryShown struct {
	QueuedAt   time.Time  `db:"queued_at" json:"queued_at"`
	DecidedAt  *time.Time `db:"decided_at" json:"decided_at"`
	Trigger    string     `db:"trigger" json:"trigger"`
	Motion     int64      `db:"motion_id" json:"motion_id"`
	Company    int64      `db:"company_id" json:"company_id"`
	ReasonCode *string    `db:"reason_code" json:"reason_code"`
	Enrollment *int64     `db:"enrollment_id" json:"enrollment_id"`
	Status     *string    `db:"status" json:"status"` // of the enrollment
	Step       *int       `db:"step" json:"step"`     // to be taken next, from 0
	Steps      *int       `db:"steps" json:"steps"`   // that there are
	DueAt      *time.Time `db:"due_at" json:"due_at"`
	Problem    *string    `db:"problem" json:"problem"`
}

const lastEntries = `
	select e.queued_at, e.decided_at, e.trigger, e.motion_id, e.company_id, e.reason_code, e.enrollment_id,
		n.status, n.step, jsonb_array_length(n.steps) as steps, n.due_at, n.problem
	from motion_entries e
	left join enrollments n on n.workspace_id = e.workspace_id and n.enrollment_id = e.enrollment_id
	where e.workspace_id = $1 and ($2 = 0 or e.motion_id = $2) and ($3 = 0 or e.company_id = $3)
	order by e.entry_id desc limit 20`

// LastEntries lists the last entries into a motion, or of a company; zero for any.
func (s *Scope) LastEntries(ctx context.Context, motion, company int64) ([]EntryShown, error) {
	all := []EntryShown{}
	err := s.selectAll(ctx, &all, lastEntries, motion, company)
	return all, err
}
