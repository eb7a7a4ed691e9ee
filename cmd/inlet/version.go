package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/inletdev/inlet/openapi"
)

// revision of the source, which make build fills in.
var revision string

type versionCmd struct{}

// Run prints a word and its value a line, for programs too.
func (versionCmd) Run() error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && revision == "" {
				revision = setting.Value
			}
		}
	}
	if revision == "" {
		revision = "unknown"
	}
	_, err := fmt.Printf("inlet %s\nrevision %s\ngo %s %s/%s\ndocument %s\n",
		version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, openapi.Hash())
	return err
}

//go:embed licenses.txt
var licenses []byte

type licensesCmd struct{}

func (licensesCmd) Run() error {
	_, err := os.Stdout.Write(licenses)
	return err
}
