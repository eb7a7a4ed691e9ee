package contract

import (
	"bytes"
	"testing"

	"github.com/inletdev/inlet/openapi"
)

func TestTheDocumentIsPublishedAsItIsForAnyPageToRead(t *testing.T) {
	s := sharedServer(t)
	a := s.send(t, "GET", "/docs/openapi/v1.json", "", "Origin: https://elsewhere.example")
	if a.status != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v", a.status, a.header)
	}
	if !bytes.Equal(a.body, openapi.JSON()) {
		t.Error("what is published is not the document")
	}
	if a := s.send(t, "GET", "/docs/benchmarks", ""); a.status != 200 || !bytes.Contains(a.body, []byte("make bench")) {
		t.Errorf("%d %s", a.status, a.body)
	}
}
