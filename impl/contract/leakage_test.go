package contract

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// says runs a command with an environment, to its end or for so long, and gives all
// that it writes.
func says(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), released(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer ended.Stop()
	cmd.Wait() //nolint:errcheck // most of these fail
	return out.String()
}

// A server that cannot start says why, in logs that many read.
func TestNoFailureToStartTellsTheDatabasesPassword(t *testing.T) {
	t.Parallel()
	const password = "hunter2hidden"
	addresses := []string{
		"postgres://inlet:PASSWORD@local host/inlet", "postgres://inlet:PASSWORD@127.0.0.1:99999999/inlet", "postgres://inlet:%zzPASSWORD@127.0.0.1/inlet",
		"postgres://inlet:PASSWORD%@127.0.0.1/inlet", "postgres://inlet:PASSWORD@127.0.0.1:port/inlet", "postgres://inlet:PASSWORD@[::1/inlet",
		"postgres://inlet:PASSWORD\x7f@127.0.0.1/inlet", "postgres://inlet:p@PASSWORD/x@127.0.0.1:1/inlet", "postgres://inlet:x/PASSWORD@127.0.0.1:1/inlet",
		"postgres://inlet:1/PASSWORD@127.0.0.1:1/inlet", "postgres://inlet:1?PASSWORD@127.0.0.1:1/inlet", "postgres://inlet:1#PASSWORD@127.0.0.1:1/inlet",
		"postgres://inlet:PASSWORD@127.0.0.1/inlet?sslmode=PASSWORD", "postgres://inlet:PASSWORD@127.0.0.1/inlet?port=PASSWORD",
		"postgres://inlet:PASSWORD@127.0.0.1:1/inlet?sslmode=verify-full&sslrootcert=PASSWORD", "postgres://127.0.0.1:1/inlet?password=PASSWORD&connect_timeout=PASSWORD",
		"host=127.0.0.1 port=1 password=PASSWORD sslmode=disable x", "host=127.0.0.1 port=1 password='PASSWORD sslmode=disable", "inlet:PASSWORD@127.0.0.1/inlet",
		"mysql://inlet:PASSWORD@127.0.0.1/inlet", "PASSWORD", "postgres:inlet:PASSWORD@127.0.0.1/inlet", "postgres://inlet:PASSWORD@127.0.0.1:1/inlet?sslmode=disable",
		strings.Replace(dbtest.URL(t), "inlet@", "nobody:PASSWORD@", 1), // which the server refuses
	}
	var parallel sync.WaitGroup
	for half := range 2 {
		parallel.Go(func() {
			for i, address := range addresses {
				if i%2 != half {
					continue
				}
				address = strings.ReplaceAll(address, "PASSWORD", password)
				for _, said := range []string{
					says(t, []string{"DATABASE_URL=" + address}, "serve", "--listen", "127.0.0.1:0"),
					says(t, nil, "workspace", "list", "--database-url", address),
				} {
					if said == "" || strings.Contains(said, "hunter2") {
						t.Errorf("%q: it says %q", address, said)
					}
				}
			}
		})
	}
	parallel.Wait()
	// What is in the environment is nobody's who asks for help or mistypes.
	env := []string{"DATABASE_URL=postgres://inlet:" + password + "@127.0.0.1:1/inlet", "INLET_PUBLIC_URL=https://" + password + ".example", "INLET_DATA_DIR=/" + password}
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"key", "create", "--help"}, {"serve", "--nonsense"}, {"nonsense"}, {}, {"link", "create", "--help"}} {
		if said := says(t, env, args...); said == "" || strings.Contains(said, password) {
			t.Errorf("%v says %s", args, said)
		}
	}
}

// personal stands in everything personal or secret that the test sends, and cannot
// stand in an id that is made at random, which has no 8 or no l.
const personal = "l8aky"

// Everything that the server writes or answers, to whoever, after every operation
// was asked for rightly and wrongly, and after the database failed on what was
// sent: nothing personal is in it, and no secret.
func TestNothingSecretOrPersonalIsEmitted(t *testing.T) {
	t.Parallel()
	p := servertest.StartPostgres(t)
	address := strings.Replace(p.URL(), "inlet@", "inlet:l8aky-database-password@", 1)
	hooks := receive(t)
	s := startReleased(t, address, hooks.env...)
	defer s.Stop()
	k := sweepOf(t, s, address, "private", "l8akyorg", "l8akyperson")
	w := k.workspace
	hooked := servertest.Seed(t, address, "hooked", hooked(1, hooks.URL+"/hook"))
	notifies := seeded{hooked}
	notifies.starts(t, s, "hook0", "c0")
	secret, err := servertest.Command(t, address, "", "workspace", "webhook-secret", "private")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]any{}
	k.livesOn(t, "l8akyorg", "l8akyperson", known)
	secrets := []string{k.credential, strings.TrimSpace(secret), "secret-of-l8akyorg", "l8aky-database-password", w.APIKeys["all"].Token[10:30]}
	for row := range strings.Lines(dbtest.Query[string](t, address, `
		select string_agg(concat_ws(E'\n', encode(secret, 'hex'), translate(encode(secret, 'base64'), E'\n=', '')), E'\n') from server_secrets`)) {
		secrets = append(secrets, strings.TrimSpace(row))
	}
	if len(secrets) < 9 {
		t.Fatalf("only %d secrets are looked for", len(secrets))
	}
	holds := func(where, text string) {
		t.Helper()
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the secret %s: %.300s", where, secret, text)
			}
		}
		if at := strings.Index(strings.ToLower(text), personal); at >= 0 {
			t.Errorf("%s holds something personal: %s", where, text[max(0, at-100):min(len(text), at+100)])
		}
	}
	answered := func(p place, a answer) {
		t.Helper()
		text := string(a.body) + fmt.Sprint(a.header)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s is answered with the secret %s: %s", p, secret, text)
			}
		}
		// A sender is told its own ids and the names of its own fields, and no values.
		own := p.in == "name" || p.op.Method == http.MethodGet || strings.HasSuffix(p.String(), ".id") || strings.HasSuffix(p.String(), " id") || p.name == "X-Request-Id"
		if !own && a.status >= 400 && strings.Contains(strings.ToLower(text), personal) {
			t.Errorf("%s: the refusal repeats what was sent: %s", p, text)
		}
	}
	values := []string{
		"l8aky.person@l8aky-mail.com", "L8aky Person", "+1 415 555 0199 l8aky", "https://www.linkedin.com/in/l8aky", "l8aky.com", "l8aky", "l8aky-1", "L8aky'; --",
		"l8aky\x00", "l8aky@", strings.Repeat("l8aky ", 90), strings.Repeat("l8aky", 900), `{"l8aky":1}`, w.token("l8aky.signed@l8aky-mail.com", nil),
	}
	sweep := func(values []string) {
		t.Helper()
		var parallel sync.WaitGroup
		work := make(chan place)
		for range 4 {
			parallel.Go(func() {
				for p := range work {
					for _, value := range values {
						// Visible ASCII that a caller gives as the id of its request is meant to be logged.
						if a, ok := k.with(p, value); ok && p.name != "X-Request-Id" {
							answered(p, k.ask(t, a))
						}
					}
				}
			})
		}
		for _, p := range declared(places()) {
			work <- p
		}
		close(work)
		parallel.Wait()
	}
	sweep(values)
	for _, path := range []string{"/l/l8aky", "/l8aky", "/api/v1/l8aky?l8aky=l8aky", "/docs/l8aky", "/t/l8aky.js", "/api/v1/forms/l8aky/page", "/api/v1/forms/l8aky/embed.js", "/l/" + k.credential} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			a := s.send(t, method, path, `{"l8aky":"l8aky"}`, "Authorization: Bearer "+k.credential, "Cookie: l8aky=l8aky", "User-Agent: l8aky", "Referer: https://l8aky.com/")
			holds(method+" "+path, string(a.body)+fmt.Sprint(a.header))
		}
	}
	s.raw(t, "GET /l8aky HTTP/1.1\r\nHost: l8aky\r\nl8aky\x00: l8aky\r\nAuthorization: Bearer "+k.credential+"\r\n\r\n")

	// The database fails on the very rows, and jobs fail on theirs.
	dbtest.Exec(t, address, `
		alter table contacts add constraint broken_contacts check (contact_id is null) not valid;
		alter table leads add constraint broken_leads check (lead_id is null) not valid;
		alter table visitors add constraint broken_visitors check (visitor_id is null) not valid;
		alter table event_facts add constraint broken_facts check (events is null) not valid;
		alter table bookings rename column time_zone to l8aky_zone`)
	sweep([]string{"l8aky.other@l8aky-mail.com", "l8aky-2"})
	w.record(t, s, `{"id":"l8aky-fact","name":"l8akyorg_event","contact":{"email":"l8akyperson@l8akyorg.com"}}`)
	time.Sleep(3 * time.Second) // jobs look once a second
	if !strings.Contains(s.Log(), "broken_contacts") || !strings.Contains(s.Log(), "broken_facts") {
		t.Errorf("the log does not tell what failed: %s", errorsOf(s.Log()))
	}
	eventually(t, "the webhook", 1, func() int { return len(hooks.deliveries("/hook")) })
	for _, d := range hooks.deliveries("/hook") {
		for name := range d.header {
			if !slices.Contains([]string{"Content-Type", "Content-Length", "Accept-Encoding", "User-Agent", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}, name) {
				t.Errorf("a webhook has the header %s", name)
			}
		}
		holds("a webhook", fmt.Sprint(d.header)+string(d.body))
	}
	for _, path := range []string{"/metrics", "/readyz", "/livez"} {
		holds(path, string(s.send(t, "GET", path, "").body))
	}
	s.Stop() //nolint:errcheck // jobs that fail may be told
	// What is in the log of renamed columns is the schema's.
	holds("the log", strings.ReplaceAll(s.Log(), "l8aky_zone", ""))
	own, err := os.ReadFile(filepath.Join(p.Data(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	holds("PostgreSQL's log", strings.ReplaceAll(string(own), "l8aky_zone", ""))
}
