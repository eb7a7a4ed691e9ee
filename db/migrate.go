package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the schema up to date. Several processes may call it at once:
// an advisory lock lets one of them do the work.
func (d *DB) Migrate(ctx context.Context, log *slog.Logger) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, d.x.DB, files, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, m := range done {
		log.Info("migrated", "version", m.Source.Version, "ms", m.Duration.Milliseconds())
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
