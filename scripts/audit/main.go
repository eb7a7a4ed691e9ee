// Command audit tells what the binary is made of: under which licenses, for
// people (licenses), and which parts, for programs (sbom).
//
//	audit ROOT licenses FILE   writes what licenses ask to be passed on with the binary
//	audit ROOT sbom BINARY     prints a CycloneDX bill of materials of the binary
//
// Both fail where a part has no license that is known and allowed.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are the licenses that ask for no more than to be named and passed on.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// judged are licenses beyond these that were looked at, each for its module.
var judged = map[string]string{
	// Of a font for its SVG formatter, which is not in the binary.
	"github.com/alecthomas/chroma/v2": "OFL-1.1",
	// The public domain.
	"github.com/xi2/xz": "XZ",
}

// A part of the binary: a module, Go itself, or what was copied in.
type part struct {
	name, version string
	licenses      []string
	texts         []string
}

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("want ROOT and licenses FILE or sbom BINARY"))
	}
	if err := os.Chdir(os.Args[1]); err != nil {
		fail(err)
	}
	parts, err := parts()
	if err != nil {
		fail(err)
	}
	switch os.Args[2] {
	case "licenses":
		err = os.WriteFile(os.Args[3], notices(parts), 0o644)
	case "sbom":
		err = printSBOM(os.Args[3], parts)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "audit:", err)
	os.Exit(1)
}

// parts finds what the binary is made of and judges the licenses.
func parts() ([]part, error) {
	modules, err := modules()
	if err != nil {
		return nil, err
	}
	vendored, err := vendored()
	if err != nil {
		return nil, err
	}
	know, err := assets.DefaultClassifier()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(modules, vendored)
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	var problems []error
	for i := range all {
		p := &all[i]
		if p.licenses = licensesOf(know, p.texts); len(p.licenses) == 0 {
			problems = append(problems, fmt.Errorf("%s has no license that is known", p.name))
		}
		for _, license := range p.licenses {
			if !slices.Contains(allowed, license) && judged[p.name] != license {
				problems = append(problems, fmt.Errorf("%s is under %s, which is not among the licenses allowed", p.name, license))
			}
		}
	}
	return all, errors.Join(problems...)
}

// modules are those with a package in the binary, and Go, with the license files
// beside and above each of these packages.
func modules() ([]part, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/inlet")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	of := make(map[string]part)
	files := make(map[string]bool)
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p struct {
			Dir      string
			Standard bool
			Module   struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		if p.Standard || p.Module.Main {
			continue
		}
		module := of[p.Module.Path]
		module.name, module.version = p.Module.Path, p.Module.Version
		for dir := p.Dir; strings.HasPrefix(dir, p.Module.Dir); dir = filepath.Dir(dir) {
			if files[dir] {
				continue
			}
			files[dir] = true
			texts, err := licenseFiles(dir)
			if err != nil {
				return nil, err
			}
			module.texts = append(module.texts, texts...)
		}
		of[module.name] = module
	}
	root, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	texts, err := licenseFiles(strings.TrimSpace(string(root)))
	if err != nil {
		return nil, err
	}
	of["std"] = part{name: "std", texts: texts}
	return slices.Collect(maps.Values(of)), nil
}

var isLicense = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

func licenseFiles(dir string) (texts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() || !isLicense.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	return texts, nil
}

var npmPackage = regexp.MustCompile(`npm package \[([^\]]+)\]\([^)]*\) ([0-9][0-9.]*[0-9])`)

// vendored are the npm packages that were copied into impl, as the README beside
// each of them says, which holds their license too.
func vendored() (all []part, err error) {
	err = filepath.WalkDir("impl", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "README.md" {
			return err
		}
		readme, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range npmPackage.FindAllStringSubmatch(string(readme), -1) {
			all = append(all, part{name: "npm:" + found[1], version: found[2], texts: []string{quoted(string(readme))}})
		}
		return nil
	})
	return all, err
}

// quoted gives the block quotes of a page.
func quoted(markdown string) string {
	var text strings.Builder
	for lines := bufio.NewScanner(strings.NewReader(markdown)); lines.Scan(); {
		if line, ok := strings.CutPrefix(lines.Text(), ">"); ok {
			text.WriteString(strings.TrimPrefix(line, " ") + "\n")
		}
	}
	return strings.TrimSpace(text.String())
}

func licensesOf(know *classifier.Classifier, texts []string) []string {
	found := make(map[string]bool)
	for _, text := range texts {
		for _, match := range know.Match([]byte(text)).Matches {
			// A header stands for its license where a file has nothing but that.
			if (match.MatchType == "License" || match.MatchType == "Header") && match.Confidence >= 0.9 {
				found[match.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// notices writes each text once, behind what it is for.
func notices(parts []part) []byte {
	of := make(map[string][]string)
	for _, p := range parts {
		for _, text := range p.texts {
			of[text] = append(of[text], p.title())
		}
	}
	texts := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(slices.Compare(of[a], of[b]), cmp.Compare(a, b))
	})
	var b bytes.Buffer
	b.WriteString("Inlet is made with the work of others, under these licenses. `make licenses` writes this file.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(of[text], "\n"), text)
	}
	return b.Bytes()
}

func (p part) title() string {
	switch npm, isNPM := strings.CutPrefix(p.name, "npm:"); {
	case p.name == "std":
		return "Go (https://go.dev)"
	case isNPM:
		return npm + " " + p.version + " (npm)"
	}
	return p.name + " " + p.version
}
