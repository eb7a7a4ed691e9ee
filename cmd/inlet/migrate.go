package main

import (
	"context"
	"fmt"

	"github.com/inletdev/inlet/db"
)

type migrateCmd struct{ databaseConfig }

func (c *migrateCmd) Run() error {
	return c.with(func(context.Context, *db.DB) error {
		fmt.Println("the schema is up to date")
		return nil
	})
}
