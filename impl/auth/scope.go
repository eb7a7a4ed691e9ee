package auth

import "slices"

// The scopes, named <area>.<action>.
const (
	LeadsManage         = "leads.manage"
	MotionsView         = "motions.view"
	MotionsStart        = "motions.start"
	EventsSend          = "events.send"
	CompaniesView       = "companies.view"
	CompaniesManage     = "companies.manage"
	ContactsView        = "contacts.view"
	ContactsManage      = "contacts.manage"
	OpportunitiesView   = "opportunities.view"
	OpportunitiesManage = "opportunities.manage"
	SegmentsView        = "segments.view"
	SegmentsManage      = "segments.manage"
	FieldsView          = "fields.view"
	FieldsManage        = "fields.manage"
	NotesView           = "notes.view"
	NotesManage         = "notes.manage"
	WebhooksManage      = "webhooks.manage"
	AgentUse            = "agent.use"
)

// Scopes lists every scope there is.
func Scopes() []string {
	return []string{
		LeadsManage, MotionsView, MotionsStart, EventsSend,
		CompaniesView, CompaniesManage, ContactsView, ContactsManage,
		OpportunitiesView, OpportunitiesManage, SegmentsView, SegmentsManage,
		FieldsView, FieldsManage, NotesView, NotesManage, WebhooksManage, AgentUse,
	}
}

// A Role bundles the scopes a person holds.
type Role struct {
	Name   string
	Scopes []string
}

// StartingRoles gives the roles of a new workspace and what each holds until an
// admin changes it.
func StartingRoles() []Role {
	views := []string{MotionsView, CompaniesView, ContactsView, OpportunitiesView, SegmentsView, FieldsView, NotesView}
	return []Role{
		{"admin", Scopes()},
		{"manager", slices.DeleteFunc(Scopes(), func(s string) bool {
			return s == WebhooksManage || s == FieldsManage || s == EventsSend
		})},
		{"member", append(slices.Clone(views), LeadsManage, NotesManage, AgentUse)},
		{"viewer", views},
	}
}

// Standing is what decides how much of a key's ticked scopes holds now.
type Standing struct {
	Kind        Kind
	Ticked      []string // scopes ticked on the key
	OwnerStays  bool     // the key has an owner, who has not left the workspace
	OwnerScopes []string // what the owner's role holds now
	HasRole     bool     // the key is narrowed by a role of its own
	RoleScopes  []string // what that role holds now
}

// Effective gives the scopes that hold now. A service key is narrowed to what
// its owner's role and its own role hold; an API key acts with what is ticked,
// save events.send, which it has only while its owner has it.
func (s Standing) Effective() []string {
	var holds []string
	for _, scope := range s.Ticked {
		owned := s.OwnerStays && slices.Contains(s.OwnerScopes, scope)
		switch {
		case s.HasRole && !slices.Contains(s.RoleScopes, scope):
		case (s.Kind == ServiceKey || scope == EventsSend) && !owned:
		default:
			holds = append(holds, scope)
		}
	}
	return holds
}
