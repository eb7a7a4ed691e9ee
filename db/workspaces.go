package db

import (
	"context"
	"time"
)

// A Workspace and its settings.
type Workspace struct {
	ID              int64     `db:"workspace_id" json:"id"`
	Slug            string    `db:"slug" json:"slug"`
	Name            string    `db:"name" json:"name"`
	AgentsEnabled   bool      `db:"agents_enabled" json:"agents_enabled"`
	APIEnabled      bool      `db:"api_enabled" json:"api_enabled"`
	MCPEnabled      bool      `db:"mcp_enabled" json:"mcp_enabled"`
	CreateCompanies bool      `db:"create_companies" json:"create_companies"`
	CreateContacts  bool      `db:"create_contacts" json:"create_contacts"`
	Enrichment      bool      `db:"enrichment" json:"enrichment"`
	WebhookSecret   string    `db:"webhook_secret" json:"-"` // signs the webhooks of motions
	EventsPerMinute int       `db:"events_per_minute" json:"events_per_minute"`
	EventsPerDay    int       `db:"events_per_day" json:"events_per_day"`
	EventsBacklog   int       `db:"events_backlog" json:"events_backlog"` // accepted events that may wait to be processed
	CreatedAt       time.Time `db:"created_at" json:"created_at"`
}

const insertWorkspace = `
	insert into workspaces (slug, name) values ($1, $2) returning workspace_id`

const insertGate = `insert into workspace_gates (workspace_id) values ($1)`

const insertProgress = `insert into event_progress (workspace_id) values ($1)`

// CreateWorkspace makes a workspace with default settings and these roles, and
// gives its id. ErrExists says that the slug is taken.
func (t *Tx) CreateWorkspace(ctx context.Context, slug, name string, roles map[string][]string) (int64, error) {
	var id int64
	if err := t.get(ctx, &id, insertWorkspace, slug, name); err != nil {
		return 0, err
	}
	s := t.Scope(id)
	for _, row := range []string{insertGate, insertProgress} {
		if _, err := s.exec(ctx, row); err != nil {
			return 0, err
		}
	}
	for role, scopes := range roles {
		if err := s.SetRole(ctx, role, scopes); err != nil {
			return 0, err
		}
	}
	return id, nil
}

const workspaceBySlug = `
	select w.workspace_id, w.slug, w.name, w.agents_enabled, w.api_enabled, w.mcp_enabled, w.create_companies,
		w.create_contacts, w.enrichment, w.webhook_secret, w.created_at, g.events_per_minute, g.events_per_day, g.events_backlog
	from workspaces w join workspace_gates g on g.workspace_id = w.workspace_id
	where w.slug = $1`

// WorkspaceBySlug finds a workspace; ErrNotFound where there is none.
func (t *Tx) WorkspaceBySlug(ctx context.Context, slug string) (Workspace, error) {
	var w Workspace
	err := t.get(ctx, &w, workspaceBySlug, slug)
	return w, err
}

const allWorkspaces = `
	select w.workspace_id, w.slug, w.name, w.agents_enabled, w.api_enabled, w.mcp_enabled, w.create_companies,
		w.create_contacts, w.enrichment, w.webhook_secret, w.created_at, g.events_per_minute, g.events_per_day, g.events_backlog
	from workspaces w join workspace_gates g on g.workspace_id = w.workspace_id
	order by w.slug`

// Workspaces lists all of them, by slug.
func (d *DB) Workspaces(ctx context.Context) ([]Workspace, error) {
	var all []Workspace
	err := d.selectAll(ctx, &all, allWorkspaces)
	return all, err
}

const updateWorkspace = `
	update workspaces set name = $2, agents_enabled = $3, api_enabled = $4, mcp_enabled = $5,
		create_companies = $6, create_contacts = $7, enrichment = $8
	where workspace_id = $1`

const updateGateLimits = `
	update workspace_gates set events_per_minute = $2, events_per_day = $3, events_backlog = $4
	where workspace_id = $1`

// UpdateWorkspace sets name, switches and limits; slug and id stay.
func (s *Scope) UpdateWorkspace(ctx context.Context, w Workspace) error {
	if err := s.lockGate(ctx); err != nil {
		return err
	}
	if _, err := s.exec(ctx, updateWorkspace, w.Name, w.AgentsEnabled, w.APIEnabled, w.MCPEnabled,
		w.CreateCompanies, w.CreateContacts, w.Enrichment); err != nil {
		return err
	}
	if _, err := s.exec(ctx, updateGateLimits, w.EventsPerMinute, w.EventsPerDay, w.EventsBacklog); err != nil {
		return err
	}
	return s.touch(ctx)
}

// raise a version: to the time, so that one which was lost in a crash does not
// come back and mean something else.
const raiseVersion = `
	update workspace_gates set version = greatest(version + 1, floor(extract(epoch from inlet_now()) * 1000)::bigint)
	where workspace_id = $1`

const raiseTypesVersion = `
	update workspace_gates
	set types_version = greatest(types_version + 1, floor(extract(epoch from inlet_now()) * 1000)::bigint)
	where workspace_id = $1`

// touch tells every process that what it keeps in memory of the workspace's
// credentials, people and settings is out of date: each checks the version
// inside its requests' own work.
func (s *Scope) touch(ctx context.Context) error { return s.raise(ctx, raiseVersion) }

// touchTypes tells the same of its event types.
func (s *Scope) touchTypes(ctx context.Context) error { return s.raise(ctx, raiseTypesVersion) }

// raise locks the gate before its row, as groups of events do.
func (s *Scope) raise(ctx context.Context, version string) error {
	if err := s.lockGate(ctx); err != nil {
		return err
	}
	_, err := s.exec(ctx, version)
	return err
}

const upsertRole = `
	insert into roles (workspace_id, name, scopes) values ($1, $2, $3)
	on conflict (workspace_id, name) do update set scopes = excluded.scopes`

// SetRole says what a role holds from now on.
func (s *Scope) SetRole(ctx context.Context, name string, scopes []string) error {
	if _, err := s.exec(ctx, upsertRole, name, texts(scopes)); err != nil {
		return err
	}
	return s.touch(ctx)
}
