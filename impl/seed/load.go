package seed

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/event"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/motion"
	"github.com/inletdev/inlet/impl/workspace"
)

// A Report says what the entries of a file became, by their refs.
type Report struct {
	Workspaces map[string]*WorkspaceReport `json:"workspaces"`
}

// A WorkspaceReport holds ids; credentials only when they were made now.
type WorkspaceReport struct {
	ID           int64                 `json:"id"`
	People       map[string]int64      `json:"people"`
	APIKeys      map[string]KeyReport  `json:"api_keys"`
	Companies    map[string]int64      `json:"companies"`
	Contacts     map[string]int64      `json:"contacts"`
	Segments     map[string]int64      `json:"segments"`
	Motions      map[string]int64      `json:"motions"`
	EventTypes   map[string]int64      `json:"event_types"`
	Signals      map[string]int64      `json:"signals"`
	Sites        map[string]SiteReport `json:"sites"`
	Forms        map[string]FormReport `json:"forms"`
	MeetingForms map[string]FormReport `json:"meeting_forms"`
}

// A KeyReport is an API key. The token is there if the file fixes it or it was
// made by this load.
type KeyReport struct {
	ID    int64  `json:"id"`
	Token string `json:"token,omitempty"`
}

// A SiteReport is a site. The secret is there if the file fixes it or it was
// made by this load.
type SiteReport struct {
	ID      int64  `json:"id"`
	SiteKey string `json:"site_key"`
	Secret  string `json:"secret,omitempty"`
}

// A FormReport is a form. The public key is there if the file fixes it or it
// was made by this load.
type FormReport struct {
	ID        int64  `json:"id"`
	PublicKey string `json:"public_key,omitempty"`
}

// Load loads a file: all of it, or nothing and an error that names the lines.
func Load(ctx context.Context, d *db.DB, filename string, source []byte) (Report, error) {
	f, tree, err := read(filename, source)
	if err != nil {
		return Report{}, err
	}
	p := &problems{filename: filename, tree: tree}
	if check(f, p); p.err() != nil {
		return Report{}, p.err()
	}
	var report Report
	err = d.Across(ctx, func(tx *db.Tx) error {
		report = Report{Workspaces: make(map[string]*WorkspaceReport)}
		if err := tx.LockSeed(ctx); err != nil {
			return err
		}
		for i, w := range f.Workspaces {
			l := &loader{problems: p, path: fmt.Sprintf("$.workspaces[%d]", i)}
			if err := l.load(ctx, tx, w); err != nil {
				return err
			}
			report.Workspaces[w.Slug] = l.report
		}
		return p.err()
	})
	if err != nil {
		return Report{}, err
	}
	return report, nil
}

// A loader loads one workspace of a file that was checked.
type loader struct {
	*problems
	path   string
	s      *db.Scope
	report *WorkspaceReport
}

func (l *loader) load(ctx context.Context, tx *db.Tx, w workspaceEntry) error {
	current, err := tx.WorkspaceBySlug(ctx, w.Slug)
	if errors.Is(err, db.ErrNotFound) {
		if _, err = workspace.Create(ctx, tx, w.Slug, cmp.Or(w.Name, w.Slug)); err == nil {
			current, err = tx.WorkspaceBySlug(ctx, w.Slug)
		}
	}
	if err != nil {
		return err
	}
	l.s = tx.Scope(current.ID)
	l.report = &WorkspaceReport{
		ID: current.ID, People: make(map[string]int64), APIKeys: make(map[string]KeyReport),
		Companies: make(map[string]int64), Contacts: make(map[string]int64), Segments: make(map[string]int64),
		Motions: make(map[string]int64), EventTypes: make(map[string]int64), Signals: make(map[string]int64),
		Sites: make(map[string]SiteReport), Forms: make(map[string]FormReport), MeetingForms: make(map[string]FormReport),
	}
	if err := l.settings(ctx, current, w); err != nil {
		return err
	}
	// Everything is loaded behind what it refers to.
	for _, part := range []func(context.Context, workspaceEntry) error{
		l.roles, l.people, l.keys, l.companies, l.contacts, l.segments, l.eventTypes, l.signals, l.motions,
		l.sites, l.visitors, l.forms,
	} {
		if err := part(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// settings that the file does not name stay as they are.
func (l *loader) settings(ctx context.Context, current db.Workspace, w workspaceEntry) error {
	wanted := current
	wanted.Name = cmp.Or(w.Name, current.Name)
	set := func(field *bool, value *bool) {
		if value != nil {
			*field = *value
		}
	}
	set(&wanted.AgentsEnabled, w.AgentsEnabled)
	set(&wanted.APIEnabled, w.APIEnabled)
	set(&wanted.MCPEnabled, w.MCPEnabled)
	if w.Leads != nil {
		set(&wanted.CreateCompanies, w.Leads.CreateCompanies)
		set(&wanted.CreateContacts, w.Leads.CreateContacts)
		set(&wanted.Enrichment, w.Leads.Enrichment)
	}
	if wanted == current {
		return nil
	}
	return l.s.UpdateWorkspace(ctx, wanted)
}

// save loads one entry: it finds what its ref became before, has it saved, and
// notes the ref. A value that another record of the workspace has is the
// file's error.
func (l *loader) save(ctx context.Context, kind string, i int, ref string, do func(id int64) (int64, error)) (int64, error) {
	before, err := l.s.SeedRef(ctx, kind, ref)
	if err != nil {
		return 0, err
	}
	id, err := do(before)
	if errors.Is(err, db.ErrExists) {
		l.at(fmt.Sprintf("%s.%s[%d]", l.path, kind, i), "another record has its domain, e-mail address, token or public key")
		return 0, l.err()
	}
	if err != nil || before != 0 {
		return id, err
	}
	return id, l.s.SetSeedRef(ctx, kind, ref, id)
}

func (l *loader) roles(ctx context.Context, w workspaceEntry) error {
	for _, r := range w.Roles {
		if err := l.s.SetRole(ctx, r.Name, r.Scopes); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) people(ctx context.Context, w workspaceEntry) error {
	for i, p := range w.People {
		id, err := l.save(ctx, "people", i, p.Ref, func(id int64) (int64, error) {
			hash, err := l.hash(ctx, id, p.Password)
			if err != nil {
				return 0, err
			}
			return l.s.SavePerson(ctx, id, db.Person{
				Email: contact.NormalizeEmail(p.Email), Name: p.Name, Role: p.Role, PasswordHash: hash, Left: p.Left,
			})
		})
		if err != nil {
			return err
		}
		l.report.People[p.Ref] = id
	}
	return nil
}

// hash gives the hash of a password, nil where there is none or it is the one
// that the person has.
func (l *loader) hash(ctx context.Context, person int64, password string) (*string, error) {
	if password == "" {
		return nil, nil
	}
	if person != 0 {
		current, err := l.s.PasswordHash(ctx, person)
		if err != nil || bcrypt.CompareHashAndPassword([]byte(current), []byte(password)) == nil {
			return nil, err
		}
	}
	raw, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	hash := string(raw)
	return &hash, err
}

func (l *loader) keys(ctx context.Context, w workspaceEntry) error {
	for i, k := range w.APIKeys {
		key := db.APIKey{
			Kind: cmp.Or(k.Kind, string(auth.APIKey)), Name: k.Ref, Owner: l.report.People[k.Owner], Scopes: k.Scopes,
			RequestsPerMinute: limit.KeyRequestsPerMinute, Test: k.Test, ExpiresAt: k.ExpiresAt, Revoked: k.Revoked,
		}
		if k.RequestsPerMinute != nil {
			key.RequestsPerMinute = *k.RequestsPerMinute
		}
		token := k.Token
		id, err := l.save(ctx, "api_keys", i, k.Ref, func(id int64) (int64, error) {
			if token == "" && id == 0 {
				token = auth.NewToken(auth.Kind(key.Kind))
			}
			if token != "" {
				credential, _ := auth.ParseToken(token)
				key.Hash, key.Prefix, key.Last4 = credential.Hash, credential.Kind.Prefix(), credential.Last4
			}
			if id == 0 {
				return l.s.CreateAPIKey(ctx, key)
			}
			if err := l.s.UpdateAPIKey(ctx, id, key); err != nil || token == "" {
				return id, err
			}
			return id, l.s.ReplaceCredential(ctx, id, key)
		})
		if err != nil {
			return err
		}
		l.report.APIKeys[k.Ref] = KeyReport{ID: id, Token: token}
	}
	return nil
}

func (l *loader) companies(ctx context.Context, w workspaceEntry) error {
	for i, c := range w.Companies {
		record := db.Company{Name: c.Name, NameKey: company.NameKey(c.Name), Industry: c.Industry, Country: c.Country, Stage: c.Stage, Source: "seed"}
		record.Domain, _ = company.NormalizeDomain(c.Domain)
		for _, other := range c.OtherDomains {
			domain, _ := company.NormalizeDomain(other)
			record.OtherDomains = append(record.OtherDomains, domain)
		}
		id, err := l.save(ctx, "companies", i, c.Ref, func(id int64) (int64, error) {
			return l.s.SaveCompany(ctx, id, record)
		})
		if err != nil {
			return err
		}
		l.report.Companies[c.Ref] = id
	}
	return nil
}

func (l *loader) contacts(ctx context.Context, w workspaceEntry) error {
	for i, p := range w.Contacts {
		linkedIn, _ := contact.NormalizeLinkedIn(p.LinkedInURL)
		id, err := l.save(ctx, "contacts", i, p.Ref, func(id int64) (int64, error) {
			return l.s.SaveContact(ctx, id, db.Contact{
				Company: l.report.Companies[p.Company], Email: contact.NormalizeEmail(p.Email),
				FirstName: p.FirstName, LastName: p.LastName, Title: p.Title, Seniority: p.Seniority,
				Department: p.Department, Phone: contact.NormalizePhone(p.Phone), LinkedInURL: linkedIn, Source: "seed",
			})
		})
		if err != nil {
			return err
		}
		l.report.Contacts[p.Ref] = id
	}
	return nil
}

// ids turns references into the ids they became.
func ids(refs []string, became map[string]int64) []int64 {
	all := make([]int64, len(refs))
	for i, ref := range refs {
		all[i] = became[ref]
	}
	return all
}

func (l *loader) segments(ctx context.Context, w workspaceEntry) error {
	for i, g := range w.Segments {
		id, err := l.save(ctx, "segments", i, g.Ref, func(id int64) (int64, error) {
			return l.s.SaveSegment(ctx, id, g.Name, ids(g.Companies, l.report.Companies))
		})
		if err != nil {
			return err
		}
		l.report.Segments[g.Ref] = id
	}
	return nil
}

func (l *loader) eventTypes(ctx context.Context, w workspaceEntry) error {
	for _, t := range w.EventTypes {
		properties := db.PropertyTypes{}
		for key, kind := range t.Properties {
			properties[key] = kind
		}
		id, err := l.s.SaveEventType(ctx, t.Name, cmp.Or(t.Label, event.Label(t.Name)), cmp.Or(t.Status, "active"), properties)
		if err != nil {
			return err
		}
		l.report.EventTypes[t.Name] = id
	}
	return nil
}

func conditionsOf(entries []conditionEntry) []motion.Condition {
	all := make([]motion.Condition, len(entries))
	for i, e := range entries {
		all[i] = motion.Condition(e)
	}
	return all
}

func (l *loader) signals(ctx context.Context, w workspaceEntry) error {
	for i, g := range w.Signals {
		conditions, err := json.Marshal(conditionsOf(g.Where))
		if err != nil {
			return err
		}
		record := db.Signal{Name: g.Name, Event: g.Event, MinCount: 1, WithinDays: 30, Conditions: conditions, Score: g.Score}
		if g.MinCount != nil {
			record.MinCount = *g.MinCount
		}
		if g.WithinDays != nil {
			record.WithinDays = *g.WithinDays
		}
		id, err := l.save(ctx, "signals", i, g.Ref, func(id int64) (int64, error) {
			return l.s.SaveSignal(ctx, id, record)
		})
		if err != nil {
			return err
		}
		l.report.Signals[g.Ref] = id
	}
	return nil
}

func (l *loader) motions(ctx context.Context, w workspaceEntry) error {
	for i, m := range w.Motions {
		settings := motion.Entry{
			APICall: m.Entry.APICall, LeadCreated: m.Entry.LeadCreated, Events: make([]motion.Trigger, len(m.Entry.Events)),
			Signals:       ids(m.Entry.Signals, l.report.Signals),
			InSegments:    ids(m.Entry.InSegments, l.report.Segments),
			NotInSegments: ids(m.Entry.NotInSegments, l.report.Segments),
			DailyCap:      m.Entry.DailyCap,
		}
		settings.ReentryDays, _ = reentry(m.Entry.Reentry)
		for k, t := range m.Entry.Events {
			settings.Events[k] = motion.Trigger{Name: t.Name, Where: conditionsOf(t.Where)}
		}
		steps := make([]motion.Step, len(m.Steps))
		for k, s := range m.Steps {
			steps[k] = motion.Step{
				Kind: s.Kind, Hours: s.Days*24 + s.Hours, Segment: l.report.Segments[s.Segment], Field: s.Field,
				Value: s.Value, Text: s.Text, Name: s.Name, Amount: s.Amount, URL: s.URL,
			}
		}
		entryJSON, err := json.Marshal(settings)
		if err != nil {
			return err
		}
		stepsJSON, err := json.Marshal(steps)
		if err != nil {
			return err
		}
		id, err := l.save(ctx, "motions", i, m.Ref, func(id int64) (int64, error) {
			return l.s.SaveMotion(ctx, db.Motion{
				ID: id, Name: m.Name, Status: cmp.Or(m.Status, "active"), Entry: entryJSON, Steps: stepsJSON,
			})
		})
		if err != nil {
			return err
		}
		l.report.Motions[m.Ref] = id
	}
	return nil
}

// fresh gives a value that the file leaves out: a new one for a new record,
// none for one that has its own already.
func fresh(given, prefix string, id int64) string {
	if given != "" || id != 0 {
		return given
	}
	return prefix + strings.ToLower(rand.Text())
}

func (l *loader) sites(ctx context.Context, w workspaceEntry) error {
	for i, e := range w.Sites {
		made := SiteReport{}
		id, err := l.save(ctx, "sites", i, e.Ref, func(id int64) (int64, error) {
			made.SiteKey, made.Secret = fresh(e.SiteKey, "site_", id), fresh(e.Secret, "", id)
			if made.SiteKey == "" {
				key, err := l.s.SiteKey(ctx, id)
				if err != nil {
					return 0, err
				}
				made.SiteKey = key
			}
			return l.s.SaveSite(ctx, id, made.SiteKey, made.Secret, e.Origins)
		})
		if err != nil {
			return err
		}
		made.ID = id
		l.report.Sites[e.Ref] = made
	}
	return nil
}

func (l *loader) visitors(ctx context.Context, w workspaceEntry) error {
	for _, v := range w.Visitors {
		if err := l.s.SaveVisitor(ctx, v.ID, l.report.Sites[v.Site].ID); err != nil {
			return err
		}
		if v.IdentifiedAs != "" {
			if _, err := l.s.IdentifyVisitor(ctx, v.ID, l.report.Contacts[v.IdentifiedAs]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) forms(ctx context.Context, w workspaceEntry) error {
	for i, f := range w.Forms {
		made := FormReport{}
		id, err := l.save(ctx, "forms", i, f.Ref, func(id int64) (int64, error) {
			made.PublicKey = fresh(f.PublicKey, "form_", id)
			return l.s.SaveForm(ctx, id, made.PublicKey, f.Name, f.Fields)
		})
		if err != nil {
			return err
		}
		made.ID = id
		l.report.Forms[f.Ref] = made
	}
	for i, f := range w.MeetingForms {
		made := FormReport{}
		id, err := l.save(ctx, "meeting_forms", i, f.Ref, func(id int64) (int64, error) {
			made.PublicKey = fresh(f.PublicKey, "meet_", id)
			return l.s.SaveMeetingForm(ctx, id, made.PublicKey, f.Name, f.Minutes)
		})
		if err != nil {
			return err
		}
		made.ID = id
		l.report.MeetingForms[f.Ref] = made
	}
	return nil
}
