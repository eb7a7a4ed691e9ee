package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/form"
	"github.com/inletdev/inlet/impl/limit"
)

// FuzzMeetingHours sets any hours on the command line: those that are taken leave
// room for a slot, are numbers that the database holds and times that there are,
// and set again change nothing.
func FuzzMeetingHours(f *testing.F) {
	f.Fuzz(func(t *testing.T, minutes, notice, ahead int, zone, days, opens, closes string) {
		before := db.MeetingForm{Minutes: 30, TimeZone: "UTC", Weekdays: []int64{1, 2, 3, 4, 5}, OpensMinute: 540, ClosesMinute: 1020, NoticeMinutes: 60, DaysAhead: 60}
		hours := meetingHours{Minutes: minutes, Notice: notice, DaysAhead: ahead, TimeZone: zone, Opens: opens, Closes: closes}
		if days != "" {
			hours.Weekdays = strings.Split(days, ",")
		}
		m := before
		if err := hours.apply(&m); err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v is refused in several lines: %v", hours, err)
			}
			return
		}
		if _, err := form.Zone(m.TimeZone); err != nil || m.Minutes < 1 || m.Minutes > limit.MeetingMinutes || m.OpensMinute < 0 || m.ClosesMinute > 24*60 ||
			m.OpensMinute+m.Minutes > m.ClosesMinute || m.NoticeMinutes < 0 || m.NoticeMinutes > limit.MeetingNotice || m.DaysAhead < 1 || m.DaysAhead > limit.MeetingDaysAhead ||
			len(m.Weekdays) < 1 || len(m.Weekdays) > 7 || slices.Min(m.Weekdays) < 1 || slices.Max(m.Weekdays) > 7 {
			t.Errorf("%+v makes %+v, %v", hours, m, err)
		}
		again := m
		if err := hours.apply(&again); err != nil || !slices.Equal(again.Weekdays, m.Weekdays) || again.OpensMinute != m.OpensMinute || again.ClosesMinute != m.ClosesMinute || again.Minutes != m.Minutes {
			t.Errorf("%+v makes %+v, and that %+v, %v", hours, m, again, err)
		}
	})
}
