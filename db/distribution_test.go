package db_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

// The rules of Citus for tables that are distributed by workspace_id:
//
//   - the column has one type everywhere and is never null, so that tables are
//     colocated; keys and unique indexes contain it; foreign keys contain it on both
//     sides or lead to a reference table; those of reference tables lead to reference
//     tables (docs.citusdata.com/en/stable/develop/reference_ddl.html, "Adding/Modifying
//     Constraints", "Co-Locating Tables");
//   - no rules, no partitions of partitions, and sequences as wide as a bigint; what an
//     update calls is not volatile (…/develop/reference_workarounds.html, "Limitations");
//   - no triggers, unless citus.enable_unsafe_triggers is set (CHANGELOG of Citus 10.2);
//   - statements that are to run on one node name the workspace by a value; others may
//     neither lock rows nor recurse (…/develop/reference_workarounds.html);
//   - functions are in PL/pgSQL where they read tables, for the parameters of those in
//     SQL are not known when a statement is planned; they are not called by a statement
//     that reads tables itself, for it would call them where its tables are; nothing that
//     changes tables calls what is not immutable, such as the time, in a CASE or COALESCE
//     or over a row that is there, or inserts arguments and looks into a table meanwhile
//     (these are what Citus does and says, not its manual).
//
// breaches lists what breaks the first three.
const breaches = `
	with tables as (
		select c.oid, c.relname, c.relkind, c.relispartition, coalesce(i.inhparent, c.oid) as root
		from pg_class c left join pg_inherits i on i.inhrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'goose_db_version'
	), kinds as (
		select t.*, r.relname = any($1) as reference, (
			select attnum from pg_attribute a
			where a.attrelid = t.oid and attname = 'workspace_id' and not attisdropped
		) as key
		from tables t join pg_class r on r.oid = t.root
	)
	select relname || ' has no workspace_id of type bigint that is never null' from kinds k
	where not reference and not exists (
		select from pg_attribute a
		where a.attrelid = k.oid and a.attnum = k.key and a.atttypid = 'bigint'::regtype and a.attnotnull
	)
	union all
	select 'the unique index ' || n.relname || ' does not contain workspace_id' from kinds k
	join pg_index i on i.indrelid = k.oid and i.indisunique
	join pg_class n on n.oid = i.indexrelid
	where not reference and (key is null or not key = any((i.indkey::smallint[])[0 : i.indnkeyatts - 1]))
	union all
	select 'the constraint ' || conname || ' excludes' from kinds k join pg_constraint c on c.conrelid = k.oid and c.contype = 'x'
	union all
	select 'the foreign key ' || conname || case
		when k.reference then ' leads from a reference table to one that is distributed'
		when k.key <> all(c.conkey) or c.confkey[array_position(c.conkey, k.key)] is distinct from f.key then ' does not stay in the workspace'
		else ' sets or changes workspace_id'
	end
	from kinds k join pg_constraint c on c.conrelid = k.oid and c.contype = 'f' join kinds f on f.oid = c.confrelid
	where not f.reference and (
		k.reference or k.key <> all(c.conkey) or c.confkey[array_position(c.conkey, k.key)] is distinct from f.key
		or c.confdeltype in ('n', 'd') or c.confupdtype in ('n', 'd', 'c')
	)
	union all
	select 'the trigger ' || tgname || ' is on ' || relname from kinds k join pg_trigger t on t.tgrelid = k.oid and not tgisinternal
	union all
	select 'the rule ' || rulename || ' is on ' || relname from kinds k join pg_rewrite r on r.ev_class = k.oid
	union all
	select relname || '.' || attname || ' counts, and is no bigint' from kinds k join pg_attribute a on a.attrelid = k.oid
	where not k.relispartition and a.atttypid <> 'bigint'::regtype
		and (a.attidentity <> '' or pg_get_serial_sequence(k.oid::regclass::text, a.attname) is not null)
	union all
	select relname || ' is partitioned and a partition' from kinds where relispartition and relkind = 'p'
	union all
	select 'the function ' || proname || ' is in SQL and reads tables' from pg_proc p join pg_language l on l.oid = p.prolang
	where p.pronamespace = 'public'::regnamespace and l.lanname = 'sql' and exists (
		select from tables where p.prosrc ~ ('\m(from|join|into|update)\s+' || relname || '\M')
	)
	order by 1`

func breachesIn(t *testing.T, x sqlx.Queryer) []string {
	t.Helper()
	var all []string
	if err := sqlx.Select(x, &all, breaches, arrayOf(slices.Sorted(maps.Keys(db.ReferenceTables)))); err != nil {
		t.Fatal(err)
	}
	return all
}

func arrayOf(texts []string) string { return "{" + strings.Join(texts, ",") + "}" }

func connect(t *testing.T, address string) *sqlx.DB {
	t.Helper()
	x, err := sqlx.Connect("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	x.SetMaxOpenConns(1)
	return x
}

func TestTablesKeysAndFunctionsKeepTheRulesOfDistributionByWorkspace(t *testing.T) {
	x := connect(t, dbtest.URL(t))
	// Migrations only add, and so inlet distribute does this one.
	const mended = "the unique index email_links_token_hash_key does not contain workspace_id"
	left := breachesIn(t, x)
	if !slices.Contains(left, mended) {
		t.Error("what inlet distribute mends is not broken: ", mended)
	}
	for _, breach := range left {
		if breach != mended {
			t.Error(breach)
		}
	}
	for table := range db.ReferenceTables {
		var there bool
		if err := x.Get(&there, `select to_regclass($1) is not null`, table); err != nil || !there {
			t.Errorf("the reference table %s does not exist (%v)", table, err)
		}
	}
}

func TestWhatCannotBeDistributedByWorkspaceIsFound(t *testing.T) {
	x := connect(t, dbtest.URL(t))
	for planted, want := range map[string]string{
		`create table planted (id bigint primary key)`:                                                        "planted has no workspace_id",
		`create table planted (workspace_id integer not null)`:                                                "planted has no workspace_id",
		`create table planted (workspace_id bigint)`:                                                          "planted has no workspace_id",
		`create unique index planted on leads (idempotency_key)`:                                              "the unique index planted",
		`create unique index planted on leads (lead_id) include (workspace_id)`:                               "the unique index planted",
		`create unique index planted on leads ((workspace_id + 1))`:                                           "the unique index planted",
		`alter table notes add constraint planted unique (note_id)`:                                           "the unique index planted",
		`create table planted (workspace_id bigint not null, id bigint, primary key (id))`:                    "the unique index planted_pkey",
		`create unique index planted on event_ids_` + eventIDs(t, x) + ` (id_hash)`:                           "the unique index planted",
		`alter table notes add constraint planted exclude using btree (note_id with =)`:                       "the constraint planted",
		`alter table workspaces add constraint planted foreign key (workspace_id) references workspace_gates`: "the foreign key planted leads from a reference table",
		`create table planted (workspace_id bigint not null, lead bigint not null,
			constraint planted foreign key (lead, workspace_id) references leads (workspace_id, lead_id))`: "the foreign key planted does not stay",
		`alter table leads add unique (workspace_id);
			create table planted (workspace_id bigint not null, other bigint, constraint planted foreign key (other) references leads (workspace_id))`: "the foreign key planted does not stay",
		`alter table notes add constraint planted foreign key (workspace_id, enrollment_id) references enrollments on delete set null`: "the foreign key planted sets",
		`create function planted() returns trigger language plpgsql as 'begin return new; end';
			create trigger planted before insert on leads for each row execute function planted()`: "the trigger planted is on leads",
		`create rule planted as on delete to leads do instead nothing`:                                                         "the rule planted is on leads",
		`create table planted (workspace_id bigint not null, n integer generated always as identity)`:                          "planted.n counts",
		`create table planted (workspace_id bigint not null, n serial)`:                                                        "planted.n counts",
		`create table planted partition of events for values from (1) to (2) partition by range (event_no)`:                    "planted is partitioned",
		`create function planted(w bigint) returns bigint language sql as 'select count(*) from leads where workspace_id = w'`: "the function planted is in SQL",
	} {
		tx := x.MustBegin()
		if _, err := tx.Exec(planted); err != nil {
			t.Errorf("%s: %v", planted, err)
		} else if found := strings.Join(breachesIn(t, tx), "\n"); !strings.Contains(found, want) {
			t.Errorf("%s\nis found to break %q, want %q", planted, found, want)
		}
		tx.Rollback()
	}
}

func eventIDs(t *testing.T, x *sqlx.DB) (suffix string) {
	t.Helper()
	if err := x.Get(&suffix, `select max(right(inhrelid::regclass::text, 8)) from pg_inherits where inhparent = 'event_ids'::regclass`); err != nil {
		t.Fatal(err)
	}
	return suffix
}

// spanning are the statements that read or write distributed tables of no one
// workspace, and how each runs over several nodes. None is one of an event, but for
// admitCredential, which events spare themselves while a server knows the caller.
var spanning = map[string]string{
	"admitCredential":       "finds the key in a reference table, and then asks every shard for the gate of its workspace",
	"workspaceBySlug":       "likewise, for the command line",
	"allWorkspaces":         "reads a row a workspace from every shard, for the command line",
	"emailLink":             "asks every shard for a token; it contains no workspace",
	"unprocessedWorkspaces": "compares two rows a workspace in every shard, twice a second",
	"queuedWorkspaces":      "recurses, and so is not run there: queuedWorkspacesApart is",
	"queuedWorkspacesApart": "probes an index for each workspace in every shard, twice a second",
	"backlog":               "recurses, and so is not run there: backlogApart is",
	"backlogApart":          "counts what waits in every shard, for the metrics",
	"doubtEverything":       "an update in every shard, after a restore",
	"dueEnrollments":        "takes the first few of every shard, and of those the first, twice a second",
	"addRefusals":           "rows that the coordinator sorts to their shards, once a second",
	"dropExpiredTokens":     "a delete in every shard, every ten minutes",
	"dropExpiredLinks":      "likewise",
	"dropDecidedEntries":    "a delete in every shard, once an hour",
}

// onCitusOnly are statements about what only Citus has.
var onCitusOnly = []string{"tablesDistributed", "undistributed", "distributionDue"}

func TestEveryStatementIsOfOneWorkspaceOrKnownToSpanNodes(t *testing.T) {
	x := connect(t, dbtest.URL(t))
	distributed := distributedTables(t, x)
	all := statements(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(onCitusOnly, name) {
			continue
		}
		wrong := unrouted(t, x, all[name], distributed)
		_, spans := spanning[name]
		switch {
		case wrong == "" && spans:
			t.Errorf("%s is said to span nodes and does not", name)
		case wrong != "" && !spans:
			t.Errorf("%s: %s", name, wrong)
		case spans && !strings.Contains(spanning[name], "is not run there") && regexp.MustCompile(`(?i)\b(recursive|for (no key )?update|for (key )?share)\b`).MatchString(all[name]):
			t.Errorf("%s spans nodes, and locks rows or recurses", name)
		}
		for _, mistake := range mistaken(t, x, all[name]) {
			t.Errorf("%s: %s", name, mistake)
		}
	}
	for name := range spanning {
		if all[name] == "" {
			t.Errorf("%s is said to span nodes and does not exist", name)
		}
	}
}

func TestAStatementThatSpansNodesIsFound(t *testing.T) {
	x := connect(t, dbtest.URL(t))
	distributed := distributedTables(t, x)
	for planted, want := range map[string]string{
		`select name from companies where company_id = $1`:                                                                 "companies is read",
		`select name from companies where workspace_id > $1`:                                                               "companies is read",
		`select n.text from notes n join companies c on c.company_id = n.company_id where c.workspace_id = $1`:             "notes is read",
		`select (select count(*) from notes n where n.company_id = c.company_id) from companies c where workspace_id = $1`: "notes is read",
		`select not exists (select from companies c where c.workspace_id = n.workspace_id and c.company_id = n.company_id)
			from notes n where n.workspace_id = $1`: "companies is read",
		`select id from events where event_no = $1`:                                       "events",
		`update leads set status = 'new' where lead_id = $1`:                              "leads is read",
		`delete from leads`:                                                               "leads is read",
		`insert into notes (workspace_id, company_id, text) values ($2::bigint, $1, 'x')`: "notes is written",
		`insert into notes (workspace_id, company_id, text) select company_id, 1, 'x' from companies where workspace_id = $1`: "notes is written",
	} {
		if wrong := unrouted(t, x, planted, distributed); !strings.Contains(wrong, want) {
			t.Errorf("%s: found %q, want %q", planted, wrong, want)
		}
	}
	for planted, want := range map[string]string{
		`update leads set created_at = clock_timestamp() where workspace_id = $1`:                 "calls clock_timestamp",
		`update leads set created_at = coalesce(created_at, inlet_now()) where workspace_id = $1`: "inlet_now in a CASE or COALESCE",
		`insert into people_added as p (workspace_id, day, people) values ($1, current_date, 0)
			on conflict (workspace_id) do update set day = (inlet_now() at time zone 'UTC')::date`: "not immutable",
		`insert into notes (workspace_id, company_id, text) select $1, n, 'x' from unnest($2::bigint[]) n where not exists (
			select from companies c where c.workspace_id = $1 and c.company_id = n)`: "looks into one",
		`insert into notes (workspace_id, company_id, text, created_at) values ($1, 1, 'x', case when true then inlet_now() end)`: "inlet_now in a CASE or COALESCE",
	} {
		if found := strings.Join(mistaken(t, x, planted), "\n"); !strings.Contains(found, want) {
			t.Errorf("%s: found %q, want %q", planted, found, want)
		}
	}
}

// distributedTables maps every table that is to be distributed, and every partition
// of one, to the name of the table.
func distributedTables(t *testing.T, x *sqlx.DB) map[string]string {
	t.Helper()
	var rows []struct{ Name, Root string }
	if err := x.Select(&rows, `
		select c.relname as name, coalesce(i.inhparent, c.oid)::regclass::text as root
		from pg_class c left join pg_inherits i on i.inhrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'goose_db_version'`); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, row := range rows {
		if db.ReferenceTables[row.Root] == "" {
			all[row.Name] = row.Root
		}
	}
	return all
}

// A plan is what PostgreSQL makes of a statement; it carries the workspace from one
// table to those that are joined by it, which is where Citus looks, too.
type plan struct {
	Node      string   `json:"Node Type"`
	Operation string   `json:"Operation"`
	Relation  string   `json:"Relation Name"`
	Output    []string `json:"Output"`
	Index     string   `json:"Index Cond"`
	Recheck   string   `json:"Recheck Cond"`
	Filter    string   `json:"Filter"`
	Plans     []plan   `json:"Plans"`
}

// named is a condition that names the workspace by the argument. That it is the one of
// another row would do in a join, where PostgreSQL concludes the rest, as Citus does;
// it does not in a subquery of a column or a condition.
var named = regexp.MustCompile(`\bworkspace_id = \$1`)

// unrouted tells what a statement reads or writes that is not of the workspace $1.
func unrouted(t *testing.T, x *sqlx.DB, statement string, distributed map[string]string) string {
	t.Helper()
	tx := x.MustBegin()
	defer tx.Rollback()
	tx.MustExec(`set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off; set local enable_partition_pruning = off`)
	if _, err := tx.Exec(`prepare planned as ` + statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var arguments int
	if err := tx.Get(&arguments, `select cardinality(parameter_types) from pg_prepared_statements where name = 'planned'`); err != nil {
		t.Fatal(err)
	}
	nulls := ""
	if arguments > 0 {
		nulls = "(null" + strings.Repeat(", null", arguments-1) + ")"
	}
	var raw []byte
	if err := tx.Get(&raw, `explain (verbose, costs off, format json) execute planned`+nulls); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	tx.MustExec(`deallocate planned`)
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.unrouted(distributed)
}

func (p plan) unrouted(distributed map[string]string) string {
	table := distributed[p.Relation]
	switch {
	case table == "":
	case p.Operation == "Insert":
		// Columns stand in the order of the table, and the workspace comes first.
		if first := p.Plans[0].Output[0]; first != "$1" && first != "($1)" {
			return fmt.Sprintf("%s is written for the workspace %s", table, first)
		}
	case p.Operation != "": // an update or delete, of rows that are read below
	case !named.MatchString(p.Index + p.Recheck + p.Filter):
		return fmt.Sprintf("%s is read whatever the workspace: %s", table, p.Index+p.Recheck+p.Filter)
	}
	for _, below := range p.Plans {
		if wrong := below.unrouted(distributed); wrong != "" {
			return wrong
		}
	}
	return ""
}

var (
	changes = regexp.MustCompile(`(?i)\b(insert into|update|delete from)\s`)
	called  = regexp.MustCompile(`\b([a-z_]+)\(`)
	looking = regexp.MustCompile(`(?s)\bfrom (unnest|generate_series)\(.*\b(from|join) [a-z_]+\b(?:[^(]|$)`)
	nesting = regexp.MustCompile(`(?i)\bcase\b|\bend\b|\w*\(|\)`)
)

// mistaken tells what a statement that changes tables calls and must not.
func mistaken(t *testing.T, x *sqlx.DB, statement string) (all []string) {
	t.Helper()
	begins := changes.FindStringIndex(statement)
	if begins == nil {
		return nil
	}
	statement = statement[begins[0]:] // what is read before it is read on its own
	inserted := regexp.MustCompile(`\b(on conflict|returning)\b`).Split(statement, 2)[0]
	if strings.HasPrefix(statement, "insert") && looking.MatchString(inserted) {
		all = append(all, "inserts what is in no table, and looks into one")
	}
	for _, call := range called.FindAllStringSubmatch(statement, -1) {
		// The time is made stable where the tables are distributed.
		var volatile bool
		if err := x.Get(&volatile, `select exists (select from pg_proc where proname = $1 and provolatile = 'v' and prokind = 'f')`, call[1]); err != nil {
			t.Fatal(err)
		}
		if volatile && call[1] != "inlet_now" {
			all = append(all, "calls "+call[1]+", which is volatile")
		}
	}
	if _, update, there := strings.Cut(statement, "do update set"); there {
		for _, call := range called.FindAllStringSubmatch(regexp.MustCompile(`\b(where|returning)\b`).Split(update, 2)[0], -1) {
			var changing bool
			if err := x.Get(&changing, `select coalesce(bool_and(provolatile <> 'i'), false) from pg_proc where proname = $1`, call[1]); err != nil {
				t.Fatal(err)
			}
			if changing {
				all = append(all, "updates what is there by "+call[1]+", which is not immutable")
			}
		}
	}
	var open []string
	for _, token := range nesting.FindAllString(statement, -1) {
		token = strings.ToLower(token)
		inside := slices.Contains(open, "case") || slices.Contains(open, "coalesce(")
		if token == "end" || token == ")" {
			open = open[:max(0, len(open)-1)]
			continue
		}
		if name, call := strings.CutSuffix(token, "("); call && inside {
			var changing bool
			if err := x.Get(&changing, `select coalesce(bool_and(provolatile <> 'i'), false) from pg_proc where proname = $1`, name); err != nil {
				t.Fatal(err)
			}
			if changing {
				all = append(all, "has "+name+" in a CASE or COALESCE, which is not immutable")
			}
		}
		open = append(open, token)
	}
	return all
}

// spanningFunctions are those whose statements are of no one workspace.
var spanningFunctions = map[string]string{
	"drop_expired_events": "compares the rows of all workspaces, and drops a partition of every shard, once a minute",
}

// boundInside is how the statements of functions name the workspace.
var boundInside = regexp.MustCompile(`\bworkspace_id = (workspace\b|w_ids\[(\w+|\w+\[\w+\])\])|join workspaces \w+ on \w+\.workspace_id = \w+\.workspace_id|` +
	`insert into \w+( as \w+)?\s*\(workspace_id[^)]*\)\s*(values \(workspace\b|select (workspace\b|w_ids\[))`)

func mentioned(tables []string) *regexp.Regexp {
	return regexp.MustCompile(`\b(from|join|insert into|update)\s+(` + strings.Join(tables, "|") + `)\b`)
}

// readsAndCalls gives a table that a statement names and a function that works with
// tables itself, which it calls: the call would go where the table is, and there it
// can reach nothing else.
func readsAndCalls(statement string, tables, functions []string) (table, function string) {
	named := mentioned(tables).FindStringSubmatch(statement)
	call := regexp.MustCompile(`\b(` + strings.Join(functions, "|") + `)\(`).FindStringSubmatch(statement)
	if named == nil || call == nil {
		return "", ""
	}
	return named[2], call[1]
}

// loose gives the statements of a function's body in which some table is not bound
// to the workspace.
func loose(body string, tables []string) (all []string) {
	body = regexp.MustCompile(`--[^\n]*`).ReplaceAllString(body, "")
	after := regexp.MustCompile(`\bfrom \w+ \w, (` + strings.Join(tables, "|") + `)\b`)
	for statement := range strings.SplitSeq(body, ";") {
		read := len(mentioned(tables).FindAllString(statement, -1)) + len(after.FindAllString(statement, -1))
		if read > len(boundInside.FindAllString(statement, -1)) {
			all = append(all, strings.TrimSpace(statement))
		}
	}
	return all
}

func TestEveryStatementInsideAFunctionIsOfOneWorkspace(t *testing.T) {
	x := connect(t, dbtest.URL(t))
	// The reference tables, too: they hold what is the workspace's as well.
	tables := append(slices.Sorted(maps.Keys(distributedTables(t, x))), slices.Sorted(maps.Keys(db.ReferenceTables))...)
	var functions []struct{ Name, Body string }
	if err := x.Select(&functions, `select proname as name, prosrc as body from pg_proc where pronamespace = 'public'::regnamespace`); err != nil {
		t.Fatal(err)
	}
	var writers []string // functions that work with tables themselves
	for _, f := range functions {
		if mentioned(tables).MatchString(f.Body) {
			writers = append(writers, f.Name)
		}
	}
	for _, f := range functions {
		if spanningFunctions[f.Name] != "" {
			if regexp.MustCompile(`(?s)for\s+\w+\s+in[^;]*for update[^;]*loop`).MatchString(f.Body) {
				t.Errorf("%s locks rows of several nodes in one statement", f.Name)
			}
			continue
		}
		for _, statement := range loose(f.Body, tables) {
			t.Errorf("%s: a table is not bound to the workspace in\n%s", f.Name, statement)
		}
		for _, statement := range regexp.MustCompile(`;|\b(then|loop)\n`).Split(f.Body, -1) {
			if table, function := readsAndCalls(statement, tables, writers); table != "" {
				t.Errorf("%s: %s is called where %s is, which knows nothing of it, in\n%s", f.Name, function, table, statement)
			}
			if regexp.MustCompile(`(?s)\w\[\w+\] :=.*` + mentioned(tables).String()).MatchString(statement) {
				t.Errorf("%s: what is assigned to an element of an array is read from a table in\n%s", f.Name, statement)
			}
			for _, mistake := range mistaken(t, x, statement) {
				t.Errorf("%s: %s in\n%s", f.Name, mistake, statement)
			}
		}
	}
	// Each condition on the workspace is needed: without any one of them, the check
	// of that function fails.
	for _, f := range functions {
		if spanningFunctions[f.Name] != "" {
			continue
		}
		for _, at := range boundInside.FindAllStringIndex(f.Body, -1) {
			if len(loose(f.Body[:at[0]]+"true"+f.Body[at[1]:], tables)) == 0 && strings.HasPrefix(f.Body[at[0]:at[1]], "workspace_id") {
				t.Errorf("%s: nothing misses %s", f.Name, f.Body[at[0]:at[1]])
			}
		}
	}
}

// Over nodes, record_events is a function of one workspace.
func TestRecordEventsOfOneWorkspaceNamesItByOneValueAndRecordsAsBefore(t *testing.T) {
	d, address := dbtest.Private(t)
	w, versions, _ := peopled(t, d, address, "one")
	definition := dbtest.Query[string](t, address, db.RecordEventsDefinition)
	fitted, err := db.OfOneWorkspace(definition)
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range regexp.MustCompile(`w_ids\[[^;]{0,20}`).FindAllString(fitted, -1) {
		if !strings.HasPrefix(named, "w_ids[1]") {
			t.Errorf("a workspace is named by %s", named)
		}
	}
	if again, err := db.OfOneWorkspace(fitted); err != nil || again != fitted {
		t.Errorf("made one of one workspace again, it is another: %v", err)
	}
	dbtest.Exec(t, address, fitted)
	p := d.Pin()
	defer p.Close()
	recordOne(t, p, w, versions, 1, "v")
	if n := dbtest.Query[int](t, address, `select count(*) from events where workspace_id = $1`, w); n != 1 {
		t.Errorf("%d events are recorded, want 1", n)
	}
	both := &db.EventGroup{Workspaces: []int64{w, w + 1}, Versions: make([]db.Versions, 2), Counts: []int64{0, 0}, Upto: []int64{0, 0}, Wait: true}
	if _, err := p.RecordEvents(t.Context(), both); err == nil {
		t.Error("a group of two workspaces is recorded as one")
	}
}
