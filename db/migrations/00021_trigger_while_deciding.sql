-- A trigger that comes while an earlier entry of the same company is being decided
-- is not taken for that entry: it would be decided by the settings of before, and
-- what was switched on meanwhile would miss it.

-- +goose Up

-- +goose StatementBegin
-- Queues a company's entry into the motions of these ids, unless one that nobody
-- waits for by a key is queued already: the decision would be the same. One that
-- is just being decided is waited for, for its settings may be those of before.
--
-- In PL/pgSQL: in a function of SQL the workspace is not known when a statement is
-- planned, and so neither is its node. And what is queued is looked up before the
-- rest is added: an insert of what is in no table cannot look into one.
create or replace function queue_entries(
    workspace bigint, motions bigint[], companies bigint[], contacts bigint[], by text
) returns void
language plpgsql as $$
begin
    perform from motion_entries e
    join unnest(motions, companies) as q(motion, company) on e.motion_id = q.motion and e.company_id = q.company
    where e.workspace_id = workspace and e.decided_at is null and e.idempotency_key is null
    order by e.entry_id
    for no key update of e;

    select array_agg(q.motion), array_agg(q.company), array_agg(q.contact) into motions, companies, contacts
    from unnest(motions, companies, contacts) as q(motion, company, contact)
    where not exists (
        select from motion_entries e
        where e.workspace_id = workspace and e.motion_id = q.motion and e.company_id = q.company and e.decided_at is null
            and e.idempotency_key is null
    );
    insert into motion_entries (workspace_id, motion_id, company_id, contact_ids, trigger)
    select workspace, q.motion, q.company, coalesce((array_agg(distinct q.contact) filter (where q.contact is not null))[1:50], '{}'), by
    from unnest(motions, companies, contacts) as q(motion, company, contact)
    group by q.motion, q.company
    order by q.motion, q.company;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Decides up to so many queued entries of a workspace, in the order in which they
-- were queued, and gives how many it did. All of a workspace are decided by one
-- process at a time, so that each decision sees those before it: whoever dies,
-- what was not committed is decided again, once. A workspace that another process
-- is at work on is passed over. An entry is locked before what it is decided by is
-- read, so that a trigger that finds it queued knows which settings it will meet.
--
-- The checks run in this order, and the first that fails is the reason: agents_off,
-- motion_paused, company_gone, already_enrolled, reentry_not_allowed,
-- conditions_not_met, no_contacts, daily_cap_reached.
create or replace function decide_entries(workspace bigint, most integer) returns integer
language plpgsql as $$
declare
    q record;
    m record;
    now_at constant timestamptz := inlet_now();
    today constant timestamptz := date_trunc('day', now_at at time zone 'UTC') at time zone 'UTC';
    entered jsonb := '{}'; -- how many entered each motion with a daily cap today
    reason text;
    enrolled bigint;
    decided integer := 0;
begin
    if not pg_try_advisory_xact_lock(30, hashint8(workspace)) then
        return 0;
    end if;
    for q in
        select entry_id, motion_id, company_id, contact_ids from motion_entries
        where workspace_id = workspace and decided_at is null order by entry_id limit most
        for no key update
    loop
        -- Not the row as it was when the first of them was decided: it may be
        -- paused meanwhile.
        select o.status, o.entry, o.steps, w.agents_enabled into m
        from motions o join workspaces w on w.workspace_id = o.workspace_id
        where o.workspace_id = workspace and o.motion_id = q.motion_id;
        -- Counted once: nobody else lets anything into the workspace's motions.
        if m.entry ->> 'daily_cap' is not null and not entered ? q.motion_id::text then
            entered := entered || jsonb_build_object(q.motion_id, (
                select count(*) from enrollments
                where workspace_id = workspace and motion_id = q.motion_id and entered_at >= today
            ));
        end if;
        enrolled := null;
        reason := case
            when not m.agents_enabled then 'agents_off'
            when m.status <> 'active' then 'motion_paused'
            when not exists (select from companies where workspace_id = workspace and company_id = q.company_id) then 'company_gone'
            when exists (
                select from enrollments
                where workspace_id = workspace and motion_id = q.motion_id and company_id = q.company_id and status = 'active'
            ) then 'already_enrolled'
            when (m.entry ->> 'reentry_days')::int <> 0 and exists (
                select from enrollments
                where workspace_id = workspace and company_id = q.company_id and motion_id = q.motion_id
                    and ((m.entry ->> 'reentry_days')::int < 0
                        or entered_at > now_at - make_interval(days => (m.entry ->> 'reentry_days')::int))
            ) then 'reentry_not_allowed'
            when exists (
                select from jsonb_array_elements_text(m.entry -> 'in_segments') as wanted(segment)
                where not exists (
                    select from segment_companies s
                    where s.workspace_id = workspace and s.segment_id = wanted.segment::bigint and s.company_id = q.company_id
                )
            ) or exists (
                select from jsonb_array_elements_text(m.entry -> 'not_in_segments') as unwanted(segment)
                join segment_companies s
                    on s.workspace_id = workspace and s.segment_id = unwanted.segment::bigint and s.company_id = q.company_id
            ) then 'conditions_not_met'
            when not exists (
                select from contacts
                where workspace_id = workspace and company_id = q.company_id
                    and (q.contact_ids = '{}' or contact_id = any(q.contact_ids))
            ) then 'no_contacts'
            when (entered ->> q.motion_id::text)::int >= (m.entry ->> 'daily_cap')::int then 'daily_cap_reached'
            else 'entered'
        end;
        if reason = 'entered' then
            insert into enrollments (workspace_id, motion_id, company_id, contact_ids, steps, due_at, entered_at)
            values (workspace, q.motion_id, q.company_id, q.contact_ids, m.steps, now_at, now_at)
            returning enrollment_id into enrolled;
            if entered ? q.motion_id::text then
                entered := entered || jsonb_build_object(q.motion_id, (entered ->> q.motion_id::text)::int + 1);
            end if;
        end if;
        update motion_entries
        set decided_at = date_trunc('milliseconds', now_at), reason_code = reason, enrollment_id = enrolled
        where workspace_id = workspace and entry_id = q.entry_id;
        decided := decided + 1;
    end loop;
    return decided;
end
$$;
-- +goose StatementEnd

-- +goose Down

-- +goose StatementBegin
-- Queues a company's entry into the motions of these ids, unless one that nobody
-- waits for by a key is queued already: the decision would be the same.
create or replace function queue_entries(
    workspace bigint, motions bigint[], companies bigint[], contacts bigint[], by text
) returns void
language sql as $$
    insert into motion_entries (workspace_id, motion_id, company_id, contact_ids, trigger)
    select workspace, q.motion, q.company, coalesce((array_agg(distinct q.contact) filter (where q.contact is not null))[1:50], '{}'), by
    from unnest(motions, companies, contacts) as q(motion, company, contact)
    where not exists (
        select from motion_entries e
        where e.workspace_id = workspace and e.motion_id = q.motion and e.company_id = q.company and e.decided_at is null
            and e.idempotency_key is null
    )
    group by q.motion, q.company
    order by q.motion, q.company
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Decides up to so many queued entries of a workspace, in the order in which they
-- were queued, and gives how many it did. All of a workspace are decided by one
-- process at a time, so that each decision sees those before it: whoever dies,
-- what was not committed is decided again, once. A workspace that another process
-- is at work on is passed over.
--
-- The checks run in this order, and the first that fails is the reason: agents_off,
-- motion_paused, company_gone, already_enrolled, reentry_not_allowed,
-- conditions_not_met, no_contacts, daily_cap_reached.
create or replace function decide_entries(workspace bigint, most integer) returns integer
language plpgsql as $$
declare
    q record;
    m record;
    agents boolean;
    now_at constant timestamptz := inlet_now();
    today constant timestamptz := date_trunc('day', now_at at time zone 'UTC') at time zone 'UTC';
    entered jsonb := '{}'; -- how many entered each motion with a daily cap today
    reason text;
    enrolled bigint;
    decided integer := 0;
begin
    if not pg_try_advisory_xact_lock(30, hashint8(workspace)) then
        return 0;
    end if;
    select agents_enabled into agents from workspaces where workspace_id = workspace;
    for q in
        select entry_id, motion_id, company_id, contact_ids from motion_entries
        where workspace_id = workspace and decided_at is null order by entry_id limit most
    loop
        -- Not the row as it was when the first of them was decided: it may be
        -- paused meanwhile.
        select status, entry, steps into m from motions where workspace_id = workspace and motion_id = q.motion_id;
        -- Counted once: nobody else lets anything into the workspace's motions.
        if m.entry ->> 'daily_cap' is not null and not entered ? q.motion_id::text then
            entered := entered || jsonb_build_object(q.motion_id, (
                select count(*) from enrollments
                where workspace_id = workspace and motion_id = q.motion_id and entered_at >= today
            ));
        end if;
        enrolled := null;
        reason := case
            when not agents then 'agents_off'
            when m.status <> 'active' then 'motion_paused'
            when not exists (select from companies where workspace_id = workspace and company_id = q.company_id) then 'company_gone'
            when exists (
                select from enrollments
                where workspace_id = workspace and motion_id = q.motion_id and company_id = q.company_id and status = 'active'
            ) then 'already_enrolled'
            when (m.entry ->> 'reentry_days')::int <> 0 and exists (
                select from enrollments
                where workspace_id = workspace and company_id = q.company_id and motion_id = q.motion_id
                    and ((m.entry ->> 'reentry_days')::int < 0
                        or entered_at > now_at - make_interval(days => (m.entry ->> 'reentry_days')::int))
            ) then 'reentry_not_allowed'
            when exists (
                select from jsonb_array_elements_text(m.entry -> 'in_segments') as wanted(segment)
                where not exists (
                    select from segment_companies s
                    where s.workspace_id = workspace and s.segment_id = wanted.segment::bigint and s.company_id = q.company_id
                )
            ) or exists (
                select from jsonb_array_elements_text(m.entry -> 'not_in_segments') as unwanted(segment)
                join segment_companies s
                    on s.workspace_id = workspace and s.segment_id = unwanted.segment::bigint and s.company_id = q.company_id
            ) then 'conditions_not_met'
            when not exists (
                select from contacts
                where workspace_id = workspace and company_id = q.company_id
                    and (q.contact_ids = '{}' or contact_id = any(q.contact_ids))
            ) then 'no_contacts'
            when (entered ->> q.motion_id::text)::int >= (m.entry ->> 'daily_cap')::int then 'daily_cap_reached'
            else 'entered'
        end;
        if reason = 'entered' then
            insert into enrollments (workspace_id, motion_id, company_id, contact_ids, steps, due_at, entered_at)
            values (workspace, q.motion_id, q.company_id, q.contact_ids, m.steps, now_at, now_at)
            returning enrollment_id into enrolled;
            if entered ? q.motion_id::text then
                entered := entered || jsonb_build_object(q.motion_id, (entered ->> q.motion_id::text)::int + 1);
            end if;
        end if;
        update motion_entries
        set decided_at = date_trunc('milliseconds', now_at), reason_code = reason, enrollment_id = enrolled
        where workspace_id = workspace and entry_id = q.entry_id;
        decided := decided + 1;
    end loop;
    return decided;
end
$$;
-- +goose StatementEnd
