package api

import (
	"context"

	"github.com/oapi-codegen/nullable"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/motion"
)

// Motions serves the operations of the tag Motions.
type Motions struct{ db *db.DB }

// StartMotion queues the entry of a company into a motion.
func (m Motions) StartMotion(ctx context.Context, r api.StartMotionRequestObject) (api.StartMotionResponseObject, error) {
	caller := exchangeOf(ctx).caller
	start := motion.Start{Motion: r.Id, Company: r.Body.CompanyId, APIKey: caller.KeyID, Key: r.Params.IdempotencyKey}
	if r.Body.ContactIds != nil {
		start.Contacts = *r.Body.ContactIds
	}
	entry, err := motion.Begin(ctx, m.db, caller.Workspace, start)
	if err != nil {
		return nil, err
	}
	if entry.DecidedAt == nil {
		return api.StartMotion202JSONResponse{
			Status: api.Queued, MotionId: entry.Motion, CompanyId: entry.Company,
		}, nil
	}
	decided := api.StartMotion200JSONResponse{
		Status: api.Decided, MotionId: entry.Motion, CompanyId: entry.Company,
		Outcome: motion.NotEntered, ReasonCode: *entry.ReasonCode, Reason: motion.Reason(*entry.ReasonCode),
		DecidedAt: timestamp(*entry.DecidedAt), EnrollmentId: nullable.NewNullNullable[int64](), ContactIds: entry.Contacts,
	}
	if entry.Enrollment != nil {
		decided.Outcome = motion.Entered
		decided.EnrollmentId.Set(*entry.Enrollment)
	}
	if decided.ContactIds == nil {
		decided.ContactIds = []api.ID{}
	}
	return decided, nil
}
