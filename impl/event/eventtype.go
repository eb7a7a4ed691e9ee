package event

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// eventType is what a workspace knows of one event name: its properties keep
// the type they were first seen with.
type eventType struct {
	id         int64
	blocked    bool
	properties map[string]string
}

// registry holds the event types of a workspace as of its versions. It is never
// changed: a group of events writes into a draft of it.
type registry struct {
	versions db.Versions
	types    map[string]eventType
}

func loadRegistry(ctx context.Context, d *db.DB, workspace int64) (registry, error) {
	versions, rows, err := d.EventTypes(ctx, workspace)
	if err != nil {
		return registry{}, err
	}
	r := registry{versions: versions, types: make(map[string]eventType, len(rows))}
	for _, row := range rows {
		r.types[row.Name] = eventType{id: row.ID, blocked: row.Status == "blocked", properties: row.Properties}
	}
	return r, nil
}

// registries are what a process knows of its workspaces. A lane uses only those
// of the workspaces that it has taken.
type registries struct {
	mu         sync.Mutex
	known      map[int64]registry
	properties int // of all of them

	avoided map[int64]time.Time // workspaces that something else holds on to, and until when they are left alone
}

// mostProperties bounds what is known; past it all is forgotten.
const mostProperties = 400_000

func (r *registries) find(workspace int64) (registry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[workspace]
	return known, ok
}

func (r *registries) keep(workspace int64, now registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, ok := r.known[workspace]
	if ok && before.versions == now.versions {
		return
	}
	if r.properties += now.size() - before.size(); r.known == nil || r.properties > mostProperties {
		r.known, r.properties = make(map[int64]registry), now.size()
	}
	r.known[workspace] = now
}

func (r *registries) forget(workspace int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.properties -= r.known[workspace].size()
	delete(r.known, workspace)
}

func (r *registries) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.properties = nil, 0
}

// avoid leaves a workspace alone for a while.
func (r *registries) avoid(workspace int64, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.avoided == nil {
		r.avoided = make(map[int64]time.Time)
	}
	r.avoided[workspace] = until
}

func (r *registries) avoids(workspace int64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.avoided[workspace]
	if ok && now.After(until) {
		delete(r.avoided, workspace)
		return false
	}
	return ok
}

// size is how many names and properties the registry holds.
func (r registry) size() int {
	n := len(r.types)
	for _, t := range r.types {
		n += len(t.properties)
	}
	return n
}

// draft is a registry together with what the events of a group would register.
type draft struct {
	registry
	changed map[string]eventType
}

func (d *draft) find(name string) (eventType, bool) {
	if t, ok := d.changed[name]; ok {
		return t, true
	}
	t, ok := d.types[name]
	return t, ok
}

// register checks an event's name and properties against the types seen before
// it and adds what is new. It tells whether anything was.
func (d *draft) register(e *Event) (id int64, added bool, err *fault.Fault) {
	t, known := d.find(e.Name)
	if !known {
		n := len(d.types)
		for name := range d.changed {
			if _, old := d.types[name]; !old {
				n++
			}
		}
		if n >= limit.EventNames {
			return 0, false, fault.EventTypeLimit.At("name",
				"the workspace already has %d event names; use one of them", limit.EventNames)
		}
		t = eventType{id: int64(n) + 1}
	}
	fresh := 0
	for _, p := range e.Properties {
		if _, ok := t.properties[p.Key]; !ok {
			fresh++
		}
	}
	if len(t.properties)+fresh > limit.PropertyCount {
		return 0, false, fault.TooManyProperties.At("properties",
			"events of this name already have %d different properties and may have %d; this one adds %d",
			len(t.properties), limit.PropertyCount, fresh)
	}
	for _, p := range e.Properties {
		if first, ok := t.properties[p.Key]; ok && first != string(p.Type) {
			return 0, false, fault.PropertyTypeMismatch.At("properties."+p.Key,
				"want a %s, as when the property was first seen, not a %s", first, p.Type)
		}
	}
	if known && fresh == 0 {
		return t.id, false, nil
	}
	properties := maps.Clone(t.properties)
	if properties == nil {
		properties = make(map[string]string, fresh)
	}
	for _, p := range e.Properties {
		properties[p.Key] = string(p.Type)
	}
	t.properties = properties
	if d.changed == nil {
		d.changed = make(map[string]eventType)
	}
	d.changed[e.Name] = t
	return t.id, true, nil
}

// settled gives the registry once the draft was written, which raises the
// version of the types if it changed any, as record_events does at that time.
func (d *draft) settled(nowMS int64) registry {
	if len(d.changed) == 0 {
		return d.registry
	}
	types := maps.Clone(d.types)
	maps.Copy(types, d.changed)
	versions := d.versions
	versions.Types = max(versions.Types+1, nowMS)
	return registry{versions, types}
}

// Label gives the display name of a new event name.
func Label(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

func (t eventType) propertiesJSON() string {
	raw, err := json.Marshal(t.properties)
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return string(raw)
}
