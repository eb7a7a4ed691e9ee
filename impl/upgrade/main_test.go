// Package upgrade replaces a running version of the program by the next one, and
// puts it back, while clients go on.
package upgrade

import (
	"testing"

	"github.com/inletdev/inlet/impl/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, []string{"-race"}) }
