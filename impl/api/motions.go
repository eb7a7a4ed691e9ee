package api

import (
	"context"

	"github.com/inletdev/inlet/gen/api"
)

// Motions serves the operations of the tag Motions.
type Motions struct{}

// StartMotion queues the entry of a company into a motion.
func (Motions) StartMotion(context.Context, api.StartMotionRequestObject) (api.StartMotionResponseObject, error) {
	return nil, later()
}
