// Package contract drives the real binary on a real PostgreSQL from outside,
// and holds every answer that it sees against the document.
package contract

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/embed/embedtest"
	"github.com/inletdev/inlet/impl/servertest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// They wait for processes and jobs more than they compute.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		flag.Set("test.parallel", strconv.Itoa(min(2*runtime.GOMAXPROCS(0), 8)))
	}
	http.DefaultTransport = watched{http.DefaultTransport}
	servertest.Main(m, []string{"-race"}, everyAnswerConforms, whatNoTestReachesIsListed, func() error {
		if shared.Server != nil {
			shared.Stop() //nolint:errcheck // tests of its end have their own
		}
		embedtest.Close()
		return nil
	})
}

// A server is one running process of the binary, and how tests talk to it.
type server struct{ *servertest.Server }

// start runs a server and waits until it serves.
func start(t testing.TB, databaseURL string, env ...string) server {
	t.Helper()
	return server{servertest.Start(t, databaseURL, env...)}
}

// refusesToServe gives what a server that ends at once says.
func refusesToServe(t testing.TB, databaseURL string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, servertest.Binary, "serve")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL, "INLET_LISTEN=127.0.0.1:0")
	said, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("the server serves:\n%s", said)
	}
	return string(said)
}

var shared server

var startShared sync.Once

// sharedServer is the one that most tests drive, each in workspaces of its own.
func sharedServer(t testing.TB) server {
	t.Helper()
	startShared.Do(func() { shared = start(t, dbtest.URL(t)) })
	return shared
}

// An answer is what the server said to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and holds the answer against the document. A header
// given as "Name: value" with an empty value is not sent at all.
func (s server) send(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(withTest(t), method, s.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	// As many clients as requests, so that no test uses up another's limit.
	r.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256)))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, raw}
}

// refusal gives code and param of an error, whichever shape it has.
func (a answer) refusal() (code, param string) {
	var body struct {
		Error json.RawMessage
		Param string
	}
	json.Unmarshal(a.body, &body)
	var object struct{ Code, Param string }
	if json.Unmarshal(body.Error, &object) == nil && object.Code != "" {
		return object.Code, object.Param
	}
	json.Unmarshal(body.Error, &code)
	return code, body.Param
}

func (a answer) field(name string) any {
	var body map[string]any
	json.Unmarshal(a.body, &body)
	return body[name]
}

// inlet runs a command of the binary on the shared database.
func inlet(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := tryInlet(t, stdin, args...)
	if err != nil {
		t.Fatalf("inlet %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func tryInlet(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	return servertest.Command(t, dbtest.URL(t), stdin, args...)
}
