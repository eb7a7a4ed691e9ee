-- Events, their ids, and their types; and the one statement that records them.

-- +goose Up

-- event_type_id counts from 1 within the workspace: a name is never deleted,
-- and a workspace has at most 200.
create table event_types (
    workspace_id  bigint not null references workspaces,
    event_type_id smallint not null check (event_type_id between 1 and 200),
    name          text not null check (name ~ '^[a-z][a-z0-9_]{0,47}$'),
    label         text not null,
    status        text not null default 'active' check (status in ('active', 'archived', 'blocked')),
    properties    jsonb not null default '{}',
    first_seen_at timestamptz not null default inlet_now(),
    last_seen_at  timestamptz not null default inlet_now(),
    primary key (workspace_id, event_type_id),
    unique (workspace_id, name)
);

-- event_no is the time of receipt in milliseconds shifted left by 20 bits, plus
-- a number within that millisecond; it rises strictly within a workspace.
-- ts is event_type_id * 4 + status, where status is 0 accepted, 1 unmatched,
-- 2 pending_identity: one narrow index then serves every filter of the list.
-- visitor_id is kept only while the event waits for its visitor.
-- Retention drops whole days.
create table events (
    workspace_id bigint not null,
    event_no     bigint not null,
    occurred_at  timestamptz not null,
    company_id   bigint,
    contact_id   bigint,
    resolved_at  timestamptz,
    ts           smallint not null,
    id           text not null,
    visitor_id   text,
    domain_hint  text,
    properties   text not null,
    primary key (workspace_id, event_no)
) partition by range (event_no);
create index events_ts on events (workspace_id, ts, event_no);
create index events_visitor on events (workspace_id, visitor_id, event_no) where visitor_id is not null;

-- Which of the caller's ids were recorded, by the first 128 bits of their
-- SHA-256. A partition holds 30 days, so at most two are live; an id is unique
-- within a partition, and within any 30 days by record_events.
create table event_ids (
    workspace_id bigint not null,
    id_hash      uuid not null,
    event_no     bigint not null
) partition by range (event_no);

-- +goose StatementBegin
-- The advisory lock of a workspace's gate.
create function gate_key(workspace bigint) returns bigint
language sql immutable parallel safe as $$
    select (7461::bigint << 48) | workspace
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Makes the partitions from yesterday to days_ahead days from now. A partition
-- is made apart and then attached, which lets events be recorded meanwhile.
create function ensure_event_partitions(days_ahead integer) returns void
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

select ensure_event_partitions(7);

-- +goose StatementBegin
-- Records a group of events of several requests and workspaces at once: the one
-- write path of events. The caller has judged every event against what it
-- believes of each workspace, named by a version; here that belief is checked
-- under the workspace's gate, ids are looked up, references are matched, and
-- what holds is written. A workspace whose belief does not hold is left alone,
-- and its verdict says why:
--
--   0 held: the answers of its events stand
--   1 stale: the version moved on; nothing was written
--   2 the minute, 3 the day: its events would pass the limit; nothing was written
--   4 known id: an event that would register something (mode 2) was recorded
--     before, so what was judged after it may not hold; nothing was written
--   5 the requests of a key would pass its limit; nothing was written
--
-- w_*: the workspaces, ascending, so that groups never wait in a circle.
-- k_*: keys whose requests are counted here, because their credential was
--   recalled from memory and the version vouches for it; ascending within a
--   workspace. They are counted once the verdict on their workspace is final:
--   one that several requests share and that is at a limit is judged again,
--   request by request.
-- e_*: the events in the order of their requests, none of them twice.
--   e_mode 0 record it; 1 refused, only look its id up; 2 record it, and it
--   registers a name or property. Empty strings and zeros stand for "not given".
-- t_*: the event types as they will be once the mode-2 events are recorded.
-- Answers, one entry an event: e_no is the number it has, zero for one that is
-- refused; e_status is 0 accepted, 1 unmatched, 2 pending_identity, 3 duplicate,
-- -1 where nothing was recorded.
--
-- Subscripts rather than joins between sets, and nested loops only: every row
-- comes out of an index probe in the order of the arrays.
create function record_events(
    w_ids bigint[], w_versions bigint[], w_events integer[], w_requests integer[],
    k_workspace integer[], k_id bigint[], k_requests integer[], k_limit integer[],
    e_workspace integer[], e_mode smallint[], e_hash uuid[], e_id text[], e_type smallint[], e_occurred bigint[],
    e_company bigint[], e_domain text[], e_registrable text[], e_contact bigint[], e_email text[], e_visitor text[],
    e_properties text[],
    t_workspace integer[], t_id smallint[], t_name text[], t_label text[], t_properties text[],
    out now_ms bigint, out w_verdict smallint[], out e_no bigint[], out e_status smallint[]
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    gate workspace_gates%rowtype;
    gates workspace_gates[];
    seen bigint[];
    since bigint;
    next_no bigint[];
    written integer[];
    statuses smallint[];
    w integer;
begin
    for i in 1 .. cardinality(w_ids) loop
        perform pg_advisory_xact_lock(gate_key(w_ids[i]));
    end loop;
    now_ms := floor(extract(epoch from inlet_now()) * 1000);

    for i in 1 .. cardinality(w_ids) loop
        select * into gate from workspace_gates g where g.workspace_id = w_ids[i];
        if gate.minute <> now_ms / 60000 then
            gate.minute := now_ms / 60000;
            gate.minute_events := 0;
        end if;
        if gate.day <> now_ms / 86400000 then
            gate.day := now_ms / 86400000;
            gate.day_events := 0;
        end if;
        w_verdict[i] := case
            when gate.version is distinct from w_versions[i] then 1
            when w_events[i] > 0 and gate.minute_events + w_events[i] > gate.events_per_minute then 2
            when w_events[i] > 0 and gate.day_events + w_events[i] > gate.events_per_day then 3
            else 0
        end;
        gates[i] := gate;
        next_no[i] := greatest(gate.last_event_no, (now_ms << 20) - 1);
    end loop;

    since := (now_ms - 2592000000) << 20; -- 30 days
    select array_agg(i.event_no order by n) into seen
    from generate_series(1, cardinality(e_workspace)) n
    left join lateral (
        select event_no from event_ids
        where workspace_id = w_ids[e_workspace[n]] and id_hash = e_hash[n]
            and event_no >= since and w_verdict[e_workspace[n]] = 0
        order by event_no desc limit 1
    ) i on true;

    for n in 1 .. cardinality(e_workspace) loop
        if e_mode[n] = 2 and seen[n] is not null then
            w_verdict[e_workspace[n]] := 4;
        end if;
    end loop;

    for k in 1 .. cardinality(k_workspace) loop
        w := k_workspace[k];
        if (w_verdict[w] = 0 or w_verdict[w] in (2, 3) and w_requests[w] = 1)
            and take_requests(w_ids[w], k_id[k], k_requests[k], k_limit[k]) is null
        then
            w_verdict[w] := 5;
            for earlier in 1 .. k - 1 loop
                if k_workspace[earlier] = w then
                    update request_counts c set requests = c.requests - k_requests[earlier]
                    where c.workspace_id = w_ids[w] and c.key_id = k_id[earlier];
                end if;
            end loop;
        end if;
    end loop;

    for n in 1 .. cardinality(e_workspace) loop
        w := e_workspace[n];
        e_no[n] := 0;
        e_status[n] := -1;
        if w_verdict[w] in (0, 4) and seen[n] is not null then
            e_no[n] := seen[n];
            e_status[n] := 3;
        elsif w_verdict[w] = 0 and e_mode[n] <> 1 then
            next_no[w] := next_no[w] + 1;
            e_no[n] := next_no[w];
        end if;
    end loop;

    insert into event_types (workspace_id, event_type_id, name, label, properties)
    select w_ids[t_workspace[n]], t_id[n], t_name[n], t_label[n], t_properties[n]::jsonb
    from generate_series(1, cardinality(t_workspace)) n
    where w_verdict[t_workspace[n]] = 0
    on conflict (workspace_id, event_type_id) do update set properties = excluded.properties;

    with matched as materialized (
        select n, w_ids[e_workspace[n]] as workspace_id,
            -- A named company or contact that is absent makes the event
            -- unmatched, whatever else is named; a visitor counts only where
            -- no contact is named.
            case
                when (e_company[n] <> 0 or e_domain[n] <> '') and company.company_id is null then 1
                when (e_contact[n] <> 0 or e_email[n] <> '') and contact.contact_id is null then 1
                when e_company[n] <> 0 or e_domain[n] <> '' or contact.contact_id is not null
                    or visitor.contact_id is not null then 0
                else 2
            end as status,
            company.company_id as named_company, contact.contact_id as named_contact,
            contact.company_id as contacts_company,
            visitor.contact_id as visitors_contact, visitor.company_id as visitors_company
        from generate_series(1, cardinality(e_workspace)) n
        left join lateral (
            select company_id from companies
            where e_company[n] <> 0 and workspace_id = w_ids[e_workspace[n]] and company_id = e_company[n]
            union all
            select company_id from (
                select company_id from company_domains
                where e_domain[n] <> '' and workspace_id = w_ids[e_workspace[n]]
                    and domain in (e_domain[n], e_registrable[n])
                order by length(domain) desc limit 1
            ) by_domain
        ) company on true
        left join lateral (
            select contact_id, company_id from contacts
            where e_contact[n] <> 0 and workspace_id = w_ids[e_workspace[n]] and contact_id = e_contact[n]
            union all
            select contact_id, company_id from contacts
            where e_email[n] <> '' and workspace_id = w_ids[e_workspace[n]] and email = e_email[n]
        ) contact on true
        left join lateral (
            select c.contact_id, c.company_id
            from visitors v join contacts c on c.workspace_id = v.workspace_id and c.contact_id = v.contact_id
            where e_visitor[n] <> '' and e_contact[n] = 0 and e_email[n] = ''
                and v.workspace_id = w_ids[e_workspace[n]] and v.visitor_id = e_visitor[n]
        ) visitor on true
        where e_no[n] <> 0 and e_status[n] = -1
    ), ids as (
        insert into event_ids (workspace_id, id_hash, event_no)
        select workspace_id, e_hash[n], e_no[n] from matched
    ), rows as (
        insert into events (workspace_id, event_no, occurred_at, company_id, contact_id, ts, id, visitor_id,
            domain_hint, properties)
        select workspace_id, e_no[n],
            timestamptz 'epoch' + interval '1 millisecond'
                * case e_occurred[n] when 0 then e_no[n] >> 20 else e_occurred[n] end,
            case when status = 0 then coalesce(named_company, contacts_company,
                case when named_contact is null then visitors_company end) end,
            case when status = 0 then coalesce(named_contact,
                case when named_company is null or named_company = visitors_company then visitors_contact end) end,
            e_type[n] * 4 + status,
            e_id[n],
            case when status = 2 then e_visitor[n] end,
            nullif(e_domain[n], ''),
            e_properties[n]
        from matched
    )
    select array_agg(n order by n), array_agg(status order by n) into written, statuses from matched;

    for i in 1 .. coalesce(cardinality(written), 0) loop
        e_status[written[i]] := statuses[i];
    end loop;

    for i in 1 .. cardinality(w_ids) loop
        if w_verdict[i] = 0 then
            gate := gates[i];
            update workspace_gates g set
                version = g.version + case when i = any(t_workspace) then 1 else 0 end,
                last_event_no = greatest(g.last_event_no, next_no[i]),
                minute = gate.minute, minute_events = gate.minute_events + w_events[i],
                day = gate.day, day_events = gate.day_events + w_events[i]
            where g.workspace_id = w_ids[i];
        end if;
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose Down
drop function record_events, ensure_event_partitions, gate_key;
drop table event_ids, events, event_types;
