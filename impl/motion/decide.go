package motion

import (
	"context"
	"errors"

	"github.com/inletdev/inlet/db"
)

// decideBatch is how many entries are decided in one transaction: enough to make
// its cost small, few enough that the first is told soon.
const decideBatch = 500

// Decide decides the entries that are queued, each exactly once, until there are
// none left. Several processes share the work: a workspace that one is at, the
// others pass by.
func Decide(ctx context.Context, d *db.DB) error {
	for {
		workspaces, err := d.QueuedWorkspaces(ctx)
		if err != nil {
			return err
		}
		var failed error
		more := false
		for _, workspace := range workspaces {
			n, err := d.DecideEntries(ctx, workspace, decideBatch)
			more = more || n == decideBatch
			failed = errors.Join(failed, err) // one workspace does not hold up the others
		}
		if failed != nil || !more {
			return failed
		}
	}
}
