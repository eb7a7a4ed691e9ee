package db_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
)

func TestWhatPassesByItselfIsADatabaseThatIsAway(t *testing.T) {
	d, address := dbtest.Private(t)
	for code, away := range map[string]bool{
		"25006": true, // only to be read: another server has taken over
		"25P03": true, // idle in a transaction
		"25P04": true, // transaction time-out
		"40001": true, // serialization failure
		"40P01": true, // deadlock
		"53000": true, // insufficient resources
		"53100": true, // disk full
		"53200": true, // out of memory
		"53300": true, // too many connections
		"53400": true, // a limit of the configuration
		"55P03": true, // lock not available
		"57014": true, // statement cancelled
		"57P01": true, // shutting down
		"57P02": true, // crashed
		"57P03": true, // starting
		"57P05": true, // idle session
		"58000": true, // the system beneath
		"58030": true, // I/O error
		"08006": true, // connection failure

		"22012": false, // division by zero
		"42P01": false, // no such table
		"42501": false, // not allowed to
		"XX000": false, // internal error
	} {
		dbtest.Exec(t, address, fmt.Sprintf(`create or replace function inlet_now() returns timestamptz language plpgsql as
			$$ begin raise exception using errcode = '%s'; end $$`, code))
		err := d.SyncClock(t.Context())
		if err == nil || errors.Is(err, db.ErrAway) != away {
			t.Errorf("%s is %v, want away: %v", code, err, away)
		}
		if held := errors.Is(err, db.ErrHeld); held != (code == "55P03") {
			t.Errorf("%s is a lock that is held: %v", code, held)
		}
	}
}

func TestAServerThatMayOnlyBeReadIsAwayAndNoSessionStaysWithIt(t *testing.T) {
	_, address := dbtest.Private(t)
	name := dbtest.Query[string](t, address, `select current_database()`)
	set := func(how string) {
		t.Helper()
		dbtest.Exec(t, address, fmt.Sprintf(how, name))
		dbtest.Exec(t, address, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	}
	d, err := db.Open(t.Context(), db.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	set(`alter database %s set default_transaction_read_only = on`)
	for range 3 {
		if err := d.DropExpiredTokens(t.Context()); !errors.Is(err, db.ErrAway) {
			t.Errorf("what writes gives %v, want that it is away", err)
		}
	}
	dbtest.Exec(t, address, fmt.Sprintf(`begin read write; alter database %s reset default_transaction_read_only; commit`, name))
	if err := d.DropExpiredTokens(t.Context()); err != nil {
		t.Errorf("a session stayed read-only: %v", err)
	}
	// Who asks for another kind of server gets it.
	set(`alter database %s set default_transaction_read_only = on`)
	reader, err := db.Open(t.Context(), db.Config{URL: address + and(address) + "target_session_attrs=any"})
	if err != nil {
		t.Fatalf("a server that may only be read: %v", err)
	}
	reader.Close()
}

func and(address string) string {
	if strings.Contains(address, "?") {
		return "&"
	}
	return "?"
}
