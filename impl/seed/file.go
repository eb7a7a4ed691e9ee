// Package seed loads workspaces and what is in them from a YAML file.
//
// A file is checked whole before anything of it is loaded, and loaded in one
// transaction. References are names within the file; what each became is
// remembered, so that loading the file again finds the same records.
package seed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

type file struct {
	Workspaces []workspaceEntry `yaml:"workspaces"`
}

type workspaceEntry struct {
	Slug          string             `yaml:"slug"`
	Name          string             `yaml:"name"`
	AgentsEnabled *bool              `yaml:"agents_enabled"`
	APIEnabled    *bool              `yaml:"api_enabled"`
	MCPEnabled    *bool              `yaml:"mcp_enabled"`
	Leads         *leadsEntry        `yaml:"leads"`
	Roles         []roleEntry        `yaml:"roles"`
	People        []personEntry      `yaml:"people"`
	APIKeys       []keyEntry         `yaml:"api_keys"`
	Companies     []companyEntry     `yaml:"companies"`
	Contacts      []contactEntry     `yaml:"contacts"`
	Segments      []segmentEntry     `yaml:"segments"`
	Motions       []motionEntry      `yaml:"motions"`
	EventTypes    []eventTypeEntry   `yaml:"event_types"`
	Signals       []signalEntry      `yaml:"signals"`
	Sites         []siteEntry        `yaml:"sites"`
	Visitors      []visitorEntry     `yaml:"visitors"`
	Forms         []formEntry        `yaml:"forms"`
	MeetingForms  []meetingFormEntry `yaml:"meeting_forms"`
}

type leadsEntry struct {
	CreateCompanies *bool `yaml:"create_companies"`
	CreateContacts  *bool `yaml:"create_contacts"`
	Enrichment      *bool `yaml:"enrichment"`
}

type roleEntry struct {
	Name   string   `yaml:"name"`
	Scopes []string `yaml:"scopes"`
}

type personEntry struct {
	Ref      string `yaml:"ref"`
	Email    string `yaml:"email"`
	Name     string `yaml:"name"`
	Role     string `yaml:"role"`
	Password string `yaml:"password"`
	Left     bool   `yaml:"left"`
}

type keyEntry struct {
	Ref               string    `yaml:"ref"`
	Owner             string    `yaml:"owner"`
	Kind              string    `yaml:"kind"`
	Scopes            []string  `yaml:"scopes"`
	Token             string    `yaml:"token"`
	RequestsPerMinute *int      `yaml:"requests_per_minute"`
	ExpiresAt         time.Time `yaml:"expires_at"`
	Revoked           bool      `yaml:"revoked"`
	Test              bool      `yaml:"test"`
}

type companyEntry struct {
	Ref          string   `yaml:"ref"`
	Name         string   `yaml:"name"`
	Domain       string   `yaml:"domain"`
	OtherDomains []string `yaml:"other_domains"`
	Industry     string   `yaml:"industry"`
	Country      string   `yaml:"country"`
	Stage        string   `yaml:"stage"`
}

type contactEntry struct {
	Ref         string `yaml:"ref"`
	Email       string `yaml:"email"`
	FirstName   string `yaml:"first_name"`
	LastName    string `yaml:"last_name"`
	Title       string `yaml:"title"`
	Seniority   string `yaml:"seniority"`
	Department  string `yaml:"department"`
	Phone       string `yaml:"phone"`
	Company     string `yaml:"company"`
	LinkedInURL string `yaml:"linkedin_url"`
}

type segmentEntry struct {
	Ref       string   `yaml:"ref"`
	Name      string   `yaml:"name"`
	Companies []string `yaml:"companies"`
}

type motionEntry struct {
	Ref    string      `yaml:"ref"`
	Name   string      `yaml:"name"`
	Status string      `yaml:"status"`
	Entry  entryEntry  `yaml:"entry"`
	Steps  []stepEntry `yaml:"steps"`
}

type entryEntry struct {
	APICall       bool           `yaml:"api_call"`
	LeadCreated   bool           `yaml:"lead_created"`
	Events        []triggerEntry `yaml:"events"`
	Signals       []string       `yaml:"signals"`
	InSegments    []string       `yaml:"in_segments"`
	NotInSegments []string       `yaml:"not_in_segments"`
	Reentry       any            `yaml:"reentry"` // never, always or {after_days: n}
	DailyCap      *int           `yaml:"daily_cap"`
}

type triggerEntry struct {
	Name  string           `yaml:"name"`
	Where []conditionEntry `yaml:"where"`
}

type conditionEntry struct {
	Property string `yaml:"property"`
	Equals   any    `yaml:"equals"`
}

type stepEntry struct {
	Kind    string   `yaml:"kind"`
	Days    int      `yaml:"days"`
	Hours   int      `yaml:"hours"`
	Segment string   `yaml:"segment"`
	Field   string   `yaml:"field"`
	Value   string   `yaml:"value"`
	Text    string   `yaml:"text"`
	Name    string   `yaml:"name"`
	Amount  *float64 `yaml:"amount"`
	URL     string   `yaml:"url"`
}

type eventTypeEntry struct {
	Name       string            `yaml:"name"`
	Status     string            `yaml:"status"`
	Label      string            `yaml:"label"`
	Properties map[string]string `yaml:"properties"`
}

type signalEntry struct {
	Ref        string           `yaml:"ref"`
	Name       string           `yaml:"name"`
	Event      string           `yaml:"event"`
	MinCount   *int             `yaml:"min_count"`
	WithinDays *int             `yaml:"within_days"`
	Where      []conditionEntry `yaml:"where"`
	Score      int              `yaml:"score"`
}

type siteEntry struct {
	Ref     string   `yaml:"ref"`
	SiteKey string   `yaml:"site_key"`
	Secret  string   `yaml:"secret"`
	Origins []string `yaml:"origins"`
}

type visitorEntry struct {
	ID           string `yaml:"id"`
	Site         string `yaml:"site"`
	IdentifiedAs string `yaml:"identified_as"`
}

type formEntry struct {
	Ref       string   `yaml:"ref"`
	PublicKey string   `yaml:"public_key"`
	Name      string   `yaml:"name"`
	Fields    []string `yaml:"fields"`
}

type meetingFormEntry struct {
	Ref       string `yaml:"ref"`
	PublicKey string `yaml:"public_key"`
	Name      string `yaml:"name"`
	Minutes   int    `yaml:"minutes"`
}

// read parses a file strictly: an unknown or repeated key is an error, and so is
// text that is not UTF-8 or holds U+0000, which the database cannot.
func read(filename string, source []byte) (f file, tree *ast.File, err error) {
	defer func() {
		if recover() != nil { // the library gives some files up this way
			f, tree, err = file{}, nil, fmt.Errorf("%s:1: this is no YAML that can be read", filename)
		}
	}()
	if valid := bytes.ToValidUTF8(source, nil); len(valid) < len(source) {
		same := 0
		for same < len(valid) && valid[same] == source[same] {
			same++
		}
		return f, nil, fmt.Errorf("%s:%d: want text in UTF-8", filename, 1+bytes.Count(source[:same], []byte("\n")))
	}
	tree, err = parser.ParseBytes(source, 0)
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&f)
	}
	if errors.Is(err, io.EOF) {
		return f, nil, fmt.Errorf("%s:1: want a key `workspaces`", filename)
	}
	var located yaml.Error
	if errors.As(err, &located) {
		line := 1
		if token := located.GetToken(); token != nil {
			line = token.Position.Line
		}
		return f, nil, fmt.Errorf("%s:%d: %s", filename, line, located.GetMessage())
	}
	if err != nil {
		return f, nil, fmt.Errorf("%s:1: %w", filename, err)
	}
	var texts withNUL
	for _, document := range tree.Docs {
		ast.Walk(&texts, document)
	}
	if texts.line > 0 {
		return f, nil, fmt.Errorf("%s:%d: want text without U+0000", filename, texts.line)
	}
	return f, tree, nil
}

// withNUL visits a file for the first text that holds U+0000.
type withNUL struct{ line int }

// Visit looks at one node.
func (v *withNUL) Visit(node ast.Node) ast.Visitor {
	if text, ok := node.(*ast.StringNode); ok && v.line == 0 && strings.ContainsRune(text.Value, 0) {
		v.line = text.GetToken().Position.Line
	}
	return v
}

// A problems list gathers everything that is wrong with a file, by the YAML
// path of the place.
type problems struct {
	filename string
	tree     *ast.File
	lines    []string
}

// mostProblems keeps one mistake in a large file from filling the screen.
const mostProblems = 20

func (p *problems) at(path, format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf("%s:%d: %s: %s", p.filename, p.line(path),
		strings.TrimPrefix(path, "$."), fmt.Sprintf(format, args...)))
}

// line gives where a path stands, or its nearest parent that is there.
func (p *problems) line(path string) int {
	for path != "$" && path != "" {
		if at, err := yaml.PathString(path); err == nil {
			if node, err := at.FilterFile(p.tree); err == nil && node != nil && node.GetToken() != nil {
				if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
					return m.Values[0].GetToken().Position.Line
				}
				return node.GetToken().Position.Line
			}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 1
}

func (p *problems) err() error {
	if len(p.lines) == 0 {
		return nil
	}
	lines := p.lines
	if more := len(lines) - mostProblems; more > 0 {
		lines = append(lines[:mostProblems:mostProblems], fmt.Sprintf("… and %d more", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}
