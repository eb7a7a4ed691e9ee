// Package openapi holds the document: the handwritten OpenAPI description that
// server, client, guard and reference are made from.
package openapi

import (
	_ "embed"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var document []byte

// YAML is the document as it was written.
func YAML() []byte { return document }

// JSON is the same document as JSON, in the same order.
var JSON = sync.OnceValue(func() []byte {
	raw, err := yaml.YAMLToJSON(document)
	if err != nil {
		panic(err) // a test reads the document
	}
	return raw
})
