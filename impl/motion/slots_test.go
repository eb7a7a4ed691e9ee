package motion

import (
	"slices"
	"testing"

	"github.com/inletdev/inlet/impl/limit"
)

// Each takes what it gets, and its receivers hang.
func TestWorkspacesWhoseReceiversHangLeaveRoomForTheOthers(t *testing.T) {
	s := newSlots()
	taken := make(map[int64]int)
	takeAll := func(workspaces int) {
		for workspace := range int64(workspaces) {
			for s.take(workspace) {
				taken[workspace]++
			}
		}
	}
	hang := func() {
		for workspace, n := range taken {
			for range n {
				s.giveBack(workspace, limit.WebhookAttempt)
			}
		}
		clear(taken)
	}
	takeAll(40)
	if s.taken < deliveries-reserve || s.taken > deliveries {
		t.Errorf("%d of %d slots are taken", s.taken, deliveries)
	}
	for range 4 {
		hang()
		if takeAll(40); s.taken > slowShare {
			t.Errorf("40 workspaces whose receivers hang hold %d slots", s.taken)
		}
	}
	if s.taken > 40 {
		t.Errorf("40 workspaces whose receivers hang all the time hold %d slots", s.taken)
	}
	for workspace := range int64(3) {
		n := 0
		for s.take(100 + workspace) {
			n++
		}
		if n != share {
			t.Errorf("another workspace gets %d slots", n)
		}
	}
	if full, all := s.full(); all || !slices.Contains(full, 1) || !slices.Contains(full, 100) || slices.Contains(full, 200) {
		t.Errorf("%v have no slot left, all: %v", full, all)
	}
}

func TestManyWorkspacesWhoseReceiversHangDoNotTakeEverySlot(t *testing.T) {
	s := newSlots()
	for workspace := range int64(deliveries * 2) {
		s.take(workspace)
		s.giveBack(workspace, limit.WebhookAttempt)
	}
	for workspace := range int64(deliveries * 2) {
		for s.take(workspace) {
		}
	}
	if s.taken > slowShare {
		t.Errorf("they take %d slots", s.taken)
	}
}

func TestAReceiverThatAnswersAgainGetsItsShareBack(t *testing.T) {
	s := newSlots()
	for range 5 {
		s.take(1)
		s.giveBack(1, limit.WebhookAttempt)
	}
	for range share {
		if !s.take(1) {
			t.Fatal("it gets no slot")
		}
		s.giveBack(1, 1)
	}
	n := 0
	for s.take(1) {
		n++
	}
	if n != share {
		t.Errorf("it gets %d slots, want %d", n, share)
	}
	for range n {
		s.giveBack(1, 0)
	}
	if s.taken != 0 || s.slow != 0 || len(s.of) != 0 {
		t.Errorf("%d and %d are taken, and %d workspaces remembered", s.taken, s.slow, len(s.of))
	}
}
