package contract

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/gen/api"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/servertest"
)

func TestWhileTheDatabaseIsAwayTheServerSaysSoAndItRecoversByItself(t *testing.T) {
	t.Parallel()
	e := servertest.StartPostgres(t)
	s := start(t, e.URL())
	defer s.Stop()

	key := newKey(t, e)
	send := func(i int) answer {
		return s.send(t, "POST", "/api/v1/events", fmt.Sprintf(`{"id":"e%d","name":"n","visitor":{"id":"v"}}`, i), key)
	}
	if a := send(1); a.status != 202 {
		t.Fatalf("%s", a.body)
	}

	e.Stop(t)
	for i := range 3 {
		a := send(2 + i)
		expect(t, a, 503, "events_unavailable", "")
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || wait < 1 {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
	}
	for _, op := range api.Operations {
		path, body, headers := request(op)
		expect(t, s.send(t, op.Method, path, body, append(headers, key)...), 503, op.Errors[503][0], "")
	}
	for _, page := range []string{"/api/v1/forms/form_x/page", "/api/v1/meeting-forms/meet_x/embed.js", "/l/x"} {
		if a := s.send(t, "GET", page, ""); a.status != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("%s answers %d %v", page, a.status, a.header)
		}
	}
	if a := s.send(t, "GET", "/readyz", ""); a.status != 503 {
		t.Errorf("readyz answers %d", a.status)
	}
	if a := s.send(t, "GET", "/livez", ""); a.status != 200 {
		t.Errorf("livez answers %d", a.status)
	}

	e.Start(t)
	if a := send(1); a.status != 202 || a.field("status") != "duplicate" {
		t.Errorf("what was recorded is %d %s", a.status, a.body)
	}
	if a := send(2); a.status != 202 || a.field("status") != "pending_identity" {
		t.Errorf("what was turned away is %d %s", a.status, a.body)
	}
	if a := s.send(t, "GET", "/readyz", ""); a.status != 200 {
		t.Errorf("readyz answers %d", a.status)
	}
}

func TestSIGTERMEndsTheServerInTimeAndWithSuccess(t *testing.T) {
	// Not beside others: how long it takes is what it tells.
	e := servertest.StartPostgres(t)
	s := start(t, e.URL())
	begun := time.Now()
	if err := s.Stop(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it takes %v, which is over its limit of 10 s", took)
	}
}

func TestAClientThatDoesNotFinishItsRequestIsNoFailureOfTheServersEnd(t *testing.T) {
	// Not beside others: how long it takes is what it tells.
	e := servertest.StartPostgres(t)
	s := start(t, e.URL())
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/events HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 500\r\n\r\n{", newKey(t, e))
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	if err := s.Stop(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it takes %v, which is over its limit of 10 s", took)
	}
}

func TestAServerWhoseDatabaseHangsEndsInTimeToo(t *testing.T) {
	// Not beside others: how long it takes is what it tells.
	e := servertest.StartPostgres(t)
	s := start(t, e.URL())
	key := newKey(t, e)
	event := `{"id":"e","name":"n","visitor":{"id":"v"}}`
	if a := s.send(t, "POST", "/api/v1/events", event, key); a.status != 202 {
		t.Fatalf("%s", a.body)
	}
	var hanging []*os.Process
	for pid := range strings.FieldsSeq(dbtest.Query[string](t, e.URL(), `select string_agg(pid::text, ' ')
		from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`)) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		backend, err := os.FindProcess(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := backend.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		hanging = append(hanging, backend)
	}
	defer func() {
		for _, backend := range hanging {
			backend.Signal(syscall.SIGCONT)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Base+"/api/v1/events", strings.NewReader(event))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", strings.TrimPrefix(key, "Authorization: "))
	if response, err := http.DefaultClient.Do(r); err == nil {
		response.Body.Close()
		t.Errorf("it answers %d", response.StatusCode)
	}
	begun := time.Now()
	s.Stop() //nolint:errcheck // that the database hung may well be told
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it takes %v, which is over its limit of 10 s", took)
	}
}

// newKey makes a workspace with a key that may do everything, and gives its
// header.
func newKey(t *testing.T, e *servertest.Postgres) string {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	token := auth.NewToken(auth.APIKey)
	credential, _ := auth.ParseToken(token)
	if err := d.Across(t.Context(), func(tx *db.Tx) error {
		id, err := tx.CreateWorkspace(t.Context(), "away", "Away", map[string][]string{"admin": auth.Scopes()})
		if err != nil {
			return err
		}
		scope := tx.Scope(id)
		owner, err := scope.SavePerson(t.Context(), 0, db.Person{Email: "a@away.example", Name: "A", Role: "admin"})
		if err != nil {
			return err
		}
		_, err = scope.CreateAPIKey(t.Context(), db.APIKey{
			Kind: "api", Hash: credential.Hash, Prefix: "amp_", Last4: credential.Last4, Name: "k", Owner: owner,
			Scopes: []string{"events.send", "leads.manage", "motions.start"}, RequestsPerMinute: 1000,
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return "Authorization: Bearer " + token
}

func TestAFailureOfTheServerTellsNothingOfItsInside(t *testing.T) {
	t.Parallel()
	e := servertest.StartPostgres(t)
	s := start(t, e.URL())
	defer s.Stop()
	key := newKey(t, e)
	silent := func(a answer) {
		t.Helper()
		for _, inside := range []string{"pq:", "relation", "visitors", "api_keys", "42P01", "sql"} {
			if strings.Contains(string(a.body), inside) {
				t.Errorf("%q is told: %s", inside, a.body)
			}
		}
	}
	dbtest.Exec(t, e.URL(), `alter table visitors rename to gone`)
	a := s.send(t, "POST", "/api/v1/events", `{"id":"e","name":"n","visitor":{"id":"v"}}`, key)
	expect(t, a, 500, "internal_error", "")
	silent(a)
	// The line is written behind the answer.
	for wait := 0; !strings.Contains(s.Log(), "visitors"); wait++ {
		if wait == 100 {
			t.Fatal("the log does not tell it either")
		}
		time.Sleep(20 * time.Millisecond)
	}
	dbtest.Exec(t, e.URL(), `alter table api_keys rename to gone_too; alter table event_ids rename to gone_ids;
		alter table forms rename to gone_forms; alter table meeting_forms rename to gone_meetings; alter table sites rename to gone_sites`)
	for _, op := range api.Operations {
		path, body, headers := request(op)
		a := s.send(t, op.Method, path, body, append(headers, key)...)
		expect(t, a, 500, op.Errors[500][0], "")
		silent(a)
	}
}
