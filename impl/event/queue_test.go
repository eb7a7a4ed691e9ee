package event

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/auth"
)

func offered(workspace int64, events int) *offer {
	return &offer{workspace: workspace, caller: &auth.Caller{Workspace: workspace}, events: make([]Parsed, events)}
}

func TestAFloodOfOneWorkspaceDoesNotHoldUpTheOthers(t *testing.T) {
	q := newQueue()
	for range 300 {
		q.add(offered(1, 1))
	}
	q.add(offered(2, 1))
	q.add(offered(3, 50))
	got := make(map[int64]int)
	offers, _ := q.take(60)
	for _, o := range offers {
		got[o.workspace]++
	}
	if got[1] < 5 || got[2] != 1 || got[3] != 1 {
		t.Errorf("the first group takes %v of the workspaces", got)
	}
}

func TestAWorkspaceIsServedInOrderAndByOneLaneAtATime(t *testing.T) {
	q := newQueue()
	var sent []*offer
	for i := range 9 {
		sent = append(sent, offered(int64(i%2), 1))
		q.add(sent[i])
	}
	var next [2]int
	for next != [2]int{5, 4} {
		offers, workspaces := q.take(3)
		for _, o := range offers {
			if want := sent[next[o.workspace]*2+int(o.workspace)]; o != want {
				t.Fatalf("workspace %d is served out of turn", o.workspace)
			}
			next[o.workspace]++
		}
		q.giveBack(workspaces)
	}
	// What arrives for a workspace that a lane has waits until it is given back.
	q.add(offered(1, 1))
	_, first := q.take(100)
	q.add(offered(1, anotherFrom))
	q.add(offered(2, 1))
	taken := make(chan []int64)
	go func() {
		_, workspaces := q.take(100)
		taken <- workspaces
	}()
	select {
	case <-taken:
		t.Error("a second lane begins with one event")
	case <-time.After(20 * time.Millisecond):
	}
	q.add(offered(3, anotherFrom))
	if second := <-taken; slices.Contains(second, 1) || !slices.Contains(second, 3) {
		t.Errorf("the second lane takes the workspaces %v", second)
	}
	q.giveBack(first)
	if _, third := q.take(100); !slices.Contains(third, 1) {
		t.Errorf("what waited is forgotten: %v are taken", third)
	}
}

func TestWhereMuchWaitsLanesShareTheWorkspaces(t *testing.T) {
	q := newQueue()
	for workspace := range int64(6) {
		for range 20 {
			q.add(offered(workspace, 100))
		}
	}
	_, first := q.take(2000)
	_, second := q.take(2000)
	if len(first) != 3 || len(second) == 0 || slices.ContainsFunc(first, func(w int64) bool { return slices.Contains(second, w) }) {
		t.Errorf("one lane takes %v, the other %v", first, second)
	}
}

func TestAQueueIsBoundedAndNoWorkspaceGetsMoreThanItsPart(t *testing.T) {
	q := newQueue()
	fill := func(workspace int64) (n int) {
		for {
			o := offered(workspace, 1)
			o.events[0].PropertiesJSON = strings.Repeat("x", 1<<20-1024)
			if !q.add(o) {
				return n
			}
			n++
		}
	}
	for workspace := range int64(8) {
		if n := fill(workspace); n != 8 {
			t.Errorf("workspace %d queues %d MB, want 8", workspace, n)
		}
	}
	for workspace := range int64(40) {
		want := 1
		if workspace >= 32 {
			want = 0
		}
		if n := fill(8 + workspace); n != want {
			t.Errorf("workspace %d gets into a full queue %d times, want %d", 8+workspace, n, want)
		}
	}
	q.close()
	all := 0
	for {
		offers, workspaces := q.take(7)
		if offers == nil {
			break
		}
		all += len(offers)
		q.giveBack(workspaces)
	}
	if all != 96 || q.bytes != 0 || len(q.lines) != 0 {
		t.Errorf("%d are taken from a closed queue, and %d bytes and %d lines are left", all, q.bytes, len(q.lines))
	}
	if q.add(offered(1, 1)) {
		t.Error("a closed queue takes another")
	}
}
