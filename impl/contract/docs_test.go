package contract

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inletdev/inlet/openapi"
)

func TestTheDocumentIsPublishedAsTheServerWasGeneratedFromItWithItsAddressFilledIn(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	asYAML, asJSON := openapi.For(s.Base)
	for path, want := range map[string]struct {
		kind string
		body []byte
	}{
		"/docs/openapi/v1.json": {"application/json", asJSON},
		"/docs/openapi/v1.yaml": {"application/yaml", asYAML},
	} {
		a := s.send(t, "GET", path, "", "Origin: https://elsewhere.example")
		if a.status != 200 || a.header.Get("Content-Type") != want.kind || a.header.Get("Access-Control-Allow-Origin") != "*" ||
			a.header.Get("Inlet-Document") != openapi.Hash() || !strings.Contains(s.Log(), openapi.Hash()) {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		if !bytes.Equal(a.body, want.body) || !bytes.Contains(a.body, []byte(s.Base)) {
			t.Errorf("%s is not the document", path)
		}
		if again := s.send(t, "GET", path, "", "If-None-Match: "+a.header.Get("ETag")); again.status != 304 {
			t.Errorf("%s with its ETag answers %d", path, again.status)
		}
	}
	if got := inlet(t, "", "openapi", "--public-url", s.Base); got != string(asYAML) {
		t.Error("inlet openapi prints something else")
	}
}
