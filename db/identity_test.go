package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

// Whoever has waited past midnight counts on the new day, and does not take it
// back.
func TestPeopleAreCountedOnTheDayOnWhichTheyAreAdded(t *testing.T) {
	setup, address := dbtest.Private(t)
	w := newWorkspace(t, setup, "midnight")
	const before = 1500 * time.Millisecond
	dbtest.Exec(t, address, fmt.Sprintf(`alter database %s set inlet.clock_offset = '%d milliseconds'`,
		dbtest.Query[string](t, address, `select current_database()`),
		(time.Until(time.Now().UTC().Truncate(24*time.Hour).Add(24*time.Hour))-before).Milliseconds()))
	d, err := db.Open(t.Context(), db.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	midnight := time.Now().Add(before)

	people := func(s *db.Scope) int {
		n, err := s.PeopleAdded(t.Context())
		if err != nil {
			t.Error(err)
		}
		return n
	}
	holding, waited := make(chan struct{}), make(chan int, 1)
	go func() {
		<-holding
		var n int
		if err := d.In(t.Context(), w, func(s *db.Scope) error { n = people(s); return nil }); err != nil {
			t.Error(err)
		}
		waited <- n
	}()
	err = d.In(t.Context(), w, func(s *db.Scope) error {
		people(s)
		close(holding)
		time.Sleep(time.Until(midnight.Add(300 * time.Millisecond)))
		people(s)
		return s.CountPersonAdded(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := <-waited; n != 1 {
		t.Errorf("who waited past midnight finds %d people added, want 1", n)
	}
}
