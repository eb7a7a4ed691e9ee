// Package workspace knows how a workspace begins.
package workspace

import (
	"context"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
)

// Create makes a workspace with default settings and the starting roles, and
// gives its id. The error is db.ErrExists where the slug is taken.
func Create(ctx context.Context, tx *db.Tx, slug, name string) (int64, error) {
	roles := make(map[string][]string)
	for _, role := range auth.StartingRoles() {
		roles[role.Name] = role.Scopes
	}
	return tx.CreateWorkspace(ctx, slug, name, roles)
}
