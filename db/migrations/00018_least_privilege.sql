-- Jobs make and drop partitions, and a server's role may own nothing: these
-- functions do it with their owner's rights, and nothing else.

-- +goose Up

-- Whoever may call it must not fill the catalog.
-- +goose StatementBegin
create or replace function ensure_event_partitions(days_ahead integer) returns void
language plpgsql as $$
declare
    today constant bigint := floor(extract(epoch from inlet_now()) / 86400);
    day_nos constant bigint := 86400000::bigint << 20;
    partition text;
begin
    if days_ahead > 60 then
        raise exception 'room for events is made 60 days ahead at most';
    end if;
    perform pg_advisory_xact_lock(gate_key(0));
    for day in today - 1 .. today + days_ahead loop
        partition := 'events_' || to_char(to_timestamp(day * 86400) at time zone 'UTC', 'YYYYMMDD');
        if to_regclass(partition) is null then
            execute format('create table %I (like events including constraints)', partition);
            execute format('alter table events attach partition %I for values from (%s) to (%s)',
                partition, day * day_nos, (day + 1) * day_nos);
        end if;
    end loop;
    for span in (today - 1) / 30 .. (today + days_ahead) / 30 loop
        partition := 'event_ids_' || to_char(to_timestamp(span * 30 * 86400) at time zone 'UTC', 'YYYYMMDD');
        if to_regclass(partition) is null then
            execute format('create table %I (like event_ids, primary key (workspace_id, id_hash))', partition);
            execute format('alter table event_ids attach partition %I for values from (%s) to (%s)',
                partition, span * 30 * day_nos, (span + 1) * 30 * day_nos);
        end if;
    end loop;
end
$$;
-- +goose StatementEnd

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
-- +goose StatementBegin
create or replace function ensure_event_partitions(days_ahead integer) returns void
language plpgsql as $$
declare
    today constant bigint := floor(extract(epoch from inlet_now()) / 86400);
    day_nos constant bigint := 86400000::bigint << 20;
    partition text;
begin
    perform pg_advisory_xact_lock(gate_key(0));
    for day in today - 1 .. today + days_ahead loop
        partition := 'events_' || to_char(to_timestamp(day * 86400) at time zone 'UTC', 'YYYYMMDD');
        if to_regclass(partition) is null then
            execute format('create table %I (like events including constraints)', partition);
            execute format('alter table events attach partition %I for values from (%s) to (%s)',
                partition, day * day_nos, (day + 1) * day_nos);
        end if;
    end loop;
    for span in (today - 1) / 30 .. (today + days_ahead) / 30 loop
        partition := 'event_ids_' || to_char(to_timestamp(span * 30 * 86400) at time zone 'UTC', 'YYYYMMDD');
        if to_regclass(partition) is null then
            execute format('create table %I (like event_ids, primary key (workspace_id, id_hash))', partition);
            execute format('alter table event_ids attach partition %I for values from (%s) to (%s)',
                partition, span * 30 * day_nos, (span + 1) * 30 * day_nos);
        end if;
    end loop;
end
$$;
-- +goose StatementEnd
alter function ensure_event_partitions security invoker reset search_path;
alter function drop_expired_events security invoker reset search_path;
grant execute on function ensure_event_partitions, drop_expired_events to public;
