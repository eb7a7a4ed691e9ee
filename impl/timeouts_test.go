package impl

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/limit"
)

// The guide promises how long things may take.
func TestTheGuideHasTheTimeOutsOfTheServer(t *testing.T) {
	guide, err := os.ReadFile("docs/pages/guides/self-hosting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what string
		is   time.Duration
	}{
		{"the headers of a request, and the first 4 KB of its body", limit.RequestHeaders},
		{"the rest of a body, which is to come at 8 KB a second or faster", limit.RequestBody},
		{"the work of an operation", limit.Handling},
		{"an answer, from the headers of its request until the client has taken it", limit.Answer},
		{"a connection without a request", limit.IdleConnection},
		{"the database, for `GET /readyz`", limit.Ready},
		{"requests in flight, once the server is to end", limit.StopAnswers},
		{"whatever is left then, and more where requests took less", limit.StopRest},
		{"a connection to the database", db.ConnectTimeout},
		{"a statement", db.StatementTimeout},
		{"a lock that another transaction has", db.LockTimeout},
		{"a transaction without a statement", db.TransactionTimeout},
		{"a connection to a webhook's receiver", limit.WebhookConnect},
		{"its TLS handshake", limit.WebhookHandshake},
		{"a webhook, from the connection to the end of the answer", limit.WebhookAttempt},
	} {
		seconds := fmt.Sprintf("%g s", row.is.Seconds())
		if want := fmt.Sprintf("| %s | %s |", row.what, seconds); !bytes.Contains(guide, []byte(want)) {
			t.Errorf("it lacks %q", want)
		}
	}
	if limit.BodyBytesPerSecond != 8<<10 {
		t.Error("a body may come at another rate")
	}
}

// Balancers give up after a minute.
func TestEveryRequestIsAnsweredWithinAMinute(t *testing.T) {
	if all := limit.RequestHeaders + limit.RequestBody + limit.Handling; all >= limit.Answer || limit.Answer > time.Minute {
		t.Errorf("a request may take %v, and its answer until %v", all, limit.Answer)
	}
	if limit.Handling >= db.StatementTimeout {
		t.Error("a statement is given up before its request is")
	}
}

// needs are the fields that a value of a type must have set: without them, it waits
// for ever.
var needs = map[string][]string{
	"http.Server":    {"ReadHeaderTimeout", "ReadTimeout", "WriteTimeout", "IdleTimeout", "MaxHeaderBytes"},
	"http.Transport": {"DialContext", "TLSHandshakeTimeout", "ResponseHeaderTimeout", "IdleConnTimeout"},
	"net.Dialer":     {"Timeout"},
}

// forbidden wait for ever, or for clients that do.
var forbidden = []string{
	"http.Get", "http.Post", "http.Head", "http.PostForm", "http.DefaultClient", "http.DefaultTransport",
	"http.ListenAndServe", "http.Serve", "net.Dial", "http.TimeoutHandler",
}

func TestNothingSpeaksToTheNetworkWithoutTimeOuts(t *testing.T) {
	root := ".."
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "scripts" || strings.HasSuffix(name, "test") || strings.HasPrefix(entry.Name(), ".") && name != ".."):
			return filepath.SkipDir // they run beside the server
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "gen/"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				of := qualified(n.Type)
				if needs[of] == nil {
					return true
				}
				found++
				for _, field := range needs[of] {
					if !slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
						pair, ok := e.(*ast.KeyValueExpr)
						return ok && fmt.Sprint(pair.Key) == field
					}) {
						t.Errorf("%s has a %s without %s", name, of, field)
					}
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "new" && needs[qualified(n.Args[0])] != nil {
					t.Errorf("%s has a new %s, without time-outs", name, qualified(n.Args[0]))
				}
			case *ast.SelectorExpr:
				if slices.Contains(forbidden, qualified(n)) {
					t.Errorf("%s uses %s", name, qualified(n))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 4 {
		t.Errorf("only %d servers, clients and dialers are found", found)
	}
}

// qualified gives the name of a thing of a package; empty for another.
func qualified(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return fmt.Sprintf("%v.%s", s.X, s.Sel.Name)
	}
	return ""
}
