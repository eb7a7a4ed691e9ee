package db

// MigrateFiles runs migrations that are not those of the program.
var MigrateFiles = (*DB).migrate

// What only tests of the schema see.
const RecordEventsDefinition = recordEventsDefinition

var (
	ReferenceTables = referenceTables
	OfOneWorkspace  = ofOneWorkspace
)
