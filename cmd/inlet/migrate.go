package main

import (
	"context"
	"fmt"

	"github.com/inletdev/inlet/db"
)

type migrateCmd struct {
	databaseConfig
	GrantTo string `name:"grant-to" placeholder:"ROLE" help:"Let this role do what a server does, and no more; run it as the owner of the schema."`
}

func (c *migrateCmd) Run() error {
	c.Migrate = true // whatever the others are told
	return c.with(func(ctx context.Context, d *db.DB) error {
		fmt.Println("the schema is up to date")
		if c.GrantTo == "" {
			return nil
		}
		if err := d.Grant(ctx, c.GrantTo); err != nil {
			return err
		}
		fmt.Printf("the role %s may serve it\n", c.GrantTo)
		return nil
	})
}
