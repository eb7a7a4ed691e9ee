// Package openapi holds the document: the handwritten OpenAPI description that
// server, client, guard and reference are made from.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var document []byte

// YAML is the document as it was written.
func YAML() []byte { return document }

// JSON is the same document as JSON, in the same order.
var JSON = sync.OnceValue(func() []byte { return toJSON(document) })

// Hash tells one version of the document from another: the SHA-256 of what was
// written, in hex.
var Hash = sync.OnceValue(func() string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
})

// anywhere is the server of the document as it was written.
const anywhere = "http://127.0.0.1:8080"

// For gives the document, as YAML and as JSON, with the base address of a server
// filled in: the same document otherwise.
func For(baseURL string) (asYAML, asJSON []byte) {
	asYAML = bytes.Replace(document, []byte("default: "+anywhere), []byte("default: "+baseURL), 1)
	return asYAML, toJSON(asYAML)
}

func toJSON(source []byte) []byte {
	raw, err := yaml.YAMLToJSON(source)
	if err != nil {
		panic(err) // a test reads the document
	}
	return raw
}
