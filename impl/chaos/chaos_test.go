// Package chaos starts real servers on a real PostgreSQL, lets clients work, and
// meanwhile kills, stops, fills, cuts off and slows down what they stand on.
// Afterwards it holds everything that was answered against what is recorded: each
// 2xx is durable and there once, nothing was done twice, nothing that was refused
// was done, no answer was a lie, and all of it works again without help.
//
// `go test ./impl/chaos` meets every fault once, shortly, side by side. `make
// chaos` meets them one by one, in an order and of lengths that a seed decides,
// and prints a table.
package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/impl/servertest"
)

var (
	rounds = flag.Int("chaos.rounds", 0, "meet every fault so often, one after the other in a random order; 0: once, shortly, side by side")
	length = flag.Duration("chaos.length", 10*time.Second, "how long a fault lasts at most, in a round")
	seed   = flag.Uint64("chaos.seed", 0, "decides the order and the lengths; 0: another one each time")
	only   = flag.String("chaos.only", "", "a regular expression: the faults to meet, by their names")
)

func TestMain(m *testing.M) {
	flag.Parse()
	servertest.Main(m, []string{"-race"}, func() error { os.RemoveAll(moved.dir); return nil })
}

// A fault is something that happens to servers, their database, or what is
// between them.
type fault struct {
	name string
	on   *kind // the rig that it needs
	// happen makes it happen, lets it last for about so long, and ends it.
	happen func(t *testing.T, r *rig, lasts time.Duration)
	// before does what takes long and is no part of it; it may be nil.
	before func(testing.TB)
}

// A kind of rig. In the short form faults of different kinds meet side by side.
type kind struct {
	name   string
	change func(testing.TB, *servertest.Postgres)
}

func chosen(f fault) bool { return regexp.MustCompile(*only).MatchString(f.name) }

// shortly is how long a fault lasts in the short form: longer than a request
// takes, shorter than anybody's patience.
const shortly = 1500 * time.Millisecond

func TestWhatWasAnsweredIsThereOnceWhateverHappens(t *testing.T) {
	if *rounds > 0 {
		t.Skip("the faults are met one by one")
	}
	go buildMoved() // meanwhile
	var side sync.WaitGroup
	for _, k := range kinds {
		side.Go(func() {
			t.Run(k.name, func(t *testing.T) {
				var r *rig
				for _, f := range faults {
					if f.on != k || !chosen(f) {
						continue
					}
					if r == nil {
						r = newRig(t, k.change)
					}
					if !t.Run(f.name, func(t *testing.T) { t.Log(r.meet(t, f, shortly)) }) {
						return // the next one would meet what this one left behind
					}
				}
			})
		})
	}
	side.Wait()
}

func TestWhatWasAnsweredIsThereOnceWhateverHappensInWhicheverOrder(t *testing.T) {
	if *rounds == 0 {
		t.Skip("for make chaos")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	fmt.Printf("seed %d\n", *seed)
	rigs := make(map[*kind]*rig)
	var table table
	for range *rounds {
		for _, n := range random.Perm(len(faults)) {
			f := faults[n]
			lasts := shortly + time.Duration(random.Int64N(int64(max(*length-shortly, 1))))
			if !chosen(f) {
				continue
			}
			if rigs[f.on] == nil {
				rigs[f.on] = newRig(t, f.on.change)
			}
			if !t.Run(f.name, func(t *testing.T) {
				line := rigs[f.on].meet(t, f, lasts)
				table = append(table, line)
				fmt.Println(line)
			}) {
				delete(rigs, f.on) // the next one would meet what this one left behind
			}
		}
	}
	table.print(os.Stdout)
}

// meet lets clients work, makes the fault happen, waits until everything is as
// it was, and audits.
func (r *rig) meet(t *testing.T, f fault, lasts time.Duration) result {
	t.Helper()
	if f.before != nil {
		f.before(t)
	}
	begun := time.Now()
	clients := r.load()
	var stop sync.Once
	defer stop.Do(clients.stop)
	time.Sleep(time.Second)
	happened := time.Now()
	f.happen(t, r, lasts)
	over := time.Now()
	for _, kind := range []string{events, batches, leads, motions, forms, lists} {
		wait(t, "no "+kind+" are answered", func() bool { return first(r.requests(over), kind, over) >= 0 })
	}
	time.Sleep(500 * time.Millisecond)
	stop.Do(clients.stop)
	c := r.audit(t)
	return r.result(f, c, begun, happened, over)
}
