-- What a motion start leads to can be followed from its request.

-- +goose Up

-- The span of the request that queued the entry, where it was recorded: trace id
-- and span id, 24 bytes.
alter table motion_entries add column trace bytea;

-- +goose Down

alter table motion_entries drop column trace;
