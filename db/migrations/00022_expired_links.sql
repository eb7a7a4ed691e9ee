-- Links that have expired are deleted, and are found by that.

-- +goose NO TRANSACTION
-- +goose Up
set lock_timeout = 0;
drop index concurrently if exists email_links_expired;
create index concurrently email_links_expired on email_links (expires_at);
reset lock_timeout;

-- +goose Down
drop index email_links_expired;
