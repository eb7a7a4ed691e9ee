package event

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/fault"
)

const (
	refusalKinds = 200    // a workspace and minute; what comes on top is told apart by its code only
	refusalRows  = 20_000 // kept until they are written; what comes on top is lost
	refusalWrite = 1000   // in one statement
)

// eventObjects are the fields of an event that have fields inside.
var eventObjects = []string{"company", "contact", "visitor", "properties"}

// Refusals is the ledger of refused events, in which an integrator finds what
// was refused and why. It is kept in memory and written once a second: a process
// that is killed takes the last second with it, which no refusal is worth
// waiting for.
//
// Nothing that was in an event is kept but its name and the path of the field at
// fault, and those only where they look like names: what stands in a name's
// place may well be personal.
type Refusals struct {
	db      *db.DB
	refused *prometheus.CounterVec

	mu     sync.Mutex
	events map[db.Refusal]int64 // by a refusal without its number
	minute int64
	kinds  map[int64]int // of the minute, by workspace
}

// NewRefusals starts an empty ledger.
func NewRefusals(d *db.DB, r prometheus.Registerer) *Refusals {
	return &Refusals{
		db: d, events: make(map[db.Refusal]int64), kinds: make(map[int64]int),
		refused: promauto.With(r).NewCounterVec(prometheus.CounterOpts{
			Name: "inlet_events_refused_total",
			Help: "Events refused, alone, in a batch or with it, by code. A request whose body could not be read counts as one.",
		}, []string{"code"}),
	}
}

// Count notes the refusal of a whole request: each of its events, or one without
// a name where it could not be read.
func (l *Refusals) Count(caller *auth.Caller, f *fault.Fault, events []Parsed) {
	if len(events) == 0 {
		l.CountOne(caller, f, "")
	}
	for i := range events {
		l.CountOne(caller, f, events[i].Name)
	}
}

// CountOne notes the refusal of an event.
func (l *Refusals) CountOne(caller *auth.Caller, f *fault.Fault, name string) {
	l.refused.WithLabelValues(f.Code.Name).Inc()
	r := db.Refusal{
		Workspace: caller.Workspace, KeyID: caller.KeyID,
		Minute: l.db.Now().Unix() / int64(time.Minute/time.Second),
		Code:   f.Code.Name, Param: presentable(f.Param),
	}
	if eventName(name) && !holdsCard(name) {
		r.EventName = name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.minute != r.Minute {
		l.minute = r.Minute
		clear(l.kinds)
	}
	if _, ok := l.events[r]; !ok {
		if l.kinds[r.Workspace] >= refusalKinds {
			r.Param, r.EventName = "", ""
		}
		l.kinds[r.Workspace]++
	}
	l.add(r, 1)
}

func (l *Refusals) add(r db.Refusal, events int64) {
	if _, ok := l.events[r]; ok || len(l.events) < refusalRows {
		l.events[r] += events
	}
}

// presentable gives a param that is a field's name or the path of a field inside
// one of an event's objects; of a field inside that has no proper name, the
// object.
func presentable(param string) string {
	object, field, inside := strings.Cut(param, ".")
	switch {
	case inside && !slices.Contains(eventObjects, object), !propertyKey(object), holdsCard(object):
		return ""
	case inside && (!propertyKey(field) || holdsCard(field)):
		return object
	}
	return param
}

// Write puts into the database what was counted. What cannot be written now is
// kept for the next time.
func (l *Refusals) Write(ctx context.Context) error {
	l.mu.Lock()
	counted := l.events
	l.events = make(map[db.Refusal]int64)
	l.mu.Unlock()

	var rows []db.Refusal
	for r, n := range counted {
		r.Events = n
		rows = append(rows, r)
	}
	for len(rows) > 0 {
		some := rows[:min(len(rows), refusalWrite)]
		if err := l.db.AddRefusals(ctx, some); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, r := range rows {
				n := r.Events
				r.Events = 0
				l.add(r, n)
			}
			return err
		}
		rows = rows[len(some):]
	}
	return nil
}
