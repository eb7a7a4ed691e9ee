package db_test

import (
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
