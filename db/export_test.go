package db

import (
	"context"
	"net"
)

// MigrateFiles runs migrations that are not those of the program.
var MigrateFiles = (*DB).migrate

// What only tests of the schema see.
const RecordEventsDefinition = recordEventsDefinition

var (
	ReferenceTables = referenceTables
	OfOneWorkspace  = ofOneWorkspace
)

// GivesUp tells whether a session is never used again that is done with just as its
// context ends.
func GivesUp(ctx context.Context, conn net.Conn) bool {
	s := &session{line: &line{Conn: conn}}
	s.heed(ctx)()
	return s.spent.Load()
}

// MigratesOn tells which of several servers Migrate goes to.
func MigratesOn(d *DB) string { return string(d.config.TargetSessionAttrs) }
