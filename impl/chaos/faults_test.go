package chaos

import (
	"syscall"
	"testing"
	"time"
)

// The kinds of rigs. Each has its faults one after the other.
var (
	dying    = &kind{name: "processes end"}
	hanging  = &kind{name: "the database hangs or refuses"}
	cutOff   = &kind{name: "the network fails"}
	starving = &kind{name: "something is used up"}
	full     = &kind{name: "the disk is full", change: onSmallDisks}

	kinds = []*kind{dying, hanging, cutOff, starving, full}
)

var faults = []fault{
	{name: "a server is killed", on: dying, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		r.server(0).Kill()
		time.Sleep(lasts)
		r.start(t, 0)
	}},
	{name: "both servers are killed", on: dying, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		for i := range servers {
			r.server(i).Kill()
		}
		time.Sleep(lasts)
		for i := range servers {
			r.start(t, i)
		}
	}},
	{name: "PostgreSQL is killed", on: dying, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		all := r.processes(t)
		r.justAnswered()
		signal(t, all, syscall.SIGKILL)
		r.pg.Quit(t)
		time.Sleep(lasts)
		r.pg.Start(t)
	}},
	{name: "a backend of PostgreSQL is killed", on: dying, happen: func(t *testing.T, r *rig, _ time.Duration) {
		// As the system does that has no memory left: PostgreSQL ends all others and
		// recovers.
		signal(t, r.backends(t)[:1], syscall.SIGKILL)
	}},
	{name: "PostgreSQL is stopped for a while", on: dying, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		r.pg.Stop(t)
		time.Sleep(lasts)
		r.pg.Start(t)
	}},
	{name: "PostgreSQL is stopped at once, for a while", on: dying, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		r.justAnswered()
		r.pg.Quit(t)
		time.Sleep(lasts)
		r.pg.Start(t)
	}},
	{name: "the servers are restarted in turn, behind a balancer", on: dying, happen: rollingRestart},

	{name: "PostgreSQL hangs", on: hanging, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		all := r.processes(t)
		signal(t, all, syscall.SIGSTOP)
		time.Sleep(lasts)
		signal(t, all, syscall.SIGCONT)
	}},
	{name: "half of the sessions hang", on: hanging, happen: func(t *testing.T, r *rig, lasts time.Duration) {
		all := r.backends(t)
		all = all[:len(all)/2]
		signal(t, all, syscall.SIGSTOP)
		time.Sleep(lasts)
		signal(t, all, syscall.SIGCONT)
	}},
	{name: "statements are cancelled", on: hanging, happen: everySoOften(`select pg_cancel_backend(pid) from pg_stat_activity where usename = 'app' and state = 'active'`)},
	{name: "sessions are ended", on: hanging, happen: everySoOften(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)},
	{name: "tables are locked by a migration", on: hanging, happen: lockTables},
	{name: "the database is read-only", on: hanging, happen: readOnly},
	{name: "connections are used up", on: hanging, happen: useUpConnections},
	{name: "the role has no connections left", on: hanging, happen: limitRole},

	{name: "the database is far away", on: cutOff, happen: onLines(way{delay: 15 * time.Millisecond})},
	{name: "the database trickles", on: cutOff, happen: onLines(way{delay: 500 * time.Microsecond, piece: 100})},
	{name: "connections to the database are cut", on: cutOff, happen: cutLines},
	{name: "answers of the database are lost", on: cutOff, happen: loseAnswersOfDatabase},
	{name: "the network to the database stands still", on: cutOff, happen: onLines(way{silent: true})},
	{name: "connections to the database are dead without a word", on: cutOff, happen: deafLines},
	{name: "answers to clients are lost", on: cutOff, happen: loseAnswersToClients},
	{name: "connections of clients are cut", on: cutOff, happen: cutDoors},
	{name: "clients trickle", on: cutOff, happen: trickleAtDoors},

	{name: "the clock of a server jumps", on: starving, happen: moveClock, before: buildMovedFirst},
	{name: "a server has no memory left", on: starving, happen: useUpMemory, before: buildMovedFirst},
	{name: "PostgreSQL has no memory left", on: starving, happen: useUpMemoryOfDatabase},
	{name: "a server has no files left", on: starving, happen: useUpFiles},

	{name: "the disk of the data is full", on: full, happen: fillData},
	{name: "the disk of the log is full", on: full, happen: fillLog},
}
