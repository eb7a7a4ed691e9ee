package db

import (
	"context"

	"github.com/lib/pq"
)

// Why the events of a workspace in a group were or were not recorded; the
// meanings stand with record_events in the migrations.
const (
	GroupHeld       = 0
	GroupStale      = 1
	GroupMinuteFull = 2
	GroupDayFull    = 3
	GroupKnownID    = 4
	GroupKeyFull    = 5
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
	Versions   []int64 // what the caller believes of each workspace
	Counts     []int64 // events of each that count against its minute and day
	Requests   []int64 // requests of each that the group holds

	KeyWorkspace []int64 // position in Workspaces, from 1
	KeyID        []int64 // ascending within a workspace
	KeyRequests  []int64 // to be counted in the key's minute
	KeyLimit     []int64

	Workspace   []int64 // position in Workspaces, from 1
	Mode        []int64
	IDHash      []string // 128 bits in hexadecimal
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
}

// An EventGroupResult says what became of a group.
type EventGroupResult struct {
	NowMS    int64   // the database's time, milliseconds since 1970
	Verdicts []int64 // one a workspace
	Numbers  []int64 // one an event: the event number it has; zero if it has none
	Statuses []int64 // one an event; -1 where nothing was recorded
}

// Of no single workspace: a group spans several.
const recordEvents = `
	select now_ms, w_verdict, e_no, e_status
	from record_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
		$22, $23, $24, $25, $26)`

// RecordEvents records a group durably, in one statement that is a transaction
// of its own.
func (d *DB) RecordEvents(ctx context.Context, g *EventGroup) (EventGroupResult, error) {
	var r struct {
		NowMS    int64         `db:"now_ms"`
		Verdicts pq.Int64Array `db:"w_verdict"`
		Numbers  pq.Int64Array `db:"e_no"`
		Statuses pq.Int64Array `db:"e_status"`
	}
	err := d.getHot(ctx, &r, recordEvents,
		ints(g.Workspaces), ints(g.Versions), ints(g.Counts), ints(g.Requests),
		ints(g.KeyWorkspace), ints(g.KeyID), ints(g.KeyRequests), ints(g.KeyLimit),
		ints(g.Workspace), ints(g.Mode), texts(g.IDHash), texts(g.ID),
		ints(g.Type), ints(g.OccurredMS),
		ints(g.CompanyID), texts(g.Domain), texts(g.Registrable),
		ints(g.ContactID), texts(g.Email), texts(g.Visitor), texts(g.Properties),
		ints(g.TypeWorkspace), ints(g.TypeID), texts(g.TypeName),
		texts(g.TypeLabel), texts(g.TypeProperties))
	return EventGroupResult{NowMS: r.NowMS, Verdicts: r.Verdicts, Numbers: r.Numbers, Statuses: r.Statuses}, err
}

const lockGate = `select pg_advisory_xact_lock(gate_key($1)) /* the gate of workspace_id */`

// lockGate holds back events of the workspace until the transaction ends; for
// changes to what every group of events relies on, such as the numbering of
// event types.
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
// 30 days.
func (d *DB) DropExpiredEvents(ctx context.Context) error { return d.exec(ctx, dropExpiredEvents) }
