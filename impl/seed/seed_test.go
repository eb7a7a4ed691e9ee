package seed

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/auth"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const whole = `
workspaces:
  - slug: SLUG
    name: Acme
    agents_enabled: false
    api_enabled: true
    leads: {create_companies: false, enrichment: true}
    roles:
      - {name: member, scopes: [companies.view, leads.manage]}
    people:
      - {ref: ada, email: Ada@Acme.example, name: Ada, role: admin, password: "correct horse", left: false}
    api_keys:
      - {ref: ci, owner: ada, kind: api, scopes: [leads.manage, events.send], token: TOKEN, requests_per_minute: 600, expires_at: 2027-01-01T00:00:00Z, test: true}
      - {ref: made, owner: ada, kind: service, scopes: [leads.manage]}
    companies:
      - {ref: globex, name: Globex, domain: "https://www.Globex.com/", other_domains: [globex.de], industry: Energy, country: US, stage: prospect}
    contacts:
      - {ref: hank, email: Hank@globex.com, first_name: Hank, company: globex, linkedin_url: "https://linkedin.com/in/hank"}
    segments:
      - {ref: eu, name: EU, companies: [globex]}
    motions:
      - ref: outbound
        name: Outbound
        status: active
        entry:
          api_call: true
          lead_created: false
          events: [{name: trial_started, where: [{property: plan, equals: pro}]}]
          signals: [trials]
          in_segments: [eu]
          not_in_segments: []
          reentry: {after_days: 30}
          daily_cap: null
        steps: [{kind: wait, days: 1}, {kind: add_note, text: "hello"}, {kind: add_to_segment, segment: eu}]
    event_types:
      - {name: legacy_event, status: blocked, label: Legacy, properties: {plan: string}}
      - {name: trial_started}
    signals:
      - {ref: trials, name: Trials, event: trial_started, min_count: 2, within_days: 7, where: [{property: plan, equals: pro}], score: 10}
    sites:
      - {ref: www, site_key: site_SLUG, secret: "s3cret", origins: ["https://www.acme.example"]}
      - {ref: made}
    visitors:
      - {id: v-1, site: www, identified_as: hank}
    forms:
      - {ref: demo, public_key: form_SLUG, name: Demo request, fields: [email, first_name, company_name]}
    meeting_forms:
      - {ref: call, public_key: meet_SLUG, name: Intro call, minutes: 30}
`

func fill(slug, token string) string {
	return strings.NewReplacer("SLUG", slug, "TOKEN", token).Replace(whole)
}

func TestLoadingAFileAgainChangesNothingAndReportsTheSameIDs(t *testing.T) {
	d := dbtest.DB(t)
	token := auth.NewToken(auth.APIKey)
	file := fill("again", token)
	first, err := Load(t.Context(), d, "acme.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	w := first.Workspaces["again"]
	if w.APIKeys["ci"].Token != token || w.APIKeys["made"].Token == "" || w.Sites["made"].Secret == "" || w.Sites["made"].SiteKey == "" {
		t.Errorf("credentials: %+v %+v", w.APIKeys, w.Sites)
	}
	count := func() string {
		return dbtest.Query[string](t, dbtest.URL(t), `select string_agg(x::text, E'\n' order by x::text) from (
			select row(c.*)::text from companies c where workspace_id = $1 union all
			select row(c.*)::text from company_domains c where workspace_id = $1 union all
			select row(c.*)::text from contacts c where workspace_id = $1 union all
			select row(c.*)::text from people c where workspace_id = $1 union all
			select row(c.*)::text from api_keys c where workspace_id = $1 union all
			select row(c.*)::text from motions c where workspace_id = $1 union all
			select row(c.*)::text from event_types c where workspace_id = $1 union all
			select row(c.*)::text from visitors c where workspace_id = $1 union all
			select row(c.*)::text from site_secrets c where workspace_id = $1 union all
			select row(c.*)::text from signals c where workspace_id = $1) x`, w.ID)
	}
	before := count()
	second, err := Load(t.Context(), d, "acme.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if after := count(); after != before {
		t.Errorf("records changed from\n%s\nto\n%s", before, after)
	}
	// Credentials that were made are told once.
	made, site := w.APIKeys["made"], w.Sites["made"]
	made.Token, site.Secret = "", ""
	w.APIKeys["made"], w.Sites["made"] = made, site
	one, _ := json.Marshal(first)
	other, _ := json.Marshal(second)
	if string(one) != string(other) {
		t.Errorf("reports\n%s, want\n%s", other, one)
	}
	if domain := dbtest.Query[string](t, dbtest.URL(t), `select domain from company_domains where workspace_id = $1 and main`, w.ID); domain != "globex.com" {
		t.Errorf("the main domain is %s", domain)
	}
}

func TestAnEditedFileUpdatesTheSameRecords(t *testing.T) {
	d := dbtest.DB(t)
	file := fill("edited", auth.NewToken(auth.APIKey))
	first, err := Load(t.Context(), d, "acme.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer("name: Globex, domain: \"https://www.Globex.com/\", other_domains: [globex.de]",
		"name: Globex Corp, domain: globex.de, other_domains: [globex.org]", "revoked: false", "revoked: true").Replace(file)
	second, err := Load(t.Context(), d, "acme.yaml", []byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	id := first.Workspaces["edited"].Companies["globex"]
	if got := second.Workspaces["edited"].Companies["globex"]; got != id {
		t.Errorf("the company has the id %d, want %d", got, id)
	}
	if domains := dbtest.Query[string](t, dbtest.URL(t), `select string_agg(domain || case when main then '*' else '' end, ' ' order by domain)
		from company_domains where workspace_id = $1`, first.Workspaces["edited"].ID); domains != "globex.de* globex.org" {
		t.Errorf("its domains are %s", domains)
	}
}

func TestParallelLoadsOfOneFileMakeOneWorkspace(t *testing.T) {
	d := dbtest.DB(t)
	file := fill("parallel", auth.NewToken(auth.APIKey))
	var mu sync.Mutex
	ids := map[int64]bool{}
	var parallel sync.WaitGroup
	for range 4 {
		parallel.Go(func() {
			report, err := Load(t.Context(), d, "acme.yaml", []byte(file))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[report.Workspaces["parallel"].Companies["globex"]] = true
		})
	}
	parallel.Wait()
	if len(ids) != 1 {
		t.Errorf("companies %v", ids)
	}
}

func TestAMistakeIsToldWithItsLineAndNothingIsLoaded(t *testing.T) {
	d := dbtest.DB(t)
	for name, c := range map[string]struct{ from, to, want string }{
		"an unknown key":          {"name: Acme\n", "nome: Acme\n", `acme.yaml:4: unknown field "nome"`},
		"a wrong type":            {"agents_enabled: false", "agents_enabled: perhaps", "acme.yaml:5: "},
		"broken YAML":             {"slug: SLUG", "slug: [", "acme.yaml:"},
		"a missing reference":     {"company: globex, linkedin_url", "company: nobody, linkedin_url", `acme.yaml:18: workspaces[0].contacts[0].company: no entry of companies has the ref "nobody"`},
		"an unknown scope":        {"scopes: [companies.view, leads.manage]", "scopes: [companies.view, leads.all]", "acme.yaml:9: workspaces[0].roles[0].scopes[1]: no such scope"},
		"a mistyped token":        {"token: TOKEN", "token: amp_x", "acme.yaml:13: workspaces[0].api_keys[0].token: want amp_"},
		"a key without owner":     {"ref: made, owner: ada, kind: service", "ref: made, kind: service", "acme.yaml:14: workspaces[0].api_keys[1].owner: a service key needs an owner"},
		"a malformed domain":      {"other_domains: [globex.de]", "other_domains: [globex]", "acme.yaml:16: workspaces[0].companies[0].other_domains[0]: want a domain"},
		"a domain twice":          {"other_domains: [globex.de]", "other_domains: [GLOBEX.com]", "acme.yaml:16: workspaces[0].companies[0].other_domains[0]: the domain stands twice"},
		"a malformed address":     {"email: Hank@globex.com", "email: Hank", "acme.yaml:18: workspaces[0].contacts[0].email: want an e-mail address"},
		"an unknown kind":         {"{kind: wait, days: 1}", "{kind: sleep, days: 1}", "acme.yaml:34: workspaces[0].motions[0].steps[0].kind: want one of"},
		"a wrong field of a step": {"{kind: wait, days: 1}", "{kind: wait, days: 1, text: x}", "acme.yaml:34: workspaces[0].motions[0].steps[0].text: a step of kind wait has no text"},
		"an impossible reentry":   {"reentry: {after_days: 30}", "reentry: {after_days: 0}", "acme.yaml:32: workspaces[0].motions[0].entry.reentry: want never"},
		"a reentry too far off":   {"reentry: {after_days: 30}", "reentry: {after_days: 5000000}", "acme.yaml:32: workspaces[0].motions[0].entry.reentry: want never"},
		"a cap without bounds":    {"daily_cap: null", "daily_cap: 3000000000", "acme.yaml:33: workspaces[0].motions[0].entry.daily_cap: want"},
		"a wait too long":         {"{kind: wait, days: 1}", "{kind: wait, days: 36500, hours: 1}", "acme.yaml:34: workspaces[0].motions[0].steps[0]: want days or hours"},
		"a wait without bounds":   {"{kind: wait, days: 1}", "{kind: wait, hours: 9223372036854775807}", "acme.yaml:34: workspaces[0].motions[0].steps[0]: want days or hours"},
		"a signal too far back":   {"within_days: 7", "within_days: 200000000", "acme.yaml:39: workspaces[0].signals[0].within_days: want"},
		"a signal without bounds": {"min_count: 2", "min_count: 3000000000", "acme.yaml:39: workspaces[0].signals[0].min_count: want at least 1"},
		"an impossible number":    {"min_count: 2", "min_count: 0", "acme.yaml:39: workspaces[0].signals[0].min_count: want at least 1"},
		"a bad event name":        {"{name: trial_started}\n    signals", "{name: Trial}\n    signals", "acme.yaml:37: workspaces[0].event_types[1].name: want a lower-case letter"},
		"a bad visitor":           {"id: v-1", "id: v_1", "acme.yaml:44: workspaces[0].visitors[0].id: want 1 to 64"},
		"no ref":                  {"{ref: eu, name: EU", "{name: EU", "acme.yaml:20: workspaces[0].segments[0].ref: want a ref"},
		"a bad slug":              {"slug: SLUG", "slug: Not_A_Slug", "acme.yaml:3: workspaces[0].slug: want a-z"},
		"an http webhook":         {"{kind: add_note, text: \"hello\"}", "{kind: send_webhook, url: \"http://x.example\"}", "acme.yaml:34: workspaces[0].motions[0].steps[1].url: want an https address"},
		"a service token as api":  {"token: TOKEN", "token: " + auth.NewToken(auth.ServiceKey), "acme.yaml:13: workspaces[0].api_keys[0].token: want amp_"},
	} {
		slug := "mistake-" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
		file := strings.NewReplacer("SLUG", slug, "TOKEN", auth.NewToken(auth.APIKey)).Replace(strings.Replace(whole, c.from, c.to, 1))
		want := c.want
		_, err := Load(t.Context(), d, "acme.yaml", []byte(file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from workspaces where slug = $1`, slug); n != 0 {
			t.Errorf("%s: the workspace is there", name)
		}
	}
}

func TestAValueThatAnotherRecordHasLoadsNothing(t *testing.T) {
	d := dbtest.DB(t)
	if _, err := Load(t.Context(), d, "a.yaml", []byte("workspaces: [{slug: clash, companies: [{ref: a, name: A, domain: a.example}]}]")); err != nil {
		t.Fatal(err)
	}
	_, err := Load(t.Context(), d, "b.yaml", []byte("workspaces:\n- slug: clash-before\n- slug: clash\n  companies:\n  - {ref: b, name: B, domain: a.example}\n"))
	if err == nil || !strings.Contains(err.Error(), "b.yaml:5: ") {
		t.Errorf("got %v", err)
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from workspaces where slug = 'clash-before'`); n != 0 {
		t.Error("a part of the file is loaded")
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, err := Load(t.Context(), dbtest.DB(t), "x.yaml", []byte("workspaces:\n- slug: A\n  people:\n  - {ref: a}\n"))
	if err == nil || strings.Count(err.Error(), "\n") < 3 {
		t.Errorf("got %v", err)
	}
}

func TestTheDemoWorkspaceLoads(t *testing.T) {
	source, err := os.ReadFile("../../scripts/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Load(t.Context(), dbtest.DB(t), "demo.yaml", source)
	if err != nil {
		t.Fatal(err)
	}
	if w := report.Workspaces["demo"]; len(w.Companies) != 12 || len(w.Contacts) != 16 || len(w.Motions) != 5 {
		t.Errorf("%d companies, %d contacts, %d motions", len(w.Companies), len(w.Contacts), len(w.Motions))
	}
}
