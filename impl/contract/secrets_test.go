package contract

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

func TestTheDatabaseURLMayStandInAFile(t *testing.T) {
	address := dbtest.URL(t)
	os.Unsetenv("DATABASE_URL_FILE")
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "url")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	t.Setenv("DATABASE_URL_FILE", file(address+"\n"))
	s := start(t, "")
	if a := s.send(t, "GET", "/readyz", ""); a.status != 200 {
		t.Errorf("the server answers %d", a.status)
	}
	s.Stop()
	// A word that is nowhere but in the secret.
	for _, c := range []struct{ name, url, file, says string }{
		{"both", "postgres://u:hunter2@h/x", file("postgres://u:hunter2@h/x"), "DATABASE_URL and DATABASE_URL_FILE are both set"},
		{"no file", "", filepath.Join(t.TempDir(), "absent"), "DATABASE_URL_FILE: "},
		{"a folder", "", t.TempDir(), "DATABASE_URL_FILE: "},
		{"nothing in it", "", file("\n"), "DATABASE_URL_FILE: "},
		{"another secret", "", file("hunter2"), "the database URL is not one"},
		{"several words", "", file("hunter2 hunter2"), "the database URL is not one"},
		{"a bad escape", "", file("postgres://u:hunter2%ss@h/x"), "the database URL is not one"},
		{"a bad port", "", file("postgres://u:a:hunter2/@h/x"), "the database URL is not one"},
		{"a bad setting", "", file("host=h sslmode=hunter2"), "the database URL is not one"},
		{"nobody there", "", file("postgres://u:hunter2@127.0.0.1:1/x?sslmode=disable"), "database"},
	} {
		t.Setenv("DATABASE_URL_FILE", c.file)
		said := refusesToServe(t, c.url)
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: it says %s, want %q", c.name, said, c.says)
		}
		if strings.Contains(said, "hunter2") {
			t.Errorf("%s: the secret is told: %s", c.name, said)
		}
	}
}

// In the places where PostgreSQL's own programs look for it.
func TestThePasswordOfTheDatabaseMayStandInAPasswordFile(t *testing.T) {
	e := servertest.StartPostgres(t)
	if _, err := servertest.Command(t, e.URL(), "", "migrate"); err != nil {
		t.Fatal(err)
	}
	dbtest.Exec(t, e.URL(), `create role guarded login superuser password 'right:one'`)
	rules := "local all inlet trust\nlocal all all scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(e.Data(), "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if !dbtest.Query[bool](t, e.URL(), `select pg_reload_conf()`) {
		t.Fatal("the rules are not read")
	}
	address := strings.Replace(e.URL(), "inlet@", "guarded@", 1)
	passwords := filepath.Join(t.TempDir(), "passwords")
	t.Setenv("PGPASSFILE", passwords)
	try := func(line string) error {
		if err := os.WriteFile(passwords, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := servertest.Command(t, address, "", "workspace", "list")
		return err
	}
	eventually(t, "a wrong password refused", true, func() bool { return try(`*:*:*:guarded:wrong`) != nil })
	if err := try(`*:*:*:guarded:right\:one`); err != nil {
		t.Error(err)
	}
}

func TestTheTokenOfACollectorMayStandInAFile(t *testing.T) {
	var told atomic.Value
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told.Store(r.Header.Get("Authorization"))
	}))
	defer collector.Close()
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("authorization=Bearer%20hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS_FILE", headers)
	s := start(t, dbtest.URL(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_METRIC_EXPORT_INTERVAL=200")
	defer s.Stop()
	eventually[any](t, "the token", "Bearer hunter2", told.Load)
	if strings.Contains(s.Log(), "hunter2") {
		t.Error("the log tells the token")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2")
	if said := refusesToServe(t, dbtest.URL(t)); !strings.Contains(said, "OTEL_EXPORTER_OTLP_HEADERS_FILE are both set") || strings.Contains(said, "hunter2") {
		t.Errorf("both are set, and it says %s", said)
	}
}
