package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
}

// Rate is where a credential stands in its minute.
type Rate struct {
	Limit, Remaining int
	Reset            time.Duration // to the end of the minute
}

// Admit checks the Authorization header of a request and counts the request in
// the minute of its key. The fault is invalid_api_key, byte for byte the same
// whatever was wrong, or rate_limited, or api_disabled. The caller is returned
// beside a fault once the credential was found valid.
func Admit(ctx context.Context, d *db.DB, authorization []string) (*Caller, error) {
	token, ok := FromHeader(authorization)
	if !ok {
		return nil, fault.InvalidAPIKey.New()
	}
	credential, ok := ParseToken(token)
	if !ok {
		return nil, fault.InvalidAPIKey.New()
	}
	a, err := d.Admit(ctx, credential.Hash, limit.WorkspaceRequestsPerMinute)
	if errors.Is(err, db.ErrNotFound) {
		return nil, fault.InvalidAPIKey.New()
	}
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}

	caller := &Caller{
		Workspace: a.WorkspaceID,
		KeyID:     a.KeyID,
		Kind:      Kind(a.Kind),
		Test:      a.Test,
		Scopes: Standing{
			Kind: Kind(a.Kind), Ticked: a.Scopes,
			OwnerStays: a.OwnerStays, OwnerScopes: a.OwnerScopes,
			HasRole: a.HasRole, RoleScopes: a.RoleScopes,
		}.Effective(),
	}
	left := time.Duration(a.SecondsLeft) * time.Second
	if caller.Kind == ServiceKey {
		caller.Rate = &Rate{Limit: a.KeyLimit, Reset: left}
		if a.KeyRequests != nil && a.WorkspaceRequests != nil {
			caller.Rate.Remaining = min(a.KeyLimit-*a.KeyRequests, limit.WorkspaceRequestsPerMinute-*a.WorkspaceRequests)
		}
	}
	switch {
	case a.KeyRequests == nil:
		return caller, tooMany(caller.Kind, "credential", a.KeyLimit, left)
	case caller.Kind == ServiceKey && a.WorkspaceRequests == nil:
		return caller, tooMany(caller.Kind, "organization", limit.WorkspaceRequestsPerMinute, left)
	case caller.Kind == ServiceKey && !a.APIEnabled:
		return caller, fault.APIDisabled.New()
	}
	return caller, nil
}

func tooMany(kind Kind, scope string, allowed int, left time.Duration) *fault.Fault {
	f := fault.RateLimited.In(left)
	f.Message = fmt.Sprintf("More than %d requests in this minute; wait %d seconds.", allowed, f.RetryAfter)
	if kind == ServiceKey {
		f.Scope = scope
	}
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

type callerKey struct{}

// WithCaller gives a context that carries the caller to the handlers.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf gives the caller of a request that was admitted.
func CallerOf(ctx context.Context) *Caller { return ctx.Value(callerKey{}).(*Caller) }
