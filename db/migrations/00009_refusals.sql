-- The ledger of refused events: how many, when, from which key and why; never
-- what was in them.

-- +goose Up

-- param and event_name are empty where there is none, and where what the caller
-- sent is not fit to be kept.
create table refusals (
    workspace_id bigint not null,
    minute       bigint not null, -- since 1970
    key_id       bigint not null,
    code         text not null,
    param        text not null,
    event_name   text not null,
    events       bigint not null,
    primary key (workspace_id, minute, key_id, code, param, event_name)
) partition by range (minute);

-- +goose StatementBegin
-- Makes the partitions from yesterday to days_ahead days from now. A partition
-- is made apart and then attached, which lets events be recorded meanwhile.
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

select ensure_event_partitions(7);

-- +goose StatementBegin
-- Drops one day of events or of refusals, or one span of event ids, that is past
-- its 30 days to the last millisecond, and tells whether it did: no row is
-- deleted one by one. It hardly waits, for whoever records meanwhile would wait
-- behind it: where a day is in use, another run drops it.
create or replace function drop_expired_events() returns integer
language plpgsql
set lock_timeout = '50ms'
as $$
declare
    oldest constant bigint := floor((extract(epoch from inlet_now()) - 30 * 86400) / 86400);
    lagging bigint;
    expired text;
begin
    -- The counters must let go of events while they can still be counted.
    for lagging in
        select workspace_id from event_progress
        where oldest_no <= processed_no and oldest_no < (oldest * 86400000) << 20
        for update
    loop
        perform uncount_expired_events(lagging);
    end loop;
    select p.relname into expired from (
        select c.relname, case i.inhparent when 'event_ids'::regclass then 30 else 1 end as days,
            floor(extract(epoch from to_date(right(c.relname, 8), 'YYYYMMDD')) / 86400)::bigint as day
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in ('events'::regclass, 'event_ids'::regclass, 'refusals'::regclass)
    ) p
    where p.day + p.days <= oldest
    order by p.day limit 1;
    if expired is null then
        return 0;
    end if;
    execute format('drop table %I', expired);
    return 1;
exception when lock_not_available then
    return 0;
end
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'the migration of refusals cannot be undone'; end $$;
-- +goose StatementEnd
