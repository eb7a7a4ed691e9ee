package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/workspace"
)

type workspaceCmd struct {
	Create workspaceCreateCmd `cmd:"" help:"Create a workspace."`
	List   workspaceListCmd   `cmd:"" help:"List the workspaces."`
	Show   workspaceShowCmd   `cmd:"" help:"Show a workspace and its settings."`
	Set    workspaceSetCmd    `cmd:"" help:"Change settings of a workspace."`
	Secret workspaceSecretCmd `cmd:"" name:"webhook-secret" help:"Print the secret that signs the webhooks of a workspace."`
}

type workspaceCreateCmd struct {
	databaseConfig
	Slug       string `arg:"" help:"Short name: a-z, 0-9 and dashes."`
	Name       string `help:"Name as people see it; default the slug."`
	AdminEmail string `help:"Adds a first person, an admin, who can own keys."`
	AdminName  string `help:"The admin's name; default the e-mail address."`
}

func (c *workspaceCreateCmd) Run() error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		var id int64
		err := d.Across(ctx, func(tx *db.Tx) (err error) {
			if id, err = workspace.Create(ctx, tx, c.Slug, cmp.Or(c.Name, c.Slug)); err != nil || c.AdminEmail == "" {
				return err
			}
			_, err = tx.Scope(id).SavePerson(ctx, 0, db.Person{
				Email: contact.NormalizeEmail(c.AdminEmail), Name: cmp.Or(c.AdminName, c.AdminEmail), Role: "admin",
			})
			return err
		})
		if errors.Is(err, db.ErrExists) {
			return fmt.Errorf("a workspace %s exists already", c.Slug)
		}
		if err != nil {
			return err
		}
		fmt.Printf("workspace %s has the id %d\n", c.Slug, id)
		return nil
	})
}

type workspaceListCmd struct {
	databaseConfig
	JSON bool `help:"Print JSON."`
}

func (c *workspaceListCmd) Run() error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		all, err := d.Workspaces(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"ID", "SLUG", "NAME", "CREATED"}, len(all), func(i int) []any {
			return []any{all[i].ID, all[i].Slug, all[i].Name, all[i].CreatedAt.Format("2006-01-02")}
		})
	})
}

type workspaceShowCmd struct {
	databaseConfig
	Slug string `arg:"" help:"Which workspace."`
	JSON bool   `help:"Print JSON."`
}

func (c *workspaceShowCmd) Run() error {
	return c.inWorkspace(c.Slug, func(_ context.Context, _ *db.Scope, w db.Workspace) error {
		if c.JSON {
			return printJSON(w)
		}
		settings := [][]any{
			{"id", w.ID}, {"slug", w.Slug}, {"name", w.Name},
			{"agents", onOff(w.AgentsEnabled)}, {"api", onOff(w.APIEnabled)}, {"mcp", onOff(w.MCPEnabled)},
			{"create-companies", onOff(w.CreateCompanies)}, {"create-contacts", onOff(w.CreateContacts)},
			{"enrichment", onOff(w.Enrichment)},
			{"events-per-minute", w.EventsPerMinute}, {"events-per-day", w.EventsPerDay},
			{"events-backlog", w.EventsBacklog},
		}
		return printTable([]string{"SETTING", "VALUE"}, len(settings), func(i int) []any { return settings[i] })
	})
}

type workspaceSetCmd struct {
	databaseConfig
	Slug            string `arg:"" help:"Which workspace."`
	Name            string `help:"Name as people see it."`
	Agents          string `enum:",on,off" default:"" help:"The motion engine: on or off."`
	API             string `enum:",on,off" default:"" help:"The REST API for service keys: on or off."`
	MCP             string `enum:",on,off" default:"" help:"The MCP server: on or off."`
	CreateCompanies string `enum:",on,off" default:"" help:"Leads may create companies: on or off."`
	CreateContacts  string `enum:",on,off" default:"" help:"Leads may create contacts: on or off."`
	Enrichment      string `enum:",on,off" default:"" help:"Enrichment of what leads create: on or off."`
	EventsPerMinute int    `help:"Events that may be sent a minute (1,000 at first)."`
	EventsPerDay    int    `help:"Events that may be sent a UTC day (100,000 at first)."`
	EventsBacklog   int    `help:"Accepted events that may wait to be processed (20,000 at first)."`
}

func (c *workspaceSetCmd) Run() error {
	if c.EventsPerMinute < 0 || c.EventsPerDay < 0 || c.EventsBacklog < 0 {
		return errors.New("limits are at least 1")
	}
	return c.inWorkspace(c.Slug, func(ctx context.Context, s *db.Scope, w db.Workspace) error {
		w.Name = cmp.Or(c.Name, w.Name)
		for _, setting := range []struct {
			field *bool
			value string
		}{
			{&w.AgentsEnabled, c.Agents}, {&w.APIEnabled, c.API}, {&w.MCPEnabled, c.MCP},
			{&w.CreateCompanies, c.CreateCompanies}, {&w.CreateContacts, c.CreateContacts}, {&w.Enrichment, c.Enrichment},
		} {
			if setting.value != "" {
				*setting.field = setting.value == "on"
			}
		}
		w.EventsPerMinute = cmp.Or(c.EventsPerMinute, w.EventsPerMinute)
		w.EventsPerDay = cmp.Or(c.EventsPerDay, w.EventsPerDay)
		w.EventsBacklog = cmp.Or(c.EventsBacklog, w.EventsBacklog)
		return s.UpdateWorkspace(ctx, w)
	})
}

type workspaceSecretCmd struct {
	databaseConfig
	Slug string `arg:"" help:"Which workspace."`
}

func (c *workspaceSecretCmd) Run() error {
	return c.inWorkspace(c.Slug, func(_ context.Context, _ *db.Scope, w db.Workspace) error {
		_, err := fmt.Println(w.WebhookSecret)
		return err
	})
}

// inWorkspace runs a command in the workspace of a slug.
func (c *databaseConfig) inWorkspace(slug string, do func(context.Context, *db.Scope, db.Workspace) error) error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		return d.Across(ctx, func(tx *db.Tx) error {
			w, err := tx.WorkspaceBySlug(ctx, slug)
			if errors.Is(err, db.ErrNotFound) {
				return fmt.Errorf("there is no workspace %s; inlet workspace list shows what there is", slug)
			}
			if err != nil {
				return err
			}
			return do(ctx, tx.Scope(w.ID), w)
		})
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func printJSON(v any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

func printTable(head []string, rows int, row func(int) []any) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for i, h := range head {
		fmt.Fprint(out, separator(i), h)
	}
	fmt.Fprintln(out)
	for i := range rows {
		for k, cell := range row(i) {
			fmt.Fprint(out, separator(k), visible(fmt.Sprint(cell)))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// visible takes what a terminal would obey out of text that anybody may have sent:
// control characters, and marks that turn the direction of what follows.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func separator(column int) string {
	if column == 0 {
		return ""
	}
	return "\t"
}
