package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/limit"
)

type eventTypeCmd struct {
	List     eventTypeListCmd     `cmd:"" help:"List the event names of a workspace."`
	Rename   eventTypeRenameCmd   `cmd:"" help:"Change the display name of an event name."`
	Activate eventTypeActivateCmd `cmd:"" help:"Take events of a name again and show it in the signal builder."`
	Archive  eventTypeArchiveCmd  `cmd:"" help:"Go on recording events of a name and hide it from the signal builder."`
	Block    eventTypeBlockCmd    `cmd:"" help:"Refuse events of a name, from the very next one on."`
}

// eventTypeArgs name an event type on the command line.
type eventTypeArgs struct {
	databaseConfig
	Name      string `arg:"" help:"The event name."`
	Workspace string `required:"" help:"Slug of the workspace."`
}

func (c *eventTypeArgs) change(do func(context.Context, *db.Scope) error) error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		err := do(ctx, s)
		if errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("the workspace has received no event named %s", c.Name)
		}
		return err
	})
}

func (c *eventTypeArgs) setStatus(status string) error {
	return c.change(func(ctx context.Context, s *db.Scope) error {
		if err := s.SetEventTypeStatus(ctx, c.Name, status); err != nil {
			return err
		}
		fmt.Printf("%s is %s\n", c.Name, status)
		return nil
	})
}

type eventTypeActivateCmd struct{ eventTypeArgs }

func (c *eventTypeActivateCmd) Run() error { return c.setStatus("active") }

type eventTypeArchiveCmd struct{ eventTypeArgs }

func (c *eventTypeArchiveCmd) Run() error { return c.setStatus("archived") }

type eventTypeBlockCmd struct{ eventTypeArgs }

func (c *eventTypeBlockCmd) Run() error { return c.setStatus("blocked") }

type eventTypeRenameCmd struct {
	eventTypeArgs
	Label string `arg:"" help:"The new display name."`
}

func (c *eventTypeRenameCmd) Run() error {
	label := strings.TrimSpace(c.Label)
	if n := utf8.RuneCountInString(label); n < 1 || n > limit.EventLabelLength {
		return fmt.Errorf("want a display name of 1 to %d characters", limit.EventLabelLength)
	}
	return c.change(func(ctx context.Context, s *db.Scope) error { return s.RenameEventType(ctx, c.Name, label) })
}

type eventTypeListCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *eventTypeListCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.ListedEventTypes(ctx, "", limit.EventNames)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"ID", "NAME", "LABEL", "STATUS", "PROPERTIES", "LAST SEEN"}, len(all), func(i int) []any {
			t := all[i]
			return []any{t.ID, t.Name, t.Label, t.Status, len(t.Properties), t.LastSeenAt.Format(time.RFC3339)}
		})
	})
}
