package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
)

type companyCmd struct {
	Show companyShowCmd `cmd:"" help:"Show a company: facts, signals, score and what it entered."`
}

type companyShowCmd struct {
	databaseConfig
	ID        int64  `arg:"" help:"Id of the company."`
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

// companyReport is a company as company show prints it.
type companyReport struct {
	db.CompanyShown
	Facts   []db.Fact          `json:"facts"`
	Signals []db.CompanySignal `json:"signals"`
	Score   int                `json:"score"`
	Entries []db.EntryShown    `json:"entries"` // the last ones
}

func (c *companyShowCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) (err error) {
		var r companyReport
		if r.CompanyShown, err = s.Company(ctx, c.ID); errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("the workspace has no company %d", c.ID)
		}
		if err != nil {
			return err
		}
		if r.Facts, err = s.Facts(ctx, c.ID); err != nil {
			return err
		}
		if r.Signals, err = s.CompanySignals(ctx, c.ID); err != nil {
			return err
		}
		for _, signal := range r.Signals {
			if signal.Holds {
				r.Score += signal.Score
			}
		}
		if r.Entries, err = s.LastEntries(ctx, 0, c.ID); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(r)
		}
		return r.print()
	})
}

func (r companyReport) print() error {
	fmt.Printf("company %d, %s; domains %s; industry %s, country %s, stage %s\n", r.ID, visible(r.Name), strings.Join(r.Domains, ", "),
		orDash(r.Industry), orDash(r.Country), orDash(r.Stage))
	fmt.Printf("\nscore %d\n", r.Score)
	err := printTable([]string{"SIGNAL", "EVENT", "WANTS", "SCORE", "HOLDS", "UNTIL"}, len(r.Signals), func(i int) []any {
		g := r.Signals[i]
		until := "-"
		if g.Holds {
			until = g.HoldsUntil.UTC().Format(time.RFC3339)
		}
		return []any{g.Name, "event." + g.Event, fmt.Sprintf("%d in %d days", g.MinCount, g.WithinDays), g.Score, g.Holds, until}
	})
	if err != nil {
		return err
	}
	fmt.Println()
	err = printTable([]string{"EVENT", "CONTACT", "EVENTS", "FIRST", "LAST"}, len(r.Facts), func(i int) []any {
		f := r.Facts[i]
		contact := "-"
		if f.Contact != 0 {
			contact = fmt.Sprint(f.Contact)
		}
		return []any{"event." + f.Event, contact, f.Events, f.First.UTC().Format(time.RFC3339), f.Last.UTC().Format(time.RFC3339)}
	})
	if err != nil {
		return err
	}
	fmt.Println()
	return printEntries(r.Entries)
}
