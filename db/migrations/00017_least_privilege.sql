-- Jobs make and drop partitions, and a server's role may own nothing: these
-- functions do it with their owner's rights, and nothing else.

-- +goose Up

-- The schema that they were made in, whatever the caller's path says. What is
-- temporary is looked up last, so that nobody puts a table of theirs before ours.
-- +goose StatementBegin
do $$
declare
    f regprocedure;
begin
    foreach f in array array['ensure_event_partitions(integer)', 'drop_expired_events()']::regprocedure[] loop
        execute format('alter function %s security definer set search_path = %I, pg_temp', f, current_schema());
        execute format('revoke execute on function %s from public', f);
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose Down
alter function ensure_event_partitions security invoker reset search_path;
alter function drop_expired_events security invoker reset search_path;
grant execute on function ensure_event_partitions, drop_expired_events to public;
