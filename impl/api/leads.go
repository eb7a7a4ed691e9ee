package api

import (
	"context"

	"github.com/inletdev/inlet/gen/api"
)

// Leads serves the operations of the tag Leads.
type Leads struct{}

func (Leads) CreateLead(context.Context, api.CreateLeadRequestObject) (api.CreateLeadResponseObject, error) {
	return nil, later()
}

func (Leads) CreateLeadAlias(context.Context, api.CreateLeadAliasRequestObject) (api.CreateLeadAliasResponseObject, error) {
	return nil, later()
}
