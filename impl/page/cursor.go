// Package page makes the cursors of lists.
package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// A Signer makes and opens cursors. All processes share its key.
type Signer struct{ key []byte }

// NewSigner makes a signer.
func NewSigner(key []byte) Signer { return Signer{key} }

// A List is what a cursor is bound to: it opens nowhere else.
type List struct {
	Name      string
	Workspace int64
	Filters   string // however the list writes them
}

const (
	macSize = 16
	longest = 512 // characters of a cursor
)

// Seal makes the cursor of a position in a list.
func (s Signer) Seal(l List, position string) string {
	return base64.RawURLEncoding.EncodeToString(append(s.mac(l, position), position...))
}

// Open gives the position of a cursor that Seal made for the same list, and
// false for any other text.
func (s Signer) Open(l List, cursor string) (position string, ok bool) {
	// Strict: bits that no encoding sets would make two texts of one cursor, and so
	// would line breaks, which the decoder passes over.
	if len(cursor) > longest || strings.ContainsAny(cursor, "\r\n") {
		return "", false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < macSize {
		return "", false
	}
	position = string(raw[macSize:])
	return position, hmac.Equal(raw[:macSize], s.mac(l, position))
}

func (s Signer) mac(l List, position string) []byte {
	h := hmac.New(sha256.New, s.key)
	var size [8]byte
	// Each part behind its length: no two lists write the same bytes.
	for _, part := range []string{l.Name, l.Filters, position} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	binary.BigEndian.PutUint64(size[:], uint64(l.Workspace))
	h.Write(size[:])
	return h.Sum(nil)[:macSize]
}
