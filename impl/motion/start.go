package motion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
)

// A Start of a motion for a company by an API call.
type Start struct {
	Motion, Company int64
	Contacts        []int64 // of the company; may be empty
	APIKey          int64   // who starts it
	Key             string  // the idempotency key, which is that API key's own
}

// Begin queues the company's entry, or gives what an earlier use of the key came
// to, decided or not. The faults are, in this order, motion_not_found,
// idempotency_key_reused, company_not_found, invalid_request,
// api_trigger_missing and engine_off.
func Begin(ctx context.Context, d *db.DB, workspace int64, start Start) (entry db.Entry, err error) {
	err = d.In(ctx, workspace, func(s *db.Scope) error {
		entry, err = begin(ctx, s, start)
		return err
	})
	return entry, err
}

func begin(ctx context.Context, s *db.Scope, start Start) (db.Entry, error) {
	motion, err := s.MotionToStart(ctx, start.Motion)
	if errors.Is(err, db.ErrNotFound) {
		return db.Entry{}, fault.MotionNotFound.New()
	}
	if err != nil {
		return db.Entry{}, err
	}
	if earlier, err := earlier(ctx, s, start); !errors.Is(err, db.ErrNotFound) {
		return earlier, err
	}
	if err := check(ctx, s, start); err != nil {
		return db.Entry{}, err
	}
	switch {
	case !motion.APICall:
		return db.Entry{}, fault.APITriggerMissing.New()
	case !motion.AgentsEnabled:
		return db.Entry{}, fault.EngineOff.New()
	}
	queued := db.Entry{Motion: start.Motion, Company: start.Company, Contacts: start.Contacts}
	if err := s.QueueEntry(ctx, queued, start.APIKey, start.Key); err != nil {
		return db.Entry{}, err
	}
	// It may be another request's, which came at the same instant.
	return earlier(ctx, s, start)
}

// earlier gives the entry that the key was used for; db.ErrNotFound where it was
// not used.
func earlier(ctx context.Context, s *db.Scope, start Start) (db.Entry, error) {
	entry, err := s.EntryByKey(ctx, start.APIKey, start.Key)
	if err == nil && (entry.Motion != start.Motion || entry.Company != start.Company) {
		return db.Entry{}, fault.IdempotencyKeyReused.New()
	}
	return entry, err
}

// check makes sure of the company, and that the contacts are at it.
func check(ctx context.Context, s *db.Scope, start Start) error {
	exists, err := s.CompanyExists(ctx, start.Company)
	if err != nil {
		return err
	}
	if !exists {
		return fault.CompanyNotFound.New()
	}
	if len(start.Contacts) == 0 {
		return nil
	}
	there, err := s.ContactsAt(ctx, start.Company, start.Contacts)
	if err != nil {
		return err
	}
	for i, contact := range start.Contacts {
		if !slices.Contains(there, contact) {
			return fault.InvalidRequest.At(fmt.Sprintf("contactIds[%d]", i), "want a contact of the company")
		}
	}
	return nil
}
