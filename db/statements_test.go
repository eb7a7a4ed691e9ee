package db_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db/dbtest"
)

var update = flag.Bool("update", false, "write golden files")

// ofNoWorkspace are the statements that are of no single workspace, and why.
var ofNoWorkspace = map[string]string{
	"serverVersion":          "about the server",
	"databaseTime":           "about the server",
	"insertWorkspace":        "makes the workspace",
	"recordEvents":           "a group of events spans workspaces, which are among its arguments",
	"ensureEventPartitions":  "partitions hold all workspaces",
	"dropExpiredEvents":      "partitions hold all workspaces",
	"lockSeed":               "a seed file spans workspaces",
	"waitForSeed":            "about the transaction",
	"addRefusals":            "refusals of several workspaces are written together",
	"flush":                  "about the server",
	"secret":                 "about the server",
	"processEvents":          "its argument is the workspace, $1",
	"identifyVisitor":        "its argument is the workspace, $1",
	"rebuildSignalFacts":     "its argument is the workspace, $1",
	"lockGate":               "the gate is found by the workspace, $1",
	"dropExpiredTokens":      "expired tokens of all workspaces",
	"dropExpiredLinks":       "expired links of all workspaces",
	"decideEntries":          "its argument is the workspace, $1",
	"dropDecidedEntries":     "old decisions of all workspaces",
	"dueEnrollments":         "what is due first, whosesoever it is",
	"serverDisagrees":        "what belongs to no workspace",
	"readAllTheTime":         "about the transaction",
	"passOverIDs":            "ids of all workspaces come from one sequence",
	"doubtEverything":        "of all workspaces, after a restore",
	"lockIdentity":           "the workspace, $1, is part of what is locked",
	"schemaVersion":          "about the schema",
	"roleExists":             "about the server",
	"grants":                 "about the schema",
	"beyondGrants":           "about the server",
	"lockPartitions":         "partitions hold all workspaces",
	"backlog":                "what waits, of all workspaces",
	"backlogApart":           "what waits, of all workspaces",
	"citusThere":             "about the server",
	"foreignKeys":            "about the schema",
	"recordEventsDefinition": "about the schema",
	"queueLead":              "its argument is the workspace, $1",
}

// bySomethingElse are those that find the workspace by a key of another kind.
var bySomethingElse = []string{"admitCredential", "workspaceBySlug", "allWorkspaces", "unprocessedWorkspaces",
	"queuedWorkspaces", "queuedWorkspacesApart", "siteByKey", "emailLink", "formByKey", "meetingFormByKey"}

// statements reads every SQL constant of the package from its source.
func statements(t *testing.T) map[string]string {
	t.Helper()
	return statementsIn(t, ".")
}

// statementsIn reads those of the package in a folder.
func statementsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	sql := regexp.MustCompile(`(?i)^\s*(select|insert|update|delete|with)\s`)
	all := make(map[string]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && sql.MatchString(text) {
					all[spec.Names[0].Name] = text
				}
			}
			return true
		})
	}
	return all
}

func TestEveryStatementPreparesAndKeepsToAWorkspace(t *testing.T) {
	x, err := sqlx.Connect("postgres", dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	all := statements(t)
	if len(all) < 30 {
		t.Fatalf("only %d statements are found", len(all))
	}
	scoped := regexp.MustCompile(`workspace_id\s*=\s*\$1|insert into \w+( as \w+)? \(workspace_id[^)]*\)\s*(values \(\$1|select \$1)`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(onCitusOnly, name) {
			continue
		}
		text := all[name]
		if _, err := x.Exec(`prepare checked as ` + text + `; deallocate checked`); err != nil {
			t.Errorf("%s does not prepare: %v", name, err)
			continue
		}
		_, excused := ofNoWorkspace[name]
		switch {
		case excused:
		case slices.Contains(bySomethingElse, name):
			if !strings.Contains(text, "workspace_id") {
				t.Errorf("%s joins without the workspace", name)
			}
		case !scoped.MatchString(text):
			t.Errorf("%s does not keep to the workspace of its scope, $1", name)
		}
	}
	for name := range ofNoWorkspace {
		if all[name] == "" {
			t.Errorf("%s is excused and does not exist", name)
		}
	}
}

func TestLookUpsOfAnEventUseAnIndex(t *testing.T) {
	x, err := sqlx.Connect("postgres", dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.SetMaxOpenConns(1)
	x.MustExec(`set enable_seqscan = off`)
	for _, lookUp := range []string{
		`select event_no from event_ids where workspace_id = 1 and id_hash = '00000000-0000-0000-0000-000000000000' and event_no >= 0`,
		`select company_id from companies where workspace_id = 1 and company_id = 1`,
		`select company_id from company_domains where workspace_id = 1 and domain in ('a.example', 'b.example')`,
		`select contact_id from contacts where workspace_id = 1 and contact_id = 1`,
		`select contact_id from contacts where workspace_id = 1 and email = 'a@b.example'`,
		`select contact_id from visitors where workspace_id = 1 and visitor_id = 'v'`,
		`select key_id from api_keys where hash = '\x00'`,
	} {
		var plan []string
		if err := x.Select(&plan, `explain `+lookUp); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") {
			t.Errorf("%s scans a table:\n%s", lookUp, text)
		}
	}
}

// Statements are planned for the average workspace: one that is a thousand times
// as large must not be read whole for that.
func TestMatchingAPersonReadsAHandfulOfPages(t *testing.T) {
	x, err := sqlx.Connect("postgres", dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.SetMaxOpenConns(1)
	x.MustExec(`begin`) // never committed
	x.MustExec(`insert into workspaces (workspace_id, slug, name) select 7000000 + n, 'pages-' || n, 'W' from generate_series(1, 3000) n`)
	x.MustExec(`insert into companies (workspace_id, company_id, name, name_key, source)
		select 7000001 + case when n > 6000 then 0 else n % 3000 end, n, 'C' || n, 'c' || n, 'seed' from generate_series(1, 10000) n`)
	x.MustExec(`insert into company_domains (workspace_id, domain, company_id)
		select workspace_id, name_key || '.example', company_id from companies where workspace_id > 7000000`)
	x.MustExec(`insert into contacts (workspace_id, contact_id, company_id, email, linkedin_url, source)
		select workspace_id, company_id, company_id, 'p@c' || company_id || '.example', 'https://www.linkedin.com/in/p' || company_id, 'seed'
		from companies where workspace_id > 7000000`)
	x.MustExec(`analyze workspaces, companies, company_domains, contacts`)
	x.MustExec(`set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off`)
	x.MustExec(`prepare matching as ` + statements(t)["matches"])
	pages := regexp.MustCompile(`Buffers: shared hit=(\d+)`)
	for name, arguments := range map[string]string{
		"all known": `'p@c9000.example', 'https://www.linkedin.com/in/p9001', '{eu.c9002.example,c9002.example}', '{c9003.example}', 'c9004'`,
		"unknown":   `'x', 'x', '{x.example,y.example}', '{z.example}', 'x'`,
	} {
		var plan []string
		if err := x.Select(&plan, `explain (analyze, buffers) execute matching(7000001, `+arguments+`)`); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		found := pages.FindStringSubmatch(text) // of the whole statement
		if found == nil {
			t.Fatalf("%s: no pages:\n%s", name, text)
		}
		if read, _ := strconv.Atoi(found[1]); read > 40 {
			t.Errorf("%s: %d pages are read:\n%s", name, read, text)
		}
	}
}

// The schema after all migrations, as the database's catalog tells it. Functions
// stand there whole: a migration that replaces one shows here what it changes.
const catalog = `
	select definition from (
		select 1 as part, c.relname as name, 'create table ' || c.relname || E' (\n' ||
			string_agg('    ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
				|| case when a.attidentity <> '' then ' generated by default as identity' else '' end
				|| case when a.attnotnull then ' not null' else '' end
				|| coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''), E',\n' order by a.attnum)
			|| E'\n);' as definition
		from pg_class c
		join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and c.relname <> 'goose_db_version'
		group by c.relname
		union all
		select 2, c.relname || conname, 'alter table ' || c.relname || ' add constraint ' || conname || ' '
			|| pg_get_constraintdef(k.oid) || ';'
		from pg_constraint k join pg_class c on c.oid = k.conrelid
		where c.relnamespace = 'public'::regnamespace and not c.relispartition and c.relname <> 'goose_db_version'
			and k.contype <> 'n'
		union all
		select 3, c.relname, pg_get_indexdef(c.oid) || ';'
		from pg_class c join pg_index i on i.indexrelid = c.oid join pg_class r on r.oid = i.indrelid
		where c.relnamespace = 'public'::regnamespace and not r.relispartition and r.relname <> 'goose_db_version'
		union all
		select 4, p.proname, pg_get_functiondef(p.oid) || ';'
		from pg_proc p where p.pronamespace = 'public'::regnamespace
	) parts
	order by part, name collate "C"`

func TestGoldenSchemaIsWhatTheMigrationsMake(t *testing.T) {
	x, err := sqlx.Connect("postgres", dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var parts []string
	if err := x.Select(&parts, catalog); err != nil {
		t.Fatal(err)
	}
	got := "-- The schema after all migrations: `make generate` writes it, to be read.\n\n" + strings.Join(parts, "\n") + "\n"
	if *update {
		if err := os.WriteFile("schema.sql", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("schema.sql is stale: run make generate and commit the result")
	}
	for _, line := range strings.Split(got, "\n") {
		// Distribution by workspace: keys contain it, and foreign keys stay in it.
		reference := strings.Contains(line, "workspaces") || strings.Contains(line, "server_secrets") || regexp.MustCompile(`(hash|site_key|public_key)`).MatchString(line)
		if strings.Contains(line, "PRIMARY KEY") || strings.Contains(line, "UNIQUE") || strings.Contains(line, "FOREIGN KEY") {
			if !strings.Contains(line, "(workspace_id") && !reference {
				t.Errorf("a key without the workspace first: %s", line)
			}
		}
	}
}
