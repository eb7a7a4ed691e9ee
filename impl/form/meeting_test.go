package form

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

func TestSlotsFollowTheClockOfTheHostThroughItsJumps(t *testing.T) {
	hours := db.MeetingForm{
		Minutes: 60, TimeZone: "Europe/Berlin", Weekdays: []int64{1, 2, 3, 4, 5, 6, 7},
		OpensMinute: 0, ClosesMinute: 5 * 60, DaysAhead: 400,
	}
	day := func(s string) Slot {
		at, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return Slot{StartsAt: at.Add(-3 * time.Hour), EndsAt: at.Add(6 * time.Hour)}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for on, want := range map[string][]string{
		"2026-03-28": {"23:00", "00:00", "01:00", "02:00", "03:00"}, // winter: one hour ahead of UTC
		"2026-03-29": {"23:00", "00:00", "01:00", "02:00"},          // 02:00 to 03:00 is not there
		"2026-03-30": {"22:00", "23:00", "00:00", "01:00", "02:00"}, // summer
		"2026-10-25": {"22:00", "23:00", "01:00", "02:00", "03:00"}, // 02:00 is there twice
	} {
		slots, err := offered(hours, day(on), now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, slot := range slots {
			got = append(got, slot.StartsAt.Format("15:04"))
			if slot.EndsAt.Sub(slot.StartsAt) != time.Hour || i > 0 && slot.StartsAt.Before(slots[i-1].EndsAt) {
				t.Errorf("%s: %v overlaps or has another length", on, slot)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %v, want %v", on, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s has %v, want %v", on, got, want)
				break
			}
		}
	}
}

// Some zones change their clock at midnight: it is left out, or there twice.
func TestDaysWithoutMidnightOrWithTwoAreDaysLikeOthers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		zone, jump string
		slots      int // of two hours
	}{
		{"America/Santiago", "2026-09-06", 11},
		{"America/Havana", "2026-03-08", 11},
		{"Asia/Beirut", "2026-03-29", 11},
		{"America/Havana", "2026-11-01", 12},
		{"Asia/Beirut", "2026-10-24", 12},
	} {
		zone, err := Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		hours := db.MeetingForm{
			Minutes: 120, TimeZone: c.zone, Weekdays: []int64{1, 2, 3, 4, 5, 6, 7}, ClosesMinute: 24 * 60, DaysAhead: 400,
		}
		jump, err := time.Parse(time.DateOnly, c.jump)
		if err != nil {
			t.Fatal(err)
		}
		var before Slot
		for n := -4; n <= 4; n++ {
			day := jump.AddDate(0, 0, n).Format(time.DateOnly)
			in, err := Days{From: day, To: day, TimeZone: c.zone}.span(now)
			if err != nil {
				t.Fatal(err)
			}
			first, last := in.StartsAt.In(zone), in.EndsAt.Add(-1).In(zone)
			if first.Format(time.DateOnly) != day || last.Format(time.DateOnly) != day || n > -4 && !in.StartsAt.Equal(before.EndsAt) {
				t.Errorf("%s: %s is from %s to %s", c.zone, day, first, last)
			}
			before = in
			want := 12
			if n == 0 {
				want = c.slots
			}
			if slots, err := offered(hours, in, now); err != nil || len(slots) != want {
				t.Errorf("%s: %s has %d slots, want %d (%v)", c.zone, day, len(slots), want, err)
			}
		}
		// All of them at once: in order, and none twice.
		in, err := Days{From: jump.AddDate(0, 0, -4).Format(time.DateOnly), To: jump.AddDate(0, 0, 4).Format(time.DateOnly), TimeZone: c.zone}.span(now)
		if err != nil {
			t.Fatal(err)
		}
		slots, err := offered(hours, in, now)
		if err != nil || len(slots) != 8*12+c.slots {
			t.Errorf("%s: %d slots, want %d (%v)", c.zone, len(slots), 8*12+c.slots, err)
		}
		for i := 1; i < len(slots); i++ {
			if slots[i].StartsAt.Before(slots[i-1].EndsAt) {
				t.Errorf("%s: %v comes after %v", c.zone, slots[i], slots[i-1])
			}
		}
	}
}

func TestSlotsKeepNoticeHorizonWeekdaysAndClosing(t *testing.T) {
	hours := db.MeetingForm{
		Minutes: 45, TimeZone: "UTC", Weekdays: []int64{1}, OpensMinute: 9 * 60, ClosesMinute: 11 * 60,
		NoticeMinutes: 60, DaysAhead: 8,
	}
	now := time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC) // a Monday
	slots, err := offered(hours, Slot{StartsAt: now.AddDate(0, 0, -10), EndsAt: now.AddDate(0, 0, 30)}, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, slot := range slots {
		got = append(got, slot.StartsAt.Format("01-02 15:04"))
	}
	if want := "[03-02 09:45 03-09 09:00 03-09 09:45]"; fmt.Sprint(got) != want {
		t.Errorf("the slots are %v, want %s", got, want)
	}
}

// FuzzSlots asks for the slots of any days in any zone, of a host in any other. Days
// are as many as were asked for, and begin and end where the zone's clock says;
// slots are in order, within the days and the hours of the host, and of one length.
// A refusal names what is wrong.
func FuzzSlots(f *testing.F) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, from, to, zone, host string, minutes, opens, closes, notice, ahead int) {
		in, err := Days{From: from, To: to, TimeZone: zone}.span(now)
		if err != nil {
			var refused *fault.Fault
			if !errors.As(err, &refused) || refused.Code != fault.InvalidRequest || !slices.Contains([]string{"from", "to", "time_zone"}, refused.Param) {
				t.Fatalf("%q to %q in %q: %v", from, to, zone, err)
			}
			return
		}
		theirs, err := Zone(zone)
		if err != nil || path.Clean("/"+zone) != "/"+zone || len(zone) > 64 {
			t.Fatalf("%q is a time zone: %v", zone, err)
		}
		first, last := in.StartsAt.In(theirs), in.EndsAt.Add(-1).In(theirs)
		days := int(dayOf(last).Sub(dayOf(first))/(24*time.Hour)) + 1
		if days < 1 || days > limit.MeetingSlotDays {
			t.Errorf("%q to %q in %s are %d days, from %s to %s", from, to, zone, days, first, last)
		}
		// A zone that crosses the date line leaves a day out.
		if from != "" && first.Format(time.DateOnly) != from && dayOf(first.Add(-time.Second)).Format(time.DateOnly) >= from ||
			to != "" && last.Format(time.DateOnly) != to && dayOf(last.Add(time.Second)).Format(time.DateOnly) <= to {
			t.Errorf("%q to %q in %s are from %s to %s", from, to, zone, first, last)
		}
		if before := first.Add(-time.Second); !dayOf(before).Before(dayOf(first)) {
			t.Errorf("%s is no beginning of a day in %s", first, zone)
		}
		hours := db.MeetingForm{
			TimeZone: host, Weekdays: []int64{1, 2, 3, 4, 5, 6, 7}, Minutes: 1 + int(uint(minutes)%1440),
			OpensMinute: int(uint(opens) % 1440), ClosesMinute: int(uint(closes) % 1441),
			NoticeMinutes: int(uint(notice) % 100_000), DaysAhead: 1 + int(uint(ahead)%400),
		}
		of, err := Zone(host)
		if err != nil {
			return
		}
		for _, now := range []time.Time{now, in.StartsAt} {
			slots, err := offered(hours, in, now)
			if err != nil || len(slots) > (days+2)*1440/hours.Minutes {
				t.Fatalf("%+v: %d slots in %d days, %v", hours, len(slots), days, err)
			}
			for i, slot := range slots {
				starts := slot.StartsAt.In(of)
				minute := starts.Hour()*60 + starts.Minute()
				switch {
				case slot.EndsAt.Sub(slot.StartsAt) != time.Duration(hours.Minutes)*time.Minute,
					slot.StartsAt.Before(in.StartsAt), !slot.StartsAt.Before(in.EndsAt),
					slot.StartsAt.Before(now.Add(time.Duration(hours.NoticeMinutes) * time.Minute)), slot.StartsAt.After(now.AddDate(0, 0, hours.DaysAhead)),
					minute < hours.OpensMinute, minute+hours.Minutes > hours.ClosesMinute, (minute-hours.OpensMinute)%hours.Minutes != 0:
					t.Errorf("%+v: %v is offered from %s to %s", hours, slot, in.StartsAt, in.EndsAt)
				case i > 0 && slot.StartsAt.Before(slots[i-1].EndsAt):
					t.Errorf("%+v: %v is offered behind %v", hours, slot, slots[i-1])
				}
			}
		}
	})
}
