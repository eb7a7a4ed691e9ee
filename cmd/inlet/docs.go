package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/inletdev/inlet/impl/docs"
	"github.com/inletdev/inlet/openapi"
)

type openapiCmd struct {
	publicConfig
	JSON bool `help:"Print it as JSON."`
}

func (c *openapiCmd) Run() error {
	public, _, err := c.addresses(defaultAddress)
	if err != nil {
		return err
	}
	out, asJSON := openapi.For(public)
	if c.JSON {
		out = asJSON
	}
	_, err = os.Stdout.Write(append(bytes.TrimSpace(out), '\n'))
	return err
}

type docsCmd struct {
	Export docsExportCmd `cmd:"" help:"Write the documentation as files, for any server of files."`
}

type docsExportCmd struct {
	publicConfig
	Dir string `arg:"" help:"The folder to write to."`
}

func (c *docsExportCmd) Run() error {
	public, docsURL, err := c.addresses(defaultAddress)
	if err != nil {
		return err
	}
	files, err := docs.Export(c.Dir, docsURL, public)
	if err == nil {
		fmt.Printf("%d files are written to %s\n", files, c.Dir)
	}
	return err
}
