package db

import (
	"context"
	"fmt"

	"github.com/lib/pq"
)

// Why the events of a workspace in a group were or were not recorded; the
// meanings stand with record_events in the migrations.
const (
	GroupHeld    = 0
	GroupStale   = 1
	GroupLimited = 2
	GroupKnownID = 3
)

// What is to be done with an event of a group.
const (
	EventRecord   = 0
	EventLookUp   = 1 // refused: only its id is looked up
	EventRegister = 2 // recorded, and it registers a name or a property
)

// What became of an event of a group.
const (
	EventAccepted        = 0
	EventUnmatched       = 1
	EventPendingIdentity = 2
	EventDuplicate       = 3
)

// An EventGroup is what one call records: events of several requests and
// workspaces. Workspaces ascend, and the events of a workspace stand in the
// order of their requests; no id stands twice in a workspace unless both of its
// events are refused. Columns of events are parallel; a zero or an empty string
// stands for what the event does not give.
type EventGroup struct {
	Workspaces []int64
	Versions   []Versions // what the caller believes of each workspace
	Counts     []int64    // events of each that count against its minute and day
	Upto       []int64    // position of its last event, from 1; that of the workspace before it if it has none

	KeyWorkspace []int64 // position in Workspaces, from 1
	KeyID        []int64 // ascending within a workspace
	KeyRequests  []int64 // to be counted in the key's minute
	KeyLimit     []int64

	Workspace   []int64 // position in Workspaces, from 1
	Mode        []int64
	IDHash      [][16]byte
	ID          []string
	Type        []int64 // number of the event type; zero for refused events
	OccurredMS  []int64 // milliseconds since 1970; zero: when it is received
	CompanyID   []int64
	Domain      []string // normalized
	Registrable []string // the registrable domain of Domain
	ContactID   []int64
	Email       []string // normalized
	Visitor     []string
	Properties  []string // compact JSON

	TypeWorkspace  []int64 // position in Workspaces, from 1
	TypeID         []int64
	TypeName       []string
	TypeLabel      []string
	TypeProperties []string // JSON map of property to its type

	Wait bool // for the disk; else nothing is durable before a Flush that begins afterwards
}

// An EventGroupResult says what became of a group.
type EventGroupResult struct {
	NowMS int64 // the database's time, milliseconds since 1970

	// One a workspace.
	Verdicts    []int64
	base        []int64
	MinuteLeft  []int64 // events that the minute has room for
	DayLeft     []int64
	BacklogLeft []int64 // zero or less: too many events wait to be processed

	KeyLeft []int64 // requests that the minute of each key has room for; of limited workspaces only

	// One an event.
	seen     []int64
	Statuses []int64 // -1 where nothing was recorded
}

// Number is the number of the event at a position of the call, from 0, that was
// recorded in a workspace, also from 0, now or earlier.
func (r *EventGroupResult) Number(workspace, position int) int64 {
	if r.seen[position] != 0 {
		return r.seen[position]
	}
	return r.base[workspace] + int64(position) + 1
}

// Of no single workspace: a group spans several.
const recordEvents = `
	select now_ms, w_verdict, w_base, w_minute_left, w_day_left, w_backlog_left, k_left, e_seen, e_status
	from record_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
		$22, $23, $24, $25, $26, $27, $28)`

// RecordEvents records a group, in one statement that is a transaction of its
// own. If it did not wait for the disk, a Flush of the same Pinned has to follow.
func (p *Pinned) RecordEvents(ctx context.Context, g *EventGroup) (EventGroupResult, error) {
	var r struct {
		NowMS       int64         `db:"now_ms"`
		Verdicts    pq.Int64Array `db:"w_verdict"`
		Base        pq.Int64Array `db:"w_base"`
		MinuteLeft  pq.Int64Array `db:"w_minute_left"`
		DayLeft     pq.Int64Array `db:"w_day_left"`
		BacklogLeft pq.Int64Array `db:"w_backlog_left"`
		KeyLeft     pq.Int64Array `db:"k_left"`
		Seen        pq.Int64Array `db:"e_seen"`
		Statuses    pq.Int64Array `db:"e_status"`
	}
	var versions, typesVersions []int64
	for _, v := range g.Versions {
		versions, typesVersions = append(versions, v.Workspace), append(typesVersions, v.Types)
	}
	err := p.get(ctx, &r, recordEvents,
		bigintArray(g.Workspaces), bigintArray(versions), bigintArray(typesVersions), integerArray(g.Counts), integerArray(g.Upto),
		filled(integerArray(g.KeyWorkspace)), filled(bigintArray(g.KeyID)), filled(integerArray(g.KeyRequests)), filled(integerArray(g.KeyLimit)),
		filled(integerArray(g.Workspace)), filled(smallintArray(g.Mode)), filled(uuidArray(g.IDHash)), filled(textArray(g.ID)),
		filled(smallintArray(g.Type)), filled(bigintArray(g.OccurredMS)),
		given(bigintArray(g.CompanyID)), given(textArray(g.Domain)), given(textArray(g.Registrable)),
		given(bigintArray(g.ContactID)), given(textArray(g.Email)), given(textArray(g.Visitor)), filled(textArray(g.Properties)),
		filled(integerArray(g.TypeWorkspace)), filled(smallintArray(g.TypeID)), filled(textArray(g.TypeName)),
		filled(textArray(g.TypeLabel)), filled(textArray(g.TypeProperties)), g.Wait)
	if err == nil && !g.Wait {
		p.unflushed = true
	}
	return EventGroupResult{
		NowMS: r.NowMS, Verdicts: r.Verdicts, base: r.Base,
		MinuteLeft: r.MinuteLeft, DayLeft: r.DayLeft, BacklogLeft: r.BacklogLeft, KeyLeft: r.KeyLeft,
		seen: r.Seen, Statuses: r.Statuses,
	}, err
}

// Of no workspace: the log of the database is flushed as a whole.
const flush = `select pg_logical_emit_message(true, 'inlet', '')`

// Flush makes durable what this Pinned recorded before, by a transaction that
// writes next to nothing but waits for the disk. It vouches only for what was
// recorded over the same connection: one that broke meanwhile may mean that the
// database went down, and what was not on the disk then is gone. ErrAway says so.
func (p *Pinned) Flush(ctx context.Context) error {
	if p.lost {
		p.lost, p.unflushed = false, false
		return fmt.Errorf("the connection broke before a flush: %w", ErrAway)
	}
	var position string
	err := p.get(ctx, &position, flush)
	// Found broken only now, the connection was replaced: the flush went over a
	// fresh one, and vouches for nothing.
	if err == nil && p.lost {
		err = fmt.Errorf("the connection was broken at a flush: %w", ErrAway)
	}
	p.lost, p.unflushed = false, false
	return err
}

const lockGate = `select pg_advisory_xact_lock(gate_key($1)) /* the gate of workspace_id */`

// lockGate holds back events of the workspace until the transaction ends; for
// changes to what every group of events relies on, such as the numbering of
// event types. It comes before any change to a row that groups of events change
// too, the gate's and those of event types: in the other order they would wait
// for each other.
func (s *Scope) lockGate(ctx context.Context) error {
	_, err := s.exec(ctx, lockGate)
	return err
}

const ensureEventPartitions = `select ensure_event_partitions($1)`

// EnsureEventPartitions makes room for the events of the next days.
func (d *DB) EnsureEventPartitions(ctx context.Context, days int) error {
	return d.exec(ctx, ensureEventPartitions, days)
}

const dropExpiredEvents = `select drop_expired_events()`

// DropExpiredEvents drops the storage of events that have been kept for their
// 30 days, a day in a transaction.
func (d *DB) DropExpiredEvents(ctx context.Context) error {
	for {
		var dropped int
		if err := d.get(ctx, &dropped, dropExpiredEvents); err != nil || dropped == 0 {
			return err
		}
	}
}
