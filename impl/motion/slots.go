package motion

import (
	"sync"
	"time"
)

const (
	deliveries = 256             // webhooks on their way at a time, in one process
	share      = 16              // of them, a workspace's: its slow receivers hold up only itself
	slowShare  = 128             // of them, of all workspaces whose receivers were slow lately
	reserve    = 32              // of them, for workspaces that have none on their way
	slow       = 5 * time.Second // an attempt that takes longer; most take less than one
)

// slots are the room for webhooks on their way. A receiver that hangs holds on to
// one for as long as an attempt may take. So each slow attempt halves the share of
// its workspace, down to one, and each other one gives one back.
type slots struct {
	mu    sync.Mutex
	taken int
	slow  int // of them, those taken by workspaces with a smaller share
	of    map[int64]holder
}

// A holder is a workspace that has taken slots, or has a smaller share.
type holder struct {
	taken, slow int
	less        int // than the whole share
}

func newSlots() slots { return slots{of: make(map[int64]holder)} }

// take takes a slot for a workspace, if there is one.
func (s *slots) take(workspace int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of[workspace]
	if !s.fits(h) {
		return false
	}
	s.taken++
	h.taken++
	if h.less > 0 {
		s.slow++
		h.slow++
	}
	s.of[workspace] = h
	return true
}

func (s *slots) fits(h holder) bool {
	return h.taken < share-h.less && (h.less == 0 || s.slow < slowShare) &&
		(s.taken < deliveries-reserve || s.taken < deliveries && h.taken == 0)
}

// giveBack gives a slot back, after an attempt that took so long; 0 if there was
// none.
func (s *slots) giveBack(workspace int64, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of[workspace]
	s.taken--
	h.taken--
	if h.slow > 0 {
		s.slow--
		h.slow--
	}
	switch {
	case took > slow:
		h.less = share - max(1, (share-h.less)/2)
	case took > 0:
		h.less = max(0, h.less-1)
	}
	if s.of[workspace] = h; h == (holder{}) {
		delete(s.of, workspace)
	}
}

// full gives the workspaces that get no slot now, and whether none does.
func (s *slots) full() (workspaces []int64, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for workspace, h := range s.of {
		if !s.fits(h) {
			workspaces = append(workspaces, workspace)
		}
	}
	return workspaces, s.taken == deliveries
}
