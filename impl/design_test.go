package impl

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/fault"
)

const module = "github.com/inletdev/inlet/"

// layers are the packages from the top down: a package imports those below its
// own layer only.
var layers = [][]string{
	{"cmd/inlet"},
	{"impl"},
	{"impl/telemetry"},
	{"impl/api", "impl/docs", "impl/embed"},
	{"impl/seed"},
	{"impl/form"},
	{"impl/event", "impl/lead", "impl/motion", "impl/workspace"},
	{"impl/visitor"},
	{"impl/contact"},
	{"impl/company"},
	{"impl/auth"},
	{"impl/fault", "impl/limit", "impl/page", "impl/strictjson", "impl/work"},
	{"db"},
	{"impl/trace"}, // what everything else, and db too, says of its own work
}

// outside are the packages that the rules above do not order: what each may
// import of ours.
var outside = map[string][]string{
	"gen/api":                      {},
	"gen/client":                   {},
	"openapi":                      {},
	"scripts/operations":           {"openapi"},
	"scripts/bench":                {"db"},
	"scripts/clients/oapi-codegen": {"gen/client"},
	"db/dbtest":                    {"db"},
	"impl/backup":                  {},
	"impl/chaos":                   {},
	"impl/contract":                {},
	"impl/embed/embedtest":         {},
	"impl/servertest":              {"db", "db/dbtest"},
	"impl/overload":                {},
	"impl/upgrade":                 {},
}

// backtracking are engines of regular expressions whose time can grow without
// bounds with the text, as Go's own cannot.
var backtracking = []string{"github.com/dlclark/regexp2", "github.com/dlclark/regexp2/v2", "go.elara.ws/pcre", "github.com/GRbit/go-pcre"}

// The colors of the documentation's code are found with one; nothing that reads what
// clients send may be.
func TestNothingThatReadsRequestsUsesABacktrackingRegexp(t *testing.T) {
	for _, part := range []string{"impl/api", "impl/embed", "impl/event", "impl/lead", "impl/motion", "impl/form", "impl/visitor", "impl/seed", "db"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+part).Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		if !slices.Contains(deps, module+"db") {
			t.Fatalf("%s is built of %v", part, deps)
		}
		for _, path := range backtracking {
			if slices.Contains(deps, path) {
				t.Errorf("%s is built with %s", part, path)
			}
		}
	}
}

// onlyIn says which packages alone may import a package.
var onlyIn = map[string][]string{
	module + "gen/api":            {"impl/api"},
	module + "openapi":            {"cmd/inlet", "impl", "impl/api", "impl/docs", "scripts/operations"},
	"github.com/jmoiron/sqlx":     {"db", "db/dbtest", "scripts/bench"},
	"github.com/lib/pq":           {"db", "scripts/bench"},
	"github.com/pressly/goose/v3": {"db"},

	// It brings a backtracking regexp, for pages of our own alone.
	"github.com/alecthomas/chroma/v2": {"impl/docs"},

	"github.com/chromedp/chromedp": {"impl/embed/embedtest"},
}

// The libraries by which the server is watched. What exports is for one package:
// the others only say what they do, and cost nothing where nobody listens.
const (
	client    = "github.com/prometheus/client_golang/prometheus"
	opentel   = "go.opentelemetry.io/otel"
	exporters = opentel + "/exporters/"
	otelSDK   = opentel + "/sdk"
)

// leaf packages import the standard library and, at most, these: their one parser,
// or that by which a runner of jobs says how they went.
var leaves = map[string][]string{
	"impl/fault":      nil,
	"impl/limit":      nil,
	"impl/page":       nil,
	"impl/work":       {client, client + "/promauto", module + "impl/trace"},
	"impl/strictjson": {"github.com/go-json-experiment/json/jsontext"},
	"impl/trace":      {opentel + "/attribute", opentel + "/codes", opentel + "/trace"},
}

func TestPackagesImportDownwardsOnly(t *testing.T) {
	level := make(map[string]int)
	for i, names := range layers {
		for _, name := range names {
			level[name] = i
		}
	}
	for name, imports := range packages(t) {
		own, ordered := level[name]
		allowed, known := outside[name]
		if !ordered && !known {
			t.Errorf("%s has no place in the layers", name)
			continue
		}
		for _, path := range imports {
			if users, ok := onlyIn[path]; ok && !slices.Contains(users, name) {
				t.Errorf("%s imports %s, which is for %v", name, path, users)
			}
			if (strings.HasPrefix(path, exporters) || strings.HasPrefix(path, otelSDK)) && name != "impl/telemetry" {
				t.Errorf("%s imports %s, which is for impl/telemetry", name, path)
			}
			if these, leaf := leaves[name]; leaf && !slices.Contains(these, path) && strings.Contains(strings.Split(path, "/")[0], ".") {
				t.Errorf("%s imports %s", name, path)
			}
			of, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			if known && !slices.Contains(allowed, of) {
				t.Errorf("%s imports %s", name, of)
			}
			if target, ok := level[of]; ordered && ok && target <= own {
				t.Errorf("%s imports %s, which is not below it", name, of)
			}
			if strings.HasSuffix(of, "test") && !strings.HasSuffix(name, "test") {
				t.Errorf("%s imports %s outside tests", name, of)
			}
		}
	}
}

func packages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
}

// atTheEdge are the codes that are met where no operation is.
var atTheEdge = []*fault.Code{fault.NotFound, fault.MethodNotAllowed}

func TestTheCatalogueAndTheDocumentHaveTheSameCodes(t *testing.T) {
	key := func(name string, status int) string { return fmt.Sprintf("%s %d", name, status) }
	catalog := make(map[string]bool)
	for _, c := range fault.Catalog() {
		if catalog[key(c.Name, c.Status)] {
			t.Errorf("%s is defined twice", key(c.Name, c.Status))
		}
		catalog[key(c.Name, c.Status)] = true
		if c.Meaning == "" || c.Remedy == "" || c.Retry == "" {
			t.Errorf("%s says too little", c.Name)
		}
	}
	used := make(map[string]bool)
	for _, op := range api.Operations {
		for status, names := range op.Errors {
			for _, name := range names {
				used[key(name, status)] = true
				if !catalog[key(name, status)] {
					t.Errorf("%s has the code %s, which is not in the catalogue", op.ID, key(name, status))
				}
			}
		}
		for _, name := range op.ResultErrors {
			if !catalog[key(name, 422)] && !catalog[key(name, 400)] {
				t.Errorf("%s has the result code %s, which is not in the catalogue", op.ID, name)
			}
		}
	}
	for _, c := range atTheEdge {
		used[key(c.Name, c.Status)] = true
	}
	for _, k := range slices.Sorted(maps.Keys(catalog)) {
		if !used[k] {
			t.Errorf("%s is in the catalogue, and no operation has it", k)
		}
	}
}

func TestEveryOperationSaysWhatTheGuardNeeds(t *testing.T) {
	if len(api.Operations) != 13 {
		t.Errorf("%d operations", len(api.Operations))
	}
	ids := make(map[string]bool)
	for _, op := range api.Operations {
		if op.ID == "" || ids[op.ID] {
			t.Errorf("the operationId %q is missing or not unique", op.ID)
		}
		ids[op.ID] = true
		if (len(op.Scopes) == 0) != (op.Tag == "Embeds") {
			t.Errorf("%s needs the scopes %v", op.ID, op.Scopes)
		}
		for _, s := range op.Scopes {
			if !slices.Contains(auth.Scopes(), s) {
				t.Errorf("%s needs the scope %s, which does not exist", op.ID, s)
			}
		}
		if (op.Method == http.MethodPost) != (op.MaxBody > 0) {
			t.Errorf("%s %s has a cap of %d bytes", op.ID, op.Method, op.MaxBody)
		}
		if (op.BodySchema != "") != (op.MaxBody > 0) {
			t.Errorf("%s has the body schema %q", op.ID, op.BodySchema)
		}
		statuses := []int{403, 429, 500, 503}
		if op.MaxBody > 0 || slices.ContainsFunc(op.Parameters, func(p api.Parameter) bool { return p.In == "query" }) {
			statuses = append(statuses, 400)
		}
		if len(op.Scopes) > 0 {
			statuses = append(statuses, 401)
		}
		for _, status := range statuses {
			if len(op.Errors[status]) == 0 {
				t.Errorf("%s has no code for %d", op.ID, status)
			}
		}
		if op.Availability != "live" {
			t.Errorf("%s is %q", op.ID, op.Availability)
		}
	}
}
