package db

import (
	"context"
	"time"
)

// A Person works in a workspace, in a role.
type Person struct {
	Email        string
	Name         string
	Role         string
	PasswordHash *string // nil: cannot sign in
	Left         bool
}

const insertPerson = `
	insert into people (workspace_id, email, name, role, password_hash, left_at)
	values ($1, $2, $3, $4, $5, $6)
	returning person_id`

const updatePerson = `
	update people set email = $3, name = $4, role = $5, password_hash = coalesce($6, password_hash),
		left_at = case when $7::timestamptz is not null then coalesce(left_at, $7) end
	where workspace_id = $1 and person_id = $2`

// SavePerson changes the person of this id, or adds one where it is zero.
func (s *Scope) SavePerson(ctx context.Context, id int64, p Person) (int64, error) {
	var err error
	if id == 0 {
		err = s.get(ctx, &id, insertPerson, p.Email, p.Name, p.Role, p.PasswordHash, s.since(p.Left))
	} else {
		_, err = s.exec(ctx, updatePerson, id, p.Email, p.Name, p.Role, p.PasswordHash, s.since(p.Left))
	}
	if err != nil {
		return 0, err
	}
	return id, s.touch(ctx)
}

const passwordHash = `
	select coalesce(password_hash, '') from people where workspace_id = $1 and person_id = $2`

// PasswordHash gives a person's, empty where there is none.
func (s *Scope) PasswordHash(ctx context.Context, id int64) (string, error) {
	var hash string
	err := s.get(ctx, &hash, passwordHash, id)
	return hash, err
}

const personByEmail = `
	select person_id from people where workspace_id = $1 and email = $2 and left_at is null`

// PersonByEmail finds someone who has not left; ErrNotFound where there is none.
func (s *Scope) PersonByEmail(ctx context.Context, email string) (int64, error) {
	var id int64
	err := s.get(ctx, &id, personByEmail, email)
	return id, err
}

// since gives the time for what is so from now on, and nil for what is not. It is the
// caller's and not the database's: Citus updates nothing by a time in a CASE.
func (s *Scope) since(so bool) *time.Time {
	if !so {
		return nil
	}
	now := s.d.Now()
	return &now
}

// timeOrNil keeps a zero time out of the database.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
