package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// A family is a metric as a server shows it.
type family struct{ help, kind, labels string }

var (
	helpLine   = regexp.MustCompile(`(?m)^# HELP (\S+) (.*)$`)
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\w+)$`)
	sampleLine = regexp.MustCompile(`(?m)^([a-z_0-9]+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	labelName  = regexp.MustCompile(`([a-z_]+)="`)
)

// families gives the metrics that a server shows.
func families(t testing.TB, s server) map[string]family {
	t.Helper()
	s.send(t, "GET", "/metrics", "")
	shown := string(s.send(t, "GET", "/metrics", "").body)
	all := make(map[string]family)
	for _, m := range helpLine.FindAllStringSubmatch(shown, -1) {
		all[m[1]] = family{help: m[2]}
	}
	for _, m := range typeLine.FindAllStringSubmatch(shown, -1) {
		f := all[m[1]]
		f.kind = m[2]
		all[m[1]] = f
	}
	for _, m := range sampleLine.FindAllStringSubmatch(shown, -1) {
		name := m[1]
		if _, ok := all[name]; !ok {
			name += m[2]
		}
		f, ok := all[name]
		if !ok {
			t.Fatalf("%s has no type", m[0])
		}
		var labels []string
		for _, l := range labelName.FindAllStringSubmatch(m[3], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		f.labels = strings.Join(labels, " ")
		all[name] = f
	}
	return all
}

// ofEveryProgram are the metrics that every program in Go has.
var ofEveryProgram = regexp.MustCompile(`^(go|process)_`)

func isOfEveryProgram(name string) bool {
	return ofEveryProgram.MatchString(name) && !strings.HasPrefix(name, "go_sql_")
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| (\\w+) \\|(.*?)\\| .+ \\|$")
	quoted   = regexp.MustCompile("`([a-z_]+)`")
)

func TestTheTableOfMetricsIsWhatAServerShows(t *testing.T) {
	t.Parallel()
	shown := families(t, sharedServerThatWorked(t))
	page, err := os.ReadFile("../docs/pages/guides/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]bool)
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		name, kind := row[1], row[2]
		var labels []string
		for _, l := range quoted.FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		told[name] = true
		f, ok := shown[name]
		if !ok {
			t.Errorf("%s is in the table, and no server shows it", name)
		} else if f.kind != kind || f.labels != strings.Join(labels, " ") {
			t.Errorf("%s is a %s by %q; the table says %s by %q", name, f.kind, f.labels, kind, labels)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if !told[name] && !isOfEveryProgram(name) {
			t.Errorf("%s is shown, and not in the table", name)
		}
		if strings.HasPrefix(name, "inlet_") {
			checkName(t, name, shown[name])
		}
	}
	if len(told) < 40 {
		t.Errorf("only %d metrics are found in the table", len(told))
	}
}

// checkName holds a metric to the conventions of Prometheus.
func checkName(t *testing.T, name string, f family) {
	t.Helper()
	if (f.kind == "counter") != strings.HasSuffix(name, "_total") {
		t.Errorf("%s is a %s", name, f.kind)
	}
	if !strings.HasSuffix(f.help, ".") || len(f.help) < 15 {
		t.Errorf("%s says of itself %q", name, f.help)
	}
}

// sharedServerThatWorked has done of everything something, so that it shows what
// it shows once that happened.
func sharedServerThatWorked(t *testing.T) server {
	t.Helper()
	s := sharedServer(t)
	w := seed(t, doomed(1))
	if a := s.send(t, "POST", "/api/v1/events", `{"id":"m","name":"n","company":{"id":-1}}`, w.Key("all")); a.status != 400 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return s
}

func TestNoLabelIsAnythingThatAClientChooses(t *testing.T) {
	t.Parallel()
	_, address := dbtest.Private(t)
	s := start(t, address)
	defer s.Stop()
	w := seedOn(t, address, "secretslug", doomed(1))
	before := series(t, s)
	for i := range 20 {
		s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"secret%d","name":"secret_%d","visitor":{"id":"secret%d"}}`, i, i, i), w.Key("all"))
		s.send(t, "GET", fmt.Sprintf("/secret/%d", i), "", "User-Agent: secret")
		s.send(t, fmt.Sprintf("SECRET%d", i), "/api/v1/events", "")
		s.send(t, "GET", fmt.Sprintf("/api/v1/forms/secret%d", i), "")
		s.send(t, "POST", fmt.Sprintf("/api/v1/motions/%d/start", i), `{"companyId":1}`, w.Key("all"), fmt.Sprintf("Idempotency-Key: secret%d", i))
	}
	after := series(t, s)
	for _, line := range after {
		if strings.Contains(line, "secret") || strings.Contains(line, "SECRET") {
			t.Fatalf("%s", line)
		}
	}
	// A status and a code of each route that was met, not one for each request.
	if grown := len(after) - len(before); grown > 40 {
		t.Errorf("100 requests make %d series", grown)
	}
}

func series(t testing.TB, s server) []string {
	t.Helper()
	var all []string
	for _, m := range sampleLine.FindAllString(string(s.send(t, "GET", "/metrics", "").body), -1) {
		name, _, _ := strings.Cut(m, "} ")
		all = append(all, name)
	}
	return all
}

// A rule is an alert.
type rule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

// monitored gives the expressions of what operators load, by where they stand.
func monitored(t *testing.T, s server) (expressions map[string]string, rules []rule) {
	t.Helper()
	var alerts struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(s.send(t, "GET", "/docs/monitoring/alerts.yml", "").body, &alerts); err != nil {
		t.Fatal(err)
	}
	expressions = make(map[string]string)
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			rules = append(rules, r)
			expressions["alert "+r.Alert] = r.Expr
		}
	}
	type panel struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr, RefID string }
	}
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Panels        []panel
		Templating    struct{ List []struct{ Name, Type string } }
	}
	if err := json.Unmarshal(s.send(t, "GET", "/docs/monitoring/dashboard.json", "").body, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || dashboard.SchemaVersion < 30 || len(dashboard.Templating.List) != 2 {
		t.Errorf("the dashboard is %+v", dashboard)
	}
	ids, taken := make(map[int]bool), make(map[[2]int]string)
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.Type == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("the panel %q is %+v", p.Title, p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %q lies over %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			expressions["panel "+p.Title+" "+target.RefID] = target.Expr
		}
	}
	return expressions, rules
}

var (
	metricName = regexp.MustCompile(`\b(?:inlet|go|process)_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`\b((?:inlet|go|process)_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
)

func TestAlertsAndTheDashboardAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	s := sharedServerThatWorked(t)
	shown := families(t, s)
	expressions, rules := monitored(t, s)
	if len(rules) < 15 || len(expressions) < 60 {
		t.Errorf("only %d alerts and %d expressions are found", len(rules), len(expressions))
	}
	used := make(map[string]bool)
	familyOf := func(name string) string {
		if _, ok := shown[name]; ok {
			return name
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); shown[base].kind == "histogram" {
				return base
			}
		}
		return ""
	}
	for where, expr := range expressions {
		for _, name := range metricName.FindAllString(expr, -1) {
			if familyOf(name) == "" {
				t.Errorf("%s asks for %s, which no server shows", where, name)
			}
			used[familyOf(name)] = true
		}
		for _, sel := range selector.FindAllStringSubmatch(expr, -1) {
			for _, m := range matcher.FindAllStringSubmatch(sel[2], -1) {
				if !slices.Contains(append(strings.Fields(shown[familyOf(sel[1])].labels), "instance", "job"), m[1]) {
					t.Errorf("%s asks %s for the label %s, which it has not", where, sel[1], m[1])
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if strings.HasPrefix(name, "inlet_") && !used[name] {
			t.Errorf("%s is on no dashboard and in no alert", name)
		}
	}
}

var flagName = regexp.MustCompile(`--[a-z-]+`)

func TestTheRunbookHasAPartForEachAlertAndItsCommandsExist(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	_, rules := monitored(t, s)
	page := string(s.send(t, "GET", "/docs/guides/runbook", "").body)
	for _, r := range rules {
		anchor := strings.ToLower(r.Alert)
		if !strings.Contains(page, `id="`+anchor+`"`) {
			t.Errorf("the runbook has no part for %s", r.Alert)
		}
		if r.Annotations["runbook_url"] != s.Base+"/docs/guides/runbook#"+anchor || r.Annotations["summary"] == "" ||
			r.Labels["severity"] != "page" && r.Labels["severity"] != "ticket" {
			t.Errorf("%s is %+v", r.Alert, r)
		}
	}
	source, err := os.ReadFile("../docs/pages/guides/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	counts, helps := map[string]int{}, map[string]string{}
	for _, block := range blocks.FindAllStringSubmatch(string(source), -1) {
		counts[block[1]]++
		switch block[1] {
		case "sh":
			for line := range strings.Lines(block[3]) {
				words := strings.Fields(line)
				name := words[1:min(3, len(words))]
				if strings.HasPrefix(name[len(name)-1], "--") {
					name = name[:1]
				}
				of := strings.Join(name, " ")
				help, ok := helps[of]
				if !ok {
					var err error
					if help, err = tryInlet(t, "", append(slices.Clone(name), "--help")...); err != nil || words[0] != "inlet" {
						t.Errorf("%s: %v", line, err)
					}
					helps[of] = help
				}
				for _, f := range flagName.FindAllString(line, -1) {
					if !strings.Contains(help, f+"=") {
						t.Errorf("%s: there is no %s", line, f)
					}
				}
			}
		case "sql":
			dbtest.Exec(t, dbtest.URL(t), `do $do$ begin execute $q$ `+strings.TrimRight(strings.TrimSpace(block[3]), ";")+` $q$; raise exception 'undo'; exception when raise_exception then null; end $do$`)
		}
	}
	if counts["sh"] < 5 || counts["sql"] < 6 {
		t.Errorf("the runbook has only %v", counts)
	}
}

func TestMetricsAreThereWhileTheDatabaseIsAwayAndTellOfIt(t *testing.T) {
	t.Parallel()
	p := servertest.StartPostgres(t)
	s := start(t, p.URL())
	defer s.Stop()
	value := func(series string) float64 {
		_, rest, _ := strings.Cut(string(s.send(t, "GET", "/metrics", "").body), "\n"+series+" ")
		var v float64
		if _, err := fmt.Sscan(rest, &v); err != nil {
			t.Errorf("%s: %v", series, err)
		}
		return v
	}
	eventually(t, "the days ahead that there is room for", 7, func() float64 { return value("inlet_event_partitions_ahead_days") })
	p.Stop(t)
	eventually(t, "errors that tell of it", true, func() bool {
		return value(`inlet_db_errors_total{kind="away"}`) > 0 && value(`inlet_job_failures_total{name="event facts"}`) > 0
	})
	stood := value(`inlet_job_last_success_timestamp_seconds{name="event facts"}`)
	p.Start(t)
	eventually(t, "a success afterwards", true, func() bool {
		return value(`inlet_job_last_success_timestamp_seconds{name="event facts"}`) > stood
	})
}
