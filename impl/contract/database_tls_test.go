package contract

import (
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// As the guide "Self-hosting" has it: PostgreSQL lets nobody in but over TLS, and
// the server makes sure whom it speaks with.
func TestTheDatabaseIsSpokenWithOverTLSAndNoOtherIsTakenForIt(t *testing.T) {
	t.Parallel()
	// An address of its own, for the port is PostgreSQL's usual one.
	there := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", there+":5432")
	if err != nil {
		t.Skipf("this system has one loopback address only: %v", err)
	}
	free.Close()
	p := servertest.StartPostgres(t, "-c listen_addresses="+there)

	dir, own, other := t.TempDir(), newAuthority(t), newAuthority(t)
	root := func(a authority) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
	}
	ca, otherCA := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "other.crt")
	clientCert, clientKey := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	own.issue(t, 20, clientCert, clientKey)
	in := func(name string) string { return filepath.Join(p.Data(), name) }
	own.issue(t, 10, in("server.crt"), in("server.key"))
	for name, content := range map[string][]byte{
		ca: root(own), otherCA: root(other), in("clients.crt"): root(own),
		in("pg_hba.conf"): []byte("local all inlet trust\n" +
			"hostssl all \"certificate 20\" 127.0.0.0/8 cert\n" +
			"hostssl all all 127.0.0.0/8 scram-sha-256\n"),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Own(t, p.Data())
	const password = "the-database-password"
	for _, query := range []string{
		`alter system set ssl = on`, `alter system set ssl_ca_file = 'clients.crt'`, `select pg_reload_conf()`,
		`create role "certificate 20" login superuser`, `create role guarded login superuser password '` + password + `'`,
	} {
		dbtest.Exec(t, p.URL(), query)
	}

	address := func(user *url.Userinfo, host string, query url.Values) string {
		query.Set("hostaddr", there)
		return (&url.URL{Scheme: "postgres", User: user, Host: host, Path: "inlet", RawQuery: query.Encode()}).String()
	}
	guarded := url.UserPassword("guarded", password)
	checked := func() url.Values { return url.Values{"sslmode": {"verify-full"}, "sslrootcert": {ca}} }
	for name, test := range map[string]struct {
		address string
		refused string // what it says; nothing where it works
	}{
		"its certificate is checked": {address(guarded, "inlet.example", checked()), ""},
		"encrypted, unchecked":       {address(guarded, "inlet.example", url.Values{}), ""},
		"the server has a certificate of its own": {address(url.User("certificate 20"), "inlet.example", url.Values{
			"sslmode": {"verify-full"}, "sslrootcert": {ca}, "sslcert": {clientCert}, "sslkey": {clientKey},
		}), ""},
		"it has none":       {address(url.User("certificate 20"), "inlet.example", checked()), "certificate"},
		"another authority": {address(guarded, "inlet.example", url.Values{"sslmode": {"verify-full"}, "sslrootcert": {otherCA}}), "unknown authority"},
		"another name":      {address(guarded, "other.example", checked()), "other.example"},
		"no TLS":            {address(guarded, "inlet.example", url.Values{"sslmode": {"disable"}}), "no encryption"},
		"another password":  {address(url.UserPassword("guarded", password+"x"), "inlet.example", checked()), "authentication"},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := servertest.Command(t, test.address, "", "migrate")
			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("it says %v, which does not tell of %q", err, test.refused)
			}
			if strings.Contains(fmt.Sprint(said, err), password) {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}

	s := start(t, address(guarded, "inlet.example", checked()))
	defer s.Stop()
	if a := s.send(t, "GET", "/readyz", ""); a.status != 200 {
		t.Errorf("readyz answers %d", a.status)
	}
	if n := dbtest.Query[int](t, p.URL(), `select count(*) from pg_stat_ssl join pg_stat_activity using (pid)
		where usename = 'guarded' and ssl and version >= 'TLSv1.2'`); n == 0 {
		t.Error("no session is encrypted")
	}
	if n := dbtest.Query[int](t, p.URL(), `select count(*) from pg_stat_ssl join pg_stat_activity using (pid)
		where usename = 'guarded' and not ssl`); n != 0 {
		t.Errorf("%d sessions are not encrypted", n)
	}
}
