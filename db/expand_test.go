package db_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// While servers are replaced one by one, those of the version published last run
// on the schema of the next one; and they may have to come back. So migrations
// only add. What is no longer used goes a version later: then these tests let it.

// excused are changes that would be refused, and why they are harmless.
var excused = map[string]string{}

// numberOf gives the number that a migration's file begins with.
func numberOf(t *testing.T, name string) int64 {
	t.Helper()
	digits, _, _ := strings.Cut(filepath.Base(name), "_")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPublishedMigrationsAreNeverChanged(t *testing.T) {
	source := servertest.PreviousSource(t)
	_, last := servertest.Previous(t)
	published, err := filepath.Glob(filepath.Join(source, "db/migrations/*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	var newest int64
	for _, name := range published {
		newest = max(newest, numberOf(t, name))
		then, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile("migrations/" + filepath.Base(name)); err != nil || !bytes.Equal(now, then) {
			t.Errorf("%s was published, and is another now", filepath.Base(name))
		}
	}
	if newest != last {
		t.Errorf("impl/servertest/previous says that %d was published, it was %d", last, newest)
	}
}

// A statement that takes whatever columns there are is given more of them by the
// next version, and has nowhere to put them.
func TestEveryStatementOfThePreviousVersionStillPreparesAndGivesTheSameColumns(t *testing.T) {
	_, last := servertest.Previous(t)
	all := statementsIn(t, filepath.Join(servertest.PreviousSource(t), "db"))
	if len(all) < 80 {
		t.Fatalf("only %d statements are found", len(all))
	}
	old := dbtest.Empty(t)
	d, err := db.Open(t.Context(), db.Config{URL: old})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := db.MigrateFiles(d, t.Context(), quiet, migrationFiles(t, last, nil)); err != nil {
		t.Fatal(err)
	}
	then, now := sqlx.MustConnect("postgres", old), sqlx.MustConnect("postgres", dbtest.URL(t))
	defer then.Close()
	defer now.Close()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := now.Exec(`prepare checked as ` + all[name] + `; deallocate checked`); err != nil {
			t.Errorf("%s of the previous version does not prepare: %v", name, err)
			continue
		}
		if !strings.Contains(all[name], "*") || !strings.HasPrefix(strings.TrimSpace(all[name]), "select") {
			continue
		}
		if was, is := columnsOf(t, then, all[name]), columnsOf(t, now, all[name]); !slices.Equal(was, is) {
			t.Errorf("%s of the previous version gave the columns %v and gives %v", name, was, is)
		}
	}
}

var parameter = regexp.MustCompile(`\$\d+`)

func columnsOf(t *testing.T, x *sqlx.DB, statement string) []string {
	t.Helper()
	rows, err := x.Query(`select * from (` + parameter.ReplaceAllString(statement, "null") + `) given limit 0`)
	if err != nil {
		t.Logf("its columns are not compared: %v\n%s", err, statement)
		return nil
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	return columns
}

// facts of a schema that programs rely on: what each is called, and how it is.
const schemaFacts = `
	select 'table ' || relname as name, relkind::text as is from pg_class
	where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
	union all
	select 'column ' || c.relname || '.' || attname, concat_ws(' ', format_type(atttypid, atttypmod),
		case when attidentity <> '' then 'identity' end,
		case when attnotnull and attidentity = '' and not atthasdef then 'to be given' when not attnotnull then 'or null' end)
	from pg_attribute a join pg_class c on c.oid = attrelid
	where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and attnum > 0 and not attisdropped
	union all
	select 'rule ' || c.relname || ' ' || pg_get_constraintdef(k.oid), string_agg(a.attname, ',' order by a.attnum)
	from pg_constraint k join pg_class c on c.oid = conrelid
	left join pg_attribute a on a.attrelid = c.oid and a.attnum = any(k.conkey)
	where relnamespace = 'public'::regnamespace and not relispartition and contype in ('p', 'u', 'c', 'f')
	group by c.relname, k.oid
	union all
	select 'function ' || proname || '(' || pg_get_function_identity_arguments(oid) || ')', pg_get_function_result(oid)
	from pg_proc where pronamespace = 'public'::regnamespace
	union all
	select 'unique index ' || r.relname || substr(d, strpos(d, ' USING ')),
		(select string_agg(a.attname, ',' order by a.attnum) from pg_attribute a where a.attrelid = r.oid and a.attnum = any(i.indkey))
	from pg_index i join pg_class r on r.oid = indrelid cross join pg_get_indexdef(indexrelid) d
	where r.relnamespace = 'public'::regnamespace and indisunique and not relispartition
		and not exists (select from pg_constraint where conindid = indexrelid)`

func factsOf(t *testing.T, x *sqlx.DB) map[string]string {
	t.Helper()
	var rows []struct{ Name, Is string }
	if err := x.Select(&rows, schemaFacts); err != nil {
		t.Fatal(err)
	}
	facts := make(map[string]string)
	for _, r := range rows {
		facts[r.Name] = r.Is
	}
	return facts
}

// contracts tells what a schema lacks of the one before it, and what it demands
// that the one before did not.
func contracts(before, after map[string]string) (wrong []string) {
	for name, was := range before {
		is, there := after[name]
		switch {
		case !there && strings.HasPrefix(name, "unique index") && becameRule(name, was, after):
		case !there:
			wrong = append(wrong, name+" is gone")
		case is != was:
			wrong = append(wrong, fmt.Sprintf("%s was %q and is %q", name, was, is))
		}
	}
	// Keys that hold because another did are no new demand.
	implied := func(table, columns string) bool {
		for name, of := range before {
			if (strings.HasPrefix(name, "rule "+table+" PRIMARY KEY") || strings.HasPrefix(name, "rule "+table+" UNIQUE")) &&
				!slices.ContainsFunc(strings.Split(of, ","), func(c string) bool { return !slices.Contains(strings.Split(columns, ","), c) }) {
				return true
			}
		}
		return false
	}
	for name, is := range after {
		if _, there := before[name]; there {
			continue
		}
		kind, rest, _ := strings.Cut(name, " ")
		switch kind {
		case "column":
			table, _, _ := strings.Cut(rest, ".")
			if _, old := before["table "+table]; old && strings.Contains(is, "to be given") {
				wrong = append(wrong, name+" has to be given")
			}
		case "rule", "unique":
			rest = strings.TrimPrefix(rest, "index ")
			table, rule, _ := strings.Cut(rest, " ")
			isKey := kind == "unique" || strings.HasPrefix(rule, "UNIQUE") || strings.HasPrefix(rule, "PRIMARY KEY")
			if _, old := before["table "+table]; old && (!isKey || !implied(table, is)) {
				wrong = append(wrong, name+" is demanded")
			}
		}
	}
	return wrong
}

// becameRule tells whether a unique index is that of a constraint now.
func becameRule(name, columns string, after map[string]string) bool {
	table := strings.Fields(name)[2]
	for now, of := range after {
		if strings.HasPrefix(now, "rule "+table+" UNIQUE") && of == columns {
			return true
		}
	}
	return false
}

// watch notes, for every migration, what it does to tables that were there before
// while it keeps others from them, at each of its statements and at its end.
const watch = `
	create schema watch;
	create table watch.tables as select oid, relname, relfilenode from pg_class
		where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> 'goose_db_version';
	create table watch.notes (note text);
	create function watch.look() returns void language plpgsql as $$
	begin
		insert into watch.notes
		select 'reads all of ' || t.relname || ' while it holds ' || l.mode
		from pg_locks l join watch.tables t on t.oid = l.relation
		where l.pid = pg_backend_pid() and l.mode not in ('AccessShareLock', 'RowShareLock', 'ShareUpdateExclusiveLock')
			and pg_stat_get_xact_numscans(t.oid) > 0
		union
		select 'writes all of ' || t.relname || ' anew'
		from watch.tables t join pg_class c on c.oid = t.oid where c.relfilenode <> t.relfilenode;
		if to_regproc('pg_stat_force_next_flush') is not null then
			perform pg_stat_force_next_flush(); -- so that the next migration's scans are its own
		end if;
	end $$;
	create function watch.statement() returns event_trigger language plpgsql as $$ begin perform watch.look(); end $$;
	create event trigger watch on ddl_command_end execute function watch.statement();
	create function watch.migration() returns trigger language plpgsql as $$ begin perform watch.look(); return null; end $$;
	create trigger watch after insert on goose_db_version execute function watch.migration()`

// hurts runs migrations one by one, and tells of each, by its file, what would
// hurt servers of the version before.
func hurts(t *testing.T, added fstest.MapFS) map[string][]string {
	t.Helper()
	_, last := servertest.Previous(t)
	address := dbtest.Empty(t)
	d, err := db.Open(t.Context(), db.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := db.MigrateFiles(d, t.Context(), quiet, migrationFiles(t, last, nil)); err != nil {
		t.Fatal(err)
	}
	x, err := sqlx.Connect("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	// Tables are empty here, and so would be read whole where they are not.
	x.MustExec(`do $$ begin
		execute format('alter database %I set enable_seqscan = off', current_database());
		execute format('alter database %I set jit = off', current_database());
	end $$`)
	x.MustExec(watch)
	before := factsOf(t, x)
	wrong := make(map[string][]string)
	done := make(fstest.MapFS)
	for _, name := range slices.Sorted(maps.Keys(added)) {
		done[name] = added[name]
		if err := db.MigrateFiles(d, t.Context(), quiet, migrationFiles(t, last, done)); err != nil {
			t.Fatal(err)
		}
		x.MustExec(`update watch.tables t set oid = c.oid from pg_class c where c.relname = t.relname and c.relnamespace = 'public'::regnamespace`)
		after := factsOf(t, x)
		found := contracts(before, after)
		var noted []string
		if err := x.Select(&noted, `select distinct note from watch.notes`); err != nil {
			t.Fatal(err)
		}
		x.MustExec(`truncate watch.notes; update watch.tables t set relfilenode = c.relfilenode from pg_class c where c.oid = t.oid`)
		wrong[name] = slices.Sorted(slices.Values(append(found, noted...)))
		before = after
	}
	return wrong
}

func TestMigrationsSinceThePreviousVersionOnlyAddAndKeepNobodyOut(t *testing.T) {
	_, last := servertest.Previous(t)
	added := make(fstest.MapFS)
	for name, file := range migrationFiles(t, 1<<40, nil) {
		if numberOf(t, name) > last {
			added[name] = file
		}
	}
	met := make(map[string]bool)
	for name, found := range hurts(t, added) {
		for _, what := range found {
			if met[what] = true; excused[what] == "" {
				t.Errorf("%s: %s", name, what)
			}
		}
	}
	for what := range excused {
		if !met[what] {
			t.Errorf("%s is excused and does not happen", what)
		}
	}
}

func TestMigrationsThatWouldHurtServersOfTheVersionBeforeAreTold(t *testing.T) {
	migrations := []struct{ sql, hurts string }{
		{`alter table contacts drop column seniority`, "column contacts.seniority is gone"},
		{`alter table contacts rename column title to job`, "column contacts.title is gone"},
		{`alter table leads alter column extra drop not null`, `column leads.extra was "jsonb to be given" and is "jsonb or null"`},
		{`alter table companies alter column industry set not null`, `column companies.industry was "text or null" and is "text to be given"|reads all of companies while it holds AccessExclusiveLock`},
		{`alter table bookings alter column starts_at type text`, `writes all of bookings anew`},
		{`alter table events alter column ts type integer`, `column events.ts was "smallint to be given" and is "integer to be given"`},
		{`alter table notes add column kind text not null`, "column notes.kind has to be given"},
		{`alter table notes alter column created_at drop default`, `column notes.created_at was "timestamp with time zone" and is "timestamp with time zone to be given"`},
		{`drop table seed_refs`, "table seed_refs is gone"},
		{`drop function process_events(bigint, integer)`, "function process_events(workspace bigint, most integer) is gone"},
		{`alter function decide_entries(bigint, integer) rename to decide`, "function decide_entries(workspace bigint, most integer) is gone"},
		{`alter table motions drop constraint motions_status_check`, "rule motions CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'archived'::text]))) is gone"},
		{`alter table sites add check (site_key <> '') not valid`, "rule sites CHECK ((site_key <> ''::text)) NOT VALID is demanded"},
		{`alter table segments add check (name <> '')`, "reads all of segments while it holds AccessExclusiveLock"},
		{`alter table segments add unique (workspace_id, name)`, "rule segments UNIQUE (workspace_id, name) is demanded"},
		{`create unique index forms_name on forms (workspace_id, name)`, "unique index forms USING btree (workspace_id, name) is demanded"},
		{`create index leads_email on leads (workspace_id, email)`, "reads all of leads while it holds ShareLock"},
		{`alter table opportunities add column at timestamptz not null default clock_timestamp()`, "writes all of opportunities anew"},
		{`alter table workspaces add column motto text; update workspaces set motto = name`, "reads all of workspaces while it holds AccessExclusiveLock"},
		{`update roles set scopes = '{}'`, "reads all of roles while it holds RowExclusiveLock"},
		{`alter table bookings set unlogged`, "writes all of bookings anew"},
	}
	harmless := []string{
		`create table things (workspace_id bigint primary key, name text not null)`,
		`alter table contacts add column nickname text`,
		`alter table contacts add column rank integer not null default 0`,
		`create index things_name on things (name); insert into things select 1, 'x'; update things set name = 'y'`,
		`alter table email_links add constraint email_links_of_token unique using index email_links_of_token`,
		`create function of_things(n integer) returns integer language sql as 'select n'`,
		`create or replace function gate_key(workspace bigint) returns bigint language sql immutable parallel safe as 'select (7461::bigint << 48) | workspace'`,
		`drop index leads_contact`,
	}
	files := make(fstest.MapFS)
	add := func(i int, head, sql string) string {
		name := fmt.Sprintf("%d_%03d.sql", 8000000000+i, i)
		files[name] = &fstest.MapFile{Data: []byte(head + "-- +goose Up\n" + strings.ReplaceAll(sql, "; ", ";\n") + ";\n")}
		return name
	}
	wanted := make(map[string]string)
	for i, sql := range harmless {
		wanted[add(100+i, "", sql)] = ""
	}
	// Built beforehand; of a key that includes one, and so it demands nothing.
	wanted[add(0, "-- +goose NO TRANSACTION\n", `create unique index concurrently email_links_of_token on email_links (token_hash, workspace_id)`)] = ""
	for i, m := range migrations {
		wanted[add(200+i, "", m.sql)] = m.hurts
	}
	for name, found := range hurts(t, files) {
		told := strings.Join(found, "|")
		if want := wanted[name]; want == "" && told != "" || !strings.Contains(told, want) {
			t.Errorf("%s\nis told to hurt: %s\nwant: %s", files[name].Data, told, want)
		}
	}
}
