package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// An EventType is what a workspace knows of one event name.
type EventType struct {
	ID         int64         `db:"event_type_id" json:"id"` // counts from 1 within the workspace
	Name       string        `db:"name" json:"name"`
	Status     string        `db:"status" json:"status"` // active, archived or blocked
	Properties PropertyTypes `db:"properties" json:"properties"`
}

// PropertyTypes maps a property to its first-seen type: string, number or bool.
type PropertyTypes map[string]string

// Scan reads the column's JSON.
func (p *PropertyTypes) Scan(src any) error {
	raw, ok := src.([]byte)
	if !ok {
		return fmt.Errorf("property types: want JSON, got %T", src)
	}
	return json.Unmarshal(raw, p)
}

// Versions say of when something that a process keeps in memory is.
type Versions struct {
	Workspace int64 `db:"version"`       // its credentials, people and settings
	Types     int64 `db:"types_version"` // its event types
}

// The versions come with the types in one statement, so that they belong
// together.
const eventTypes = `
	select g.version, g.types_version, coalesce(t.event_type_id, 0) as event_type_id, coalesce(t.name, '') as name,
		coalesce(t.status, '') as status, coalesce(t.properties, '{}') as properties
	from workspace_gates g
	left join event_types t on t.workspace_id = g.workspace_id
	where g.workspace_id = $1`

// EventTypes gives all event types of a workspace, and the versions that they
// belong to.
func (d *DB) EventTypes(ctx context.Context, workspace int64) (versions Versions, types []EventType, err error) {
	var rows []struct {
		Versions
		EventType
	}
	if err := d.selectAll(ctx, &rows, eventTypes, workspace); err != nil {
		return Versions{}, nil, err
	}
	for _, row := range rows {
		versions = row.Versions
		if row.ID != 0 {
			types = append(types, row.EventType)
		}
	}
	return versions, types, nil
}

const saveEventType = `
	insert into event_types (workspace_id, event_type_id, name, label, status, properties)
	select $1, coalesce(max(event_type_id), 0) + 1, $2, $3, $4, $5::jsonb from event_types where workspace_id = $1
	on conflict (workspace_id, name) do update set
		label = excluded.label, status = excluded.status, properties = event_types.properties || excluded.properties
	returning event_type_id`

// SaveEventType adds an event name or changes it; properties that it has
// already keep the types given here.
func (s *Scope) SaveEventType(ctx context.Context, name, label, status string, properties PropertyTypes) (int64, error) {
	raw, err := json.Marshal(properties)
	if err != nil {
		return 0, err
	}
	// The names are numbered under the gate, as groups of events number theirs.
	if err := s.lockGate(ctx); err != nil {
		return 0, err
	}
	var id int64
	if err := s.get(ctx, &id, saveEventType, name, label, status, string(raw)); err != nil {
		return 0, err
	}
	return id, s.touchTypes(ctx)
}

// A ListedEventType is an event type as people see it.
type ListedEventType struct {
	EventType
	Label       string    `db:"label" json:"label"`
	FirstSeenAt time.Time `db:"first_seen_at" json:"first_seen_at"`
	LastSeenAt  time.Time `db:"last_seen_at" json:"last_seen_at"`
}

// The time that a type was last seen is that of its newest event; its own
// column keeps the time of the first one, for when no event is left.
const eventTypePage = `
	select t.event_type_id, t.name, t.label, t.status, t.properties, t.first_seen_at,
		greatest(t.last_seen_at, to_timestamp((newest.event_no >> 20) / 1000.0)) as last_seen_at
	from event_types t
	left join lateral (
		select max(one.event_no) as event_no
		from generate_series(0, 2) status
		cross join lateral (
			select event_no from events e
			where e.workspace_id = $1 and e.ts = t.event_type_id * 4 + status
			order by event_no desc
			limit 1
		) one
	) newest on true
	where t.workspace_id = $1 and t.name collate "C" > $2
	order by t.name collate "C"
	limit $3`

// ListedEventTypes gives event types by name, behind the given one.
func (s *Scope) ListedEventTypes(ctx context.Context, after string, limit int) ([]ListedEventType, error) {
	var page []ListedEventType
	err := s.selectAll(ctx, &page, eventTypePage, after, limit)
	return page, err
}

const eventTypeTotal = `select count(*) from event_types where workspace_id = $1`

// EventTypeTotal gives the number of event types.
func (s *Scope) EventTypeTotal(ctx context.Context) (int64, error) {
	var total int64
	err := s.get(ctx, &total, eventTypeTotal)
	return total, err
}

const eventTypeNames = `
	select event_type_id, name, status, properties from event_types where workspace_id = $1`

// EventTypes gives all event types, in no order.
func (s *Scope) EventTypes(ctx context.Context) ([]EventType, error) {
	var all []EventType
	err := s.selectAll(ctx, &all, eventTypeNames)
	return all, err
}

const setEventTypeStatus = `update event_types set status = $3 where workspace_id = $1 and name = $2`

// SetEventTypeStatus makes an event name active, archived or blocked;
// ErrNotFound where there is none. It holds from the very next event on.
func (s *Scope) SetEventTypeStatus(ctx context.Context, name, status string) error {
	return s.changeEventType(ctx, setEventTypeStatus, name, status)
}

const renameEventType = `update event_types set label = $3 where workspace_id = $1 and name = $2`

// RenameEventType changes the display name of an event name; ErrNotFound where
// there is none.
func (s *Scope) RenameEventType(ctx context.Context, name, label string) error {
	return s.changeEventType(ctx, renameEventType, name, label)
}

func (s *Scope) changeEventType(ctx context.Context, statement, name, value string) error {
	if err := s.lockGate(ctx); err != nil {
		return err
	}
	n, err := s.exec(ctx, statement, name, value)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotFound
	}
	return s.touchTypes(ctx)
}
