package backup

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// program runs one of PostgreSQL's programs.
func program(t *testing.T, p *servertest.Postgres, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), p.Program(t, name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func TestADumpTakenUnderLoadRestoresAllThatWasAnsweredBeforeIt(t *testing.T) {
	t.Parallel()
	p := servertest.StartPostgres(t)
	s := servertest.Start(t, p.URL())
	l := newClients(t, p, s)
	stop := l.send()
	defer stop()
	l.more(t, 60)
	_, page := l.post("/api/v1/events?limit=2", "", "")
	cursor, _ := page["nextCursor"].(string)
	events, leads := l.told()
	dump := filepath.Join(t.TempDir(), "inlet.dump")
	program(t, p, "pg_dump", "--format=custom", "--file="+dump, p.URL())
	l.more(t, 40)
	stop()
	s.Stop() //nolint:errcheck // its machine is lost, so to speak
	newest := dbtest.Query[int64](t, p.URL(), `select max(event_no) from events`)

	other := servertest.StartPostgres(t)
	program(t, p, "pg_restore", "--exit-on-error", "--no-owner", "--jobs=2", "--dbname="+other.URL(), dump)
	if wrong := dbtest.Query[string](t, other.URL(), `select coalesce(string_agg(w, ', '), '') from ids_behind() w`); wrong != "" {
		t.Errorf("ids would be given out twice: %s", wrong)
	}
	if out, err := servertest.Command(t, other.URL(), "", "restored"); err != nil {
		t.Errorf("%s%v", out, err)
	}
	s = servertest.Start(t, other.URL())
	defer s.Stop() //nolint:errcheck // tests of its end have their own
	l.base = s.Base
	// Cursors and credentials are still what they were.
	if status, got := l.post("/api/v1/events?limit=2&cursor="+cursor, "", ""); status != 200 || len(got["rows"].([]any)) != 2 {
		t.Errorf("a cursor of before answers %d %v", status, got)
	}
	l.kept(t, other, events, leads)
	if again, _ := l.event(nil, "afterwards"); again {
		t.Error("a new event is known")
	}
	if n := dbtest.Query[int64](t, other.URL(), `select event_no from events where id = 'afterwards'`); n <= newest {
		t.Errorf("a new event has the number %d, and %d was given out before", n, newest)
	}
}

func TestADatabaseIsBroughtBackToAMomentBetweenTwoAnswers(t *testing.T) {
	t.Parallel()
	archive, err := os.MkdirTemp("/tmp", "inlet-test-archive")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(archive)
	if err := os.Chmod(archive, 0o777); err != nil {
		t.Fatal(err)
	}
	p := servertest.StartPostgres(t, "-c archive_mode=on", fmt.Sprintf("-c archive_command='cp %%p %s/%%f'", archive))
	s := servertest.Start(t, p.URL())
	l := newClients(t, p, s)
	l.event(nil, "before-the-backup")
	base := filepath.Join(archive, "base")
	program(t, p, "pg_basebackup", "--dbname="+p.URL(), "--pgdata="+base, "--checkpoint=fast", "--wal-method=none", "--no-manifest")

	for i := range 5 {
		l.event(nil, fmt.Sprint("kept", i))
		l.lead(nil, fmt.Sprint("kept", i))
	}
	events, leads := l.told()
	time.Sleep(100 * time.Millisecond)
	moment := dbtest.Query[string](t, p.URL(), `select clock_timestamp()::text`)
	time.Sleep(100 * time.Millisecond)
	// More of them than the database ever keeps ids in reserve for.
	for i := range 50 {
		l.lead(nil, fmt.Sprint("lost", i))
	}
	l.event(nil, "lost")
	_, givenOut := l.told()
	s.Stop() //nolint:errcheck // its database is to be lost
	dbtest.Exec(t, p.URL(), `select pg_switch_wal()`)
	p.Stop(t)

	restored := servertest.StartPostgresOn(t, func(data string) {
		if err := os.Rename(base, data); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(data, "postgresql.auto.conf"), fmt.Sprintf(
			"restore_command = 'cp %s/%%f %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = 'promote'\n", archive, moment))
		write(t, filepath.Join(data, "recovery.signal"), "")
		p.Own(t, data)
	})
	recovered(t, restored)
	for statement, want := range map[string]int{
		`select count(*) from events where id like 'kept%'`: 5, `select count(*) from leads where idempotency_key like 'kept%'`: 5,
		`select count(*) from events where id = 'lost'`: 0, `select count(*) from leads where idempotency_key like 'lost%'`: 0,
	} {
		if n := dbtest.Query[int](t, restored.URL(), statement); n != want {
			t.Errorf("%s: %d, want %d", statement, n, want)
		}
	}
	if out, err := servertest.Command(t, restored.URL(), "", "restored"); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	s = servertest.Start(t, restored.URL())
	defer s.Stop() //nolint:errcheck // tests of its end have their own
	l.base = s.Base
	if again, _ := l.event(nil, "lost"); again {
		t.Error("what was answered after the moment is known")
	}
	l.kept(t, restored, events, leads)
	// No id stands for another lead than before.
	taken := make(map[float64]string)
	for key, id := range givenOut {
		taken[id] = key
	}
	_, now := l.told()
	for key, id := range now {
		if was, ok := taken[id]; ok && was != key {
			t.Errorf("lead_id %v was given out for %s, and now for %s", id, was, key)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// recovered waits until a database takes writes.
func recovered(t *testing.T, p *servertest.Postgres) {
	t.Helper()
	for begun := time.Now(); dbtest.Query[bool](t, p.URL(), `select pg_is_in_recovery()`); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the database does not end its recovery")
		}
	}
}

// hosts is the address of two servers, of which the one that takes writes is used.
func hosts(t *testing.T, first, second *servertest.Postgres) string {
	t.Helper()
	return fmt.Sprintf("postgres://inlet@/inlet?host=%s,%s&target_session_attrs=read-write&sslmode=disable", socket(t, first), socket(t, second))
}

func socket(t *testing.T, p *servertest.Postgres) string {
	t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("host")
}

func TestAPromotedReplicaHasAllThatWasAnsweredAndServersFindItByThemselves(t *testing.T) {
	t.Parallel()
	p := servertest.StartPostgres(t)
	replica := servertest.StartPostgresOn(t, func(data string) {
		program(t, p, "pg_basebackup", "--dbname="+p.URL(), "--pgdata="+data, "--checkpoint=fast", "--no-manifest")
		write(t, filepath.Join(data, "postgresql.auto.conf"), fmt.Sprintf("primary_conninfo = 'host=%s user=inlet application_name=replica'\n", socket(t, p)))
		write(t, filepath.Join(data, "standby.signal"), "")
		p.Own(t, data)
	})
	program(t, p, "psql", p.URL(), "--command", "alter system set synchronous_standby_names = '*'", "--command", "select pg_reload_conf()")
	s := servertest.Start(t, hosts(t, p, replica))
	defer s.Stop() //nolint:errcheck // tests of its end have their own
	l := newClients(t, p, s)

	// Nothing is answered that only one of them has.
	replica.Stop(t)
	alone := make(chan struct{})
	go func() { l.event(nil, "alone"); close(alone) }()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if dbtest.Query[bool](t, p.URL(), `select exists (select from pg_stat_activity where wait_event = 'SyncRep')`) {
			break
		}
	}
	time.Sleep(300 * time.Millisecond)
	select {
	case <-alone:
		t.Error("an event is answered that the replica does not have")
	default:
	}
	replica.Start(t)
	<-alone

	stop := l.send()
	defer stop()
	l.more(t, 80)
	p.Kill(t)
	begun := time.Now()
	events, leads := l.told()
	program(t, replica, "psql", replica.URL(), "--command", "select pg_promote()")
	// What is not logged begins anew: how many requests there were in this minute,
	// and nothing else.
	if unlogged := dbtest.Query[string](t, replica.URL(), `select string_agg(relname, ' ') from pg_class where relpersistence = 'u' and relkind = 'r'`); unlogged != "request_counts" {
		t.Errorf("the unlogged tables are %s", unlogged)
	}
	l.more(t, 40)
	t.Logf("served again after %v", time.Since(begun).Round(time.Millisecond))
	stop()
	l.kept(t, replica, events, leads)
}

func TestWithoutASynchronousReplicaAPromotionLosesWhatItDidNotHave(t *testing.T) {
	t.Parallel()
	p := servertest.StartPostgres(t)
	replica := servertest.StartPostgresOn(t, func(data string) {
		program(t, p, "pg_basebackup", "--dbname="+p.URL(), "--pgdata="+data, "--checkpoint=fast", "--no-manifest")
		write(t, filepath.Join(data, "postgresql.auto.conf"), fmt.Sprintf("primary_conninfo = 'host=%s user=inlet'\n", socket(t, p)))
		write(t, filepath.Join(data, "standby.signal"), "")
		p.Own(t, data)
	})
	s := servertest.Start(t, hosts(t, p, replica))
	defer s.Stop() //nolint:errcheck // tests of its end have their own
	l := newClients(t, p, s)
	stop := l.send()
	l.more(t, 20)
	stop()
	events, leads := l.told()
	end := dbtest.Query[string](t, p.URL(), `select pg_current_wal_lsn()::text`)
	for begun := time.Now(); !dbtest.Query[bool](t, replica.URL(), `select pg_last_wal_replay_lsn() >= $1::pg_lsn`, end); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the replica does not follow")
		}
	}
	replica.Stop(t)
	l.event(nil, "lost")
	p.Kill(t)
	replica.Start(t)
	program(t, replica, "psql", replica.URL(), "--command", "select pg_promote()")
	recovered(t, replica)
	if n := dbtest.Query[int](t, replica.URL(), `select count(*) from events where id = 'lost'`); n != 0 {
		t.Error("the replica has what it was never sent")
	}
	l.kept(t, replica, events, leads)
	if n := dbtest.Query[int](t, replica.URL(), `select count(*) from events where id = 'lost'`); n != 1 {
		t.Errorf("sent again, what was lost is there %d times", n)
	}
}
