// Package auth knows credentials, scopes and roles, and admits a request: who
// calls, for which workspace, allowed what.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// Kind says what a credential acts as.
type Kind string

// The kinds of credentials.
const (
	APIKey     Kind = "api"     // acts with the scopes ticked on it
	ServiceKey Kind = "service" // acts as its owner, narrowed by the key's role and scopes
)

// Prefix tells the kinds apart and lets secret scanners spot a leak.
func (k Kind) Prefix() string {
	if k == ServiceKey {
		return "svc_sk_"
	}
	return "amp_"
}

const (
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	secretLength = 30 // base-62 characters: 178 bits
	sumLength    = 6  // base-62 characters: a CRC-32 fits
)

// A Credential is a well-formed token, without the token: what is stored of it
// and shown of it. 178 random bits cannot be guessed, so a fast hash is enough.
type Credential struct {
	Kind  Kind
	Hash  [sha256.Size]byte
	Last4 string
}

// NewToken makes a token: prefix, 30 random base-62 characters, and 6 of the
// CRC-32 of all that precedes, as GitHub's tokens have it.
func NewToken(kind Kind) string {
	var b strings.Builder
	b.WriteString(kind.Prefix())
	random := make([]byte, 64)
	for n := 0; n < secretLength; {
		rand.Read(random)
		for _, r := range random {
			// 248 is the largest multiple of 62 in a byte: the rest would
			// favor the first letters.
			if r < 248 && n < secretLength {
				b.WriteByte(base62[r%62])
				n++
			}
		}
	}
	sum := checksum([]byte(b.String()))
	return b.String() + string(sum[:])
}

// ParseToken gives the credential of a token, and false for a string that no
// NewToken made: a mistyped key costs no look-up.
func ParseToken(token string) (Credential, bool) {
	kind := APIKey
	rest, ok := strings.CutPrefix(token, APIKey.Prefix())
	if !ok {
		kind = ServiceKey
		if rest, ok = strings.CutPrefix(token, ServiceKey.Prefix()); !ok {
			return Credential{}, false
		}
	}
	if len(rest) != secretLength+sumLength || strings.Trim(rest, base62) != "" {
		return Credential{}, false
	}
	var raw [64]byte // room for any token, without a place on the heap
	n := copy(raw[:], token)
	if sum := checksum(raw[:n-sumLength]); string(sum[:]) != token[n-sumLength:] {
		return Credential{}, false
	}
	return Credential{Kind: kind, Hash: sha256.Sum256(raw[:n]), Last4: token[n-4:]}, true
}

func checksum(b []byte) (out [sumLength]byte) {
	sum := crc32.ChecksumIEEE(b)
	for i := sumLength - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return out
}

// FromHeader gives the token of an Authorization header: the scheme is
// case-insensitive, one credential, nothing else.
func FromHeader(values []string) (token string, ok bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.Trim(token, " "), true
}
