package db

import (
	"context"

	"github.com/inletdev/inlet/impl/trace"
)

// One loader at a time: two that meet the same new reference would both add it.
// A large file takes its time, and the next loader waits for it, however long.
const waitForSeed = `select set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)`

const lockSeed = `select pg_advisory_xact_lock(hashtext('inlet seed'))`

// LockSeed keeps other loaders of seed files out until the transaction ends.
func (t *Tx) LockSeed(ctx context.Context) error {
	for _, statement := range []string{waitForSeed, lockSeed} {
		if _, err := t.tx.ExecContext(ctx, statement); err != nil {
			return t.d.came(ctx, trace.Off, err)
		}
	}
	return nil
}

const seedRef = `
	select coalesce((select id from seed_refs where workspace_id = $1 and kind = $2 and ref = $3), 0)`

// SeedRef gives the record that a reference of a seed file became; zero where
// it has not been loaded.
func (s *Scope) SeedRef(ctx context.Context, kind, ref string) (int64, error) {
	var id int64
	err := s.get(ctx, &id, seedRef, kind, ref)
	return id, err
}

const setSeedRef = `
	insert into seed_refs (workspace_id, kind, ref, id) values ($1, $2, $3, $4) on conflict do nothing`

// SetSeedRef notes which record a reference became.
func (s *Scope) SetSeedRef(ctx context.Context, kind, ref string, id int64) error {
	_, err := s.exec(ctx, setSeedRef, kind, ref, id)
	return err
}
