package auth

import (
	"crypto/sha256"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTokensCarryTheirChecksumAndAreToldFromMistypedOnes(t *testing.T) {
	for _, kind := range []Kind{APIKey, ServiceKey} {
		token := NewToken(kind)
		credential, ok := ParseToken(token)
		if !ok || credential.Kind != kind || credential.Last4 != token[len(token)-4:] {
			t.Fatalf("%s parses as %+v, %v", token, credential, ok)
		}
		if want := len(kind.Prefix()) + 36; len(token) != want {
			t.Errorf("%s has %d characters, want %d", token, len(token), want)
		}
		for i := range token {
			swapped := []byte(token)
			if swapped[i]++; !strings.ContainsRune(base62, rune(swapped[i])) {
				swapped[i] = 'A'
			}
			if swapped[i] == token[i] {
				continue
			}
			if _, ok := ParseToken(string(swapped)); ok {
				t.Errorf("%s passes, mistyped at %d", swapped, i)
			}
		}
	}
	token := NewToken(APIKey)
	for _, bad := range []string{"", "amp_", token[:len(token)-1], token + "0", " " + token, "svc_sk_" + token[4:]} {
		if _, ok := ParseToken(bad); ok {
			t.Errorf("%q passes", bad)
		}
	}
	if other := NewToken(APIKey); other == token {
		t.Error("two tokens are the same")
	}
}

// The checksum of a token is part of the interface: scanners compute it too.
func TestChecksumIsTheCRC32OfWhatPrecedes(t *testing.T) {
	const secret = "amp_000000000000000000000000000000"
	sum := checksum([]byte(secret))
	if _, ok := ParseToken(secret + string(sum[:])); !ok {
		t.Error("a token made by hand does not pass")
	}
	// CRC-32 (IEEE) of "123456789" is 0xCBF43926 = 3421780262.
	if got := checksum([]byte("123456789")); string(got[:]) != "3jZPjq" {
		n := uint64(0)
		for _, c := range string(got[:]) {
			n = n*62 + uint64(strings.IndexRune(base62, c))
		}
		if n != 0xCBF43926 {
			t.Errorf("checksum %s stands for %x", got, n)
		}
	}
}

func TestTheHeaderHoldsOneBearerCredentialAndNothingElse(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer x": "x", "bearer x": "x", "BEARER x": "x", "Bearer  x": "x",
	} {
		if got, ok := FromHeader([]string{header}); !ok || got != want {
			t.Errorf("%q gives %q, %v", header, got, ok)
		}
	}
	for _, headers := range [][]string{nil, {"Bearer"}, {"Basic x"}, {"x"}, {"Bearer x", "Bearer x"}} {
		if got, ok := FromHeader(headers); ok {
			t.Errorf("%q gives %q", headers, got)
		}
	}
}

func TestScopesAreNarrowedToWhatTheOwnerHolds(t *testing.T) {
	for name, c := range map[string]struct {
		standing Standing
		want     []string
	}{
		"an API key acts with what is ticked": {
			Standing{Kind: APIKey, Ticked: []string{LeadsManage, MotionsStart}}, []string{LeadsManage, MotionsStart}},
		"but sends events only with its owner": {
			Standing{Kind: APIKey, Ticked: []string{LeadsManage, EventsSend}}, []string{LeadsManage}},
		"who holds it": {
			Standing{Kind: APIKey, Ticked: []string{EventsSend}, OwnerStays: true, OwnerScopes: []string{EventsSend}}, []string{EventsSend}},
		"and stays": {
			Standing{Kind: APIKey, Ticked: []string{EventsSend}, OwnerScopes: []string{EventsSend}}, nil},
		"a service key has no more than its owner": {
			Standing{Kind: ServiceKey, Ticked: []string{LeadsManage, MotionsStart}, OwnerStays: true, OwnerScopes: []string{LeadsManage, AgentUse}}, []string{LeadsManage}},
		"nor than its own role": {
			Standing{Kind: ServiceKey, Ticked: []string{LeadsManage, MotionsStart}, OwnerStays: true, OwnerScopes: Scopes(), HasRole: true, RoleScopes: []string{MotionsStart}}, []string{MotionsStart}},
	} {
		if got := c.standing.Effective(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestStartingRolesHoldWhatTheyShould(t *testing.T) {
	views := []string{MotionsView, CompaniesView, ContactsView, OpportunitiesView, SegmentsView, FieldsView, NotesView}
	want := map[string][]string{
		"admin":  Scopes(),
		"viewer": views,
		"member": append(slices.Clone(views), LeadsManage, NotesManage, AgentUse),
	}
	for _, role := range StartingRoles() {
		if role.Name == "manager" {
			for _, s := range Scopes() {
				if held := slices.Contains(role.Scopes, s); held == (s == WebhooksManage || s == FieldsManage || s == EventsSend) {
					t.Errorf("manager and %s: %v", s, held)
				}
			}
			continue
		}
		if !slices.Equal(role.Scopes, want[role.Name]) {
			t.Errorf("%s holds %v, want %v", role.Name, role.Scopes, want[role.Name])
		}
	}
}

// FuzzFromHeader holds what is read of Authorization headers to their grammar, and
// tokens to theirs, whose checksum is computed here anew. No header lets in what is
// not a token by itself.
func FuzzFromHeader(f *testing.F) {
	f.Fuzz(func(t *testing.T, header, second string, twice bool) {
		headers := []string{header}
		if twice {
			headers = append(headers, second)
		}
		token, ok := FromHeader(headers)
		found := bearer.FindStringSubmatch(header)
		if ok != (found != nil && !twice) || ok && token != found[1] {
			t.Errorf("%q gives %q, %t", headers, token, ok)
		}
		for _, text := range []string{token, header, second} {
			credential, ok := ParseToken(text)
			if want := tokens.MatchString(text) && text[len(text)-6:] == sumOf(text[:len(text)-6]); ok != want {
				t.Errorf("%q is a token: %t, want %t", text, ok, want)
			}
			if ok && (credential.Hash != sha256.Sum256([]byte(text)) || credential.Last4 != text[len(text)-4:] || !strings.HasPrefix(text, credential.Kind.Prefix())) {
				t.Errorf("%q is %+v", text, credential)
			}
		}
	})
}

var (
	bearer = regexp.MustCompile(`(?is)^bearer +(.*?) *$|^bearer $`)
	tokens = regexp.MustCompile(`^(amp_|svc_sk_)[0-9A-Za-z]{36}\z`)
)

// sumOf is the CRC-32 of a text in six digits of base 62.
func sumOf(text string) string {
	sum, digits := crc32.ChecksumIEEE([]byte(text)), ""
	for range 6 {
		digits = base62[sum%62:sum%62+1] + digits
		sum /= 62
	}
	return digits
}
