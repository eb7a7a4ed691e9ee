-- What becomes of ids when a database is restored.

-- +goose Up

-- +goose StatementBegin
-- The columns whose ids the database gives out, and the sequences that count them.
create function id_columns(out relation regclass, out id name, out sequence regclass) returns setof record
language sql stable as $$
    select c.oid::regclass, a.attname, pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where a.attidentity <> '' and c.relkind in ('r', 'p') and not c.relispartition
        and c.relnamespace = (select relnamespace from pg_class where oid = 'workspaces'::regclass)
    order by 1
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Tells which sequences would give out ids that there are already.
create function ids_behind() returns setof text
language plpgsql as $$
declare
    c record;
    newest bigint;
    next_id bigint;
begin
    for c in select * from id_columns() loop
        execute format('select coalesce(max(%I), 0) from %s', c.id, c.relation) into newest;
        execute format('select case when is_called then last_value + 1 else last_value end from %s', c.sequence) into next_id;
        if next_id <= newest then
            return next format('the next %s of %s is %s, and there is %s', c.id, c.relation, next_id, newest);
        end if;
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Leaves out so many ids of each kind.
create function pass_over_ids(many bigint) returns void
language plpgsql as $$
declare
    c record;
begin
    for c in select * from id_columns() loop
        execute format('select setval(%L, greatest(nextval(%L), coalesce((select max(%I) from %s), 0)) + $1)',
            c.sequence, c.sequence, c.id, c.relation) using many;
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose Down
drop function pass_over_ids, ids_behind, id_columns;
