-- Events that a server which was down for 30 days left behind become facts before
-- their storage is dropped: accepted ones would count as a backlog for ever.

-- +goose Up

-- +goose StatementBegin
-- Drops one day of events or of refusals, or one span of event ids, that is past
-- its 30 days to the last millisecond, and tells whether it did: no row is
-- deleted one by one. A day waits until its events are processed. It hardly
-- waits for locks, for whoever records meanwhile would wait behind it: where a
-- day is in use, another run drops it.
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
    where p.day + p.days <= oldest and not exists (
        select from workspace_gates g join event_progress e on e.workspace_id = g.workspace_id
        where p.days = 1 and e.processed_no < least(g.last_event_no, ((p.day + 1) * 86400000) << 20)
    )
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
do $$ begin raise exception 'the migration of expiry cannot be undone'; end $$;
-- +goose StatementEnd
