package dbtest

import (
	"context"
	"net/url"
	"os"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/inletdev/inlet/db"
)

// workers are the worker nodes of a Citus cluster, as host:port, where
// INLET_TEST_CITUS_WORKERS names them: INLET_TEST_DATABASE_URL is its coordinator
// then, and every migrated database is distributed over them.
var workers = strings.Fields(os.Getenv("INLET_TEST_CITUS_WORKERS"))

// distribute makes the nodes know of a migrated database, and spreads it over them.
func distribute(ctx context.Context, d *db.DB, address string) error {
	if len(workers) == 0 {
		return nil
	}
	coordinator, err := url.Parse(address)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(coordinator.Path, "/")
	for _, worker := range workers {
		if err := execOn(ctx, node(address, worker, "postgres"), `create database `+name); err != nil {
			return err
		}
		if err := execOn(ctx, node(address, worker, name), `create extension citus`); err != nil {
			return err
		}
	}
	if err := execOn(ctx, address, `create extension citus`); err != nil {
		return err
	}
	if err := execOn(ctx, address, `select citus_set_coordinator_host($1, $2::integer)`, coordinator.Hostname(), coordinator.Port()); err != nil {
		return err
	}
	for _, worker := range workers {
		host, port, _ := strings.Cut(worker, ":")
		if err := execOn(ctx, address, `select citus_add_node($1, $2::integer)`, host, port); err != nil {
			return err
		}
	}
	return d.Distribute(ctx)
}

// dropFromWorkers forgets a database on the workers.
func dropFromWorkers(address, name string) {
	for _, worker := range workers {
		execOn(context.Background(), node(address, worker, "postgres"), `drop database if exists `+name+` with (force)`)
	}
}

func node(address, worker, database string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Host, u.Path = worker, "/"+database
	return u.String()
}

func execOn(ctx context.Context, address, statement string, args ...any) error {
	x, err := sqlx.ConnectContext(ctx, "postgres", address)
	if err != nil {
		return err
	}
	defer x.Close()
	_, err = x.ExecContext(ctx, statement, args...)
	return err
}
