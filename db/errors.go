package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// All that a caller can tell apart.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrAway     = errors.New("the database is away")
	ErrHeld     = errors.New("a lock is held for too long") // also ErrAway: here, too, waiting is all that helps
)

// ExistsError is ErrExists with the unique constraint that was violated.
type ExistsError struct{ Constraint string }

func (e *ExistsError) Error() string { return "exists already: " + e.Constraint }

// Is makes it ErrExists.
func (e *ExistsError) Is(target error) bool { return target == ErrExists }

// classify wraps what the driver reports in what callers tell apart. A
// statement that was cancelled because its context ended is the context's
// error: the driver reports the server's own, 57014.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	var server *pq.Error
	if errors.As(err, &server) {
		switch {
		case server.Code == "23505":
			return &ExistsError{Constraint: server.Constraint}
		case server.Code == lockTimeout:
			return fmt.Errorf("%w: %w: %w", ErrAway, ErrHeld, err)
		case passes(server.Code):
			return fmt.Errorf("%w: %w", ErrAway, err)
		}
		return err
	}
	var network net.Error
	if errors.As(err, new(*unreachable)) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return err
}

const (
	lockTimeout    = "55P03"
	undefinedTable = "42P01"
	noPrivilege    = "42501"
)

// passes tells errors of the server that say nothing of the statement: the same
// one may well succeed later.
func passes(code pqerror.Code) bool {
	switch code.Class() {
	case "08", // the connection
		"53", // no room on the disk, in memory, for connections
		"58": // the system beneath, such as I/O
		return true
	}
	switch code {
	case "25006", // only to be read: another server has taken over
		"25P03", "25P04", // its transaction took too long, such as when this process stood still
		"40001", "40P01", // in each other's way, and not only once
		"57014",                            // our own time-out of statements
		"57P01", "57P02", "57P03", "57P05": // shutting down, crashed, starting, cut off
		return true
	}
	return false
}

// retryable tells errors after which PostgreSQL wants the whole transaction run
// again: a serialization failure or a deadlock.
func retryable(err error) bool {
	var server *pq.Error
	return errors.As(err, &server) && (server.Code == "40001" || server.Code == "40P01")
}

// hasCode tells whether the server reported an error of this code.
func hasCode(err error, code string) bool {
	var server *pq.Error
	return errors.As(err, &server) && string(server.Code) == code
}
