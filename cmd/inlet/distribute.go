package main

import (
	"context"
	"fmt"

	"github.com/inletdev/inlet/db"
)

type distributeCmd struct{ databaseConfig }

func (c *distributeCmd) Run() error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		if err := d.Distribute(ctx); err != nil {
			return err
		}
		fmt.Println("the tables are distributed by workspace; start the servers anew")
		return nil
	})
}
