-- How many events there are, counted behind the write path; how they end; and the
-- secret that cursors are signed with.

-- +goose Up

-- Events by day of receipt (days since 1970), type and status, as far as
-- event_counted says.
create table event_counts (
    workspace_id bigint not null references workspaces,
    day          integer not null,
    ts           smallint not null,
    n            bigint not null,
    primary key (workspace_id, day, ts)
);

-- Apart from workspace_gates, so that counting never waits for recording.
create table event_counted (
    workspace_id bigint primary key references workspaces,
    counted_no   bigint not null default 0 -- events up to this number are in event_counts
);
insert into event_counted (workspace_id) select workspace_id from workspaces;

-- +goose StatementBegin
-- Counts what was recorded in a workspace since it was last counted. Events are
-- numbered under the gate until their transaction has ended, so all that the
-- gate's row has passed are there to be seen. A workspace that another process
-- is counting is passed over.
create function count_events(workspace bigint) returns void
language plpgsql as $$
declare
    since bigint;
    until bigint;
begin
    select counted_no into since from event_counted where workspace_id = workspace for update skip locked;
    if not found then
        return;
    end if;
    select last_event_no into until from workspace_gates where workspace_id = workspace;
    insert into event_counts as c (workspace_id, day, ts, n)
    select workspace, (event_no >> 20) / 86400000, ts, count(*)
    from events where workspace_id = workspace and event_no > since and event_no <= until
    group by 2, 3
    on conflict (workspace_id, day, ts) do update set n = c.n + excluded.n;
    update event_counted set counted_no = until where workspace_id = workspace and until > since;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Drops the days of events, and the spans of their ids, that are past their 30
-- days to the last millisecond; no row is deleted one by one. It waits for
-- nobody: where a day is in use, the next run drops it.
create function drop_expired_events() returns integer
language plpgsql
set lock_timeout = '500ms'
as $$
declare
    oldest constant bigint := floor((extract(epoch from inlet_now()) - 30 * 86400) / 86400);
    partition record;
    dropped integer := 0;
begin
    for partition in
        select c.relname, case i.inhparent when 'events'::regclass then 1 else 30 end as days,
            floor(extract(epoch from to_date(right(c.relname, 8), 'YYYYMMDD')) / 86400)::bigint as day
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in ('events'::regclass, 'event_ids'::regclass)
    loop
        if partition.day + partition.days <= oldest then
            begin
                execute format('drop table %I', partition.relname);
                dropped := dropped + 1;
            exception when lock_not_available then
                null;
            end;
        end if;
    end loop;
    delete from event_counts where day < oldest;
    return dropped;
end
$$;
-- +goose StatementEnd

create table server_secrets (
    name   text primary key,
    secret bytea not null check (length(secret) >= 32)
);
insert into server_secrets (name, secret)
values ('cursors', sha256((gen_random_uuid()::text || gen_random_uuid()::text)::bytea));

-- +goose Down
drop table server_secrets;
drop function drop_expired_events, count_events;
drop table event_counted, event_counts;
