package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// longSleep is how long a statement would take that runs what was sent. No request
// takes that long by itself.
const longSleep = 20 * time.Second

// sqlPayloads are texts that become part of a statement where text is pasted into
// one.
var sqlPayloads = []string{
	`'`, `"`, `\`, `''`, `\'`, `';--`, `' or '1'='1`, `" or ""="`, `1 or 1=1`, `') or ('1'='1' --`, `' union select null,null,null--`,
	`'; drop table leads; --`, `1; delete from contacts`, `'; update workspaces set slug = 'taken' --`, `'; create table planted (x int); --`,
	`'||pg_sleep(20)||'`, `'; select pg_sleep(20); --`, `1 and (select 1 from pg_sleep(20)) is not null`, `(select pg_sleep(20))`,
	`$$; select pg_sleep(20); $$`, `$body$||pg_sleep(20)||$body$`, `E'\047 or 1=1 --`, `U&'\0027'`, `\047`, `%27%20or%201=1`, `/*`, `*/ or 1=1 /*`, `--`,
	`{"a","b"}`, `{{1,2},{3`, `{NULL}`, `[1,2)`, `(,)`, `("a",b)`, `{"$ne":null}`, `null`, `NULL`, `true`, `$1`, `:1`, `?`, `@x`, `::int`,
	`%s`, `%d%n`, `%`, `_`, `%%`, `*`, `NaN`, `Infinity`, `-0`, `1e309`, `99999999999999999999999999`, `0x7fffffff`, `1_000`,
	"ʼ or 1=1", "＇ or 1=1", "\u2019; --", "\u00a0", "\u202e'", "\ufeff'", "'\n--\n", "'\r\n", "\t'", "\x1b[2J", "\x00", "a\x00'--", "\\x00", `\u0000`, "\ud7ff", "💥'",
	`infinity`, `epoch`, `now`, `2026-03-02'; --`, `Europe/Berlin'; --`, `a'@b.com`, `"a' or 1=1 --"@b.com`, `b.com'; --`, `https://b.com/'--`, `../../etc/passwd`,
	`public.workspaces`, `workspaces`, `workspace_id`, `xp_cmdshell`, `copy leads to program 'id'`, `lo_import('/etc/passwd')`, `current_setting('is_superuser')`,
}

// numberPayloads stand where numbers do.
var numberPayloads = []string{
	`9007199254740991`, `9007199254740992`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `1e400`, `-1e400`, `1e-400`, `1.5`, `-1`, `0`, `-0`,
	`1e15`, `123456789012345678901234567890`, `0.1e1`, `"1; select pg_sleep(20)"`, `"1"`, `null`, `[1]`, `{"a":1}`, `true`, `""`,
}

// Whatever stands in whatever place of a request, statements are the ones that were
// written: none fails, none sleeps, none touches what it does not touch anyway.
func TestNothingThatIsSentBecomesPartOfAStatement(t *testing.T) {
	t.Parallel()
	d, address := dbtest.Private(t)
	s := startReleased(t, address)
	defer s.Stop()
	bystander, k := sweepOf(t, s, address, "bystander", "zentrix", "odette"), sweepOf(t, s, address, "sweeping", "quorvia", "ruprecht")
	bystander.livesOn(t, "zentrix", "odette", map[string]any{})
	untouched := bystander.workspace.settled(t, address)
	schema := dbtest.Query[string](t, address, schemaOf)

	swept := slices.DeleteFunc(places(), func(p place) bool {
		return slices.Contains(undeclared, p.name) && (len(p.op.Scopes) > 0 || p.name != "Origin" && p.name != "X-Forwarded-For")
	})
	harmless := k.growth(t, address, func() (n int) {
		for _, p := range swept {
			for _, value := range []any{"some-text", "sometext", "ruprecht@quorvia.com", "quorvia.com", "v-waiting", json.RawMessage("1")} {
				if a, ok := k.with(p, value); ok {
					k.ask(t, a)
					n++
				}
			}
		}
		return n
	})
	began := time.Now()
	touched := k.growth(t, address, func() (n int) {
		var mu sync.Mutex
		work := make(chan place)
		var parallel sync.WaitGroup
		for range 8 {
			parallel.Go(func() {
				for p := range work {
					payloads := sqlPayloads
					if p.kind != "string" && p.in == "body" {
						payloads = numberPayloads
					}
					for _, payload := range payloads {
						var value any = payload
						if p.kind != "string" && p.in == "body" {
							value = json.RawMessage(payload)
						}
						a, ok := k.with(p, value)
						if !ok {
							continue
						}
						sent := time.Now()
						got := k.ask(t, a)
						if got.status >= 500 {
							t.Errorf("%s with %q answers %d %s", p, payload, got.status, got.body)
						}
						if time.Since(sent) >= longSleep {
							t.Errorf("%s with %q sleeps", p, payload)
						}
						mu.Lock()
						n++
						mu.Unlock()
					}
				}
			})
		}
		for _, p := range swept {
			work <- p
		}
		close(work)
		parallel.Wait()
		return n
	})
	t.Logf("%d requests in %v", touched.requests, time.Since(began))
	if touched.requests < 5000 {
		t.Errorf("only %d requests were sent", touched.requests)
	}
	for table, rows := range touched.rows {
		if most := harmless.rows[table]; rows < 0 || rows > 0 && most == 0 || rows > 3*touched.requests {
			t.Errorf("%s has %d rows more after %d requests; %d more after %d harmless ones", table, rows, touched.requests, most, harmless.requests)
		}
	}
	if now := dbtest.Query[string](t, address, schemaOf); now != schema {
		t.Errorf("the schema changed:\n%s", changes(schema, now))
	}
	if after := bystander.workspace.settled(t, address); after != untouched {
		t.Errorf("another workspace changed:\n%s", changes(untouched, after))
	}
	if strings.Contains(s.Log(), `"level":"ERROR"`) {
		t.Errorf("the server reports errors: %s", errorsOf(s.Log()))
	}
	if err := d.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// errorsOf gives the first lines of a log that tell of errors.
func errorsOf(log string) string {
	var found []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"ERROR"`) && len(found) < 5 {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// A growth is how many rows more every table has after some requests.
type growth struct {
	requests int
	rows     map[string]int
}

func (k *sweeper) growth(t *testing.T, address string, requests func() int) growth {
	t.Helper()
	k.workspace.settled(t, address)
	before := rowsOfTables(t, address)
	n := requests()
	k.workspace.settled(t, address)
	g := growth{n, rowsOfTables(t, address)}
	for table := range g.rows {
		g.rows[table] -= before[table]
	}
	return g
}

func rowsOfTables(t *testing.T, address string) map[string]int {
	t.Helper()
	tables := strings.Fields(dbtest.Query[string](t, address, `
		select string_agg(relname, ' ') from pg_class
		where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`))
	for i, table := range tables {
		tables[i] = `select '` + table + `' as name, count(*) as rows from ` + table
	}
	all := map[string]int{}
	raw := dbtest.Query[string](t, address, `select json_object_agg(name, rows) from (`+strings.Join(tables, " union all ")+`) counted`)
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// schemaOf writes down what a statement might have changed beside rows.
const schemaOf = `
	select string_agg(line, E'\n' order by line) from (
		select c.relname || ' ' || c.relkind::text || ' ' || coalesce(string_agg(a.attname || ' ' || a.atttypid::regtype, ', ' order by a.attnum), '') as line
		from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
		where c.relnamespace = 'public'::regnamespace and not c.relispartition and c.relkind <> 'i' group by c.oid, c.relname, c.relkind
		union all select proname || ' ' || md5(prosrc) from pg_proc where pronamespace = 'public'::regnamespace
		union all select 'role ' || rolname from pg_roles where rolname !~ '^(owner|server)_[a-z2-7]{12}$' -- of tests that run meanwhile
		union all select 'trigger ' || tgname from pg_trigger where not tgisinternal
	) lines`

// What passes as text is kept as text.
func TestTextIsKeptAsItWasSent(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), workspace(t)
	var events []string
	want := map[string]string{}
	for i, payload := range sqlPayloads {
		if strings.Contains(payload, "\x00") || strings.Contains(payload, "@") {
			continue // which are refused, the latter as e-mail addresses
		}
		id := fmt.Sprintf("kept-%d", i)
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		want[id] = payload
		events = append(events, fmt.Sprintf(`{"id":%q,"name":"n","visitor":{"id":"v"},"properties":{"text":%s}}`, id, raw))
	}
	if a, _ := w.batch(t, s, events...); a.status != 202 || a.field("refused") != 0.0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	a := s.send(t, "GET", "/api/v1/events?limit=100", "", w.Key("all"))
	var page struct {
		Rows []struct {
			ID         string
			Properties map[string]string
		}
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range page.Rows {
		got[row.ID] = row.Properties["text"]
	}
	if !maps.Equal(got, want) {
		for id := range want {
			if got[id] != want[id] {
				t.Errorf("%q is kept as %q", want[id], got[id])
			}
		}
	}
}
