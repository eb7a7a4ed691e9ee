package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inletdev/inlet/impl/fault"
)

var errorLink = regexp.MustCompile(`href="[^"]*errors(?:\.html)?#([^"]*)"`)

// Each error code is an anchor of the catalogue, and each link to one leads there.
func TestLinksToErrorsLeadToTheirCodes(t *testing.T) {
	for _, suffix := range []string{"", ".html"} {
		s := build("https://docs.example", "https://api.example", "", suffix)
		for name, f := range s.files {
			if len(f.content()) == 0 {
				t.Errorf("%s is empty", name)
			}
		}
		catalogue := s.files["errors"+suffix].content()
		for _, code := range fault.Catalog() {
			if bytes.Count(catalogue, []byte(`id="`+code.Name+`"`)) != 1 {
				t.Errorf("%s is not one anchor of errors%s", code.Name, suffix)
			}
		}
		links := 0
		for name, f := range s.files {
			if !strings.HasPrefix(f.kind, "text/html") {
				continue
			}
			for _, link := range errorLink.FindAllSubmatch(f.content(), -1) {
				links++
				if !bytes.Contains(catalogue, []byte(`id="`+string(link[1])+`"`)) {
					t.Errorf("%s links to errors#%s, which is not there", name, link[1])
				}
			}
		}
		if links < 50 {
			t.Errorf("only %d links to errors are found", links)
		}
	}
}

// Markdown is read away from the site: its links are whole addresses.
func TestTwinsLinkToWholeAddresses(t *testing.T) {
	for name, f := range build("https://docs.example", "https://api.example", "", "").files {
		if strings.HasSuffix(name, ".md") && bytes.Contains(f.content(), []byte("](/")) {
			t.Errorf("%s has a link without the site's address", name)
		}
	}
}

var sourceLink = regexp.MustCompile("\\[`?([^\\]`]+)`?\\]\\((?:https://github\\.com/inletdev/inlet/blob/main/)?([^)#:]+)\\)")

// Pages and the README point into the source: at files that are there, and at
// tests that are in them.
func TestLinksIntoTheSourceLeadThere(t *testing.T) {
	root := filepath.Join("..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{"README.md": readme}
	for _, section := range sections() {
		for _, p := range section.Pages {
			texts[p.Path] = p.Markdown
		}
	}
	isFunction := regexp.MustCompile(`^[a-zA-Z][a-z]*[A-Z]\w*$`)
	links := 0
	for name, text := range texts {
		for _, link := range sourceLink.FindAllSubmatch(text, -1) {
			what, to := string(link[1]), string(link[2])
			if strings.HasPrefix(to, "/") { // within the site
				continue
			}
			links++
			target := filepath.Join(root, to)
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links %q to %s, which is not there", name, what, to)
				continue
			}
			if source, err := os.ReadFile(target); strings.HasSuffix(to, "_test.go") && isFunction.MatchString(what) && (err != nil || !bytes.Contains(source, []byte("\nfunc "+what+"("))) {
				t.Errorf("%s links to %s, which is not in %s", name, what, to)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links are found", links)
	}
}

// A threat without a test is a hope: each line links to one, or says that it has
// none and what there is instead.
func TestEveryLineOfTheThreatModelNamesItsTest(t *testing.T) {
	page, err := written.ReadFile("pages/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	test := regexp.MustCompile("\\[`(?:(?:Test|Fuzz)\\w+|scripts/[\\w.]+)`\\]\\(https://github\\.com/inletdev/inlet/blob/main/[\\w./]+\\)")
	boundaries, lines := map[string]string{}, 0
	boundary := ""
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			boundary = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || len(strings.TrimSpace(cells[0])) != 1 {
			if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|  | threat |") && !strings.HasPrefix(line, "|---") {
				t.Errorf("the line is none of a kind of threat, the threat, what stands against it and its test: %s", line)
			}
			continue
		}
		lines++
		boundaries[boundary] += strings.TrimSpace(cells[0])
		if none := strings.HasPrefix(strings.TrimSpace(cells[2]), "No test: "); none == test.MatchString(cells[3]) {
			t.Errorf("the line has no test and does not say so, or both: %s", line)
		}
	}
	if len(boundaries) != 8 || lines < 60 {
		t.Errorf("%d lines of the boundaries %v are found", lines, boundaries)
	}
	for name, kinds := range boundaries {
		for _, kind := range "STRIDE" {
			// What a build is made of is denied by nobody, and serves nobody.
			if !strings.ContainsRune(kinds, kind) && name != "Supply chain to build" && (name != "Server to logs, metrics and traces" || kind != 'E') {
				t.Errorf("%s has no line for %c", name, kind)
			}
		}
	}
}
