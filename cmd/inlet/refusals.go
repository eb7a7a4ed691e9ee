package main

import (
	"cmp"
	"context"
	"time"

	"github.com/inletdev/inlet/db"
)

type refusalsCmd struct {
	databaseConfig
	Workspace string        `required:"" help:"Slug of the workspace."`
	Since     time.Duration `default:"24h" help:"How far to look back; refusals are kept for 30 days (720h)."`
	ByMinute  bool          `help:"A line for every minute, instead of one for all."`
	JSON      bool          `help:"Print JSON."`
}

func (c *refusalsCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.Refusals(ctx, time.Now().Add(-c.Since), c.ByMinute)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"EVENTS", "CODE", "PARAM", "EVENT", "KEY", "FIRST", "LAST"}, len(all), func(i int) []any {
			r := all[i]
			return []any{r.Events, r.Code, cmp.Or(r.Param, "-"), cmp.Or(r.EventName, "-"), cmp.Or(r.KeyName, "-"),
				r.First.UTC().Format("2006-01-02 15:04"), r.Last.UTC().Format("2006-01-02 15:04")}
		})
	})
}
