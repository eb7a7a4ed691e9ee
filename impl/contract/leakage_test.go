package contract

import (
	"bytes"
	"os"
	"os/exec"
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
	cmd := exec.CommandContext(t.Context(), servertest.Binary, args...)
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
