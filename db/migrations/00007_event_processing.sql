-- What becomes of events after they are recorded: they are counted, accepted
-- ones become facts, and those that wait for their visitor are matched late.

-- +goose Up

-- Accepted events that were ever recorded: those not yet processed into facts
-- are the backlog.
alter table workspace_gates
    add column accepted_events bigint not null default 0,
    add column events_backlog integer not null default 20000 check (events_backlog > 0);
update workspace_gates g set accepted_events =
    (select count(*) from events e where e.workspace_id = g.workspace_id and e.ts & 3 = 0);

-- How far the events of a workspace are processed. Apart from workspace_gates,
-- so that processing never waits for recording; its row is locked by whoever
-- changes counters or facts.
create table event_progress (
    workspace_id     bigint primary key references workspaces,
    processed_no     bigint not null default 0, -- events up to this number are processed
    processed_events bigint not null default 0, -- accepted ones among them, expired ones too
    oldest_no        bigint not null default 0  -- event_counts holds events from this number to processed_no
) with (fillfactor = 50);
insert into event_progress (workspace_id) select workspace_id from workspaces;

-- Counted anew, without the day: what expires is taken off as it expires.
drop function count_events;
drop table event_counts, event_counted;
create table event_counts (
    workspace_id bigint not null references workspaces,
    ts           smallint not null,
    events       bigint not null,
    primary key (workspace_id, ts)
) with (fillfactor = 50);

-- What is known of a company, and of a person there, by events of a name. Zero
-- stands for no company and for no person: the events of a company are the sum
-- over its rows. Facts stay when events expire.
create table event_facts (
    workspace_id  bigint not null references workspaces,
    company_id    bigint not null,
    contact_id    bigint not null,
    event_type_id smallint not null,
    events        bigint not null,
    first_at      timestamptz not null, -- by the time they occurred
    last_at       timestamptz not null,
    primary key (workspace_id, company_id, contact_id, event_type_id)
) with (fillfactor = 70);
create index event_facts_contact on event_facts (workspace_id, contact_id) where contact_id <> 0;

-- For every signal and company the newest times at which an event met the
-- signal's conditions, newest first, as many as the signal wants: it holds
-- while the last of them is within its days. Exact at any moment, however many
-- events there are.
create table signal_facts (
    workspace_id bigint not null,
    signal_id    bigint not null,
    company_id   bigint not null,
    newest       timestamptz[] not null,
    primary key (workspace_id, signal_id, company_id),
    foreign key (workspace_id, signal_id) references signals (workspace_id, signal_id) on delete cascade
) with (fillfactor = 70);

-- +goose StatementBegin
-- Adds accepted events to the facts. The caller holds the workspace's row of
-- event_progress.
create function add_event_facts(
    workspace bigint, numbers bigint[], companies bigint[], contacts bigint[], types smallint[], occurred timestamptz[]
) returns void
language plpgsql as $$
begin
    insert into event_facts as f
        (workspace_id, company_id, contact_id, event_type_id, events, first_at, last_at)
    select workspace, coalesce(e.company, 0), coalesce(e.contact, 0), e.type, count(*), min(e.at), max(e.at)
    from unnest(companies, contacts, types, occurred) as e(company, contact, type, at)
    group by 2, 3, 4
    on conflict (workspace_id, company_id, contact_id, event_type_id) do update set
        events = f.events + excluded.events,
        first_at = least(f.first_at, excluded.first_at),
        last_at = greatest(f.last_at, excluded.last_at);
    if exists (select from signals where workspace_id = workspace) then
        perform add_signal_facts(workspace, null, numbers);
    end if;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Adds accepted events to the facts of a signal, or of all.
create function add_signal_facts(workspace bigint, only_signal bigint, numbers bigint[]) returns void
language sql as $$
    insert into signal_facts as f (workspace_id, signal_id, company_id, newest)
    select workspace, s.signal_id, e.company_id, (array_agg(e.occurred_at order by e.occurred_at desc))[1:s.min_count]
    from unnest(numbers) as n(event_no)
    join events e on e.workspace_id = workspace and e.event_no = n.event_no
    join event_types t on t.workspace_id = workspace and t.event_type_id = e.ts >> 2
    join signals s on s.workspace_id = workspace and s.event = t.name
    where e.company_id is not null and e.ts & 3 = 0 and (only_signal is null or s.signal_id = only_signal)
        and not exists (
            select from jsonb_to_recordset(s.conditions) as c(property text, equals jsonb)
            where e.properties::jsonb -> c.property is distinct from c.equals
        )
    group by s.signal_id, s.min_count, e.company_id
    on conflict (workspace_id, signal_id, company_id) do update set newest = (
        select array_agg(at order by at desc) from (
            select at from unnest(f.newest || excluded.newest) at order by at desc
            limit (select min_count from signals g where g.workspace_id = f.workspace_id and g.signal_id = f.signal_id)
        ) kept
    )
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Makes the facts of a signal anew, from the events that there are: for a signal
-- that was just defined or changed.
create function rebuild_signal_facts(workspace bigint, signal bigint) returns void
language plpgsql as $$
declare
    processed bigint;
begin
    select processed_no into processed from event_progress where workspace_id = workspace for update;
    delete from signal_facts where workspace_id = workspace and signal_id = signal;
    perform add_signal_facts(workspace, signal, array(
        select e.event_no
        from signals s
        join event_types t on t.workspace_id = workspace and t.name = s.event
        join events e on e.workspace_id = workspace and e.ts = t.event_type_id * 4 and e.event_no <= processed
        where s.workspace_id = workspace and s.signal_id = signal
    ));
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The number from which on events have not expired.
create function oldest_listed_no() returns bigint
language sql volatile parallel safe as $$
    select (floor(extract(epoch from inlet_now()) * 1000)::bigint - 2592000000) << 20
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Takes expired events off the counters. The caller holds the workspace's row of
-- event_progress.
create function uncount_expired_events(workspace bigint) returns void
language plpgsql as $$
declare
    p event_progress%rowtype;
    expired bigint;
begin
    select * into p from event_progress where workspace_id = workspace;
    expired := least(oldest_listed_no(), p.processed_no + 1);
    if p.oldest_no >= expired then
        return;
    end if;
    update event_counts c set events = c.events - gone.events
    from (
        select ts, count(*) as events from events
        where workspace_id = workspace and event_no >= p.oldest_no and event_no < expired
        group by ts
    ) gone
    where c.workspace_id = workspace and c.ts = gone.ts;
    update event_progress set oldest_no = coalesce((
        select event_no from events
        where workspace_id = workspace and event_no >= expired and event_no <= p.processed_no
        order by event_no limit 1
    ), p.processed_no + 1)
    where workspace_id = workspace;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Processes up to so many events of a workspace, in order, and gives how many it
-- did: in one transaction they are counted and become facts, so whoever dies,
-- each is processed once. Events are numbered under the gate until their
-- transaction has ended, so all that the gate's row has passed are there to be
-- seen. A workspace that another process is at work on is passed over.
create function process_events(workspace bigint, most integer) returns integer
language plpgsql as $$
declare
    since bigint;
    until bigint;
    processed integer;
    accepted integer;
    numbers bigint[];
    companies bigint[];
    contacts bigint[];
    statuses smallint[];
    types smallint[];
    occurred timestamptz[];
begin
    select processed_no into since from event_progress where workspace_id = workspace for update skip locked;
    if not found then
        return 0;
    end if;
    select last_event_no into until from workspace_gates where workspace_id = workspace;
    select array_agg(event_no) filter (where ts & 3 = 0), array_agg(company_id) filter (where ts & 3 = 0),
        array_agg(contact_id) filter (where ts & 3 = 0), array_agg(ts >> 2) filter (where ts & 3 = 0),
        array_agg(occurred_at) filter (where ts & 3 = 0), array_agg(ts),
        count(*), count(*) filter (where ts & 3 = 0),
        case when count(*) < most then until else max(event_no) end
    into numbers, companies, contacts, types, occurred, statuses, processed, accepted, until
    from (
        select event_no, company_id, contact_id, ts, occurred_at from events
        where workspace_id = workspace and event_no > since and event_no <= until
        order by event_no limit most
    ) batch;
    if accepted > 0 then
        perform add_event_facts(workspace, numbers, companies, contacts, types, occurred);
    end if;
    if processed > 0 then
        insert into event_counts as c (workspace_id, ts, events)
        select workspace, s, count(*) from unnest(statuses) s group by s
        on conflict (workspace_id, ts) do update set events = c.events + excluded.events;
    end if;
    update event_progress set processed_no = until, processed_events = processed_events + accepted
    where workspace_id = workspace and processed_no < until;
    perform uncount_expired_events(workspace);
    return processed;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Says who a visitor is and matches the events that waited for it; gives how
-- many there were. They are accepted from now on: facts, which start nothing.
-- All of it under the gate, so that an event of the visitor either waits and is
-- found here, or comes later and finds the visitor identified.
create function identify_visitor(workspace bigint, visitor text, contact bigint) returns integer
language plpgsql as $$
declare
    processed bigint;
    numbers bigint[];
    types smallint[];
    occurred timestamptz[];
    company bigint;
    late bigint[];
    oldest constant bigint := oldest_listed_no();
begin
    perform pg_advisory_xact_lock(gate_key(workspace));
    insert into visitors as v (workspace_id, visitor_id, contact_id, identified_at)
    values (workspace, visitor, contact, inlet_now())
    on conflict (workspace_id, visitor_id) do update
        set contact_id = excluded.contact_id, identified_at = excluded.identified_at
        where v.contact_id is distinct from excluded.contact_id;
    select company_id into company from contacts where workspace_id = workspace and contact_id = contact;

    select processed_no into processed from event_progress where workspace_id = workspace for update;
    with matched as (
        update events e set ts = e.ts - 2, company_id = company, contact_id = contact, visitor_id = null,
            resolved_at = date_trunc('milliseconds', inlet_now())
        where e.workspace_id = workspace and e.visitor_id = visitor and e.event_no >= oldest
        returning e.event_no, e.ts, e.occurred_at
    )
    select array_agg(event_no), array_agg(ts >> 2), array_agg(occurred_at) into numbers, types, occurred from matched;
    if numbers is null then
        return 0;
    end if;
    update workspace_gates set accepted_events = accepted_events
        + (select count(*) from unnest(numbers) n where n > processed)
    where workspace_id = workspace;

    -- Those that the workers have passed by are counted and made facts here.
    select array_agg(n), array_agg(t), array_agg(o) into late, types, occurred
    from unnest(numbers, types, occurred) as e(n, t, o) where n <= processed;
    if late is not null then
        insert into event_counts as c (workspace_id, ts, events)
        select workspace, t * 4 + status, sum(change)
        from unnest(types) t cross join (values (0, 1), (2, -1)) as moved(status, change)
        group by 2
        on conflict (workspace_id, ts) do update set events = c.events + excluded.events;
        perform add_event_facts(workspace, late, array_fill(company, array[cardinality(late)]),
            array_fill(contact, array[cardinality(late)]), types, occurred);
    end if;
    return cardinality(numbers);
end
$$;
-- +goose StatementEnd

-- +goose Down
-- Facts cannot be given back: there is no way down.
-- +goose StatementBegin
do $$ begin raise exception 'the migration of event processing cannot be undone'; end $$;
-- +goose StatementEnd
