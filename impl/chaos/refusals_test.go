package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// lockTables takes what a change of the schema takes, of one table after the
// other.
func lockTables(t *testing.T, r *rig, lasts time.Duration) {
	tables := []string{"events", "leads", "motion_entries", "workspace_gates", "api_keys", "contacts"}
	for _, table := range tables {
		release := dbtest.Hold(t, r.pg.URL(), `lock table `+table+` in access exclusive mode`)
		time.Sleep(lasts / time.Duration(len(tables)) * 2)
		release()
	}
}

// readOnly makes all sessions read-only, as those are that stay with a server
// which another one has taken over from.
func readOnly(t *testing.T, r *rig, lasts time.Duration) {
	dbtest.Exec(t, r.pg.URL(), `alter role app set default_transaction_read_only = on`)
	dbtest.Exec(t, r.pg.URL(), `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
	time.Sleep(lasts)
	dbtest.Exec(t, r.pg.URL(), `alter role app reset default_transaction_read_only`)
}

// useUpConnections takes all connections that there are, those of the servers
// too.
func useUpConnections(t *testing.T, r *rig, lasts time.Duration) {
	dbtest.Exec(t, r.pg.URL(), `do $$ begin create role hog login; exception when duplicate_object then null; end $$`)
	hog, err := sql.Open("postgres", "postgres://hog@"+r.lines[0].address()+"/inlet?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Close()
	var taken []*sql.Conn
	again(lasts, 20*time.Millisecond, func() {
		dbtest.Exec(t, r.pg.URL(), `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
		for {
			c, err := hog.Conn(context.Background())
			if err != nil {
				break // there are none left but for superusers
			}
			taken = append(taken, c)
		}
	})
	for _, c := range taken {
		c.Close()
	}
}

// limitRole leaves the servers' role fewer connections than they want.
func limitRole(t *testing.T, r *rig, lasts time.Duration) {
	for _, connections := range []int{0, 3} {
		dbtest.Exec(t, r.pg.URL(), fmt.Sprintf(`alter role app connection limit %d`, connections))
		dbtest.Exec(t, r.pg.URL(), `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
		time.Sleep(lasts / 2)
	}
	dbtest.Exec(t, r.pg.URL(), `alter role app connection limit -1`)
}

// tryExec runs a statement that may fail.
func (r *rig) tryExec(statement string) error {
	d, err := sql.Open("postgres", r.pg.URL())
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Exec(statement)
	return err
}
