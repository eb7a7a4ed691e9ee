package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/servertest"
)

// farApart gives the ids of each table a million of their own, so that no two
// records of any kind have the same.
const farApart = `
	do $$ declare s record; begin
		for s in select format('%I.%I', schemaname, sequencename) as name, row_number() over (order by sequencename) as n
			from pg_sequences where schemaname = 'public' loop
			perform setval(s.name::regclass, s.n * 1000000 + 1000);
		end loop;
	end $$`

const workspaceTables = `
	select string_agg(c.relname, ' ' order by c.relname) from pg_class c
	join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
	where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`

// rows gives everything that is recorded of a workspace, one row of JSON a line.
func (w seeded) rows(t testing.TB, address string) string {
	t.Helper()
	tables := strings.Fields(dbtest.Query[string](t, address, workspaceTables))
	if len(tables) < 20 {
		t.Fatalf("only %d tables are of a workspace", len(tables))
	}
	for i, table := range tables {
		tables[i] = `select '` + table + ` ' || to_jsonb(x)::text as row from ` + table + ` x where workspace_id = $1`
	}
	return dbtest.Query[string](t, address, `select coalesce(string_agg(row, E'\n' order by row), '') from (`+strings.Join(tables, " union all ")+`) rows`, w.ID)
}

// settled is rows once no job has anything to do with them any more.
func (w seeded) settled(t testing.TB, address string) string {
	t.Helper()
	w.processed(t, address)
	before := w.rows(t, address)
	for range 50 {
		time.Sleep(1200 * time.Millisecond) // jobs look once a second
		after := w.rows(t, address)
		if after == before {
			return after
		}
		before = after
	}
	t.Fatal("the workspace does not come to rest")
	return ""
}

// leavesOf gives all texts and whole numbers inside of a value.
func leavesOf(value any, into map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		for _, entry := range v {
			leavesOf(entry, into)
		}
	case []any:
		for _, entry := range v {
			leavesOf(entry, into)
		}
	case string:
		into[v] = v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			into[v.String()] = n
		}
	}
}

// leavesOfRows are those of what rows gives.
func leavesOfRows(t testing.TB, rows string, into map[string]any) {
	t.Helper()
	for line := range strings.Lines(rows) {
		_, row, _ := strings.Cut(line, " ")
		decoder := json.NewDecoder(strings.NewReader(row))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		leavesOf(value, into)
	}
}

// livesOn uses every operation a few times, so that a workspace has something of
// every kind, and collects what went to and fro.
func (k *sweeper) livesOn(t testing.TB, org, person string, into map[string]any) {
	t.Helper()
	w := k.workspace
	keep := func(a asking, got answer) {
		t.Helper()
		if got.status >= 400 {
			t.Errorf("%s answers %d %s", a.op.ID, got.status, got.body)
		}
		var value any
		decoder := json.NewDecoder(strings.NewReader(string(got.body)))
		decoder.UseNumber()
		if decoder.Decode(&value) == nil {
			leavesOf(value, into)
		}
		decoder = json.NewDecoder(strings.NewReader(written(a.body)))
		decoder.UseNumber()
		if decoder.Decode(&value) == nil {
			leavesOf(value, into)
		}
		for _, text := range a.inPath {
			into[text] = text
		}
		for _, text := range a.headers {
			into[text] = text
		}
	}
	for i := range api.Operations {
		op := &api.Operations[i]
		a := k.plain(op)
		for _, p := range op.Parameters {
			if p.Name == "Idempotency-Key" {
				a.headers[p.Name] = "idempotency-" + org
			}
			if p.Name == "limit" {
				a.query.Set("limit", "1") // for a cursor
			}
		}
		if op.ID == "createLeadAlias" {
			a.headers["Idempotency-Key"] += "-alias"
		}
		got := k.ask(t, a)
		keep(a, got)
		if cursor, _ := got.field("nextCursor").(string); op.Method == http.MethodGet && cursor != "" {
			into[cursor] = cursor
		}
	}
	byID := func(id string) *api.Operation {
		return &api.Operations[slices.IndexFunc(api.Operations, func(op api.Operation) bool { return op.ID == id })]
	}
	events := []any{
		map[string]any{"id": "event-1-" + org, "name": org + "_event", "contact": map[string]any{"email": person + "@" + org + ".com"}, "properties": map[string]any{org + "_plan": org + " plan"}},
		map[string]any{"id": "event-2-" + org, "name": org + "_event", "visitor": map[string]any{"id": "v-waiting-" + org}},
		map[string]any{"id": "event-3-" + org, "name": org + "_seen", "company": map[string]any{"domain": "nobody-" + org + ".com"}},
	}
	batch := asking{op: byID("createEventBatch"), body: map[string]any{"events": events}}
	keep(batch, k.ask(t, batch))
	lead := k.plain(byID("createLead"))
	lead.body = map[string]any{"email": "lead." + person + "@" + org + ".com", "name": person + " " + org, "company_name": org + " Trading", "campaign": org + " fair"}
	keep(lead, k.ask(t, lead))
	token := jwt("HS256", "secret-of-"+org+"-and-nobody-else", w.claims("signed."+person+"@"+org+".com", nil))
	identify := k.plain(byID("identifyVisitor"))
	identify.body.(map[string]any)["token"] = token
	identify.body.(map[string]any)["visitor_id"] = "v-signed-" + org
	keep(identify, k.ask(t, identify))
	into[token] = token
	for i := range api.Operations {
		if api.Operations[i].Method == http.MethodGet {
			list := k.plain(&api.Operations[i])
			keep(list, k.ask(t, list))
		}
	}
	into[k.credential] = k.credential
	link, err := servertest.Command(t, k.address, "", "link", "create", w.Sites["www"].SiteKey, "--contact", person+"@"+org+".com", "--page", "https://www."+org+".com/")
	if err != nil {
		t.Fatal(err)
	}
	emailed := link[strings.LastIndex(link, "/")+1:]
	into[strings.TrimSpace(emailed)] = strings.TrimSpace(emailed)
}

var (
	instants = regexp.MustCompile(`^\d{4}-\d\d-\d\d`)
	opaque   = regexp.MustCompile(`^[a-z]+_[A-Za-z0-9_-]{12,}$`)
)

// twin gives an identifier that exists nowhere and looks the same: what the answer
// depends on must be whether it is there, not how it is written. Equal parts have
// equal twins.
func twin(value any) any {
	text, ok := value.(string)
	if !ok {
		return value.(int64) + 500_000 // of the million, which no test uses up
	}
	if known, ok := twins.Load(text); ok {
		return known
	}
	known, _ := twins.LoadOrStore(text, twinOf(text))
	return known
}

var twins sync.Map

func twinOf(text string) string {
	if credential, ok := auth.ParseToken(text); ok {
		return auth.NewToken(credential.Kind)
	}
	if parts := strings.Split(text, "."); len(parts) == 3 && strings.HasPrefix(text, "eyJ") {
		return parts[0] + "." + reversed(parts[1]) + "." + reversed(parts[2])
	}
	if opaque.MatchString(text) {
		prefix, rest, _ := strings.Cut(text, "_")
		return prefix + "_" + reversed(rest)
	}
	kept := ""
	for _, start := range []string{"https://", "www.", "linkedin.com/in/"} {
		if strings.HasPrefix(text, start) {
			kept, text = kept+start, strings.TrimPrefix(text, start)
		}
	}
	tail := ""
	if dot := strings.LastIndexByte(text, '.'); dot >= 0 {
		text, tail = text[:dot], text[dot:]
	}
	return kept + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		case r >= '0' && r <= '9':
			return '0' + (r-'0'+5)%10
		}
		return r
	}, text) + tail
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// ownOf are values that every request has of its own, or that are the workspace's
// own news.
var ownOf = regexp.MustCompile(`uq\d{7}|evt_[0-9a-z]{26}|req_[a-z2-7]{26}|[1-9]\d{6,}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// comparable writes an answer without what was sent and without what is new in it.
func (a answer) comparable(sent any) string {
	var all strings.Builder
	fmt.Fprintln(&all, a.status)
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if !slices.Contains([]string{"Date", "X-Request-Id", "Content-Length"}, name) {
			fmt.Fprintln(&all, name, a.header[name])
		}
	}
	all.Write(a.body)
	text := all.String()
	raw, _ := json.Marshal(sent)
	for _, form := range []string{strings.Trim(string(raw), `"`), fmt.Sprint(sent)} {
		text = strings.ReplaceAll(text, form, "«sent»")
		if len(form) > 64 { // names of fields are told in short
			text = strings.ReplaceAll(text, form[:64]+"…", "«sent»")
		}
	}
	return ownOf.ReplaceAllString(text, "#")
}

// Everything that one workspace has or was told, in every place of every operation
// of another: the answer is what something that exists nowhere gets, and nothing of
// the one is changed or told.
func TestAnIdentifierOfAnotherWorkspaceIsOneThatIsNowhere(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	dbtest.Exec(t, address, farApart)
	s := startReleased(t, address)
	defer s.Stop()
	theirs, mine := sweepOf(t, s, address, "zentrix", "zentrix", "odette"), sweepOf(t, s, address, "quorvia", "quorvia", "ruprecht")
	secrets, common := map[string]any{}, map[string]any{}
	theirs.livesOn(t, "zentrix", "odette", secrets)
	mine.livesOn(t, "quorvia", "ruprecht", common)
	before := theirs.workspace.settled(t, address)
	leavesOfRows(t, before, secrets)
	leavesOfRows(t, mine.workspace.settled(t, address), common)
	for key, value := range secrets {
		text, isText := value.(string)
		_, shared := common[key]
		number, _ := value.(int64)
		noText := isText && (len(text) < 4 || instants.MatchString(text) || strings.HasPrefix(text, `\x`) || ownOf.FindString(text) == text && !strings.HasPrefix(text, "evt_"))
		if shared || noText || !isText && number < 1_000_000 {
			delete(secrets, key)
		}
	}
	w := theirs.workspace
	for what, value := range map[string]any{
		"company": w.Companies["company"], "contact": w.Contacts["contact"], "motion": w.Motions["motion"], "domain": "zentrix.com", "other domain": "zentrix.de",
		"e-mail": "odette@zentrix.com", "profile": "https://www.linkedin.com/in/odette-zentrix", "visitor": "v-odette-zentrix", "event": "event-1-zentrix",
		"event name": "zentrix_event", "form": w.Forms["demo"].PublicKey, "meeting form": w.MeetingForms["call"].PublicKey, "site": w.Sites["www"].SiteKey,
		"idempotency key": "idempotency-zentrix", "credential": theirs.credential, "secret": "secret-of-zentrix-and-nobody-else", "slug": "zentrix",
	} {
		if _, ok := secrets[fmt.Sprint(value)]; !ok {
			t.Errorf("the %s %v is not among what is swept", what, value)
		}
	}
	for what, form := range map[string]string{"event ids": `^evt_`, "tokens": `^eyJ`, "cursors": `^[A-Za-z0-9_-]{40,}$`, "links": `^[A-Z2-7]{26}$`} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(secrets)), func(v any) bool {
			return regexp.MustCompile(form).MatchString(fmt.Sprint(v))
		}) {
			t.Errorf("no %s are among what is swept", what)
		}
	}
	public := []string{w.Forms["demo"].PublicKey, w.MeetingForms["call"].PublicKey, w.Sites["www"].SiteKey}

	swept := fewOfAKind(secrets)

	// What reads goes first, alone: what the sweep writes would be seen in it.
	all := slices.DeleteFunc(places(), func(p place) bool {
		return slices.Contains(undeclared, p.name) && (p.name != "Origin" || len(p.op.Scopes) > 0)
	})
	reading, _ := slices.BinarySearchFunc(all, "H", func(p place, method string) int { return cmp.Compare(p.op.Method, method) })
	warm := func() {
		for i := range api.Operations {
			mine.ask(t, mine.plain(&api.Operations[i]))
		}
	}
	sent := 0
	var mu sync.Mutex
	try := func(p place, identifier any) {
		value, isText := identifier.(string)
		if isText != (p.kind == "string") && p.in == "body" {
			return
		}
		if len(p.op.Scopes) == 0 && slices.Contains(public, value) && (p.name == "publicKey" || p.String() == "identifyVisitor body site") {
			return // which anybody may use, whoever they are
		}
		asked, ok := mine.with(p, identifier)
		nowhere, ok2 := mine.with(p, twin(identifier))
		if !ok || !ok2 {
			return
		}
		got, want := mine.ask(t, asked), mine.ask(t, nowhere)
		mu.Lock()
		defer mu.Unlock()
		sent += 2
		if g, w := got.comparable(identifier), want.comparable(twin(identifier)); g != w {
			t.Errorf("%s with %v answers\n%s\nand with %v\n%s", p, identifier, g, twin(identifier), w)
		}
		told := strings.ReplaceAll(strings.ReplaceAll(string(got.body), value, ""), fmt.Sprint(identifier), "")
		for text := range secrets {
			if len(text) > 5 && !strings.Contains(fmt.Sprint(identifier), text) && strings.Contains(told, text) {
				t.Errorf("%s with %v tells %s: %s", p, identifier, text, got.body)
			}
		}
	}
	warm()
	for _, some := range [][]place{all[:reading], all[reading:]} {
		work := make(chan any)
		var parallel sync.WaitGroup
		for range 8 {
			parallel.Go(func() {
				for identifier := range work { // in the same places in turn: what came of one may be seen in the next
					for _, p := range some {
						try(p, identifier)
					}
				}
			})
		}
		for _, identifier := range swept {
			work <- identifier
		}
		close(work)
		parallel.Wait()
	}
	t.Logf("%d identifiers in %d places: %d requests", len(swept), len(all), sent)
	if sent < 5000 {
		t.Errorf("only %d requests were sent", sent)
	}
	if after := w.settled(t, address); after != before {
		t.Errorf("something of the other workspace changed:\n%s", changes(before, after))
	}
}

// fewOfAKind leaves two of those that only a number or something random tells
// apart: ids of one table, event ids and the like.
func fewOfAKind(identifiers map[string]any) (few []any) {
	kinds := map[string]int{}
	for _, text := range slices.Sorted(maps.Keys(identifiers)) {
		kind := text
		switch n, isNumber := identifiers[text].(int64); {
		case isNumber:
			kind = fmt.Sprint(n / 1_000_000)
			if n >= 1_000_000_000 { // a time or a part of a hash
				kind = "large"
			}
		case random.MatchString(text):
			kind = fmt.Sprint(text[:4], len(text))
		}
		if kinds[kind]++; kinds[kind] <= 2 {
			few = append(few, identifiers[text])
		}
	}
	return few
}

var random = regexp.MustCompile(`^(evt_|amp_|form_|meet_|site_|[0-9a-f]{8}-)`)

// changes lists the lines that only one of two texts has.
func changes(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var all strings.Builder
	for _, line := range was {
		if !slices.Contains(is, line) {
			fmt.Fprintln(&all, "-", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			fmt.Fprintln(&all, "+", line)
		}
	}
	return all.String()
}
