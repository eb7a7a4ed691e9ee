package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"

	"github.com/inletdev/inlet/impl"
	"github.com/inletdev/inlet/openapi"
)

type versionCmd struct{}

// Run prints a word and its value a line, for programs too.
func (versionCmd) Run() error {
	version, revision := impl.Build()
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
