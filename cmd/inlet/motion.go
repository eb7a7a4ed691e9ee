package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/motion"
)

type motionCmd struct {
	List     motionListCmd     `cmd:"" help:"List the motions of a workspace and how they go."`
	Show     motionShowCmd     `cmd:"" help:"Show a motion: entry settings, steps, the last entries and what was decided."`
	Pause    motionPauseCmd    `cmd:"" help:"Let no company enter a motion; steps that are due wait."`
	Activate motionActivateCmd `cmd:"" help:"Let companies enter a motion again; steps that waited go on within a minute."`
	Archive  motionArchiveCmd  `cmd:"" help:"End a motion for good: it cannot be started, and companies in it leave it."`
}

type motionListCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *motionListCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.Motions(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		head := []string{"ID", "NAME", "STATUS", "QUEUED", "ACTIVE", "WITH PROBLEMS", "ENDED", "FAILED"}
		return printTable(head, len(all), func(i int) []any {
			m := all[i]
			return []any{m.ID, m.Name, m.Status, m.Queued, m.Active, m.Problems, m.Ended, m.Failed}
		})
	})
}

// motionArgs name a motion on the command line.
type motionArgs struct {
	databaseConfig
	ID        int64  `arg:"" help:"Id of the motion, as inlet motion list shows it."`
	Workspace string `required:"" help:"Slug of the workspace."`
}

func (c *motionArgs) inMotion(do func(context.Context, *db.Scope) error) error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		err := do(ctx, s)
		if errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("the workspace has no motion %d, or it is archived", c.ID)
		}
		return err
	})
}

func (c *motionArgs) setStatus(status string) error {
	return c.inMotion(func(ctx context.Context, s *db.Scope) error {
		if err := s.SetMotionStatus(ctx, c.ID, status); err != nil {
			return err
		}
		fmt.Printf("motion %d is %s\n", c.ID, status)
		return nil
	})
}

type motionPauseCmd struct{ motionArgs }

func (c *motionPauseCmd) Run() error { return c.setStatus("paused") }

type motionActivateCmd struct{ motionArgs }

func (c *motionActivateCmd) Run() error { return c.setStatus("active") }

type motionArchiveCmd struct{ motionArgs }

func (c *motionArchiveCmd) Run() error { return c.setStatus("archived") }

type motionShowCmd struct {
	motionArgs
	JSON bool `help:"Print JSON."`
}

// motionReport is a motion as motion show prints it.
type motionReport struct {
	ID      int64           `json:"id"`
	Name    string          `json:"name"`
	Status  string          `json:"status"`
	Entry   motion.Entry    `json:"entry"`
	Steps   []motion.Step   `json:"steps"`
	Entries []db.EntryShown `json:"entries"` // the last ones
}

func (c *motionShowCmd) Run() error {
	return c.inMotion(func(ctx context.Context, s *db.Scope) error {
		m, err := s.Motion(ctx, c.ID)
		if err != nil {
			return err
		}
		r := motionReport{ID: m.ID, Name: m.Name, Status: m.Status}
		if err := errors.Join(json.Unmarshal(m.Entry, &r.Entry), json.Unmarshal(m.Steps, &r.Steps)); err != nil {
			return err
		}
		if r.Entries, err = s.LastEntries(ctx, c.ID, 0); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(r)
		}
		fmt.Printf("motion %d, %s, is %s\n\nentry: %s\n", m.ID, m.Name, m.Status, m.Entry)
		for i := range r.Steps {
			step, err := json.Marshal(r.Steps[i])
			if err != nil {
				return err
			}
			fmt.Printf("step %d: %s\n", i+1, step)
		}
		fmt.Println()
		return printEntries(r.Entries)
	})
}

// printEntries prints entries with what was decided and how far they came.
func printEntries(all []db.EntryShown) error {
	head := []string{"QUEUED", "BY", "MOTION", "COMPANY", "DECISION", "ENROLLMENT", "STATUS", "STEP", "NEXT", "PROBLEM"}
	return printTable(head, len(all), func(i int) []any {
		e := all[i]
		decision, enrollment, status, step, next := "queued", "-", "-", "-", "-"
		if e.ReasonCode != nil {
			decision = *e.ReasonCode
		}
		if e.Enrollment != nil {
			enrollment, status, step = fmt.Sprint(*e.Enrollment), orDash(e.Status), fmt.Sprintf("%d of %d", *e.Step+1, *e.Steps)
			if *e.Step >= *e.Steps {
				step = "-"
			}
		}
		if e.DueAt != nil {
			next = e.DueAt.UTC().Format(time.RFC3339)
		}
		return []any{e.QueuedAt.UTC().Format(time.RFC3339), e.Trigger, e.Motion, e.Company, decision, enrollment, status, step, next, orDash(e.Problem)}
	})
}
