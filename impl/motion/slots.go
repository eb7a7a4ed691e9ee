package motion

import "sync"

const (
	deliveries = 256 // webhooks on their way at a time, in one process
	share      = 16  // of them, a workspace's: its slow receivers hold up only itself
)

// slots are the room for webhooks on their way.
type slots struct {
	mu    sync.Mutex
	taken int
	of    map[int64]int // workspace → those that it has taken
}

// take takes a slot for a workspace, if there is one.
func (s *slots) take(workspace int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == deliveries || s.of[workspace] == share {
		return false
	}
	s.taken++
	s.of[workspace]++
	return true
}

func (s *slots) giveBack(workspace int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[workspace]--; s.of[workspace] == 0 {
		delete(s.of, workspace)
	}
}

// full gives the workspaces that have no slot left, and whether none has.
func (s *slots) full() (workspaces []int64, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for workspace, n := range s.of {
		if n == share {
			workspaces = append(workspaces, workspace)
		}
	}
	return workspaces, s.taken == deliveries
}
