package contract

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// An authority issues certificates through another one, which clients do not know
// and servers have to send along.
type authority struct {
	root *x509.Certificate
	via  *x509.Certificate
	key  *ecdsa.PrivateKey
}

func certify(t *testing.T, serial int64, isCA bool, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint("certificate ", serial)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if isCA {
		c.KeyUsage = x509.KeyUsageCertSign
	} else {
		c.DNSNames = []string{"inlet.example"}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	if parent == nil {
		parent, signer = c, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	root, rootKey := certify(t, 1, true, nil, nil)
	via, key := certify(t, 2, true, root, rootKey)
	return authority{root, via, key}
}

// issue writes a certificate with its chain, and its key.
func (a authority) issue(t *testing.T, serial int64, certFile, keyFile string) {
	t.Helper()
	c, key := certify(t, serial, false, a.via, a.key)
	chain := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.via.Raw})...)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{certFile: chain, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHTTPSIsServedAsItShouldBeAndGoesOnWithARenewedCertificate(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), newAuthority(t)
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	a.issue(t, 10, certFile, keyFile)
	s := start(t, dbtest.URL(t), "INLET_TLS_CERT="+certFile, "INLET_TLS_KEY="+keyFile)
	defer s.Stop()
	host := strings.TrimPrefix(s.Base, "http://")
	roots := x509.NewCertPool()
	roots.AddCert(a.root)
	trusting := func() *tls.Config { return &tls.Config{RootCAs: roots, ServerName: "inlet.example"} }
	serial := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", host, trusting())
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	// Who trusts the root alone needs the chain.
	if got := serial(); got != "10" {
		t.Fatalf("a client meets %s", got)
	}
	for _, c := range []struct {
		name    string
		version uint16
		works   bool
	}{{"1.0", tls.VersionTLS10, false}, {"1.1", tls.VersionTLS11, false}, {"1.2", tls.VersionTLS12, true}, {"1.3", tls.VersionTLS13, true}} {
		config := trusting()
		config.MinVersion, config.MaxVersion = c.version, c.version
		conn, err := tls.Dial("tcp", host, config)
		if (err == nil) != c.works {
			t.Errorf("TLS %s: %v", c.name, err)
		}
		if err == nil {
			conn.Close()
		}
	}

	for _, http2 := range []bool{true, false} {
		transport := &http.Transport{TLSClientConfig: trusting(), ForceAttemptHTTP2: http2}
		if !http2 {
			transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get("https://" + host + "/docs/openapi/v1.json")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if want := map[bool]int{true: 2, false: 1}[http2]; err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != want {
			t.Errorf("HTTP/%d answers %d over %s: %v", want, response.StatusCode, response.Proto, err)
		}
		if !strings.Contains(string(body), `"https://`+host) {
			t.Error("the document does not name the server by HTTPS")
		}
		if response.Header.Get("Strict-Transport-Security") == "" {
			t.Error("browsers are not told to stay with HTTPS")
		}
	}

	plain, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	fmt.Fprintf(plain, "GET /api/v1/events HTTP/1.1\r\nHost: inlet.example\r\nAuthorization: Bearer amp_x\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(plain), nil)
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusBadRequest || !strings.Contains(string(said), "HTTPS") {
		t.Errorf("HTTP on the port of HTTPS: %d %s", response.StatusCode, said)
	}

	// One who renews writes the files one after the other.
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	a.issue(t, 11, certFile, keyFile)
	renewedKey, _ := os.ReadFile(keyFile)
	os.WriteFile(keyFile, key, 0o600)
	eventually(t, "the log of a half renewal", true, func() bool {
		if got := serial(); got != "10" {
			t.Fatalf("between the files a client meets %s", got)
		}
		return strings.Contains(s.Log(), "the certificate is not renewed")
	})
	os.WriteFile(keyFile, renewedKey, 0o600)
	eventually(t, "the certificate", "11", serial)
	// Kubernetes renews by pointing a link elsewhere.
	for _, file := range []string{certFile, keyFile} {
		if err := os.Rename(file, file+".old"); err != nil {
			t.Fatal(err)
		}
	}
	a.issue(t, 12, certFile+".new", keyFile+".new")
	for _, file := range []string{certFile, keyFile} {
		if err := os.Symlink(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the certificate", "12", serial)
	if strings.Contains(s.Log(), "PRIVATE") {
		t.Error("the log tells the key")
	}
}

func TestACertificateThatIsNoneIsToldAtTheStartWithoutWhatIsInIt(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	a.issue(t, 10, path("one.crt"), path("one.key"))
	a.issue(t, 11, path("other.crt"), path("other.key"))
	if err := os.WriteFile(path("noise"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, cert, key, says string }{
		{"no key", path("one.crt"), "", "INLET_TLS_CERT and INLET_TLS_KEY belong together"},
		{"no certificate", "", path("one.key"), "INLET_TLS_CERT and INLET_TLS_KEY belong together"},
		{"another's key", path("one.crt"), path("other.key"), "INLET_TLS_KEY"},
		{"swapped", path("one.key"), path("one.crt"), "INLET_TLS_CERT"},
		{"not there", path("absent"), path("one.key"), "absent"},
		{"something else", path("one.crt"), path("noise"), "INLET_TLS_KEY"},
	} {
		t.Setenv("INLET_TLS_CERT", c.cert)
		t.Setenv("INLET_TLS_KEY", c.key)
		said := refusesToServe(t, dbtest.URL(t))
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: it says %s, want %q", c.name, said, c.says)
		}
		if strings.Contains(said, "PRIVATE") || strings.Contains(said, "hunter2") {
			t.Errorf("%s: what is in a file is told: %s", c.name, said)
		}
	}
}
