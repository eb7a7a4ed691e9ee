package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/form"
	"github.com/inletdev/inlet/impl/limit"
)

type formCmd struct {
	Create formCreateCmd `cmd:"" help:"Create a form and print its public key."`
	List   formListCmd   `cmd:"" help:"List the forms of a workspace."`
}

type formCreateCmd struct {
	databaseConfig
	Name      string   `arg:"" help:"Its heading."`
	Workspace string   `required:"" help:"Slug of the workspace."`
	Fields    []string `default:"email,name,company_name" help:"What it asks for: fields of a lead, or names of your own (default ${default})."`
}

func (c *formCreateCmd) Run() error {
	if err := form.CheckName(c.Name); err != nil {
		return err
	}
	if err := form.CheckFields(c.Fields); err != nil {
		return err
	}
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		key := "form_" + strings.ToLower(rand.Text())
		if _, err := s.SaveForm(ctx, 0, key, c.Name, c.Fields); err != nil {
			return err
		}
		_, err := fmt.Println(key)
		return err
	})
}

type formListCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *formListCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.Forms(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"ID", "PUBLIC KEY", "NAME", "FIELDS"}, len(all), func(i int) []any {
			return []any{all[i].ID, all[i].PublicKey, all[i].Name, strings.Join(all[i].Fields, ",")}
		})
	})
}

type meetingCmd struct {
	Create   meetingCreateCmd   `cmd:"" help:"Create a meeting form and print its public key."`
	List     meetingListCmd     `cmd:"" help:"List the meeting forms of a workspace."`
	Set      meetingSetCmd      `cmd:"" help:"Set when a meeting form offers slots."`
	Bookings meetingBookingsCmd `cmd:"" help:"List the meetings that are booked and have not ended."`
}

// meetingHours are when slots are offered; empty for what stays as it is.
type meetingHours struct {
	Minutes   int      `help:"How long a meeting takes (30 at first)."`
	TimeZone  string   `help:"Time zone of the host by its IANA name (UTC at first)."`
	Weekdays  []string `help:"Days with slots: mon, tue, wed, thu, fri, sat, sun (mon to fri at first)."`
	Opens     string   `help:"When the first slot of a day begins, such as 09:00 (at first)."`
	Closes    string   `help:"When the last slot of a day has ended, such as 17:00 (at first) or 24:00."`
	Notice    int      `default:"-1" help:"Minutes from now to the first slot (60 at first)."`
	DaysAhead int      `help:"Days from now to the last slot (60 at first)."`
}

var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

func (h meetingHours) apply(f *db.MeetingForm) error {
	f.Minutes = cmp.Or(h.Minutes, f.Minutes)
	f.TimeZone = cmp.Or(h.TimeZone, f.TimeZone)
	f.DaysAhead = cmp.Or(h.DaysAhead, f.DaysAhead)
	if h.Notice >= 0 {
		f.NoticeMinutes = h.Notice
	}
	if _, err := form.Zone(f.TimeZone); err != nil {
		return err
	}
	if len(h.Weekdays) > 0 {
		f.Weekdays = nil
		for _, day := range h.Weekdays {
			i := slices.Index(weekdays, strings.ToLower(day))
			if i < 0 {
				return fmt.Errorf("%q is no weekday; want some of %s", day, strings.Join(weekdays, ", "))
			}
			if day := int64(i + 1); !slices.Contains(f.Weekdays, day) {
				f.Weekdays = append(f.Weekdays, day)
			}
		}
	}
	for _, clock := range []struct {
		text   string
		minute *int
	}{{h.Opens, &f.OpensMinute}, {h.Closes, &f.ClosesMinute}} {
		switch at, err := time.Parse("15:04", clock.text); {
		case clock.text == "":
		case clock.text == "24:00":
			*clock.minute = 24 * 60
		case err != nil:
			return fmt.Errorf("%q is no time of day; want one such as 09:30", clock.text)
		default:
			*clock.minute = at.Hour()*60 + at.Minute()
		}
	}
	switch {
	case f.Minutes < 1 || f.Minutes > limit.MeetingMinutes:
		return fmt.Errorf("want a meeting of 1 to %d minutes", limit.MeetingMinutes)
	case f.NoticeMinutes > limit.MeetingNotice:
		return fmt.Errorf("want a notice of at most %d minutes", limit.MeetingNotice)
	case f.DaysAhead < 1 || f.DaysAhead > limit.MeetingDaysAhead:
		return fmt.Errorf("want slots 1 to %d days ahead", limit.MeetingDaysAhead)
	case f.OpensMinute+f.Minutes > f.ClosesMinute:
		return errors.New("no slot fits between opening and closing")
	}
	return nil
}

type meetingCreateCmd struct {
	databaseConfig
	meetingHours
	Name      string `arg:"" help:"Its heading."`
	Workspace string `required:"" help:"Slug of the workspace."`
}

func (c *meetingCreateCmd) Run() error {
	if err := form.CheckName(c.Name); err != nil {
		return err
	}
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		key := "meet_" + strings.ToLower(rand.Text())
		if _, err := s.SaveMeetingForm(ctx, 0, key, c.Name, 30); err != nil {
			return err
		}
		if err := setHours(ctx, s, key, c.meetingHours); err != nil {
			return err
		}
		_, err := fmt.Println(key)
		return err
	})
}

type meetingSetCmd struct {
	databaseConfig
	meetingHours
	PublicKey string `arg:"" help:"The public key, as inlet meeting list shows it."`
	Workspace string `required:"" help:"Slug of the workspace."`
}

func (c *meetingSetCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		return setHours(ctx, s, c.PublicKey, c.meetingHours)
	})
}

func setHours(ctx context.Context, s *db.Scope, publicKey string, hours meetingHours) error {
	all, err := s.MeetingForms(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(f db.MeetingForm) bool { return f.PublicKey == publicKey })
	if i < 0 {
		return fmt.Errorf("the workspace has no meeting form %s", publicKey)
	}
	if err := hours.apply(&all[i]); err != nil {
		return err
	}
	return s.SetMeetingHours(ctx, all[i])
}

type meetingListCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *meetingListCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.MeetingForms(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"ID", "PUBLIC KEY", "NAME", "MINUTES", "DAYS", "HOURS", "TIME ZONE"}, len(all), func(i int) []any {
			f := all[i]
			var days []string
			for _, day := range f.Weekdays {
				days = append(days, weekdays[day-1])
			}
			hours := fmt.Sprintf("%02d:%02d-%02d:%02d", f.OpensMinute/60, f.OpensMinute%60, f.ClosesMinute/60, f.ClosesMinute%60)
			return []any{f.ID, f.PublicKey, f.Name, f.Minutes, strings.Join(days, ","), hours, f.TimeZone}
		})
	})
}

type meetingBookingsCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *meetingBookingsCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.ComingBookings(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"ID", "STARTS", "ENDS", "FORM", "LEAD", "NAME", "E-MAIL", "TIME ZONE"}, len(all), func(i int) []any {
			b := all[i]
			return []any{b.ID, b.StartsAt.UTC().Format(time.RFC3339), b.EndsAt.UTC().Format("15:04Z"), b.MeetingForm, b.Lead,
				orDash(b.Name), orDash(b.Email), orDash(b.TimeZone)}
		})
	})
}
