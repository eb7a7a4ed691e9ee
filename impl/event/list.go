package event

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/page"
)

// Lists reads events and event types back.
type Lists struct {
	db     *db.DB
	signer page.Signer
}

// NewLists makes the lists; the signer makes their cursors.
func NewLists(d *db.DB, signer page.Signer) *Lists { return &Lists{d, signer} }

// A Query says which page of a list is wanted.
type Query struct {
	Limit  int     // at least 1
	Cursor *string // nil for the first page
	Name   string  // empty for events of every name
	Status Status  // zero for events of every status
}

// A Recorded event, as it is listed.
type Recorded struct {
	ID, EventID, Name    string
	Status               Status
	OccurredAt           time.Time
	ReceivedAt           time.Time
	CompanyID, ContactID *int64
	DomainHint           *string
	ResolvedAt           *time.Time
	Properties           string // JSON
}

// Events gives a page of the events received in the last 30 days, newest first,
// the cursor of the next page, empty on the last one, and how many events match
// in all: page and total are of one moment. The fault is invalid_cursor.
func (l *Lists) Events(ctx context.Context, workspace int64, q Query) (rows []Recorded, next string, total int64, err error) {
	list := page.List{Name: "events", Workspace: workspace, Filters: fmt.Sprintf("%s %d", q.Name, q.Status)}
	f := db.EventFilter{
		Since:  l.db.Now().Add(-limit.EventRetention).UnixMilli() << numberBits,
		Before: 1<<63 - 1,
		Name:   q.Name,
		Status: -1,
	}
	if q.Status != unsettled {
		f.Status = int64(q.Status - Accepted)
	}
	if q.Cursor != nil {
		position, ok := l.signer.Open(list, *q.Cursor)
		if f.Before, err = strconv.ParseInt(position, 10, 64); !ok || err != nil {
			return nil, "", 0, invalidCursor()
		}
	}
	found, total, err := l.db.Events(ctx, workspace, f, q.Limit+1)
	if err != nil {
		return nil, "", 0, err
	}
	if len(found) > q.Limit {
		found = found[:q.Limit]
		next = l.signer.Seal(list, strconv.FormatInt(found[q.Limit-1].Number, 10))
	}
	for _, e := range found {
		rows = append(rows, Recorded{
			ID: e.ID, EventID: PublicID(workspace, e.Number), Name: e.Name,
			Status: statusOf(e.TypeStatus & 3), OccurredAt: e.OccurredAt,
			ReceivedAt: time.UnixMilli(e.Number >> numberBits), CompanyID: e.CompanyID, ContactID: e.ContactID,
			DomainHint: e.DomainHint, ResolvedAt: e.ResolvedAt, Properties: e.Properties,
		})
	}
	return rows, next, total, nil
}

// numberBits are the bits of an event's number below its milliseconds.
const numberBits = 20

// Types gives a page of the workspace's event types in alphabetical order, the
// cursor of the next page, and how many there are. The fault is invalid_cursor.
func (l *Lists) Types(ctx context.Context, workspace int64, q Query) (rows []db.ListedEventType, next string, total int64, err error) {
	list := page.List{Name: "event-types", Workspace: workspace}
	after := ""
	if q.Cursor != nil {
		var ok bool
		if after, ok = l.signer.Open(list, *q.Cursor); !ok {
			return nil, "", 0, invalidCursor()
		}
	}
	err = l.db.Snapshot(ctx, workspace, func(s *db.Scope) error {
		var err error
		if total, err = s.EventTypeTotal(ctx); err != nil {
			return err
		}
		if rows, err = s.ListedEventTypes(ctx, after, q.Limit+1); err != nil {
			return err
		}
		if len(rows) > q.Limit {
			rows = rows[:q.Limit]
			next = l.signer.Seal(list, rows[q.Limit-1].Name)
		}
		return nil
	})
	return rows, next, total, err
}

func invalidCursor() *fault.Fault {
	return fault.InvalidCursor.At("cursor", "want the nextCursor of the previous page, with the same filters")
}
