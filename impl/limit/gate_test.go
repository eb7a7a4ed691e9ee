package limit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGateLetsInAsManyAsItSaysAndKeepsAReserveForThoseWithNobodyInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Gate[string]{Most: 10, Share: 5, Reserve: 2}
		enter := func(who string) bool { return g.Enter(t.Context(), who) }
		for _, step := range []struct {
			who  string
			want int
		}{{"a", 5}, {"b", 3}, {"c", 1}, {"d", 1}, {"e", 0}} {
			n := 0
			for enter(step.who) {
				n++
			}
			if n != step.want {
				t.Errorf("%s gets %d in, want %d", step.who, n, step.want)
			}
		}
		g.Leave("c", 0)
		if !enter("e") {
			t.Error("a place that was given back is not")
		}
		for _, who := range []string{"a", "a", "a", "a", "a", "b", "b", "b", "d", "e"} {
			g.Leave(who, 0)
		}
		if g.inside != 0 || len(g.senders) != 0 || len(g.turns) != 0 || g.waiting != 0 {
			t.Errorf("something is left of an empty gate: %+v", &g)
		}
	})
}

// Ten times as many as are served come. Of each line those who got in last are served
// first, and the senders in turn.
func TestWhereALineIsStandingThoseWhoAreServedWaitForAMoment(t *testing.T) {
	const work = 50 * time.Millisecond
	for name, test := range map[string]struct {
		senders int
		wait    time.Duration // of half of them
	}{
		"of one sender":   {1, work},
		"of a few":        {7, work},
		"each of another": {1 << 30, momentOfWork * work},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := Gate[int]{Most: 4, Share: 4}
				var served, shed atomic.Int64
				var mu sync.Mutex
				var waits []time.Duration
				begun := time.Now()
				for i := range 8000 { // 800 a second, for ten seconds
					time.Sleep(time.Until(begun.Add(time.Duration(i) * 1250 * time.Microsecond)))
					go func() {
						came := time.Now()
						if !g.Enter(t.Context(), i%test.senders) {
							shed.Add(1)
							return
						}
						// While the line stands: at the end the last few may wait for longer,
						// for nobody comes behind them.
						if since := came.Sub(begun); since > 4*time.Second && since < 9*time.Second {
							mu.Lock()
							waits = append(waits, time.Since(came))
							mu.Unlock()
						}
						time.Sleep(work)
						served.Add(1)
						g.Leave(i%test.senders, work)
					}()
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if served.Load() < 790 || served.Load() > 850 || served.Load()+shed.Load() != 8000 {
					t.Errorf("%d are served and %d shed of the 800 that fit and the rest", served.Load(), shed.Load())
				}
				slices.Sort(waits)
				if half, longest := waits[len(waits)/2], waits[len(waits)-1]; half > test.wait || longest > momentOfWork*work {
					t.Errorf("of those who are served half wait for up to %v, and one for %v", half, longest)
				}
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.inside != 0 || len(g.senders) != 0 || len(g.turns) != 0 || g.waiting != 0 {
					t.Errorf("something is left of an empty gate: %+v", &g)
				}
			})
		})
	}
}

// Thirty clients, who send again as soon as they are answered, always leave a line,
// and none of them has to be turned away; after a flood that came over the same line
// they do not have to be again.
func TestALineThatAllAreServedOfIsFirstComeFirstServedAlsoAfterAFlood(t *testing.T) {
	const clients, work = 30, 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		g := Gate[int]{Most: 4, Share: 4}
		begun := time.Now()
		flooded := func() bool { since := time.Since(begun); return since > 5*time.Second && since < 12*time.Second }
		var turnedAway atomic.Int64
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for time.Since(begun) < 30*time.Second {
					came, calm := time.Now(), !flooded()
					if !g.Enter(t.Context(), 1) {
						turnedAway.Add(1)
						if calm && !flooded() {
							t.Error("a client is turned away")
						}
						time.Sleep(time.Millisecond)
						continue
					}
					if waited := time.Since(came); calm && !flooded() && waited > clients/4*work {
						t.Errorf("a client waits for %v", waited)
					}
					time.Sleep(work)
					g.Leave(1, work)
				}
			})
		}
		time.Sleep(5 * time.Second)
		for range 2400 { // 800 a second, for three seconds
			time.Sleep(1250 * time.Microsecond)
			all.Go(func() {
				if g.Enter(t.Context(), 1) {
					time.Sleep(work)
					g.Leave(1, work)
				}
			})
		}
		all.Wait()
		if turnedAway.Load() == 0 {
			t.Error("the flood was none")
		}
	})
}

func TestABurstIsServedWholeAlthoughTheFirstOnesStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Gate[int]{Most: 4, Share: 4}
		var served atomic.Int64
		// The first ones do not get on for a while.
		for i := range 24 {
			go func() {
				if g.Enter(t.Context(), 1) {
					work := 50 * time.Millisecond
					if i < 4 {
						work = 3 * time.Second
					}
					time.Sleep(work)
					served.Add(1)
					g.Leave(1, work)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if served.Load() != 24 {
			t.Errorf("%d of a burst of 24 are served", served.Load())
		}
	})
}

func TestWhoFloodsAGateWaitsBehindNobodysRequestsButTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Gate[string]{Most: 4, Share: 3, Reserve: 1}
		ended, end := context.WithCancel(t.Context())
		for range 300 {
			go func() {
				for ended.Err() == nil {
					if g.Enter(ended, "flood") {
						time.Sleep(10 * time.Millisecond)
						g.Leave("flood", 10*time.Millisecond)
					} else {
						time.Sleep(time.Millisecond)
					}
				}
			}()
		}
		time.Sleep(time.Second)
		for range 100 {
			begun := time.Now()
			if !g.Enter(t.Context(), "polite") {
				t.Fatal("another sender is turned away")
			}
			if waited := time.Since(begun); waited > 0 {
				t.Errorf("another sender waits for %v although places are reserved", waited)
			}
			time.Sleep(10 * time.Millisecond)
			g.Leave("polite", 10*time.Millisecond)
		}
		end()
		time.Sleep(time.Second)
		synctest.Wait()
	})
}

// Whoever is inside hangs: the others hear of it soon, and few wait.
func TestAGateThatNobodyLeavesTurnsAwayInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Gate[int]{Most: 1, Share: 1}
		g.Enter(t.Context(), 1)
		begun := time.Now()
		var turnedAway sync.WaitGroup
		for sender := range 20 {
			for range 2 * lineLength {
				turnedAway.Go(func() {
					if g.Enter(t.Context(), sender) {
						t.Error("somebody gets in")
					}
				})
			}
		}
		synctest.Wait()
		g.mu.Lock()
		if g.waiting > allLines {
			t.Errorf("%d wait", g.waiting)
		}
		g.mu.Unlock()
		turnedAway.Wait()
		if took := time.Since(begun); took > longestWait {
			t.Errorf("the last one is turned away after %v", took)
		}
		g.Leave(1, 0)
		if len(g.senders) != 0 || g.waiting != 0 {
			t.Errorf("something is left of an empty gate: %+v", &g)
		}
	})
}
