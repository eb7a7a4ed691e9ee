package main

import (
	"context"
	"fmt"

	"github.com/inletdev/inlet/db"
)

type checkCmd struct{ databaseConfig }

func (c *checkCmd) Run() error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		wrong, err := d.Check(ctx)
		if err != nil {
			return err
		}
		for _, what := range wrong {
			fmt.Println(what)
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d things are wrong", len(wrong))
		}
		fmt.Println("all is well")
		return nil
	})
}

type restoredCmd struct {
	databaseConfig
	IDs int64 `name:"ids" default:"1000000" help:"How many ids of each kind to leave out; more than were ever given out between the two moments (default ${default})."`
}

func (c *restoredCmd) Run() error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		if c.IDs < 1 {
			return fmt.Errorf("--ids %d: want at least 1", c.IDs)
		}
		if err := d.PassOver(ctx, c.IDs); err != nil {
			return err
		}
		fmt.Printf("%d ids of each kind are left out, and servers forget what they keep in memory\n", c.IDs)
		return nil
	})
}
