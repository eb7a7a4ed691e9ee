package contract

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// everything is a workspace in which all parts of a server have something to do.
const everything = onPages + `
    motions:
      - ref: steps
        name: Steps
        entry: {api_call: true}
        steps: [{kind: add_note, text: "one"}, {kind: create_opportunity, name: Deal}, {kind: set_field, field: stage, value: engaged}]
      - {ref: signal, name: Signal, entry: {signals: [hot]}, steps: []}
    signals:
      - {ref: hot, name: Hot, event: clicked, score: 10}
`

// roles makes a database with an owner, who is no superuser, and a role that has
// been given nothing yet; it gives the addresses of the three.
func roles(t *testing.T) (admin, owner, server string) {
	t.Helper()
	admin = dbtest.Empty(t)
	as := func(role string) string {
		u, err := url.Parse(admin)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, "secret")
		return u.String()
	}
	name := strings.ToLower(rand.Text()[:12])
	own, serve := "owner_"+name, "server_"+name
	database := dbtest.Query[string](t, admin, `select current_database()`)
	dbtest.Exec(t, admin, fmt.Sprintf(`create role %s login password 'secret'; create role %s login password 'secret'`, own, serve))
	t.Cleanup(func() {
		x, err := sqlx.Connect("postgres", admin)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if _, err := x.Exec(fmt.Sprintf(`drop owned by %s; reassign owned by %s to current_user; drop owned by %s; drop role %s, %s`,
			serve, own, own, own, serve)); err != nil {
			t.Error(err)
		}
	})
	dbtest.Exec(t, admin, fmt.Sprintf(`alter database %s owner to %s; alter schema public owner to %s`, database, own, own))
	return admin, as(own), as(serve)
}

func roleOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

func TestAServerWhoseRoleOwnsNothingDoesEverything(t *testing.T) {
	admin, owner, address := roles(t)
	role := roleOf(t, address)
	t.Setenv("INLET_MIGRATE", "false") // of commands too; migrate itself is told otherwise
	for range 2 {
		if _, err := servertest.Command(t, owner, "", "migrate", "--grant-to", role); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, address)
	w := seedOn(t, address, "least", strings.Replace(everything, "[leads.manage, events.send]", "[leads.manage, motions.start, events.send]", 1))

	for _, sent := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/v1/events", `{"id":"e1","name":"clicked","company":{"domain":"globex.com"},"properties":{"a":1}}`, 202},
		{"POST", "/api/v1/events/batch", `{"events":[{"id":"e2","name":"clicked","visitor":{"id":"v1"}},{"id":"e3","name":"seen","contact":{"email":"hank@globex.com"}}]}`, 202},
		{"GET", "/api/v1/events?limit=1", "", 200},
		{"POST", "/api/v1/leads", `{"email":"ann@newco.com","company_name":"NewCo"}`, 201},
		{"POST", fmt.Sprintf("/api/v1/motions/%d/start", w.Motions["steps"]), fmt.Sprintf(`{"companyId":%d}`, w.Companies["globex"]), 202},
		{"GET", "/api/v1/forms/" + w.Forms["demo"].PublicKey, "", 200},
		{"POST", "/api/v1/forms/" + w.Forms["demo"].PublicKey, `{"fields":{"email":"bob@newco.com"},"visitor_id":"v2"}`, 201},
		{"GET", "/api/v1/forms/" + w.Forms["demo"].PublicKey + "/page", "", 200},
		{"POST", "/api/v1/visitors/identify", fmt.Sprintf(`{"site":%q,"visitor_id":"v1","token":%q}`, w.Sites["www"].SiteKey, w.token("hank@globex.com", nil)), 202},
		{"GET", "/readyz", "", 200},
		{"GET", "/docs", "", 200},
	} {
		credential := w.Key("all")
		if isPublic(sent.path) {
			credential = "Origin: https://www.least.example"
		}
		if a := s.send(t, sent.method, sent.path, sent.body, credential, "Idempotency-Key: k"); a.status != sent.status {
			t.Errorf("%s %s answers %d %s", sent.method, sent.path, a.status, a.body)
		}
	}
	if a := w.book(t, s, w.slots(t, s, "")[0], "eve@newco.com", "v3"); a.status != 201 {
		t.Errorf("a booking answers %d %s", a.status, a.body)
	}
	eventually(t, "what jobs make of it", "2 facts, 1 deal, 1 note, engaged, v1 known, 2 entered", func() string {
		return dbtest.Query[string](t, admin, `select format('%s facts, %s deal, %s note, %s, v1 %s, %s entered',
			(select sum(events) from event_facts f join event_types using (workspace_id, event_type_id) where name = 'clicked'),
			(select count(*) from opportunities), (select count(*) from notes), (select stage from companies where company_id = $1),
			(select case when contact_id is null then 'unknown' else 'known' end from visitors where visitor_id = 'v1'),
			(select count(*) from motion_entries where reason_code = 'entered'))`, w.Companies["globex"])
	})
	eventually(t, "events processed", true, func() bool {
		return dbtest.Query[bool](t, admin, `select processed_no >= last_event_no from event_progress join workspace_gates using (workspace_id)`)
	})
	for _, command := range [][]string{
		{"workspace", "list"}, {"event-type", "block", "seen", "--workspace", "least"}, {"refusals", "--workspace", "least"},
		{"site", "rotate", w.Sites["www"].SiteKey}, {"key", "create", "--workspace", "least", "--name", "k", "--scopes", "events.send"},
	} {
		if _, err := servertest.Command(t, address, "", command...); err != nil {
			t.Errorf("%v: %v", command, err)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}

	partitions := func() string {
		return dbtest.Query[string](t, admin, `select format('%s of events, %s of refusals, %s of ids, %s events',
			count(*) filter (where i.inhparent = 'events'::regclass), count(*) filter (where i.inhparent = 'refusals'::regclass),
			case when count(*) filter (where i.inhparent = 'event_ids'::regclass) > 0 then 'some' end, (select count(*) from events))
			from pg_inherits i where i.inhparent in ('events'::regclass, 'refusals'::regclass, 'event_ids'::regclass)`)
	}
	if got := partitions(); got != "9 of events, 9 of refusals, some of ids, 3 events" {
		t.Errorf("there are %s", got)
	}
	dbtest.Exec(t, admin, fmt.Sprintf(`alter database %s set inlet.clock_offset = '50 days'`, dbtest.Query[string](t, admin, `select current_database()`)))
	s = start(t, address)
	defer s.Stop()
	// A day that is in use at the moment is dropped a minute later.
	const want = "9 of events, 9 of refusals, some of ids, 0 events"
	for until := time.Now().Add(4 * time.Minute); partitions() != want; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("there are %s, want room for what comes, and none of what is past: %s", partitions(), want)
		}
	}
	if a := w.record(t, s, `{"id":"later","name":"clicked","visitor":{"id":"v9"}}`); a.status != 202 {
		t.Errorf("an event answers %d %s", a.status, a.body)
	}
	if strings.Contains(s.Log(), `"ERROR"`) {
		t.Errorf("the server logs errors:\n%s", s.Log())
	}
}

func TestTheRoleOfAServerMayDoNoMoreThanTheServerNeeds(t *testing.T) {
	t.Parallel()
	admin, owner, address := roles(t)
	role, own := roleOf(t, address), roleOf(t, owner)
	if _, err := servertest.Command(t, owner, "", "migrate", "--grant-to", role); err != nil {
		t.Fatal(err)
	}
	dbtest.Exec(t, admin, `create schema other; create table other.secrets (s text)`)
	dbtest.Hold(t, owner, `select`)
	session := dbtest.Query[int](t, admin, `select pid from pg_stat_activity where usename = $1`, own)
	x, err := sqlx.ConnectContext(t.Context(), "postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	const forbidden, notOwner = "42501", "must be owner"
	database := dbtest.Query[string](t, admin, `select current_database()`)
	partition := dbtest.Query[string](t, admin, `select inhrelid::regclass::text from pg_inherits where inhparent = 'events'::regclass limit 1`)
	for _, attempt := range []string{
		`create table mine ()`,
		`create temporary table mine ()`,
		`create view mine as select 1`,
		`create function mine() returns int language sql as 'select 1'`,
		`create schema mine`,
		`create extension dblink`,
		`create role mine`,
		`create database mine`,
		`create server mine foreign data wrapper postgres_fdw`,
		`create publication mine for all tables`,
		`create trigger mine before insert on events for each row execute function suppress_redundant_updates_trigger()`,
		`create rule mine as on insert to leads do nothing`,
		`create index on leads (email)`,
		`drop table leads`,
		`drop table ` + partition,
		`drop function inlet_now`,
		`drop schema public cascade`,
		`truncate leads`,
		`truncate ` + partition,
		`alter table leads add column mine text`,
		`alter table events detach partition ` + partition,
		`alter table leads disable trigger all`,
		`alter function drop_expired_events security invoker`,
		`alter function drop_expired_events set search_path = mine`,
		`alter database ` + database + ` set search_path = mine`,
		`alter role ` + role + ` superuser`,
		`alter role ` + own + ` password 'mine'`,
		`alter system set fsync = off`,
		`set role ` + own,
		`set session authorization ` + own,
		`reassign owned by ` + own + ` to ` + role,
		`update goose_db_version set version_id = 0`,
		`delete from goose_db_version`,
		`insert into goose_db_version (version_id, is_applied) values (99, true)`,
		`update server_secrets set secret = sha256('mine')`,
		`delete from server_secrets`,
		`select * from other.secrets`,
		`create table other.mine ()`,
		`select * from pg_authid`,
		`select * from pg_shadow`,
		`select subconninfo from pg_subscription`,
		`select pg_read_file('postgresql.conf')`,
		`select pg_ls_dir('.')`,
		`select lo_import('/etc/passwd')`,
		`copy leads to program 'true'`,
		`copy leads from '/etc/passwd'`,
		`copy leads to '/tmp/inlet-leads'`,
		`select pg_reload_conf()`,
		`select pg_switch_wal()`,
		fmt.Sprintf(`select pg_terminate_backend(%d)`, session),
		fmt.Sprintf(`select pg_cancel_backend(%d)`, session),
		`set session_replication_role = replica`,
		`set log_statement = 'none'`,
		`load 'auto_explain'`,
		`do language plpython3u 'pass'`,
	} {
		_, err := x.ExecContext(t.Context(), attempt)
		if err == nil {
			t.Errorf("it may: %s", attempt)
			continue
		}
		if text := err.Error(); !strings.Contains(text, forbidden) && !strings.Contains(text, notOwner) && !strings.Contains(text, "denied") &&
			!strings.Contains(text, "does not exist") && !strings.Contains(text, "not trusted") {
			t.Errorf("%s fails for another reason: %v", attempt, err)
		}
	}
	if owns := dbtest.Query[int](t, admin, `select count(*) from pg_shdepend where refobjid = $1::regrole and deptype = 'o'`, role); owns != 0 {
		t.Errorf("it owns %d things", owns)
	}
	// Whatever runs with the owner's rights looks things up where nobody else can
	// put anything, and is for servers only.
	if open := dbtest.Query[string](t, admin, `select coalesce(string_agg(proname, ' '), '') from pg_proc
		where prosecdef and pronamespace = 'public'::regnamespace and (has_function_privilege('public', oid, 'execute')
			or not coalesce('search_path=public, pg_temp' = any(proconfig), false))`); open != "" {
		t.Errorf("with the owner's rights, and open to others, run %s", open)
	}
	for _, f := range []string{"ensure_event_partitions(integer)", "drop_expired_events()"} {
		if !dbtest.Query[bool](t, admin, `select prosecdef from pg_proc where oid = $1::regprocedure`, f) {
			t.Errorf("%s runs with the rights of its caller, who may not", f)
		}
	}
	// A table of a migration to come.
	dbtest.Exec(t, owner, `create table later (n bigint generated by default as identity primary key, workspace_id bigint)`)
	if _, err := x.ExecContext(t.Context(), `insert into later (workspace_id) values (1); update later set workspace_id = 2; delete from later`); err != nil {
		t.Errorf("what a later migration makes is out of reach: %v", err)
	}
	if _, err := x.ExecContext(t.Context(), `truncate later`); err == nil {
		t.Error("it may truncate what a later migration makes")
	}
}

func TestARoleThatMayDoMoreIsNotTakenForAServers(t *testing.T) {
	t.Parallel()
	admin, owner, address := roles(t)
	role, own := roleOf(t, address), roleOf(t, owner)
	database := dbtest.Query[string](t, admin, `select current_database()`)
	if _, err := servertest.Command(t, owner, "", "migrate"); err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.Context(), db.Config{URL: owner})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct{ more, less, says string }{
		{`alter role %s superuser`, `alter role %s nosuperuser`, "superuser"},
		{`alter role %s createrole`, `alter role %s nocreaterole`, "create roles"},
		{`alter role %s createdb`, `alter role %s nocreatedb`, "create databases"},
		{`alter role %s bypassrls`, `alter role %s nobypassrls`, "row security"},
		{`grant ` + own + ` to %s`, `revoke ` + own + ` from %s`, "owner"},
		{`grant pg_execute_server_program to %s`, `revoke pg_execute_server_program from %s`, "PostgreSQL brings"},
		{`grant create on schema public to %s`, `revoke create on schema public from %s`, "create tables"},
		{`grant create on database ` + database + ` to %s`, `revoke create on database ` + database + ` from %s`, "create schemas"},
		{`grant temporary on database ` + database + ` to %s`, `revoke temporary on database ` + database + ` from %s`, "temporary"},
	} {
		dbtest.Exec(t, admin, fmt.Sprintf(c.more, role))
		if err := d.Grant(t.Context(), role); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", fmt.Sprintf(c.more, role), err)
		}
		dbtest.Exec(t, admin, fmt.Sprintf(c.less, role))
	}
	if _, err := servertest.Command(t, owner, "", "migrate", "--grant-to", role+"_"); err == nil || !strings.Contains(err.Error(), "there is no role") {
		t.Errorf("a role that is not there: %v", err)
	}
	if _, err := servertest.Command(t, owner, "", "migrate", "--grant-to", role); err != nil {
		t.Error(err)
	}
}

func TestWithoutMigratingASchemaThatIsTooOldIsNotServedAndANewerOneIs(t *testing.T) {
	admin, owner, address := roles(t)
	t.Setenv("INLET_MIGRATE", "false")
	refused := func(address, says string, args ...string) {
		t.Helper()
		if _, err := servertest.Command(t, address, "", args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", args, err, says)
		}
	}
	notServed := func(address, says string) {
		t.Helper()
		if said := refusesToServe(t, address); !strings.Contains(said, says) {
			t.Errorf("it says %s, want %q", said, says)
		}
	}
	notServed(address, "no schema yet")
	if tables := dbtest.Query[int](t, admin, `select count(*) from pg_class where relnamespace = 'public'::regnamespace`); tables != 0 {
		t.Errorf("%d tables were made all the same", tables)
	}
	if _, err := servertest.Command(t, owner, "", "migrate"); err != nil {
		t.Fatal(err)
	}
	refused(address, "--grant-to", "workspace", "list")
	if _, err := servertest.Command(t, owner, "", "migrate", "--grant-to", roleOf(t, address)); err != nil {
		t.Fatal(err)
	}
	// Whoever migrates holds this lock meanwhile, and for long.
	release := dbtest.Hold(t, admin, `select pg_advisory_xact_lock(4097083626)`)
	defer release()
	newest := dbtest.Query[int](t, admin, `select max(version_id) from goose_db_version`)
	dbtest.Exec(t, admin, `insert into goose_db_version (version_id, is_applied) values (9999, true)`)
	s := start(t, address)
	if a := s.send(t, "GET", "/readyz", ""); a.status != 200 {
		t.Errorf("on a newer schema the server is not ready: %d", a.status)
	}
	s.Stop()
	dbtest.Exec(t, admin, `delete from goose_db_version where version_id >= $1`, newest)
	notServed(address, fmt.Sprintf("needs %d", newest))
	refused(address, "run inlet migrate", "workspace", "list")

	cmd := exec.CommandContext(t.Context(), servertest.Binary, "serve", "--no-migrate", "--help")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "--[no-]migrate") {
		t.Errorf("%v: %s", err, out)
	}
}
