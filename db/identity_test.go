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

func TestTokensAndLinksThatWouldBeRefusedAnywayAreForgottenAndNoOthers(t *testing.T) {
	d, address := dbtest.Private(t)
	w := newWorkspace(t, d, "forgotten")
	for _, add := range []string{
		`insert into sites (workspace_id, site_id, site_key) values ($1, 1, 'k')`,
		`insert into contacts (workspace_id, contact_id, email, source) values ($1, 1, 'a@b.example', 'test')`,
		`insert into identify_tokens (workspace_id, site_id, jti_hash, visitor_id, expires_at)
			select $1, 1, in_minutes::text::bytea, 'v', now() + in_minutes * interval '1 minute' from unnest(array[-61, -59, 1]) in_minutes`,
		`insert into email_links (workspace_id, token_hash, site_id, contact_id, url, expires_at)
			select $1, in_minutes::text::bytea, 1, 1, 'u', now() + in_minutes * interval '1 minute' from unnest(array[-61, -1, 1]) in_minutes`,
	} {
		dbtest.Exec(t, address, add, w)
	}
	if err := d.DropExpiredTokens(t.Context()); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`select string_agg(convert_from(jti_hash, 'UTF8'), ' ' order by expires_at) from identify_tokens`: "-59 1",
		`select string_agg(convert_from(token_hash, 'UTF8'), ' ' order by expires_at) from email_links`:   "1",
	} {
		if left := dbtest.Query[string](t, address, query); left != want {
			t.Errorf("those of these minutes are left: %s, want %s", left, want)
		}
	}
}
