package db

import (
	"context"
)

const insertForm = `
	insert into forms (workspace_id, public_key, name, fields) values ($1, $2, $3, $4) returning form_id`

const updateForm = `
	update forms set public_key = coalesce(nullif($3, ''), public_key), name = $4, fields = $5 where workspace_id = $1 and form_id = $2`

// SaveForm changes the form of this id, or adds one where it is zero.
func (s *Scope) SaveForm(ctx context.Context, id int64, key, name string, fields []string) (int64, error) {
	if id != 0 {
		_, err := s.exec(ctx, updateForm, id, key, name, texts(fields))
		return id, err
	}
	err := s.get(ctx, &id, insertForm, key, name, texts(fields))
	return id, err
}

const insertMeetingForm = `
	insert into meeting_forms (workspace_id, public_key, name, minutes) values ($1, $2, $3, $4)
	returning meeting_form_id`

const updateMeetingForm = `
	update meeting_forms set public_key = coalesce(nullif($3, ''), public_key), name = $4, minutes = $5
	where workspace_id = $1 and meeting_form_id = $2`

// SaveMeetingForm changes the meeting form of this id, or adds one where it is
// zero.
func (s *Scope) SaveMeetingForm(ctx context.Context, id int64, key, name string, minutes int) (int64, error) {
	if id != 0 {
		_, err := s.exec(ctx, updateMeetingForm, id, key, name, minutes)
		return id, err
	}
	err := s.get(ctx, &id, insertMeetingForm, key, name, minutes)
	return id, err
}
