package chaos

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// onLines treats what passes between servers and database in a way.
func onLines(w way) func(*testing.T, *rig, time.Duration) {
	return func(_ *testing.T, r *rig, lasts time.Duration) { set(r.lines, w, lasts) }
}

func set(proxies []*proxy, w way, lasts time.Duration) {
	for _, p := range proxies {
		p.set(w)
	}
	time.Sleep(lasts)
	for _, p := range proxies {
		p.set(way{})
	}
}

// cutLines resets all connections to the database, whatever is on them, and
// some time lets no new ones through.
func cutLines(_ *testing.T, r *rig, lasts time.Duration) {
	cut := func() {
		for _, p := range r.lines {
			p.cut()
		}
	}
	again(lasts/2, 70*time.Millisecond, cut)
	for _, p := range r.lines {
		p.set(way{refuse: true})
	}
	cut()
	time.Sleep(lasts / 2)
	for _, p := range r.lines {
		p.set(way{})
	}
}

// deafLines makes all connections dead, of which neither side hears.
func deafLines(_ *testing.T, r *rig, lasts time.Duration) {
	for _, p := range r.lines {
		p.deafen()
	}
	time.Sleep(lasts)
}

// loseAnswersOfDatabase cuts the connection between what was done and the word of
// it: of every third commit, and of some other statements, of which those that
// record events commit by themselves.
func loseAnswersOfDatabase(_ *testing.T, r *rig, lasts time.Duration) {
	set(r.lines, way{
		lose: func(request []byte) bool {
			if bytes.Contains(request, []byte("COMMIT")) {
				return rand.IntN(3) == 0
			}
			return rand.IntN(10) == 0
		},
		whole: readyForQuery,
	}, lasts)
}

// loseAnswersToClients cuts the connection when the server has answered.
func loseAnswersToClients(_ *testing.T, r *rig, lasts time.Duration) {
	set(r.doors, way{lose: func(request []byte) bool { return rand.IntN(3) == 0 }}, lasts)
}

// cutDoors resets connections of clients, with whatever is on them.
func cutDoors(_ *testing.T, r *rig, lasts time.Duration) {
	again(lasts, 60*time.Millisecond, func() {
		for _, p := range r.doors {
			p.cut()
		}
	})
}

// trickleAtDoors lets requests and answers through in small pieces.
func trickleAtDoors(_ *testing.T, r *rig, lasts time.Duration) {
	set(r.doors, way{delay: 2 * time.Millisecond, piece: 60}, lasts)
}
