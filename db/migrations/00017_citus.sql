-- What kept functions from running where the tables are distributed by workspace.

-- +goose Up

-- +goose StatementBegin
-- Drops one day of events or of refusals, or one span of event ids, that is past
-- its 30 days to the last millisecond, and tells whether it did: no row is
-- deleted one by one. A day waits until its events are processed. It hardly
-- waits for locks, for whoever records meanwhile would wait behind it: where a
-- day is in use, another run drops it.
--
-- Rows are locked workspace by workspace, and tables are not read together with
-- the catalog: neither can be done across nodes.
create or replace function drop_expired_events() returns integer
language plpgsql
set lock_timeout = '50ms'
as $$
declare
    day_nos constant bigint := 86400000::bigint << 20;
    oldest constant bigint := floor((extract(epoch from inlet_now()) - 30 * 86400) / 86400);
    lagging bigint;
    processed bigint;
    expired text;
begin
    -- The counters must let go of events while they can still be counted.
    for lagging in
        select workspace_id from event_progress
        where oldest_no <= processed_no and oldest_no < oldest * day_nos
    loop
        perform from event_progress where workspace_id = lagging for update;
        perform uncount_expired_events(lagging);
    end loop;
    -- Up to where the events of all workspaces are processed; null: all of them.
    select min(e.processed_no) into processed
    from workspace_gates g join event_progress e on e.workspace_id = g.workspace_id
    where e.processed_no < g.last_event_no;
    select p.relname into expired from (
        select c.relname, case i.inhparent when 'event_ids'::regclass then 30 else 1 end as days,
            floor(extract(epoch from to_date(right(c.relname, 8), 'YYYYMMDD')) / 86400)::bigint as day
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in ('events'::regclass, 'event_ids'::regclass, 'refusals'::regclass)
    ) p
    where p.day + p.days <= oldest and (p.days > 1 or processed is null or processed >= (p.day + 1) * day_nos)
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

-- +goose StatementBegin
-- Enters the company of a lead into the motions that leads trigger; the contact may
-- be null. Not one statement: the function it calls would run where the motions are.
create function queue_lead(workspace bigint, company bigint, contact bigint) returns void
language plpgsql as $$
declare
    motions bigint[];
begin
    select array_agg(m.motion_id) into motions
    from motions m
    where m.workspace_id = workspace and m.status <> 'archived' and m.entry -> 'lead_created' = 'true';
    if motions is not null then
        perform queue_entries(workspace, motions, array_fill(company, array[cardinality(motions)]),
            array_fill(contact, array[cardinality(motions)]), 'lead');
    end if;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Makes the facts of a signal anew, from the events that there are: for a signal
-- that was just defined or changed. It starts nothing. The events are read before
-- the function is called, not with the call.
create or replace function rebuild_signal_facts(workspace bigint, signal bigint) returns void
language plpgsql as $$
declare
    processed bigint;
    numbers bigint[];
begin
    select processed_no into processed from event_progress where workspace_id = workspace for update;
    delete from signal_facts where workspace_id = workspace and signal_id = signal;
    select array_agg(e.event_no) into numbers
    from signals s
    join event_types t on t.workspace_id = workspace and t.name = s.event
    join events e on e.workspace_id = workspace and e.ts = t.event_type_id * 4 and e.event_no <= processed
    where s.workspace_id = workspace and s.signal_id = signal;
    perform add_signal_facts(workspace, signal, numbers, false);
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Records a group of events, as it did: 00008_record_events.sql says what everything
-- means. What keys have left is read in one statement, for Citus takes none that is
-- assigned to an element of an array.
create or replace function record_events(
    w_ids bigint[], w_versions bigint[], w_types_versions bigint[], w_events integer[], w_upto integer[],
    k_workspace integer[], k_id bigint[], k_requests integer[], k_limit integer[],
    e_workspace integer[], e_mode smallint[], e_hash uuid[], e_id text[], e_type smallint[], e_occurred bigint[],
    e_company bigint[], e_domain text[], e_registrable text[], e_contact bigint[], e_email text[], e_visitor text[],
    e_properties text[],
    t_workspace integer[], t_id smallint[], t_name text[], t_label text[], t_properties text[],
    wait boolean,
    out now_ms bigint, out w_verdict smallint[], out w_base bigint[],
    out w_minute_left integer[], out w_day_left integer[], out w_backlog_left bigint[], out k_left integer[],
    out e_seen bigint[], out e_status smallint[]
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set lock_timeout = '1s'
as $$
declare
    total constant integer := coalesce(cardinality(e_hash), 0);
    this_minute bigint;
    today bigint;
    since bigint;
    held boolean;
    minute_counts integer[];
    day_counts integer[];
    named bigint[]; -- the company that the event names, by id or domain
    people bigint[]; -- the contact that the event names, or that its visitor is
    employers bigint[]; -- the company of that contact
    counted_keys bigint[];
begin
    if not wait then
        held := set_config('synchronous_commit', 'off', true) is null; -- until the transaction ends
    end if;
    for i in 1 .. cardinality(w_ids) loop
        held := pg_advisory_xact_lock(gate_key(w_ids[i])) is null;
    end loop;
    now_ms := floor(extract(epoch from inlet_now()) * 1000);
    this_minute := now_ms / 60000;
    today := now_ms / 86400000;
    since := (now_ms - 2592000000) << 20; -- 30 days

    select array_agg(minute_count), array_agg(day_count), array_agg(base), array_agg(minute_left), array_agg(day_left),
        array_agg(backlog_left),
        array_agg(case
            when version is distinct from w_versions[i] or types_version is distinct from w_types_versions[i] then 1
            when w_events[i] > 0 and (w_events[i] > minute_left or w_events[i] > day_left or backlog_left <= 0) then 2
            else 0
        end)
    into minute_counts, day_counts, w_base, w_minute_left, w_day_left, w_backlog_left, w_verdict
    from generate_series(1, cardinality(w_ids)) i
    cross join lateral (
        select g.version, g.types_version, greatest(g.last_event_no, (now_ms << 20) - 1) as base,
            case g.minute when this_minute then g.minute_events else 0 end as minute_count,
            case g.day when today then g.day_events else 0 end as day_count,
            g.events_per_minute - case g.minute when this_minute then g.minute_events else 0 end as minute_left,
            g.events_per_day - case g.day when today then g.day_events else 0 end as day_left,
            g.events_backlog - g.accepted_events + p.processed_events as backlog_left
        from workspace_gates g, event_progress p
        where g.workspace_id = w_ids[i] and p.workspace_id = w_ids[i]
        limit 1 -- probed one by one
    ) gate;

    e_seen := array(
        select coalesce((
            select event_no from event_ids
            where workspace_id = w_ids[e_workspace[n]] and id_hash = e_hash[n] and event_no >= since
            order by event_no desc limit 1
        ), 0)
        from generate_series(1, total) n
    );
    if cardinality(t_workspace) > 0 then
        for n in 1 .. total loop
            if e_mode[n] = 2 and e_seen[n] <> 0 and w_verdict[e_workspace[n]] = 0 then
                w_verdict[e_workspace[n]] := 3;
            end if;
        end loop;
    end if;

    if cardinality(k_workspace) > 0 then
        with counted as (
            insert into request_counts as c (workspace_id, key_id, minute, requests)
            select w_ids[k_workspace[k]], k_id[k], this_minute, k_requests[k]
            from generate_series(1, cardinality(k_workspace)) k
            where w_verdict[k_workspace[k]] = 0 and k_requests[k] <= k_limit[k]
            on conflict (workspace_id, key_id) do update
                set requests = case when c.minute = this_minute then c.requests else 0 end + excluded.requests,
                    minute = this_minute
                where c.minute <> this_minute
                    or c.requests + excluded.requests <= k_limit[array_position(k_id, excluded.key_id)]
            returning key_id
        )
        select array_agg(key_id) into counted_keys from counted;
        if cardinality(counted_keys) is distinct from cardinality(k_workspace) then
            for k in 1 .. cardinality(k_workspace) loop
                if w_verdict[k_workspace[k]] = 0 and not k_id[k] = any(coalesce(counted_keys, '{}')) then
                    w_verdict[k_workspace[k]] := 2;
                end if;
            end loop;
            update request_counts c set requests = c.requests - k_requests[k]
            from generate_series(1, cardinality(k_workspace)) k
            where c.workspace_id = w_ids[k_workspace[k]] and c.key_id = k_id[k]
                and w_verdict[k_workspace[k]] = 2 and k_id[k] = any(counted_keys);
        end if;
    end if;
    if 2 = any(w_verdict) then
        k_left := array(
            select k_limit[k] - coalesce((
                select requests from request_counts
                where workspace_id = w_ids[k_workspace[k]] and key_id = k_id[k] and minute = this_minute
            ), 0)
            from generate_series(1, coalesce(cardinality(k_workspace), 0)) k
        );
    end if;

    if e_company is not null or e_domain is not null then
        named := array(
            select case
                when e_company[n] <> 0 then (
                    select company_id from companies
                    where workspace_id = w_ids[e_workspace[n]] and company_id = e_company[n])
                when e_domain[n] <> '' then coalesce((
                    select company_id from company_domains
                    where workspace_id = w_ids[e_workspace[n]] and domain = e_domain[n]
                ), (
                    select company_id from company_domains
                    where workspace_id = w_ids[e_workspace[n]] and domain = e_registrable[n]
                ))
            end
            from generate_series(1, total) n
        );
    end if;
    if e_contact is not null or e_email is not null or e_visitor is not null then
        people := array(
            select case
                when e_contact[n] <> 0 then (
                    select contact_id from contacts
                    where workspace_id = w_ids[e_workspace[n]] and contact_id = e_contact[n])
                when e_email[n] <> '' then (
                    select contact_id from contacts
                    where workspace_id = w_ids[e_workspace[n]] and email = e_email[n])
                when e_visitor[n] <> '' then (
                    select contact_id from visitors
                    where workspace_id = w_ids[e_workspace[n]] and visitor_id = e_visitor[n])
            end
            from generate_series(1, total) n
        );
        employers := array(
            select case when people[n] is not null then (
                select company_id from contacts
                where workspace_id = w_ids[e_workspace[n]] and contact_id = people[n])
            end
            from generate_series(1, total) n
        );
    end if;
    -- A named company or contact that is absent makes the event unmatched,
    -- whatever else is named.
    e_status := array(
        select case
            when e_seen[n] <> 0 and w_verdict[e_workspace[n]] in (0, 3) then 3
            when e_mode[n] = 1 or w_verdict[e_workspace[n]] <> 0 then -1
            when named[n] is null and (e_company[n] <> 0 or e_domain[n] <> '') then 1
            when people[n] is null and (e_contact[n] <> 0 or e_email[n] <> '') then 1
            when named[n] is not null or people[n] is not null then 0
            else 2
        end
        from generate_series(1, total) n
    );

    if cardinality(t_workspace) > 0 then
        insert into event_types (workspace_id, event_type_id, name, label, properties)
        select w_ids[t_workspace[n]], t_id[n], t_name[n], t_label[n], t_properties[n]::jsonb
        from generate_series(1, cardinality(t_workspace)) n
        where w_verdict[t_workspace[n]] = 0
        on conflict (workspace_id, event_type_id) do update set properties = excluded.properties;
    end if;
    insert into event_ids (workspace_id, id_hash, event_no)
    select w_ids[e_workspace[n]], e_hash[n], w_base[e_workspace[n]] + n
    from generate_series(1, total) n
    where e_status[n] between 0 and 2;
    -- A visitor supplies the person beside a named company only if that is
    -- where the person works.
    insert into events (workspace_id, event_no, occurred_at, company_id, contact_id, ts, id, visitor_id, domain_hint,
        properties)
    select w_ids[e_workspace[n]], w_base[e_workspace[n]] + n,
        timestamptz 'epoch' + interval '1 millisecond'
            * case e_occurred[n] when 0 then (w_base[e_workspace[n]] + n) >> 20 else e_occurred[n] end,
        case when e_status[n] = 0 then coalesce(named[n], employers[n]) end,
        case when e_status[n] = 0 and (e_contact[n] <> 0 or e_email[n] <> ''
            or named[n] is null or named[n] = employers[n]) then people[n] end,
        e_type[n] * 4 + e_status[n],
        e_id[n],
        case when e_status[n] = 2 then e_visitor[n] end,
        nullif(e_domain[n], ''),
        e_properties[n]
    from generate_series(1, total) n
    where e_status[n] between 0 and 2;

    update workspace_gates g set
        types_version = case when i = any(t_workspace) then greatest(g.types_version + 1, now_ms) else g.types_version end,
        last_event_no = w_base[i] + w_upto[i],
        minute = this_minute, minute_events = minute_counts[i] + w_events[i],
        day = today, day_events = day_counts[i] + w_events[i],
        accepted_events = g.accepted_events
            + cardinality(array_positions(e_status[coalesce(w_upto[i - 1], 0) + 1 : w_upto[i]], 0::smallint))
    from generate_series(1, cardinality(w_ids)) i
    where g.workspace_id = w_ids[i] and w_verdict[i] = 0;
end
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'the migration for Citus cannot be undone'; end $$;
-- +goose StatementEnd
