package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path"
	"strconv"
	"time"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// A migration that waits for a lock on a table holds up everyone who comes to the
// table after it. It gives up soon, lets them pass, and tries again.
const (
	migrationLock  = 300 * time.Millisecond
	migrationPause = 2 * time.Second // at most, between tries
	migrateWithin  = 5 * time.Minute // of tries
)

// migrating are the settings of a session that migrates: what it does to much
// data may take as long as it takes.
var migrating = map[string]string{
	"application_name": "inlet migrate",
	"client_encoding":  "UTF8",
	"timezone":         "UTC",
	"lock_timeout":     strconv.FormatInt(migrationLock.Milliseconds(), 10),
}

// Migrate brings the schema up to date. Several processes may call it at once:
// an advisory lock lets one of them do the work, and those that find nothing to
// do wait for nobody. A schema that is newer than the program is left as it is.
// ErrHeld says that a lock could not be had for minutes.
func (d *DB) Migrate(ctx context.Context, log *slog.Logger) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if err := d.migrate(ctx, log, files); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if d.distributed {
		if err := d.distributeRest(ctx); err != nil {
			return err
		}
	}
	return d.SyncClock(ctx)
}

const schemaVersion = `select coalesce(max(version_id), 0) from goose_db_version where is_applied`

// UseSchema is Migrate for a role that may not: it changes nothing, takes no
// lock, and fails where the schema is older than what this program was built
// for. One that is newer will do, as it does for every process that still runs
// while others are replaced.
func (d *DB) UseSchema(ctx context.Context) error {
	needed, err := newestMigration()
	if err != nil {
		return err
	}
	var version int64
	err = d.get(ctx, &version, schemaVersion)
	switch {
	case hasCode(err, undefinedTable):
		return errors.New("the database has no schema yet: run inlet migrate as the role that is to own it")
	case hasCode(err, noPrivilege):
		return fmt.Errorf("this role may not use the schema: run inlet migrate --grant-to with its name, as the schema's owner (%w)", err)
	case err != nil:
		return err
	case version < needed:
		return fmt.Errorf("the schema is at version %d and this program needs %d: run inlet migrate as the schema's owner", version, needed)
	}
	return d.SyncClock(ctx)
}

func newestMigration() (newest int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	for _, name := range names {
		var version int64
		if version, err = goose.NumericComponent(path.Base(name)); err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	return newest, err
}

func (d *DB) migrate(ctx context.Context, log *slog.Logger, files fs.FS) error {
	config := d.config.Clone()
	set(&config, migrating)
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return err
	}
	connections := sql.OpenDB(connector)
	defer connections.Close()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, uint64(migrateWithin/time.Second)))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, connections, files, goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	pending, err := provider.HasPending(ctx)
	for begun := time.Now(); err == nil && pending; {
		var done []*goose.MigrationResult
		done, err = provider.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			done = partial.Applied
		}
		for _, m := range done {
			log.Info("migrated", "version", m.Source.Version, "ms", m.Duration.Milliseconds())
		}
		if partial == nil || !hasCode(err, lockTimeout) && !retryable(err) || time.Since(begun) > migrateWithin {
			break
		}
		log.Warn("a migration could not have a lock and tries again", "version", partial.Failed.Source.Version)
		select {
		case <-ctx.Done():
		case <-time.After(migrationPause/2 + rand.N(migrationPause/2)):
		}
		err = ctx.Err()
	}
	return classify(ctx, err)
}
