package db

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inletdev/inlet/impl/trace"
)

// turnWithin is how long a transaction waits for its turn among those of its
// workspace.
const turnWithin = 5 * time.Second

// turns keep the transactions of one workspace from taking all connections: what
// waits for a lock in it must not stop the others.
type turns struct {
	most    int           // transactions of one workspace at a time
	waiting *atomic.Int64 // those that wait

	mu sync.Mutex
	of map[int64]*turn
}

// A turn is what the transactions of one workspace share while there are any.
type turn struct {
	slots chan struct{}
	users int
}

// take waits for a turn, which is to be given back. ErrAway says that there was
// none in time.
func (t *turns) take(ctx context.Context, workspace int64) (giveBack func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = make(map[int64]*turn)
	}
	own := t.of[workspace]
	if own == nil {
		own = &turn{slots: make(chan struct{}, t.most)}
		t.of[workspace] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, workspace)
		}
	}
	select {
	case own.slots <- struct{}{}:
		return func() { <-own.slots; leave() }, nil
	default:
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	_, span := trace.Child(ctx, "wait for a turn")
	defer span.End()
	timer := time.NewTimer(turnWithin)
	defer timer.Stop()
	select {
	case own.slots <- struct{}{}:
		return func() { <-own.slots; leave() }, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errNoTurn
	}
	leave()
	return nil, err
}

// errNoTurn is also ErrAway: here, too, waiting is all that helps.
var errNoTurn = fmt.Errorf("%w: too many transactions of one workspace wait", ErrAway)
