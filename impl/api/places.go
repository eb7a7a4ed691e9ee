package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/inletdev/inlet/impl/fault"
	"github.com/inletdev/inlet/impl/limit"
)

// Requests that work on the database at a time, by what is known of who sent
// them: together they are fewer than its connections, of which the lanes of
// events, jobs and GET /readyz need some too, and enough to keep a database busy.
// (What does not come through here, because it needs no connection of its own,
// are the events of callers who were admitted before: their lanes bound them.)
const (
	callerPlaces  = 10
	callerShare   = 6 // of one workspace
	callerReserve = 2 // for workspaces with none at work

	strangerPlaces = 3 // of credentials that are not known yet, until they are

	publicPlaces  = 3
	publicShare   = 2 // of one network
	publicReserve = 1
)

// shedFor is what a request that was turned away is asked to wait at most, and a
// second at least: those who come at once must not come back at once.
const shedFor = 4 * time.Second

// places keep what works on the database in bounds.
type places struct {
	callers   limit.Gate[sender] // by workspace
	strangers limit.Gate[sender] // by network
	public    limit.Gate[sender] // by network
}

func newPlaces() places {
	return places{
		callers:   limit.Gate[sender]{Most: callerPlaces, Share: callerShare, Reserve: callerReserve},
		strangers: limit.Gate[sender]{Most: strangerPlaces, Share: strangerPlaces},
		public:    limit.Gate[sender]{Most: publicPlaces, Share: publicShare, Reserve: publicReserve},
	}
}

// A place is one that a request has taken; it gives it back when its answer
// begins, so that who reads slowly keeps nobody waiting.
type place struct {
	gate *limit.Gate[sender]
	of   sender
	from time.Time
}

func (p *place) leave() {
	if p.gate != nil {
		p.gate.Leave(p.of, time.Since(p.from))
		p.gate = nil
	}
}

// take waits for a place.
func (p *places) take(ctx context.Context, x *exchange, gate *limit.Gate[sender], of sender) error {
	if !gate.Enter(ctx, of) {
		if err := ctx.Err(); err != nil {
			return err
		}
		return shed(codeOf(x.op, http.StatusServiceUnavailable))
	}
	x.place = place{gate, of, time.Now()}
	return nil
}

// enter waits for a place of a request that is there as a whole, and from now on
// has so much time to be answered.
func (p *places) enter(r *http.Request, x *exchange, gate *limit.Gate[sender], of sender) error {
	if r.Body == http.NoBody {
		x.arrived()
	}
	var ctx context.Context
	ctx, x.cancel = context.WithTimeout(r.Context(), limit.Handling)
	*r = *r.WithContext(ctx)
	return p.take(ctx, x, gate, of)
}

// shed gives the fault of a request that is turned away because there are too
// many.
func shed(code *fault.Code) *fault.Fault {
	return code.In(rand.N(shedFor))
}

// isShed tells an error that says nothing of the request, so that nothing needs
// to be known of who sent it.
func isShed(err error) bool {
	var f *fault.Fault
	return errors.As(err, &f) && f.Code.Status == http.StatusServiceUnavailable
}
