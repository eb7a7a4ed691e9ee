-- A hundred thousand entries are decided as fast, each, as one.

-- +goose Up

-- Of rows with a time, not of active ones: planned while the table was empty, the
-- look for a company's active enrollment read all of it.
drop index enrollments_due;
create index enrollments_due on enrollments (due_at) where due_at is not null;

-- With the segment, so that no plan reads a segment's companies for one of them.
drop index segment_companies_company;
create index segment_companies_company on segment_companies (workspace_id, company_id, segment_id);

-- What entered a motion today is counted once a call, not once an entry: with a
-- daily cap, the work of each decision grew with those before it.
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

-- +goose Down

drop index enrollments_due;
create index enrollments_due on enrollments (due_at) where status = 'active';
drop index segment_companies_company;
create index segment_companies_company on segment_companies (workspace_id, company_id);

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
            when (m.entry ->> 'daily_cap') is not null and (
                select count(*) from (
                    select from enrollments
                    where workspace_id = workspace and motion_id = q.motion_id and entered_at >= today
                    limit (m.entry ->> 'daily_cap')::int
                ) entered
            ) >= (m.entry ->> 'daily_cap')::int then 'daily_cap_reached'
            else 'entered'
        end;
        if reason = 'entered' then
            insert into enrollments (workspace_id, motion_id, company_id, contact_ids, steps, due_at, entered_at)
            values (workspace, q.motion_id, q.company_id, q.contact_ids, m.steps, now_at, now_at)
            returning enrollment_id into enrolled;
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
