package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl"
)

// patience is how long commands wait for an answer: whoever runs one sees that it
// works, and can end it. Moving tables or reading every event takes its time.
const patience = 24 * time.Hour

// open opens the database, of which one that says nothing for so long is away (0:
// as long as suits requests), its schema up to date, or new enough where others see
// to that. Without a URL it attaches to the private PostgreSQL of the data
// folder, or starts it; close leaves it.
func (c *databaseConfig) open(ctx context.Context, log *slog.Logger, answerWithin time.Duration) (d *db.DB, close func() error, err error) {
	url, err := c.url()
	if err != nil {
		return nil, nil, err
	}
	leave := func() error { return nil }
	if url == "" {
		private, err := db.StartEmbedded(ctx, c.DataDir, log)
		if err != nil {
			return nil, nil, err
		}
		url, leave = private.URL(), private.Stop
	}
	d, err = db.Open(ctx, db.Config{URL: url, MaxConns: impl.DatabaseConnections(runtime.GOMAXPROCS(0)), AnswerWithin: answerWithin})
	if err != nil {
		return nil, nil, errors.Join(err, leave())
	}
	if c.Migrate {
		err = d.Migrate(ctx, log)
	} else {
		err = d.UseSchema(ctx)
	}
	if err != nil {
		d.Close()
		return nil, nil, errors.Join(err, leave())
	}
	return d, func() error { d.Close(); return leave() }, nil
}

// with runs a command on the database. It says nothing of its own unless
// something is wrong: what is printed is the command's.
func (c *databaseConfig) with(do func(context.Context, *db.DB) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, leave, err := c.open(ctx, log, patience)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, d), leave())
}
