package impl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parsers are the functions that read what clients, browsers, receivers of webhooks
// and operators send, by package. A fuzz target of the package calls each of them.
var parsers = map[string][]string{
	"cmd/inlet":       {"addresses", "apply"},
	"gen/client":      {"codeOf", "retryAfter", "Do"},
	"impl/api":        {"body", "parameters", "leadOf", "clientNetwork", "originOf", "requestID", "mediaType", "traced"},
	"impl/auth":       {"FromHeader", "ParseToken"},
	"impl/company":    {"NormalizeDomain", "NormalizeHost", "NamedDomain", "RegistrableDomain", "BusinessDomain", "NameKey"},
	"impl/contact":    {"ParseEmail", "NormalizeEmail", "NormalizeLinkedIn", "NormalizePhone", "OneLine"},
	"impl/docs":       {"search", "words"},
	"impl/embed":      {"show"},
	"impl/event":      {"Parse", "ParseBatch", "instant", "whole", "number", "holdsEmail", "holdsCard"},
	"impl/form":       {"CheckFields", "CheckName", "lead", "Zone", "span", "offered"},
	"impl/lead":       {"read"},
	"impl/motion":     {"send"},
	"impl/page":       {"Open"},
	"impl/seed":       {"read", "check"},
	"impl/strictjson": {"Check"},
	"impl/visitor":    {"verify", "parse", "IsOrigin", "AllowOrigin", "isPageOf", "withLink"},
}

// A fuzzTarget is a function that go test -fuzz runs.
type fuzzTarget struct {
	pkg, name, doc string
	calls          []string
}

func TestEveryParserHasAFuzzTarget(t *testing.T) {
	called := make(map[string][]string)
	for _, target := range fuzzTargets(t) {
		called[target.pkg] = append(called[target.pkg], target.calls...)
	}
	for pkg, names := range parsers {
		for _, name := range names {
			if !slices.Contains(called[pkg], name) {
				t.Errorf("no fuzz target of %s calls %s", pkg, name)
			}
		}
	}
	for pkg := range called {
		if parsers[pkg] == nil {
			t.Errorf("%s has fuzz targets, and no parser of it is on the list", pkg)
		}
	}
}

func TestEveryFuzzTargetSaysWhatItHoldsAndHasACorpus(t *testing.T) {
	page, err := os.ReadFile("docs/pages/fuzzing.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, target := range fuzzTargets(t) {
		if !strings.HasPrefix(target.doc, target.name+" ") {
			t.Errorf("%s of %s has no comment that begins with its name", target.name, target.pkg)
		}
		corpus := filepath.Join("..", target.pkg, "testdata", "fuzz", target.name)
		known[corpus] = true
		seeds, err := os.ReadDir(corpus)
		if err != nil || len(seeds) < 5 {
			t.Errorf("%s of %s has a corpus of %d inputs: %v", target.name, target.pkg, len(seeds), err)
		}
		for _, seed := range seeds {
			if isHash(seed.Name()) {
				t.Errorf("%s is named by no one: say what the input is", filepath.Join(corpus, seed.Name()))
			}
		}
		if !strings.Contains(string(page), "`"+target.pkg+"` | `"+target.name+"` |") {
			t.Errorf("%s of %s is not on the page about fuzzing", target.name, target.pkg)
		}
	}
	all, err := filepath.Glob("../*/*/testdata/fuzz/*")
	if err != nil || len(all) < len(known) {
		t.Fatalf("%d corpora: %v", len(all), err)
	}
	for _, corpus := range all {
		if !known[corpus] {
			t.Errorf("%s has no target", corpus)
		}
	}
}

// isHash tells the names that go test gives to what it finds.
func isHash(name string) bool { return len(name) == 16 && strings.Trim(name, "0123456789abcdef") == "" }

// fuzzTargets reads the targets of all packages from their source.
func fuzzTargets(t *testing.T) (all []fuzzTarget) {
	t.Helper()
	calls := make(map[string][]string) // what functions of tests call, by package and name
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../")))
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			calls[pkg+" "+f.Name.Name] = callsOf(f)
			if strings.HasPrefix(f.Name.Name, "Fuzz") {
				all = append(all, fuzzTarget{pkg: pkg, name: f.Name.Name, doc: f.Doc.Text()})
			}
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d targets: %v", len(all), err)
	}
	for i := range all {
		target := &all[i]
		target.calls = []string{target.name}
		for n := 0; n < len(target.calls); n++ { // and what these call
			for _, name := range calls[target.pkg+" "+target.calls[n]] {
				if !slices.Contains(target.calls, name) {
					target.calls = append(target.calls, name)
				}
			}
		}
	}
	return all
}

// callsOf names the functions and methods that a function calls.
func callsOf(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch called := call.Fun.(type) {
			case *ast.Ident:
				names = append(names, called.Name)
			case *ast.SelectorExpr:
				names = append(names, called.Sel.Name)
			}
		}
		return true
	})
	return names
}
