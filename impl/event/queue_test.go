package event

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/auth"
)

func offered(workspace int64, events int) *offer {
	return &offer{workspace: workspace, caller: &auth.Caller{Workspace: workspace}, events: make([]Parsed, events), at: time.Now()}
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

func TestWhereOffersWaitForTooLongFewerMayWaitAndMoreAgainWhereTheyDoNot(t *testing.T) {
	q := newQueue()
	late := func(workspace int64) *offer {
		o := offered(workspace, 100)
		o.at = time.Now().Add(-time.Second)
		return o
	}
	for q.add(late(1)) {
	}
	if q.events < mostEvents-100 && q.lines[1].bytes < workspaceBytes-100<<10 {
		t.Errorf("an idle queue takes %d events", q.events)
	}
	for q.room > fewestEvents || q.events > fewestEvents {
		_, workspaces := q.take(groupEvents)
		q.giveBack(workspaces)
		if q.room > fewestEvents && !q.add(late(1)) && q.events == 0 {
			t.Fatal("an empty queue takes nothing")
		}
	}
	for q.add(late(1)) {
	}
	if q.events > fewestEvents {
		t.Errorf("%d events wait, although they wait for too long", q.events)
	}
	if !q.full(1) || q.full(2) || !q.add(late(2)) {
		t.Error("another workspace, which has nothing waiting, is turned away")
	}
	for q.room < mostEvents {
		q.add(offered(1, 100))
		offers, workspaces := q.take(groupEvents)
		for _, o := range offers {
			o.at = time.Now()
		}
		q.giveBack(workspaces)
		if len(q.lines) == 0 && q.room < fewestEvents {
			t.Fatal("it never learns that there is room again")
		}
	}
}

func TestAnOfferThatWaitedForTooLongIsTurnedAwayAndNotRecorded(t *testing.T) {
	in, late := offered(1, 1), offered(1, 1)
	late.at = time.Now().Add(-2 * offerPatience)
	for _, o := range []*offer{in, late} {
		o.ctx, o.done = t.Context(), make(chan struct{})
	}
	if left := turnAwayLate([]*offer{in, late}); len(left) != 1 || left[0] != in {
		t.Errorf("%d offers are left to be recorded", len(left))
	}
	select {
	case <-late.done:
		if late.err == nil {
			t.Error("its request is not told")
		}
	default:
		t.Error("its request waits on")
	}
}
