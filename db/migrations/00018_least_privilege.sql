-- Jobs make and drop partitions, and a server's role may own nothing: these
-- functions do it with their owner's rights, and nothing else.

-- +goose Up

-- Makes the partitions from yesterday to days_ahead days from now. A partition
-- is made apart and then attached, which lets events be recorded meanwhile.
-- Whoever may call it must not fill the catalog.
-- +goose StatementBegin
create or replace function ensure_event_partitions(days_ahead integer) returns void
language plpgsql as $$
declare
    today constant bigint := floor(extract(epoch from inlet_now()) / 86400);
    wanted record;
begin
    if days_ahead > 60 then
        raise exception 'room for events is made 60 days ahead at most';
    end if;
    perform pg_advisory_xact_lock(gate_key(0));
    for wanted in
        -- per_day: what the partition key counts in a day
        select parent, '' as keys, 1 as days, per_day, day
        from (values ('events', 86400000::bigint << 20), ('refusals', 1440)) as daily(parent, per_day),
            generate_series(today - 1, today + days_ahead) day
        union all
        select 'event_ids', ', primary key (workspace_id, id_hash)', 30, 86400000::bigint << 20, span * 30
        from generate_series((today - 1) / 30, (today + days_ahead) / 30) span
    loop
        declare
            partition constant text := wanted.parent || '_'
                || to_char(to_timestamp(wanted.day * 86400) at time zone 'UTC', 'YYYYMMDD');
        begin
            if to_regclass(partition) is null then
                execute format('create table %I (like %I including constraints%s)', partition, wanted.parent, wanted.keys);
                execute format('alter table %I attach partition %I for values from (%s) to (%s)', wanted.parent, partition,
                    wanted.day * wanted.per_day, (wanted.day + wanted.days) * wanted.per_day);
            end if;
        end;
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
    wanted record;
begin
    perform pg_advisory_xact_lock(gate_key(0));
    for wanted in
        -- per_day: what the partition key counts in a day
        select parent, '' as keys, 1 as days, per_day, day
        from (values ('events', 86400000::bigint << 20), ('refusals', 1440)) as daily(parent, per_day),
            generate_series(today - 1, today + days_ahead) day
        union all
        select 'event_ids', ', primary key (workspace_id, id_hash)', 30, 86400000::bigint << 20, span * 30
        from generate_series((today - 1) / 30, (today + days_ahead) / 30) span
    loop
        declare
            partition constant text := wanted.parent || '_'
                || to_char(to_timestamp(wanted.day * 86400) at time zone 'UTC', 'YYYYMMDD');
        begin
            if to_regclass(partition) is null then
                execute format('create table %I (like %I including constraints%s)', partition, wanted.parent, wanted.keys);
                execute format('alter table %I attach partition %I for values from (%s) to (%s)', wanted.parent, partition,
                    wanted.day * wanted.per_day, (wanted.day + wanted.days) * wanted.per_day);
            end if;
        end;
    end loop;
end
$$;
-- +goose StatementEnd
alter function ensure_event_partitions security invoker reset search_path;
alter function drop_expired_events security invoker reset search_path;
grant execute on function ensure_event_partitions, drop_expired_events to public;
