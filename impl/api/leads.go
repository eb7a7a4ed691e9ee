package api

import (
	"context"

	"github.com/inletdev/inlet/gen/api"
)

// Leads serves the operations of the tag Leads.
type Leads struct{}

// CreateLead accepts a lead.
func (Leads) CreateLead(context.Context, api.CreateLeadRequestObject) (api.CreateLeadResponseObject, error) {
	return nil, later()
}

// CreateLeadAlias is CreateLead under its older path.
func (Leads) CreateLeadAlias(context.Context, api.CreateLeadAliasRequestObject) (api.CreateLeadAliasResponseObject, error) {
	return nil, later()
}
