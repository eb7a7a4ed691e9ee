package seed

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/company"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/form"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/visitor"
)

var (
	slugs      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	eventNames = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	properties = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	visitorIDs = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	emails     = regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)
	siteKeys   = regexp.MustCompile(`^site_[A-Za-z0-9_-]{1,100}$`)
	formKeys   = regexp.MustCompile(`^form_[A-Za-z0-9_-]{1,100}$`)
	meetKeys   = regexp.MustCompile(`^meet_[A-Za-z0-9_-]{1,100}$`)
)

// checker looks at one workspace of a file: every value possible, every
// reference to something in the file.
type checker struct {
	*problems
	path string // of the workspace
	refs map[string]bool
}

func check(f file, p *problems) {
	if len(f.Workspaces) == 0 {
		p.at("$.workspaces", "want at least one workspace")
	}
	seen := make(map[string]bool)
	for i, w := range f.Workspaces {
		path := fmt.Sprintf("$.workspaces[%d]", i)
		if !slugs.MatchString(w.Slug) {
			p.at(path+".slug", "want a-z, 0-9 and dashes, at most 63 characters")
		}
		if seen[w.Slug] {
			p.at(path+".slug", "another workspace of the file has this slug")
		}
		seen[w.Slug] = true
		c := &checker{problems: p, path: path, refs: make(map[string]bool)}
		c.workspace(w)
	}
}

func (c *checker) place(list string, i int, field string) string {
	path := fmt.Sprintf("%s.%s[%d]", c.path, list, i)
	if field != "" {
		path += "." + field
	}
	return path
}

// define notes a reference that others may name.
func (c *checker) define(list string, i int, ref string) {
	switch {
	case ref == "":
		c.at(c.place(list, i, "ref"), "want a ref, by which the rest of the file and later loads know it")
	case c.refs[list+"/"+ref]:
		c.at(c.place(list, i, "ref"), "another entry of %s has this ref", list)
	}
	c.refs[list+"/"+ref] = true
}

func (c *checker) refers(path, list, ref string) {
	if !c.refs[list+"/"+ref] {
		c.at(path, "no entry of %s has the ref %q", list, ref)
	}
}

func (c *checker) oneOf(path, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		c.at(path, "want one of %s", strings.Join(choices, ", "))
	}
}

func (c *checker) named(path, value string) {
	if strings.TrimSpace(value) == "" {
		c.at(path, "want a text")
	}
}

func (c *checker) unique(seen map[string]bool, path, value, what string) {
	if seen[value] {
		c.at(path, "the %s stands twice in the workspace", what)
	}
	seen[value] = true
}

func (c *checker) scopes(path string, scopes []string) {
	for i, s := range scopes {
		if !slices.Contains(auth.Scopes(), s) {
			c.at(fmt.Sprintf("%s[%d]", path, i), "no such scope; want one of %s", strings.Join(auth.Scopes(), ", "))
		}
	}
}

var roleNames = []string{"admin", "manager", "member", "viewer"}

func (c *checker) workspace(w workspaceEntry) {
	roles := make(map[string]bool)
	for i, r := range w.Roles {
		c.oneOf(c.place("roles", i, "name"), r.Name, roleNames...)
		c.unique(roles, c.place("roles", i, "name"), r.Name, "role")
		c.scopes(c.place("roles", i, "scopes"), r.Scopes)
	}
	addresses := make(map[string]bool)
	for i, p := range w.People {
		c.define("people", i, p.Ref)
		c.named(c.place("people", i, "name"), p.Name)
		c.oneOf(c.place("people", i, "role"), p.Role, roleNames...)
		if !emails.MatchString(p.Email) {
			c.at(c.place("people", i, "email"), "want an e-mail address")
		}
		c.unique(addresses, c.place("people", i, "email"), contact.NormalizeEmail(p.Email), "e-mail address")
	}
	c.keys(w.APIKeys)
	c.companies(w.Companies)
	c.contacts(w.Contacts)
	for i, s := range w.Segments {
		c.define("segments", i, s.Ref)
		c.named(c.place("segments", i, "name"), s.Name)
		for k, ref := range s.Companies {
			c.refers(c.place("segments", i, fmt.Sprintf("companies[%d]", k)), "companies", ref)
		}
	}
	c.eventTypes(w.EventTypes)
	c.signals(w.Signals)
	c.motions(w.Motions)
	c.sites(w)
}

func (c *checker) keys(all []keyEntry) {
	tokens := make(map[string]bool)
	for i, k := range all {
		c.define("api_keys", i, k.Ref)
		kind := auth.Kind(k.Kind)
		if k.Kind == "" {
			kind = auth.APIKey
		}
		c.oneOf(c.place("api_keys", i, "kind"), string(kind), string(auth.APIKey), string(auth.ServiceKey))
		if k.Owner != "" {
			c.refers(c.place("api_keys", i, "owner"), "people", k.Owner)
		} else if kind == auth.ServiceKey {
			c.at(c.place("api_keys", i, "owner"), "a service key needs an owner")
		}
		c.scopes(c.place("api_keys", i, "scopes"), k.Scopes)
		if k.RequestsPerMinute != nil && (*k.RequestsPerMinute < 1 || *k.RequestsPerMinute > limit.KeyRequestsMost) {
			c.at(c.place("api_keys", i, "requests_per_minute"), "want at least 1 and at most %d", limit.KeyRequestsMost)
		}
		if k.Token == "" {
			continue
		}
		if parsed, ok := auth.ParseToken(k.Token); !ok || parsed.Kind != kind {
			c.at(c.place("api_keys", i, "token"),
				"want %s, 30 base-62 characters and their checksum, as inlet key create makes them", kind.Prefix())
		}
		c.unique(tokens, c.place("api_keys", i, "token"), k.Token, "token")
	}
}

func (c *checker) companies(all []companyEntry) {
	domains := make(map[string]bool)
	for i, co := range all {
		c.define("companies", i, co.Ref)
		c.named(c.place("companies", i, "name"), co.Name)
		domain := func(path, value string) {
			normal, ok := company.NormalizeDomain(value)
			if !ok {
				c.at(path, "want a domain such as example.com")
			}
			c.unique(domains, path, normal, "domain")
		}
		if co.Domain != "" {
			domain(c.place("companies", i, "domain"), co.Domain)
		} else if len(co.OtherDomains) > 0 {
			c.at(c.place("companies", i, "domain"), "want a main domain beside the other domains")
		}
		for k, other := range co.OtherDomains {
			domain(c.place("companies", i, fmt.Sprintf("other_domains[%d]", k)), other)
		}
	}
}

func (c *checker) contacts(all []contactEntry) {
	addresses := make(map[string]bool)
	for i, p := range all {
		c.define("contacts", i, p.Ref)
		if p.Company != "" {
			c.refers(c.place("contacts", i, "company"), "companies", p.Company)
		}
		if _, ok := contact.NormalizeLinkedIn(p.LinkedInURL); !ok && p.LinkedInURL != "" {
			c.at(c.place("contacts", i, "linkedin_url"), "want the address of a profile such as https://www.linkedin.com/in/ada")
		}
		if p.Email == "" {
			continue
		}
		if !emails.MatchString(p.Email) {
			c.at(c.place("contacts", i, "email"), "want an e-mail address")
		}
		c.unique(addresses, c.place("contacts", i, "email"), contact.NormalizeEmail(p.Email), "e-mail address")
	}
}

func (c *checker) eventTypes(all []eventTypeEntry) {
	if len(all) > limit.EventNames {
		c.at(c.path+".event_types", "want at most %d names", limit.EventNames)
	}
	names := make(map[string]bool)
	for i, t := range all {
		if !eventNames.MatchString(t.Name) {
			c.at(c.place("event_types", i, "name"), "want a lower-case letter, then a-z, 0-9 and underscore, at most 48 characters")
		}
		c.unique(names, c.place("event_types", i, "name"), t.Name, "event name")
		if t.Status != "" {
			c.oneOf(c.place("event_types", i, "status"), t.Status, "active", "archived", "blocked")
		}
		if len(t.Properties) > limit.PropertyCount {
			c.at(c.place("event_types", i, "properties"), "want at most %d properties", limit.PropertyCount)
		}
		for key, kind := range t.Properties {
			if !properties.MatchString(key) {
				c.at(c.place("event_types", i, "properties"), "%q is no property name", key)
			}
			c.oneOf(c.place("event_types", i, "properties"), kind, "string", "number", "bool")
		}
	}
}

func (c *checker) conditions(path string, all []conditionEntry) {
	for i, w := range all {
		if !properties.MatchString(w.Property) {
			c.at(fmt.Sprintf("%s.where[%d].property", path, i), "want the name of a property")
		}
		switch w.Equals.(type) {
		case string, bool, int64, uint64, float64:
		default:
			c.at(fmt.Sprintf("%s.where[%d].equals", path, i), "want a text, a number or a boolean")
		}
	}
}

func (c *checker) signals(all []signalEntry) {
	for i, s := range all {
		c.define("signals", i, s.Ref)
		c.named(c.place("signals", i, "name"), s.Name)
		if !eventNames.MatchString(s.Event) {
			c.at(c.place("signals", i, "event"), "want the name of an event")
		}
		for field, n := range map[string]*int{"min_count": s.MinCount, "within_days": s.WithinDays} {
			most := map[string]int{"min_count": limit.SignalEvents, "within_days": limit.MotionDays}[field]
			if n != nil && (*n < 1 || *n > most) {
				c.at(c.place("signals", i, field), "want at least 1 and at most %d", most)
			}
		}
		if s.Score < -limit.SignalScore || s.Score > limit.SignalScore {
			c.at(c.place("signals", i, "score"), "want at least %d and at most %d", -limit.SignalScore, limit.SignalScore)
		}
		c.conditions(c.place("signals", i, ""), s.Where)
	}
}

func (c *checker) motions(all []motionEntry) {
	for i, m := range all {
		c.define("motions", i, m.Ref)
		c.named(c.place("motions", i, "name"), m.Name)
		if m.Status != "" {
			c.oneOf(c.place("motions", i, "status"), m.Status, "active", "paused", "archived")
		}
		entry := c.place("motions", i, "entry")
		for k, t := range m.Entry.Events {
			path := fmt.Sprintf("%s.events[%d]", entry, k)
			if !eventNames.MatchString(t.Name) {
				c.at(path+".name", "want the name of an event")
			}
			c.conditions(path, t.Where)
		}
		for k, ref := range m.Entry.Signals {
			c.refers(fmt.Sprintf("%s.signals[%d]", entry, k), "signals", ref)
		}
		for k, ref := range m.Entry.InSegments {
			c.refers(fmt.Sprintf("%s.in_segments[%d]", entry, k), "segments", ref)
		}
		for k, ref := range m.Entry.NotInSegments {
			c.refers(fmt.Sprintf("%s.not_in_segments[%d]", entry, k), "segments", ref)
		}
		if _, ok := reentry(m.Entry.Reentry); !ok {
			c.at(entry+".reentry", "want never, always or {after_days: n} with n of at least 1 and at most %d", limit.MotionDays)
		}
		if m.Entry.DailyCap != nil && (*m.Entry.DailyCap < 1 || *m.Entry.DailyCap > limit.MotionDailyCap) {
			c.at(entry+".daily_cap", "want at least 1 and at most %d, or null for none", limit.MotionDailyCap)
		}
		for k, s := range m.Steps {
			c.step(fmt.Sprintf("%s[%d]", c.place("motions", i, "steps"), k), s)
		}
	}
}

// stepFields says which fields a step of each kind has; the first ones are
// required, those behind the bar are not.
var stepFields = map[string]string{
	"wait":                "|days hours",
	"add_to_segment":      "segment",
	"remove_from_segment": "segment",
	"set_field":           "field value",
	"add_note":            "text",
	"create_opportunity":  "name|amount",
	"send_webhook":        "url",
}

func (c *checker) step(path string, s stepEntry) {
	fields, ok := stepFields[s.Kind]
	if !ok {
		c.at(path+".kind", "want one of wait, add_to_segment, remove_from_segment, set_field, add_note, create_opportunity, send_webhook")
		return
	}
	required, optional, _ := strings.Cut(fields, "|")
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"days", s.Days != 0}, {"hours", s.Hours != 0}, {"segment", s.Segment != ""}, {"field", s.Field != ""},
		{"value", s.Value != ""}, {"text", s.Text != ""}, {"name", s.Name != ""}, {"amount", s.Amount != nil},
		{"url", s.URL != ""},
	} {
		needed := slices.Contains(strings.Fields(required), f.name)
		if needed && !f.set {
			c.at(path+".kind", "a step of kind %s needs %s", s.Kind, f.name)
		}
		if f.set && !needed && !slices.Contains(strings.Fields(optional), f.name) {
			c.at(path+"."+f.name, "a step of kind %s has no %s", s.Kind, f.name)
		}
	}
	switch {
	case s.Kind == "wait" && (min(s.Days, s.Hours) < 0 || max(s.Days, s.Hours) == 0 ||
		s.Days > limit.MotionDays || s.Hours > 24*(limit.MotionDays-s.Days)):
		c.at(path, "want days or hours to wait, at most %d days", limit.MotionDays)
	case s.Segment != "":
		c.refers(path+".segment", "segments", s.Segment)
	case s.URL != "":
		if u, err := url.Parse(s.URL); err != nil || u.Scheme != "https" || u.Host == "" {
			c.at(path+".url", "want an https address")
		}
	}
}

// reentry reads the setting: days is -1 for never and 0 for always.
func reentry(value any) (days int64, ok bool) {
	switch v := value.(type) {
	case nil:
		return -1, true
	case string:
		return map[string]int64{"never": -1, "always": 0}[v], v == "never" || v == "always"
	case map[string]any:
		n, ok := v["after_days"].(uint64)
		return int64(n), ok && len(v) == 1 && n >= 1 && n <= limit.MotionDays
	}
	return 0, false
}

func (c *checker) sites(w workspaceEntry) {
	for i, s := range w.Sites {
		c.define("sites", i, s.Ref)
		if s.SiteKey != "" && !siteKeys.MatchString(s.SiteKey) {
			c.at(c.place("sites", i, "site_key"), "want site_ and letters, digits, dashes or underscores")
		}
		for k, origin := range s.Origins {
			if !visitor.IsOrigin(origin) {
				c.at(c.place("sites", i, fmt.Sprintf("origins[%d]", k)), "want an origin such as https://www.example.com")
			}
		}
	}
	visitors := make(map[string]bool)
	for i, v := range w.Visitors {
		if !visitorIDs.MatchString(v.ID) {
			c.at(c.place("visitors", i, "id"), "want 1 to 64 letters, digits and dashes")
		}
		c.unique(visitors, c.place("visitors", i, "id"), v.ID, "visitor id")
		if v.Site != "" {
			c.refers(c.place("visitors", i, "site"), "sites", v.Site)
		}
		if v.IdentifiedAs != "" {
			c.refers(c.place("visitors", i, "identified_as"), "contacts", v.IdentifiedAs)
		}
	}
	for i, f := range w.Forms {
		c.define("forms", i, f.Ref)
		if err := form.CheckName(f.Name); err != nil {
			c.at(c.place("forms", i, "name"), "%v", err)
		}
		if f.PublicKey != "" && !formKeys.MatchString(f.PublicKey) {
			c.at(c.place("forms", i, "public_key"), "want form_ and letters, digits, dashes or underscores")
		}
		if err := form.CheckFields(f.Fields); err != nil {
			c.at(c.place("forms", i, "fields"), "%v", err)
		}
	}
	for i, f := range w.MeetingForms {
		c.define("meeting_forms", i, f.Ref)
		if err := form.CheckName(f.Name); err != nil {
			c.at(c.place("meeting_forms", i, "name"), "%v", err)
		}
		if f.PublicKey != "" && !meetKeys.MatchString(f.PublicKey) {
			c.at(c.place("meeting_forms", i, "public_key"), "want meet_ and letters, digits, dashes or underscores")
		}
		if f.Minutes < 1 || f.Minutes > limit.MeetingMinutes {
			c.at(c.place("meeting_forms", i, "minutes"), "want 1 to %d", limit.MeetingMinutes)
		}
	}
}
