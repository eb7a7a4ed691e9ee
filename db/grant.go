package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const roleExists = `select exists (select from pg_roles where rolname = $1)`

// What a server needs and no more: rows of tables, and functions. Partitions are
// reached through their tables. The versions of the schema and the secrets of
// the server are its owner's to write. What later migrations make is granted in
// advance, so that an upgrade does not depend on somebody thinking of it.
const grants = `
	with own as (
		select oid, relkind, relname from pg_class
		where relnamespace = quote_ident(current_schema())::regnamespace and relowner = quote_ident(current_user)::regrole and not relispartition
	)
	select statement from (
		select 1 as step, format('revoke create on schema %I from public', current_schema()) as statement
		union all select 1, format('revoke temporary on database %I from public', current_database())
		union all select 2, format('grant connect on database %I to %I', current_database(), $1::text)
		union all select 2, format('grant usage on schema %I to %I', current_schema(), $1)
		union all select 2, format('alter default privileges in schema %I grant %s to %I', current_schema(), what, $1)
			from (values ('select, insert, update, delete on tables'), ('usage on sequences'), ('execute on functions')) later(what)
		union all select 3, format('grant select, insert, update, delete on %s to %I', oid::regclass, $1)
			from own where relkind in ('r', 'p')
		union all select 3, format('grant usage on sequence %s to %I', oid::regclass, $1)
			from own where relkind = 'S'
		union all select 3, format('grant execute on function %s to %I', oid::regprocedure, $1)
			from pg_proc where pronamespace = quote_ident(current_schema())::regnamespace and proowner = quote_ident(current_user)::regrole
		union all select 4, format('revoke insert, update, delete on %s from %I', oid::regclass, $1)
			from own where relname in ('goose_db_version', 'server_secrets')
	) statements order by step, statement`

// What a role may do beyond that is not ours to take away where it comes from its
// attributes, from other roles, or from what everybody may.
const beyondGrants = `
	select case when r.rolsuper then 'it is a superuser' else problem end
	from pg_roles r, lateral (values
		(r.rolsuper, ''),
		(r.rolcreaterole, 'it may create roles'),
		(r.rolcreatedb, 'it may create databases'),
		(r.rolreplication, 'it may replicate'),
		(r.rolbypassrls, 'it passes row security'),
		(pg_has_role(r.oid, current_user, 'member'), 'it is, or may become, the owner of the schema'),
		(exists (select from pg_roles p where p.rolname like 'pg\_%' and pg_has_role(r.oid, p.oid, 'member')),
			'it is a member of a role that PostgreSQL brings along'),
		(has_schema_privilege(r.oid, current_schema(), 'create'), format('it may create tables in the schema %I', current_schema())),
		(has_database_privilege(r.oid, current_database(), 'create'), 'it may create schemas in the database'),
		(has_database_privilege(r.oid, current_database(), 'temporary'), 'it may create temporary tables in the database')
	) has(more, problem)
	where r.rolname = $1 and more and (problem = '' or not r.rolsuper)`

// Grant lets a role do what a server does, as the owner of the schema; it may be
// repeated. The database is taken to be Inlet's alone: nobody else may create
// anything in it any more. An error says what the role may do beyond that, which
// only somebody else can take away.
func (d *DB) Grant(ctx context.Context, role string) error {
	var exists bool
	if err := d.get(ctx, &exists, roleExists, role); err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("there is no role %s; a superuser makes it with: create role %s login password '…'", role, role)
	}
	return d.Across(ctx, func(t *Tx) error {
		// Partitions are made under the same lock, and grants of two at a time fail.
		if _, err := t.tx.ExecContext(ctx, lockPartitions); err != nil {
			return classify(ctx, err)
		}
		var statements, beyond []string
		if err := t.tx.SelectContext(ctx, &statements, grants, role); err != nil {
			return classify(ctx, err)
		}
		for _, statement := range statements {
			if _, err := t.tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, classify(ctx, err))
			}
		}
		if err := t.tx.SelectContext(ctx, &beyond, beyondGrants, role); err != nil {
			return classify(ctx, err)
		}
		if len(beyond) > 0 {
			return errors.New("the role " + role + " may do more than a server needs, and nothing was granted: " + strings.Join(beyond, "; "))
		}
		return nil
	})
}

const lockPartitions = `select pg_advisory_xact_lock(gate_key(0))`
