package db

// MigrateFiles runs migrations that are not those of the program.
var MigrateFiles = (*DB).migrate
