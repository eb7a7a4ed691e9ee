package api

import (
	"context"
	"encoding/json"

	"github.com/oapi-codegen/nullable"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/lead"
)

// Leads serves the operations of the tag Leads.
type Leads struct{ db *db.DB }

// CreateLead accepts a lead.
func (l Leads) CreateLead(ctx context.Context, r api.CreateLeadRequestObject) (api.CreateLeadResponseObject, error) {
	created, err := l.create(ctx, r.Body, r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	return api.CreateLead201JSONResponse{LeadCreatedJSONResponse: api.LeadCreatedJSONResponse(created)}, nil
}

// CreateLeadAlias is CreateLead under its older path.
func (l Leads) CreateLeadAlias(ctx context.Context, r api.CreateLeadAliasRequestObject) (api.CreateLeadAliasResponseObject, error) {
	created, err := l.create(ctx, r.Body, r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	return api.CreateLeadAlias201JSONResponse{LeadCreatedJSONResponse: api.LeadCreatedJSONResponse(created)}, nil
}

func (l Leads) create(ctx context.Context, sent *api.LeadInput, key *string) (api.Lead, error) {
	x := exchangeOf(ctx)
	in := leadOf(sent, x.body)
	in.Test = x.caller.Test
	if key != nil {
		in.IdempotencyKey = *key
	}
	created, err := lead.Create(ctx, l.db, x.caller.Workspace, in)
	if err != nil {
		return api.Lead{}, err
	}
	return api.Lead{
		LeadId: created.ID, Status: lead.Status, IsTest: created.Test, Reconciled: created.Reconciled,
		CompanyId: idOrNone(created.Company), ContactId: idOrNone(created.Contact),
	}, nil
}

func idOrNone(id int64) *api.ID {
	if id == 0 {
		return nil
	}
	return &id
}

// leadOf reads the two spellings of a lead's fields; the nested one wins. Extra
// fields are taken from the body as it was sent, so that numbers keep their
// digits.
func leadOf(sent *api.LeadInput, body []byte) lead.Lead {
	company, _ := sent.Company.Get()
	utm, _ := sent.Utm.Get()
	return lead.Lead{
		Source:        "api",
		Email:         textOf(sent.Email),
		Name:          textOf(sent.Name),
		FirstName:     textOf(sent.FirstName),
		LastName:      textOf(sent.LastName),
		Title:         textOf(sent.Title),
		Seniority:     textOf(sent.Seniority),
		Department:    textOf(sent.Department),
		Phone:         textOf(sent.Phone),
		LinkedInURL:   textOf(sent.LinkedinUrl),
		CompanyDomain: textOf(company.Domain, sent.CompanyDomain),
		CompanyName:   textOf(company.Name, sent.CompanyName),
		UTMSource:     textOf(utm.Source, sent.UtmSource),
		UTMMedium:     textOf(utm.Medium, sent.UtmMedium),
		UTMCampaign:   textOf(utm.Campaign, sent.UtmCampaign),
		Extra:         extraOf(sent, company, utm, body),
	}
}

// textOf gives the first text that is there and not blank.
func textOf(fields ...nullable.Nullable[string]) string {
	for _, field := range fields {
		if text, err := field.Get(); err == nil && contact.OneLine(text) != "" {
			return text
		}
	}
	return ""
}

func extraOf(sent *api.LeadInput, company api.LeadCompany, utm api.LeadUTM, body []byte) map[string]json.RawMessage {
	var raw map[string]json.RawMessage
	json.Unmarshal(body, &raw) //nolint:errcheck // the guard has read it
	extra := make(map[string]json.RawMessage)
	for name := range sent.AdditionalProperties {
		extra[name] = raw[name]
	}
	for group, unknown := range map[string]map[string]any{"company": company.AdditionalProperties, "utm": utm.AdditionalProperties} {
		var nested map[string]json.RawMessage
		json.Unmarshal(raw[group], &nested) //nolint:errcheck // the guard has read it
		for name := range unknown {
			extra[group+"."+name] = nested[name]
		}
	}
	return extra
}
