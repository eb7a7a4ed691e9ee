package impl

import (
	"testing"

	"github.com/inletdev/inlet/impl/event"
)

func TestLanesLeaveConnectionsToRequestsHoweverManyProcessorsThereAre(t *testing.T) {
	for processors := 1; processors <= 256; processors++ {
		all := DatabaseConnections(processors)
		if left := all - event.LaneConnections*lanes(processors); left < otherConnections || all > 32 {
			t.Errorf("with %d processors lanes leave %d of %d connections", processors, left, all)
		}
	}
}
