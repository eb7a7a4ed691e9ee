package impl

import "github.com/inletdev/inlet/impl/event"

// A lane keeps its connections to the database for good, so what other work needs
// comes on top of them, however many processors there are.
const (
	mostLanes        = 8
	otherConnections = 16 // requests that work on the database at a time
)

// lanes is how many record events where there are so many processors.
func lanes(processors int) int { return min(processors, mostLanes) }

// DatabaseConnections is how many a server holds where there are so many processors.
func DatabaseConnections(processors int) int {
	return otherConnections + max(event.LaneConnections*lanes(processors), 4) // 20 at least
}
