package event

import (
	"strings"
	"testing"

	"github.com/inletdev/inlet/impl/auth"
)

func offered(workspace int64, events int) *offer {
	return &offer{workspace: workspace, caller: &auth.Caller{Workspace: workspace}, events: make([]Parsed, events)}
}

func TestAFloodOfOneWorkspaceDoesNotHoldUpTheOthers(t *testing.T) {
	q := newQueue()
	for range 1000 {
		q.add(offered(1, 1))
	}
	q.add(offered(2, 1))
	q.add(offered(3, 100))
	got := make(map[int64]int)
	for _, o := range q.take(110) {
		got[o.workspace]++
	}
	if got[1] < 5 || got[2] != 1 || got[3] != 1 {
		t.Errorf("the first group takes %v of the workspaces", got)
	}
	// And within a workspace the first come is the first served.
	q = newQueue()
	var sent []*offer
	for i := range 9 {
		sent = append(sent, offered(int64(i%2), 1))
		q.add(sent[i])
	}
	var next [2]int
	for range 3 {
		for _, o := range q.take(3) {
			if want := sent[next[o.workspace]*2+int(o.workspace)]; o != want {
				t.Fatalf("workspace %d is served out of turn", o.workspace)
			}
			next[o.workspace]++
		}
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
		if n := fill(workspace); n != 4 {
			t.Errorf("workspace %d queues %d MB, want 4", workspace, n)
		}
	}
	for workspace := range int64(20) {
		want := 1
		if workspace >= 16 {
			want = 0
		}
		if n := fill(8 + workspace); n != want {
			t.Errorf("workspace %d gets into a full queue %d times, want %d", 8+workspace, n, want)
		}
	}
	if taken := q.take(1 << 30); len(taken) != 48 || q.bytes != 0 {
		t.Errorf("%d are taken, and %d bytes are left", len(taken), q.bytes)
	}
	q.close()
	if q.add(offered(1, 1)) || q.take(1) != nil {
		t.Error("a closed queue goes on")
	}
}
