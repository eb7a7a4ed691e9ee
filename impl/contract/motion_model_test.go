package contract

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// The rules of motions as a model of one workspace, which is to be read as their
// specification; then bursts of requests, which follow from the seed alone; then
// the test, which holds two processes to the model while they die and days pass.

// motionSettings are what an admin sets, at one moment.
type motionSettings struct {
	agents   bool
	motions  map[string]motionSetting
	segments map[string]map[string]bool // segment → its companies
}

type motionSetting struct {
	status        string
	api, lead     bool
	event, signal bool
	reentry, cap  int // days, -1 for never; zero for no cap
	in, out       string
	notes, waits  bool // a note, a wait of a day and another note; without either there are no steps
}

const (
	modelCompanies = 14 // of which the last has no contact
	signalDays     = 7
	signalEvents   = 2
)

func newMotionSettings() motionSettings {
	m := motionSettings{agents: true, segments: map[string]map[string]bool{"in": {}, "out": {}}, motions: map[string]motionSetting{}}
	for ref, is := range map[string]motionSetting{
		"never":   {api: true, reentry: -1, notes: true},
		"always":  {api: true, reentry: 0},
		"days":    {api: true, reentry: 3, notes: true},
		"long":    {api: true, reentry: 0, notes: true, waits: true},
		"once":    {api: true, reentry: -1, notes: true, waits: true},
		"capped":  {api: true, reentry: 0, cap: 3, waits: true, notes: true},
		"chosen":  {api: true, reentry: 0, in: "in", out: "out", waits: true},
		"silent":  {reentry: 0},
		"trial":   {event: true, api: true, reentry: 0, notes: true, waits: true},
		"signal":  {signal: true, reentry: 0, notes: true},
		"lead":    {lead: true, reentry: 1, notes: true},
		"closing": {api: true, event: true, lead: true, signal: true, reentry: 0},
	} {
		is.status = "active"
		m.motions[ref] = is
	}
	for i := range modelCompanies {
		m.segments["in"][fmt.Sprint("c", i)] = i%3 != 0
		m.segments["out"][fmt.Sprint("c", i)] = i%5 == 0
	}
	return m
}

func (m motionSettings) copied() motionSettings {
	c := motionSettings{agents: m.agents, motions: maps.Clone(m.motions), segments: map[string]map[string]bool{}}
	for ref, members := range m.segments {
		c.segments[ref] = maps.Clone(members)
	}
	return c
}

// file is the seed file of the settings.
func (m motionSettings) file() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
workspaces:
  - slug: SLUG
    agents_enabled: %v
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 100000}
      - {ref: other, owner: ada, scopes: [motions.start], requests_per_minute: 100000}
    companies:
`, m.agents)
	for i := range modelCompanies {
		fmt.Fprintf(&b, "      - {ref: c%d, name: C%d, domain: c%d.com}\n", i, i, i)
	}
	b.WriteString("    contacts:\n")
	for i := range modelCompanies - 1 {
		fmt.Fprintf(&b, "      - {ref: p%d, email: p@c%d.com, company: c%d}\n      - {ref: q%d, email: q@c%d.com, company: c%d}\n", i, i, i, i, i, i)
	}
	b.WriteString("    segments:\n")
	for _, ref := range slices.Sorted(maps.Keys(m.segments)) {
		var members []string
		for _, company := range slices.Sorted(maps.Keys(m.segments[ref])) {
			if m.segments[ref][company] {
				members = append(members, company)
			}
		}
		fmt.Fprintf(&b, "      - {ref: %s, name: %s, companies: [%s]}\n", ref, ref, strings.Join(members, ", "))
	}
	fmt.Fprintf(&b, "    signals:\n      - {ref: hot, name: Hot, event: clicked, min_count: %d, within_days: %d, score: 1}\n    motions:\n", signalEvents, signalDays)
	for _, ref := range slices.Sorted(maps.Keys(m.motions)) {
		is := m.motions[ref]
		entry := fmt.Sprintf("api_call: %v, lead_created: %v", is.api, is.lead)
		switch {
		case is.reentry == 0:
			entry += ", reentry: always"
		case is.reentry > 0:
			entry += fmt.Sprintf(", reentry: {after_days: %d}", is.reentry)
		}
		if is.event {
			entry += ", events: [{name: trial_started, where: [{property: plan, equals: pro}]}]"
		}
		if is.signal {
			entry += ", signals: [hot]"
		}
		if is.cap > 0 {
			entry += fmt.Sprintf(", daily_cap: %d", is.cap)
		}
		if is.in != "" {
			entry += fmt.Sprintf(", in_segments: [%s], not_in_segments: [%s]", is.in, is.out)
		}
		var steps []string
		if is.notes {
			steps = append(steps, `{kind: add_note, text: "first"}`)
		}
		if is.waits {
			steps = append(steps, `{kind: wait, days: 1}`, `{kind: add_note, text: "second"}`)
		}
		fmt.Fprintf(&b, "      - {ref: %s, name: %s, status: %s, entry: {%s}, steps: [%s]}\n", ref, ref, is.status, entry, strings.Join(steps, ", "))
	}
	return b.String()
}

// A modelStart is a request to start a motion; what is not of the workspace has
// an id of its own.
type modelStart struct {
	motion, company, contacts string // contacts: none, one, both, another company's, nobody's
	apiKey, key               string
	fresh                     bool // nobody sends the key beside it
}

func (s modelStart) owner() string { return s.apiKey + "/" + s.key }

// A modelEntry is what a key was used for, and what it came to.
type modelEntry struct {
	motion, company string
	decision        string // once it is known: the answer
}

// answers gives what a start may be answered: queued for 202, or for 200 where
// the key was used.
func (m *motionModel) answers(set motionSettings, s modelStart) string {
	is, known := set.motions[s.motion]
	earlier, used := m.keys[s.owner()]
	switch {
	case !known || is.status == "archived":
		return "motion_not_found"
	case used && (earlier.motion != s.motion || earlier.company != s.company):
		return "idempotency_key_reused"
	case used:
		return "queued"
	case m.Companies[s.company] == 0:
		return "company_not_found"
	case s.contacts == "another company's" || s.contacts == "nobody's":
		return "invalid_request"
	case !is.api:
		return "api_trigger_missing"
	case !set.agents:
		return "engine_off"
	}
	return "queued"
}

// A modelEnrollment is a company's way through a motion, as far as it matters to
// those that enter after it.
type modelEnrollment struct {
	ID      int64
	Motion  string
	Company string
	Status  string
	Waiting bool // for hours yet
	Entered time.Time
}

// reasons gives what the decision on an entry may be. Whether an enrollment that
// is not waiting has ended when its company enters again, nobody knows.
func (m *motionModel) reasons(set motionSettings, motion, company string, at time.Time) (possible []string) {
	is := set.motions[motion]
	if !set.agents {
		return []string{"agents_off"}
	}
	if is.status != "active" {
		return []string{"motion_paused"}
	}
	before, today := false, 0
	for _, n := range m.enrollments {
		if n.Motion != motion {
			continue
		}
		if n.Entered.UTC().Truncate(24 * time.Hour).Equal(at.UTC().Truncate(24 * time.Hour)) {
			today++
		}
		if n.Company != company {
			continue
		}
		if n.Status == "active" {
			possible = append(possible, "already_enrolled")
			if n.Waiting {
				return []string{"already_enrolled"}
			}
		}
		before = before || is.reentry < 0 || at.Sub(n.Entered) < time.Duration(is.reentry)*24*time.Hour
	}
	switch {
	case is.reentry != 0 && before:
		return append(possible, "reentry_not_allowed")
	case is.in != "" && (!set.segments[is.in][company] || set.segments[is.out][company]):
		return append(possible, "conditions_not_met")
	case company == fmt.Sprint("c", modelCompanies-1):
		return append(possible, "no_contacts")
	case is.cap > 0 && today >= is.cap:
		return append(possible, "daily_cap_reached")
	}
	return append(possible, "entered")
}

// A motionModel is the workspace, and the two processes that serve it.
type motionModel struct {
	*testing.T
	seeded
	address   string
	seed      uint64
	random    *rand.Rand
	processes []server
	client    *http.Client
	round     int

	now         motionSettings
	keys        map[string]*modelEntry
	enrollments []*modelEnrollment
	clicks      map[string][]int // company → the days of its clicks
	day         int              // that have passed
	lastEntry   int64            // of the rounds before
	asked       int
	ids         int
}

func (m *motionModel) disagree(format string, args ...any) {
	m.Helper()
	m.Errorf("INLET_MODEL_SEED=%d, round %d: %s", m.seed, m.round, fmt.Sprintf(format, args...))
}

func (m *motionModel) chance(percent int) bool { return m.random.IntN(100) < percent }

func (m *motionModel) command(args ...string) {
	m.Helper()
	if out, err := servertest.Command(m, m.address, "", args...); err != nil {
		m.Fatalf("inlet %s: %s %v", strings.Join(args, " "), out, err)
	}
}

// ask sends a request until some process answers it.
func (m *motionModel) ask(first int, path, body, key, idempotencyKey string) (a answer, tries int) {
	for tries = 1; tries <= 40; tries++ {
		r, err := http.NewRequestWithContext(withTest(m.T), http.MethodPost, m.processes[(first+tries)%2].Base+path, strings.NewReader(body))
		if err != nil {
			break
		}
		name, value, _ := strings.Cut(key, ": ")
		r.Header.Set(name, value)
		r.Header.Set("Content-Type", "application/json")
		if idempotencyKey != "" {
			r.Header.Set("Idempotency-Key", idempotencyKey)
		}
		response, err := m.client.Do(r)
		if err == nil {
			raw, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && response.StatusCode < 500 {
				return answer{response.StatusCode, response.Header, raw}, tries
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return answer{}, tries
}

// A tried start is one with its answer.
type tried struct {
	modelStart
	code  string
	again bool // it was sent more than once
}

func (m *motionModel) send(first int, s modelStart) (got tried, a answer) {
	motion, company := m.Motions[s.motion], m.Companies[s.company]
	if motion == 0 {
		motion = 1 << 40
	}
	if company == 0 {
		company = 1 << 40
	}
	number := strings.TrimPrefix(s.company, "c")
	contacts := ""
	switch s.contacts {
	case "one":
		contacts = fmt.Sprintf(`,"contactIds":[%d]`, m.Contacts["q"+number])
	case "both":
		contacts = fmt.Sprintf(`,"contactIds":[%d,%d]`, m.Contacts["q"+number], m.Contacts["p"+number])
	case "another company's":
		other := "p0"
		if number == "0" {
			other = "p1"
		}
		contacts = fmt.Sprintf(`,"contactIds":[%d]`, m.Contacts[other])
	case "nobody's":
		contacts = `,"contactIds":[9007199254740991]`
	}
	path := fmt.Sprintf("/api/v1/motions/%d/start", motion)
	a, tries := m.ask(first, path, fmt.Sprintf(`{"companyId":%d%s}`, company, contacts), m.Key(s.apiKey), s.key)
	code, _ := a.refusal()
	switch {
	case a.status == 202 && a.field("status") == "queued", a.status == 200 && a.field("status") == "decided":
		code = "queued"
	case code == "":
		code = fmt.Sprint(a.status)
	}
	if a.status == 200 && s.fresh && tries == 1 {
		m.disagree("%+v was never sent before and is decided: %s", s, a.body)
	}
	return tried{s, code, tries > 1}, a
}

// aStart makes a start up.
func (m *motionModel) aStart() modelStart {
	m.ids++
	s := modelStart{
		motion: pick(m.random, slices.Sorted(maps.Keys(m.now.motions))), company: fmt.Sprint("c", m.random.IntN(modelCompanies)),
		contacts: pick(m.random, []string{"none", "none", "one", "both"}), apiKey: pick(m.random, []string{"all", "other"}),
		key: fmt.Sprint("k", m.ids), fresh: true,
	}
	if s.company == fmt.Sprint("c", modelCompanies-1) {
		s.contacts = "none"
	}
	used := slices.Sorted(maps.Keys(m.keys))
	switch p := m.random.IntN(100); {
	case p < 4:
		s.motion = "unknown"
	case p < 8:
		s.company, s.contacts = "unknown", "none"
	case p < 12:
		s.contacts = pick(m.random, []string{"another company's", "nobody's"})
	case p < 30 && len(used) > 0: // a repeat, or a key for something else
		owner := pick(m.random, used)
		s.apiKey, s.key, _ = strings.Cut(owner, "/")
		s.fresh = false
		of := m.keys[owner]
		switch what := m.random.IntN(100); {
		case what < 20:
			s.company, s.contacts = "unknown", "none"
		case what < 35:
			s.motion, s.company, s.contacts = of.motion, of.company, "nobody's"
		case what < 80:
			s.motion, s.company, s.contacts = of.motion, of.company, "none"
		}
	case p < 34 && len(used) > 0: // the key of the other API key is another one
		_, s.key, _ = strings.Cut(pick(m.random, used), "/")
		s.fresh = false
	}
	return s
}

// burst sends starts, events and leads at once, with one change of the settings
// before or beside them, and holds what comes of them to the model.
func (m *motionModel) burst(size int) {
	m.round++
	sets := []motionSettings{m.now}
	beside := m.change(&sets)
	dies := -1
	if m.chance(35) {
		dies = m.random.IntN(2)
	}

	var starts []modelStart
	joint := map[int]bool{}
	events, leads, clicks := map[string]int{}, map[string]int{}, map[string]int{}
	var parallel sync.WaitGroup
	var mu sync.Mutex
	var got []tried
	var others []func()
	for range size {
		switch p := m.random.IntN(100); {
		case p < 10:
			company, plan := fmt.Sprint("c", m.random.IntN(modelCompanies)), pick(m.random, []string{"pro", "free"})
			if plan == "pro" {
				events[company]++
			}
			others = append(others, m.other("/api/v1/events", fmt.Sprintf(`{"id":"%%s","name":"trial_started","company":{"id":%d},"properties":{"plan":%q}}`, m.Companies[company], plan)))
		case p < 20:
			company := fmt.Sprint("c", m.random.IntN(modelCompanies/2))
			clicks[company]++
			others = append(others, m.other("/api/v1/events", fmt.Sprintf(`{"id":"%%s","name":"clicked","company":{"id":%d}}`, m.Companies[company])))
		case p < 28:
			company := fmt.Sprint("c", m.random.IntN(modelCompanies-1))
			leads[company]++
			others = append(others, m.other("/api/v1/leads", fmt.Sprintf(`{"email":"p@%s.com"}`, company)))
		case p < 36: // one key from several clients, for one thing or for several
			s := m.aStart()
			s.fresh = false
			for range 3 {
				if m.chance(30) {
					s.company = fmt.Sprint("c", m.random.IntN(modelCompanies-1))
					s.contacts = "none"
				}
				joint[len(starts)] = true
				starts = append(starts, s)
			}
		default:
			s := m.aStart()
			starts = append(starts, s)
		}
	}
	for i, s := range starts { // those that chance made joint
		for k, other := range starts {
			if i != k && s.owner() == other.owner() {
				starts[i].fresh, joint[i] = false, true
			}
		}
	}
	for i, s := range starts {
		parallel.Go(func() {
			one, _ := m.send(i, s)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, one)
		})
	}
	for _, send := range others {
		parallel.Go(send)
	}
	if beside != nil {
		beside()
	}
	if dies >= 0 {
		if m.chance(50) {
			m.processes[dies].Kill()
		} else if err := m.processes[dies].Stop(); err != nil {
			m.disagree("a process ends with %v:\n%s", err, m.processes[dies].Log())
		}
	}
	parallel.Wait()
	if dies >= 0 {
		m.processes[dies] = start(m, m.address)
	}

	m.judgeStarts(sets, got)
	m.settle()
	if !m.Failed() {
		m.judgeEntries(sets, events, leads, clicks)
	}
	if !m.Failed() {
		m.judgeState()
	}
}

// other makes a request that is no start, to be sent with an id of its own.
func (m *motionModel) other(path, body string) func() {
	m.ids++
	id, first := fmt.Sprint("o", m.ids), m.ids
	if strings.Contains(body, "%s") {
		body = fmt.Sprintf(body, id)
	}
	return func() {
		a, tries := m.ask(first, path, body, m.Key("all"), id)
		if a.status/100 != 2 && (tries == 1 || a.status != 409) {
			m.disagree("%s %s answers %d %s", path, body, a.status, a.body)
		}
	}
}

// change changes the settings: sets are those that may hold meanwhile.
func (m *motionModel) change(sets *[]motionSettings) (beside func()) {
	next := m.now.copied()
	ref := pick(m.random, slices.Sorted(maps.Keys(next.motions)))
	is := next.motions[ref]
	set := func(args ...string) func() {
		return func() { m.command(append(args, "--workspace", m.Slug)...) }
	}
	var do func()
	may := true
	switch p := m.random.IntN(100); {
	case m.round == 5:
		ref, may = "closing", false
		is = next.motions[ref]
		is.status = "archived"
		next.motions[ref] = is
		do = set("motion", "archive", fmt.Sprint(m.Motions[ref]))
	case m.round == 3 || m.round == 7:
		may = false
		do = m.nextDay
	case !next.agents || p < 12:
		next.agents = !next.agents
		do = func() {
			m.command("workspace", "set", m.Slug, fmt.Sprintf("--agents=%v", map[bool]string{true: "on", false: "off"}[next.agents]))
		}
	case p < 40 && is.status != "archived":
		is.status = map[string]string{"active": "paused", "paused": "active"}[is.status]
		next.motions[ref] = is
		do = set("motion", map[string]string{"active": "activate", "paused": "pause"}[is.status], fmt.Sprint(m.Motions[ref]))
	case p < 70:
		for _, members := range next.segments {
			for company := range members {
				members[company] = members[company] != m.chance(30)
			}
		}
		capped := next.motions["capped"]
		capped.cap = 2 + m.random.IntN(4)
		next.motions["capped"] = capped
		silent := next.motions["silent"]
		silent.api = !silent.api
		next.motions["silent"] = silent
		may = false
		do = func() { seedOn(m, m.address, m.Slug, next.file()) }
	case p < 95:
		may = false
		do = m.nextDay
	default:
		return nil
	}
	m.now = next
	if may && m.chance(40) {
		*sets = append(*sets, next)
		return do
	}
	do()
	*sets = []motionSettings{next}
	return nil
}

// nextDay lets a day pass, for which both processes die.
func (m *motionModel) nextDay() {
	m.processes[0].Kill()
	if err := m.processes[1].Stop(); err != nil {
		m.disagree("a process ends with %v", err)
	}
	m.day++
	dbtest.Exec(m, m.address, fmt.Sprintf(`alter database %s set inlet.clock_offset = '%d days'`,
		dbtest.Query[string](m, m.address, `select current_database()`), m.day))
	for i := range m.processes {
		m.processes[i] = start(m, m.address)
	}
	m.refresh()
}

// refresh looks which enrollments have ended meanwhile.
func (m *motionModel) refresh() {
	raw := dbtest.Query[string](m, m.address, `
		select coalesce(json_agg(json_build_object('ID', n.enrollment_id, 'Motion', m.name, 'Company', lower(c.name), 'Status', n.status,
			'Waiting', coalesce(n.due_at > inlet_now() + interval '2 minutes', false), 'Entered', n.entered_at) order by n.enrollment_id), '[]')
		from enrollments n join motions m using (workspace_id, motion_id) join companies c on c.workspace_id = n.workspace_id and c.company_id = n.company_id
		where n.workspace_id = $1`, m.ID)
	var all []*modelEnrollment
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		m.Fatal(err)
	}
	m.enrollments = all
}

// judgeStarts holds the answers to the model; those with one key at once may be
// answered in any order.
func (m *motionModel) judgeStarts(sets []motionSettings, got []tried) {
	before := maps.Clone(m.keys)
	for _, one := range got {
		if one.code == "queued" && before[one.owner()] == nil {
			if first := m.keys[one.owner()]; first != nil && (first.motion != one.motion || first.company != one.company) {
				m.disagree("%+v and %+v are both queued", one, *first)
			}
			m.keys[one.owner()] = &modelEntry{motion: one.motion, company: one.company}
		}
	}
	after := m.keys
	for _, one := range got {
		m.asked++
		var possible []string
		for _, set := range sets {
			m.keys = before
			possible = append(possible, m.answers(set, one.modelStart))
			if !one.fresh {
				m.keys = after
				possible = append(possible, m.answers(set, one.modelStart))
			}
		}
		m.keys = after
		if !slices.Contains(possible, one.code) {
			m.disagree("%+v is %s, want one of %v", one.modelStart, one.code, possible)
		}
	}
}

// settle waits until everything is decided and all that is due is done.
func (m *motionModel) settle() {
	m.Helper()
	m.processed(m, m.address)
	eventually(m, "what is queued or overdue", 0, func() int {
		return dbtest.Query[int](m, m.address, `
			select (select count(*) from motion_entries where workspace_id = $1 and decided_at is null)
				+ (select count(*) from enrollments n join motions m using (workspace_id, motion_id) join workspaces w using (workspace_id)
					where workspace_id = $1 and n.status = 'active' and n.due_at < inlet_now() and m.status = 'active' and w.agents_enabled)`, m.ID)
	})
}

// A decidedEntry is an entry as it is kept.
type decidedEntry struct {
	ID                       int64
	Motion, Company, Trigger string
	Owner                    string
	Reason                   string
	At                       time.Time
	Enrollment               *int64
}

// judgeEntries decides again, in the same order, and compares.
func (m *motionModel) judgeEntries(sets []motionSettings, events, leads, clicks map[string]int) {
	raw := dbtest.Query[string](m, m.address, `
		select coalesce(json_agg(json_build_object('ID', e.entry_id, 'Motion', m.name, 'Company', lower(c.name), 'Trigger', e.trigger,
			'Owner', k.name || '/' || e.idempotency_key, 'Reason', e.reason_code, 'At', e.decided_at, 'Enrollment', e.enrollment_id)
			order by e.xmin::text::bigint, e.entry_id), '[]')
		from motion_entries e join motions m using (workspace_id, motion_id) join companies c on c.workspace_id = e.workspace_id and c.company_id = e.company_id
		left join api_keys k on k.key_id = e.key_id
		where e.workspace_id = $1 and e.entry_id > $2`, m.ID, m.lastEntry)
	var all []decidedEntry
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		m.Fatal(err)
	}
	queued := map[string]int{}
	for _, e := range all {
		m.lastEntry = max(m.lastEntry, e.ID)
		if e.Trigger == "api" {
			if of := m.keys[e.Owner]; of == nil || of.motion != e.Motion || of.company != e.Company || of.decision != "" {
				m.disagree("%+v is queued, the key was used for %+v", e, of)
			} else {
				of.decision = e.Reason
			}
		} else {
			queued[e.Trigger+" "+e.Motion+" "+e.Company]++
		}
		var possible []string
		for _, set := range sets {
			possible = append(possible, m.reasons(set, e.Motion, e.Company, e.At)...)
		}
		if !slices.Contains(possible, e.Reason) || (e.Reason == "entered") != (e.Enrollment != nil) {
			m.disagree("%+v is %s, want one of %v", e, e.Reason, possible)
			return
		}
		if e.Reason == "entered" {
			for _, n := range m.enrollments {
				if n.Motion == e.Motion && n.Company == e.Company {
					n.Status = "ended" // or nobody could enter
				}
			}
			m.enrollments = append(m.enrollments, &modelEnrollment{
				ID: *e.Enrollment, Motion: e.Motion, Company: e.Company, Status: "active", Waiting: m.now.motions[e.Motion].waits && !m.now.motions[e.Motion].notes,
				Entered: e.At,
			})
		}
	}
	for owner, of := range m.keys {
		if of.decision == "" {
			m.disagree("%s was answered and is not queued: %+v", owner, of)
		}
	}
	for ref, is := range m.now.motions {
		for i := range modelCompanies {
			company := fmt.Sprint("c", i)
			wanted, got := 0, 0
			for trigger, n := range map[string]int{"event": events[company], "lead": leads[company], "signal": m.crosses(company, clicks[company])} {
				if is.status == "archived" || !map[string]bool{"event": is.event, "lead": is.lead, "signal": is.signal}[trigger] {
					n = 0
				}
				entered := queued[trigger+" "+ref+" "+company]
				if entered > n {
					m.disagree("by %d of %s %s entered %s %d times", n, trigger, company, ref, entered)
				}
				wanted, got = wanted+n, got+entered
			}
			// One that is queued already is enough for others, whatever triggered it.
			if wanted > 0 && got == 0 {
				m.disagree("%d events, leads or signals did not enter %s into %s", wanted, company, ref)
			}
		}
	}
	for company, n := range clicks {
		for range n {
			m.clicks[company] = append(m.clicks[company], m.day)
		}
	}
}

// crosses tells how often so many clicks make the signal begin to hold.
func (m *motionModel) crosses(company string, more int) int {
	holds := func(days []int) bool {
		return len(days) >= signalEvents && m.day-days[len(days)-signalEvents] < signalDays
	}
	all := m.clicks[company]
	if holds(all) {
		return 0
	}
	for range more {
		if all = append(slices.Clone(all), m.day); holds(all) {
			return 1
		}
	}
	return 0
}

// judgeState holds what there is after a burst to the model: every decision is
// told to whoever repeats the start, and every step was taken once.
func (m *motionModel) judgeState() {
	entered := 0
	for _, owner := range slices.Sorted(maps.Keys(m.keys)) {
		of := m.keys[owner]
		if of.decision == "entered" {
			entered++
		}
		if m.now.motions[of.motion].status == "archived" || !m.chance(25) {
			continue
		}
		apiKey, key, _ := strings.Cut(owner, "/")
		_, a := m.send(m.random.IntN(2), modelStart{motion: of.motion, company: of.company, contacts: "none", apiKey: apiKey, key: key})
		outcome := map[bool]string{true: "entered", false: "not_entered"}[of.decision == "entered"]
		if a.status != 200 || a.field("reasonCode") != of.decision || a.field("outcome") != outcome || (a.field("enrollmentId") != nil) != (outcome == "entered") {
			m.disagree("the repeat of %s is %d %s, want %s", owner, a.status, a.body, of.decision)
		}
	}
	known := len(m.enrollments)
	m.refresh()
	if len(m.enrollments) != known {
		m.disagree("there are %d enrollments, want %d", len(m.enrollments), known)
	}
	if wrong := dbtest.Query[string](m, m.address, `
		select coalesce(string_agg(concat_ws(' ', n.enrollment_id, n.status, n.step, n.steps, '->', done.notes), '; '), '')
		from enrollments n,
			lateral (select coalesce(string_agg(text, ',' order by note_id), '') as notes from notes t where t.workspace_id = n.workspace_id and t.enrollment_id = n.enrollment_id) done,
			lateral (select coalesce(string_agg(s ->> 'text', ',' order by i) filter (where s ->> 'kind' = 'add_note' and i <= n.step), '') as notes
				from jsonb_array_elements(n.steps) with ordinality as each(s, i)) want
		where n.workspace_id = $1 and (done.notes <> want.notes or n.status = 'failed' or n.status = 'completed' and n.step <> jsonb_array_length(n.steps)
			or n.steps @> '[{"kind": "wait"}]' and n.ended_at < n.entered_at + interval '1 day' or n.due_at > inlet_now() + interval '1 day 1 minute')`, m.ID); wrong != "" {
		m.disagree("steps were lost, doubled or taken at the wrong time: %s", wrong)
	}
}

func TestMotionsAgreeWithAModelWhileProcessesDieAndDaysPass(t *testing.T) {
	t.Parallel()
	const size = 40
	operations := int(setting(t, "INLET_MODEL_OPERATIONS", 320))
	_, address := dbtest.Private(t)
	m := &motionModel{
		T: t, address: address, seed: setting(t, "INLET_MODEL_SEED", rand.Uint64()), now: newMotionSettings(),
		keys: map[string]*modelEntry{}, clicks: map[string][]int{},
		// A connection that was made in vain would hold up the end of its server.
		client: &http.Client{Transport: watched{&http.Transport{DisableKeepAlives: true}}},
	}
	m.random = rand.New(rand.NewPCG(m.seed, 0))
	m.seeded = seedOn(t, address, "model", m.now.file())
	for range 2 {
		m.processes = append(m.processes, start(t, address))
	}
	defer func() {
		for _, s := range m.processes {
			s.Stop()
		}
	}()
	for range operations / size {
		if m.burst(size); t.Failed() {
			return
		}
	}
	entries := dbtest.Query[string](t, address, `
		select string_agg(n || ' ' || reason_code, ', ' order by n desc) from (select reason_code, count(*) n from motion_entries where workspace_id = $1 group by 1) reasons`, m.ID)
	t.Logf("INLET_MODEL_SEED=%d: %d starts in %d rounds over %d days: %s", m.seed, m.asked, m.round, m.day, entries)
}
