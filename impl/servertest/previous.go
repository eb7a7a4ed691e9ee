package servertest

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What was published last: its commit, and the newest migration in it. Whoever
// publishes a version writes its own here.
//
//go:embed previous
var previous string

// Previous gives the commit that was published last, and its newest migration.
func Previous(t testing.TB) (commit string, migration int64) {
	t.Helper()
	if _, err := fmt.Sscanf(previous, "commit %s\nmigration %d", &commit, &migration); err != nil {
		t.Fatal(err)
	}
	return commit, migration
}

// PreviousSource gives a folder with the source that was published last, out of
// the repository's history. Where that is cut off and the rest cannot be had, the
// test is skipped; with INLET_PREVIOUS=required it fails.
func PreviousSource(t testing.TB) string {
	t.Helper()
	commit, _ := Previous(t)
	source, err := archive(t, commit)
	if err != nil {
		say := t.Skipf
		if os.Getenv("INLET_PREVIOUS") == "required" {
			say = t.Fatalf
		}
		say("the version published last, %s, is not in this checkout, and so upgrades from it are not tested: %v", commit, err)
	}
	dir := t.TempDir()
	for {
		header, err := source.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(header.Name))
		content, err := io.ReadAll(source)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// archive reads a commit's files, and fetches the commit first where a clone is
// too shallow to have it.
func archive(t testing.TB, commit string) (*tar.Reader, error) {
	t.Helper()
	git := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
		}
		return out, err
	}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	root := string(bytes.TrimSpace(top))
	if _, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		if _, err := git("-C", root, "fetch", "--quiet", "--depth", "1", "origin", commit); err != nil {
			return nil, err
		}
	}
	files, err := git("-C", root, "archive", commit)
	return tar.NewReader(bytes.NewReader(files)), err
}

// PreviousBinary gives the program that was published last, built from its source.
func PreviousBinary(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "inlet")
	// Without paths in it, most of the build is found in the cache.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/inlet")
	build.Dir = PreviousSource(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the version published last does not build: %v\n%s", err, out)
	}
	return program
}
