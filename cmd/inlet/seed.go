package main

import (
	"context"
	"fmt"
	"os"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/seed"
)

type seedCmd struct {
	databaseConfig
	File string `arg:"" help:"The YAML file; - reads standard input."`
	JSON bool   `help:"Print the ids, and the credentials made now, as one JSON object."`
}

func (c *seedCmd) Run() error {
	source, err := readFile(c.File)
	if err != nil {
		return err
	}
	return c.with(func(ctx context.Context, d *db.DB) error {
		report, err := seed.Load(ctx, d, c.File, source)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(report)
		}
		for slug, w := range report.Workspaces {
			fmt.Printf("workspace %s (%d): %d people, %d keys, %d companies, %d contacts, %d motions, %d event types\n",
				slug, w.ID, len(w.People), len(w.APIKeys), len(w.Companies), len(w.Contacts), len(w.Motions), len(w.EventTypes))
			for ref, key := range w.APIKeys {
				if key.Token != "" {
					fmt.Printf("  key %s: %s\n", ref, key.Token)
				}
			}
		}
		return nil
	})
}

func readFile(name string) ([]byte, error) {
	if name == "-" {
		name = os.Stdin.Name()
	}
	return os.ReadFile(name)
}
