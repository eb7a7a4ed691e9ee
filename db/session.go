package db

import (
	"context"
	"database/sql/driver"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

const (
	idleTrust  = time.Second            // how long a session that lies idle is taken to be whole
	pingWithin = 2 * time.Second        // how long it has then to answer
	farewell   = 500 * time.Millisecond // for a statement to end once it was asked to
)

// A connector opens sessions. Whatever hinders it says nothing of the statement
// that wanted one.
type connector struct {
	*pq.Connector
	died *atomic.Pointer[time.Time] // when a session was last found dead
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var o opening
	stop := context.AfterFunc(ctx, o.giveUp)
	conn, err := c.Connector.Connect(context.WithValue(ctx, lineKey{}, &o))
	if ended := !stop(); ended && err == nil {
		err = ctx.Err()
		conn.Close() //nolint:errcheck // nobody waits for it any more
	}
	if err != nil {
		return nil, &unreachable{err}
	}
	return &session{pqConn: conn.(pqConn), line: o.line, died: c.died, used: time.Now()}, nil
}

// An opening ends with its context: the driver heeds that only until it is
// connected, and waits on for a server that says nothing.
type opening struct {
	mu    sync.Mutex
	line  *line
	ended bool
}

func (o *opening) over(l *line) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = l
	if o.ended {
		l.endWithin(0)
	}
}

func (o *opening) giveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.line != nil {
		o.line.endWithin(0)
	}
}

// unreachable is why no session could be opened.
type unreachable struct{ cause error }

func (e *unreachable) Error() string { return "connect: " + e.cause.Error() }
func (e *unreachable) Unwrap() error { return e.cause }

// pqConn is what the driver's connections can do.
type pqConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// A session is a connection of the driver that is not waited for once its context
// has ended. The driver asks the server to cancel the statement and then waits on
// for its answer, which never comes where a firewall has forgotten the connection
// or the other machine has gone without a word.
type session struct {
	pqConn
	line  *line
	died  *atomic.Pointer[time.Time]
	used  time.Time   // last; by whoever has the session
	spent atomic.Bool // it was given up on
}

// heed has the session end soon after its context does. What it gives back says
// that all is done.
func (s *session) heed(ctx context.Context) (done func()) {
	stop := context.AfterFunc(ctx, func() { s.giveUp(farewell) })
	return func() {
		if !stop() {
			s.spent.Store(true) // by the time it is given up on, another might have it
		}
	}
}

// giveUp has the session end after a while, and whatever waits for it: the driver
// takes leave of each prepared statement by itself, and waits for an answer.
func (s *session) giveUp(after time.Duration) {
	s.spent.Store(true)
	s.line.endWithin(after)
}

// ResetSession comes before every use, and makes sure that what lay idle is
// whole, so that nobody has to learn it from a statement of his own.
func (s *session) ResetSession(ctx context.Context) error {
	if s.spent.Load() {
		return driver.ErrBadConn
	}
	if time.Since(s.used) > idleTrust && s.Ping(ctx) != nil {
		return driver.ErrBadConn
	}
	return s.pqConn.ResetSession(ctx)
}

// IsValid comes after every use.
func (s *session) IsValid() bool {
	s.used = time.Now()
	return !s.spent.Load() && s.pqConn.IsValid()
}

// Ping makes sure that the session is whole. Where another was found dead since it
// was last used, this one is not waited for: what forgot one has forgotten all.
func (s *session) Ping(ctx context.Context) error {
	if died := s.died.Load(); died != nil && s.used.Before(*died) {
		s.giveUp(0)
		return driver.ErrBadConn
	}
	within, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	defer s.heed(within)()
	err := s.pqConn.Ping(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		now := time.Now()
		s.died.Store(&now)
	}
	return err
}

func (s *session) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	defer s.heed(ctx)()
	return s.pqConn.QueryContext(ctx, query, args)
}

func (s *session) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer s.heed(ctx)()
	return s.pqConn.ExecContext(ctx, query, args)
}

func (s *session) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer s.heed(ctx)()
	prepared, err := s.pqConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return preparedStatement{prepared.(pqStmt), s}, nil
}

// pqStmt is what the driver's prepared statements can do.
type pqStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type preparedStatement struct {
	pqStmt
	of *session
}

func (s preparedStatement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	defer s.of.heed(ctx)()
	return s.pqStmt.ExecContext(ctx, args)
}

func (s preparedStatement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	defer s.of.heed(ctx)()
	return s.pqStmt.QueryContext(ctx, args)
}

// BeginTx heeds the context until the transaction ends, whatever its statements
// do.
func (s *session) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	done := s.heed(ctx)
	tx, err := s.pqConn.BeginTx(ctx, options)
	if err != nil {
		done()
		return nil, err
	}
	return transaction{tx, done}, nil
}

type transaction struct {
	driver.Tx
	done func()
}

func (t transaction) Commit() error {
	defer t.done()
	return t.Tx.Commit()
}

func (t transaction) Rollback() error {
	defer t.done()
	return t.Tx.Rollback()
}
