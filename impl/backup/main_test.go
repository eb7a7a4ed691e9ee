// Package backup loses databases and brings them back, by what PostgreSQL has for
// that, while clients go on.
package backup

import (
	"testing"

	"github.com/inletdev/inlet/impl/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, []string{"-race"}) }
