package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/lib/pq"
)

// Of the tables of a Citus cluster, these are copied to every node whole: rows of
// theirs are found before their workspace is known, or what is found so refers to
// them. They hold settings: few rows, read much and seldom written, for each write
// goes to all nodes. The others are distributed by workspace_id.
var referenceTables = map[string]string{
	"workspaces":     "found by their slug",
	"api_keys":       "found by the hash of their credential",
	"people":         "keys refer to their owner",
	"roles":          "keys and people refer to theirs",
	"sites":          "found by their public key",
	"site_secrets":   "read with their site",
	"forms":          "found by their public key",
	"meeting_forms":  "found by their public key",
	"server_secrets": "of no workspace",
}

// overCitus are the session settings that differ where the tables are distributed.
// Citus makes a plan for each workspace, and only plans that know the workspace can
// be made; and whatever touches reference and distributed tables in one transaction
// does so over one connection a node.
var overCitus = func() map[string]string {
	settings := maps.Clone(sessionSettings)
	settings["plan_cache_mode"] = "auto"
	settings["enable_seqscan"] = "on"
	settings["citus.multi_shard_modify_mode"] = "sequential"
	return settings
}()

// Distributed tells whether the tables are distributed by workspace. A group of
// events is then of one workspace.
func (d *DB) Distributed() bool { return d.distributed }

const tablesDistributed = `select exists (select from pg_dist_partition where logicalrelid = to_regclass('events'))`

// uniqueInWorkspace gives the one unique index that does not contain the workspace and
// is of no reference table a form that does. Tokens are drawn at random: no two
// workspaces have the same.
const uniqueInWorkspace = `
	alter table email_links drop constraint if exists email_links_token_hash_key,
		add constraint email_links_token_workspace_key unique (token_hash, workspace_id)`

const citusThere = `select to_regclass('pg_dist_partition') is not null`

const undistributed = `
	select relname from pg_class
	where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname <> 'goose_db_version'
		and oid not in (select logicalrelid from pg_dist_partition)
	order by relname`

const foreignKeys = `
	select conrelid::regclass::text as "table", conname as name, pg_get_constraintdef(oid) as definition
	from pg_constraint
	where contype = 'f' and conparentid = 0
		and (conrelid = any($1::text[]::regclass[]) or confrelid = any($1::text[]::regclass[]))
	order by 1, 2`

// Distribute spreads the tables over the nodes of a Citus cluster that the database
// is the coordinator of, and what it finds in them; done again, it does what a
// migration has added. No server may be running, and one has to be started anew to
// know of it.
func (d *DB) Distribute(ctx context.Context) error {
	var there bool
	if err := d.get(ctx, &there, citusThere); err != nil {
		return err
	}
	if !there {
		return errors.New("distribute: the database has no extension citus; create it and add the nodes first")
	}
	return d.Across(ctx, func(t *Tx) error {
		for name, value := range map[string]string{
			"statement_timeout": "0", "lock_timeout": "0", "citus.multi_shard_modify_mode": "sequential", "client_min_messages": "warning",
		} {
			if err := t.run(ctx, `set local `+name+` to `+pq.QuoteLiteral(value)); err != nil {
				return err
			}
		}
		if err := t.distributeTables(ctx); err != nil {
			return fmt.Errorf("distribute: %w", err)
		}
		return t.fitFunctions(ctx)
	})
}

const distributionDue = `
	select exists (
		select from pg_class
		where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname <> 'goose_db_version'
			and oid not in (select logicalrelid from pg_dist_partition)
	) or pg_get_functiondef('record_events'::regproc) not like '%a group of one workspace is wanted%'`

// distributeRest distributes what a migration has added.
func (d *DB) distributeRest(ctx context.Context) error {
	var due bool
	if err := d.get(ctx, &due, distributionDue); err != nil || !due {
		return err
	}
	return d.Distribute(ctx)
}

// distributeTables takes the foreign keys away meanwhile: they could not be kept
// between a table that is distributed and one that is not yet.
func (t *Tx) distributeTables(ctx context.Context) error {
	var tables []string
	if err := t.tx.SelectContext(ctx, &tables, undistributed); err != nil {
		return err
	}
	if slices.Contains(tables, "email_links") {
		if err := t.run(ctx, uniqueInWorkspace); err != nil {
			return err
		}
	}
	var keys []struct{ Table, Name, Definition string }
	if err := t.tx.SelectContext(ctx, &keys, foreignKeys, texts(tables)); err != nil {
		return err
	}
	for _, key := range keys {
		if err := t.run(ctx, `alter table `+key.Table+` drop constraint `+pq.QuoteIdentifier(key.Name)); err != nil {
			return err
		}
	}
	// Reference tables first: they are in every node then.
	slices.SortStableFunc(tables, func(a, b string) int {
		switch _, first := referenceTables[a]; {
		case first == (referenceTables[b] != ""):
			return 0
		case first:
			return -1
		}
		return 1
	})
	for _, table := range tables {
		call := `select create_distributed_table(` + pq.QuoteLiteral(table) + `, 'workspace_id')`
		if referenceTables[table] != "" {
			call = `select create_reference_table(` + pq.QuoteLiteral(table) + `)`
		}
		if err := t.run(ctx, call); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	for _, key := range keys {
		if err := t.run(ctx, `alter table `+key.Table+` add constraint `+pq.QuoteIdentifier(key.Name)+` `+key.Definition); err != nil {
			return fmt.Errorf("%s: %w", key.Name, err)
		}
	}
	return nil
}

// fitFunctions makes the functions such as Citus can run them. Time must not be
// volatile, or no update could use it: it is taken once a statement, by the
// coordinator. And record_events records a group of one workspace.
func (t *Tx) fitFunctions(ctx context.Context) error {
	var definition string
	if err := t.tx.GetContext(ctx, &definition, recordEventsDefinition); err != nil {
		return err
	}
	definition, err := ofOneWorkspace(definition)
	if err != nil {
		return err
	}
	for _, change := range []string{
		`alter function inlet_now() stable`, definition,
		`alter function record_events reset plan_cache_mode`, `alter function record_events reset enable_seqscan`,
	} {
		if err := t.run(ctx, change); err != nil {
			return fmt.Errorf("distribute: %w", err)
		}
	}
	return nil
}

const recordEventsDefinition = `select pg_get_functiondef('record_events'::regproc)`

var (
	// ofAnEvent is how record_events names the workspace of what it looks at.
	ofAnEvent  = regexp.MustCompile(`\bw_ids\[(\w+|\w+\[\w+\])\]`)
	bodyBegins = regexp.MustCompile(`(?m)^begin$`)
)

// ofOneWorkspace makes record_events a function of one workspace: a statement is
// sent to the workspace's shard if it names the workspace by a value that is known
// before the statement runs, and not by one for each event.
func ofOneWorkspace(definition string) (string, error) {
	fitted := ofAnEvent.ReplaceAllString(definition, "w_ids[1]")
	if !bodyBegins.MatchString(fitted) {
		return "", errors.New("distribute: record_events is not as expected")
	}
	const guard = "begin\n    if cardinality(w_ids) <> 1 then\n        raise 'a group of one workspace is wanted';\n    end if;"
	if regexp.MustCompile(`raise 'a group of one workspace`).MatchString(fitted) {
		return fitted, nil
	}
	at := bodyBegins.FindStringIndex(fitted)
	return fitted[:at[0]] + guard + fitted[at[1]:], nil
}

func (t *Tx) run(ctx context.Context, statement string) error {
	_, err := t.tx.ExecContext(ctx, statement)
	return classify(ctx, err)
}
