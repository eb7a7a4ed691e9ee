package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// A Caller is an admitted credential: the workspace it is bound to and what it
// may do in it at the time of the request.
type Caller struct {
	Workspace int64
	KeyID     int64
	Kind      Kind
	Test      bool // leads of this key are tests
	Scopes    []string
	Rate      *Rate // nil on API keys, whose answers carry no rate-limit headers

	// A recalled caller was admitted before, not now: it stands only if the
	// workspace still has this version, and its request is yet to be counted.
	Recalled bool
	Version  int64
	Limit    int // requests a minute
}

// Rate is where a credential stands in its minute.
type Rate struct {
	Limit, Remaining int
	Reset            time.Duration // to the end of the minute
}

// An Admitter tells who calls.
type Admitter struct {
	db *db.DB

	mu    sync.RWMutex
	known map[[sha256.Size]byte]acquaintance
}

// acquaintance is what is remembered of a key.
type acquaintance struct {
	caller  Caller
	expires time.Time // zero: never
}

// mostKnown bounds the keys that are remembered; past it all are forgotten.
const mostKnown = 20_000

// NewAdmitter makes an admitter that remembers nobody.
func NewAdmitter(d *db.DB) *Admitter {
	return &Admitter{db: d, known: make(map[[sha256.Size]byte]acquaintance)}
}

// Recall gives the workspace of a key that was admitted before, whose line it should
// wait in, or 0; and its caller if it is an API key. What relies on a recalled caller
// must have its version checked, and its request counted, in its own work on the
// database; whatever else is to be answered needs Admit first.
//
// Service keys have no recalled caller: their requests count against the workspace
// too, and their answers tell how many are left.
func (a *Admitter) Recall(authorization []string) (*Caller, int64) {
	credential, ok := credentialOf(authorization)
	if !ok {
		return nil, 0
	}
	a.mu.RLock()
	known, ok := a.known[credential.Hash]
	a.mu.RUnlock()
	switch {
	case !ok || !known.expires.IsZero() && !a.db.Now().Before(known.expires):
		return nil, 0
	case known.caller.Kind == ServiceKey:
		return nil, known.caller.Workspace
	}
	return &known.caller, known.caller.Workspace
}

func (a *Admitter) remember(credential Credential, caller Caller, expires *time.Time) {
	caller.Recalled = true
	known := acquaintance{caller: caller}
	if expires != nil {
		known.expires = *expires
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= mostKnown {
		clear(a.known)
	}
	a.known[credential.Hash] = known
}

// forget is for a key that is none any more: whoever found it waits among strangers.
func (a *Admitter) forget(credential Credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, credential.Hash)
}

func credentialOf(authorization []string) (Credential, bool) {
	token, ok := FromHeader(authorization)
	if !ok {
		return Credential{}, false
	}
	return ParseToken(token)
}

// Malformed tells a header that no credential could be in, whatever the database
// says: Admit refuses it without asking.
func Malformed(authorization []string) bool {
	_, ok := credentialOf(authorization)
	return !ok
}

// Admit checks the Authorization header of a request and counts the request in
// the minute of its key. The fault is invalid_api_key, byte for byte the same
// whatever was wrong, or rate_limited, or api_disabled. The caller is returned
// beside a fault once the credential was found valid.
func (a *Admitter) Admit(ctx context.Context, authorization []string) (*Caller, error) {
	credential, ok := credentialOf(authorization)
	if !ok {
		return nil, fault.InvalidAPIKey.New()
	}
	found, err := a.db.Admit(ctx, credential.Hash, limit.WorkspaceRequestsPerMinute)
	if errors.Is(err, db.ErrNotFound) {
		a.forget(credential)
		return nil, fault.InvalidAPIKey.New()
	}
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}

	caller := &Caller{
		Workspace: found.WorkspaceID,
		KeyID:     found.KeyID,
		Kind:      Kind(found.Kind),
		Test:      found.Test,
		Version:   found.Version,
		Limit:     found.KeyLimit,
		Scopes: Standing{
			Kind: Kind(found.Kind), Ticked: found.Scopes,
			OwnerStays: found.OwnerStays, OwnerScopes: found.OwnerScopes,
			HasRole: found.HasRole, RoleScopes: found.RoleScopes,
		}.Effective(),
	}
	a.remember(credential, *caller, found.ExpiresAt)
	left := time.Duration(found.SecondsLeft) * time.Second
	if caller.Kind == ServiceKey {
		caller.Rate = &Rate{Limit: found.KeyLimit, Reset: left}
		if found.KeyRequests != nil && found.WorkspaceRequests != nil {
			caller.Rate.Remaining = min(found.KeyLimit-*found.KeyRequests, limit.WorkspaceRequestsPerMinute-*found.WorkspaceRequests)
		}
	}
	switch {
	case found.KeyRequests == nil && caller.Kind == ServiceKey:
		return caller, withScope(TooMany(found.KeyLimit, left), "credential")
	case found.KeyRequests == nil:
		return caller, TooMany(found.KeyLimit, left)
	case caller.Kind == ServiceKey && found.WorkspaceRequests == nil:
		return caller, withScope(TooMany(limit.WorkspaceRequestsPerMinute, left), "organization")
	case caller.Kind == ServiceKey && !found.APIEnabled:
		return caller, fault.APIDisabled.New()
	}
	return caller, nil
}

// TooMany gives the fault of a request past a limit a minute, of which so much
// is left.
func TooMany(allowed int, left time.Duration) *fault.Fault {
	f := fault.RateLimited.In(left)
	f.Message = fmt.Sprintf("More than %d requests in this minute; wait %d seconds.", allowed, f.RetryAfter)
	return f
}

func withScope(f *fault.Fault, scope string) *fault.Fault {
	f.Scope = scope
	return f
}

// Require gives the forbidden_scope fault, which names every missing scope at
// once, when the caller lacks one.
func (c *Caller) Require(scopes []string) error {
	var missing []string
	for _, scope := range scopes {
		if !slices.Contains(c.Scopes, scope) {
			missing = append(missing, scope)
		}
	}
	if missing == nil {
		return nil
	}
	f := fault.ForbiddenScope.New()
	f.Scopes = missing
	return f
}
