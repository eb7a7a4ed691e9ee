-- Whoever holds the gate of a workspace for long (a large seed, a session that
-- hangs) must not hold up the other workspaces of a group: it is waited for no
-- longer than what a group of events ever takes.

-- +goose Up
alter function record_events set lock_timeout = '1s';

-- +goose Down
alter function record_events reset lock_timeout;
