package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/lib/pq"
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
		case server.Code.Class() == "08", // connection exception
			server.Code == "57P01", server.Code == "57P02", server.Code == "57P03", // shutting down, crashed, starting
			server.Code == "25006",                         // a replica, or about to be one
			server.Code == "53300",                         // too many connections
			server.Code == "53100", server.Code == "58030", // disk full, I/O error
			server.Code == "57014": // our own time-out of statements
			return fmt.Errorf("%w: %w", ErrAway, err)
		case server.Code == lockTimeout:
			return fmt.Errorf("%w: %w: %w", ErrAway, ErrHeld, err)
		}
		return err
	}
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	// No host takes writes, as target_session_attrs wants: one takes over from
	// another just now. The driver has no other way to tell.
	if text := err.Error(); strings.Contains(text, "session is read-only") || strings.Contains(text, "server is in hot standby mode") {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return err
}

const (
	lockTimeout    = "55P03"
	undefinedTable = "42P01"
	noPrivilege    = "42501"
)

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
