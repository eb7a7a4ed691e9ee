// Package db remembers: every statement stands here, and nothing but
// statements. It knows nothing of HTTP, the document or the rules; those above
// it know nothing of SQL.
//
// All records belong to a workspace. A Scope passes the workspace to each of
// its statements as $1; the few statements that are of no single workspace are
// methods of DB and say why.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/inletdev/inlet/impl/trace"
)

// minVersion is the oldest PostgreSQL that Inlet runs on, as its server_version_num.
const minVersion = 140000

// Config says which database to open and how.
type Config struct {
	URL          string        // a PostgreSQL connection string
	MaxConns     int           // connections at a time; 0 means 20
	AnswerWithin time.Duration // after which a silent database is away; 0 means 22 s
}

// DB is an open database, safe for concurrent use.
type DB struct {
	x      *sqlx.DB
	config pq.Config               // as the URL has it, without settings of ours but the one of which server it is
	clock  atomic.Pointer[reading] // the last one, nil until there is one

	distributed bool // its tables are, over the nodes of a Citus cluster

	preparing sync.Mutex
	hot       map[string]*sqlx.Stmt // statements that every request runs, by their text
	inScope   atomic.Pointer[map[string]*sqlx.Stmt]
	turns     turns
	metrics   *metrics
}

// Nothing waits for ever: what takes longer means that something is broken, and
// ends. A client of a request is answered before that (limit/timeouts.go); a lock
// is given up early, for whoever waits for one keeps a connection.
const (
	ConnectTimeout     = 5 * time.Second
	StatementTimeout   = 20 * time.Second
	LockTimeout        = 5 * time.Second
	TransactionTimeout = 60 * time.Second // without a statement
)

// sessionSettings: time zones never matter. Prepared
// statements are planned once, and as probes of indexes: planning them over all
// partitions costs more than running them, and a plan may be made while a table
// is still small enough to be scanned. Starting parallel workers takes longer than
// what any of them reads.
var sessionSettings = map[string]string{
	"application_name":                    "inlet",
	"client_encoding":                     "UTF8",
	"timezone":                            "UTC",
	"statement_timeout":                   milliseconds(StatementTimeout),
	"lock_timeout":                        milliseconds(LockTimeout),
	"idle_in_transaction_session_timeout": milliseconds(TransactionTimeout),
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"max_parallel_workers_per_gather":     "0",
	"jit":                                 "off",
}

// errURL tells nothing of the string: what the driver says quotes it, and the
// password may stand anywhere in one that is mistyped.
var errURL = errors.New("the database URL is not one that PostgreSQL's clients know; " +
	"want one such as postgres://inlet@db.example.com/inlet?sslmode=verify-full")

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Open opens the database and makes sure that it answers. ErrAway says that it
// cannot be reached.
func Open(ctx context.Context, c Config) (*DB, error) {
	d, err := openWith(ctx, c, sessionSettings)
	if err != nil || !d.distributed {
		return d, err
	}
	d.Close() //nolint:errcheck // nothing was done over it
	return openWith(ctx, c, overCitus)
}

func openWith(ctx context.Context, c Config, settings map[string]string) (*DB, error) {
	config, err := pq.NewConfig(c.URL)
	if err != nil || isTorn(c.URL) {
		return nil, errURL
	}
	// A session with a server that another has taken over from would stay useless
	// when all is well again.
	if config.TargetSessionAttrs == "" {
		config.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	}
	asked := config.Clone()
	config.BinaryParameters = true // of bytes, and so of the arrays that carry events
	set(&config, settings)
	driver, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, errURL
	}
	within := c.AnswerWithin
	if within == 0 {
		within = answerWithin
	}
	driver.Dialer(dialer{Dialer: net.Dialer{Timeout: ConnectTimeout}, within: within})
	d := &DB{x: sqlx.NewDb(sql.OpenDB(connector{driver, new(atomic.Pointer[time.Time])}), "postgres"), config: asked, hot: make(map[string]*sqlx.Stmt)}
	conns := c.MaxConns
	if conns == 0 {
		conns = 20
	}
	// Idle connections are kept: a server at rest must not pay for a new one
	// with its first request.
	d.x.SetMaxOpenConns(conns)
	d.x.SetMaxIdleConns(conns)
	d.metrics = newMetrics(d)
	d.turns.most, d.turns.waiting = max(1, conns/3), &d.metrics.waiting
	if err := d.check(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// isTorn tells the URLs whose password holds an @ or a / as it is: the rest of it
// would be taken for a host, and told when that is not found.
func isTorn(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme != "" && strings.Contains(address, "@") && (u.User == nil || strings.Count(address, "@") > 1)
}

// set adds settings to those that the URL has.
func set(config *pq.Config, settings map[string]string) {
	if config.Runtime == nil {
		config.Runtime = make(map[string]string)
	}
	maps.Copy(config.Runtime, settings)
}

// check makes sure that the server answers and is new enough.
func (d *DB) check(ctx context.Context) error {
	var version int
	if err := d.get(ctx, &version, serverVersion); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	if version < minVersion {
		return fmt.Errorf("open database: PostgreSQL %d or newer is needed, this is %d",
			minVersion/10000, version/10000)
	}
	var citus bool
	err := d.get(ctx, &citus, citusThere)
	if err == nil && citus {
		err = d.get(ctx, &d.distributed, tablesDistributed)
	}
	return err
}

const serverVersion = `select current_setting('server_version_num')::int`

// closeWithin bounds the farewell to a database: each connection gives back its
// statements and waits for an answer, which one that hangs never gives.
const closeWithin = time.Second

// Close ends all connections. Nothing depends on whether that works: what is left
// of them ends with the process.
func (d *DB) Close() {
	closed := make(chan struct{})
	go func() {
		d.x.Close() //nolint:errcheck // see above
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeWithin):
	}
}

// Ping says whether the database answers.
func (d *DB) Ping(ctx context.Context) error { return d.came(ctx, trace.Off, d.x.PingContext(ctx)) }

// A reading of the database's clock.
type reading struct {
	at     time.Time // what the local clock showed
	theirs time.Time
}

// Now is the database's time: what SyncClock last read (first in Migrate) and what
// has passed since, so that processes with wrong clocks agree. What passes is not
// measured by the local time of day, which may jump.
func (d *DB) Now() time.Time {
	r := d.clock.Load()
	if r == nil {
		return time.Now()
	}
	return r.theirs.Add(time.Since(r.at))
}

const databaseTime = `select inlet_now()`

// slowClock is a reading so slow that the one before says more: it may be wrong by
// half of what it took.
const slowClock = 200 * time.Millisecond

// SyncClock reads the database's clock. A slow reading counts only as the first
// one.
func (d *DB) SyncClock(ctx context.Context) error {
	before := time.Now()
	var theirs time.Time
	if err := d.get(ctx, &theirs, databaseTime); err != nil {
		return err
	}
	took := time.Since(before)
	if took > slowClock && d.clock.Load() != nil {
		return nil
	}
	d.clock.Store(&reading{at: before.Add(took / 2), theirs: theirs})
	return nil
}

func (d *DB) get(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(ctx, query)
	return d.came(ctx, span, d.x.GetContext(ctx, dest, query, args...))
}

// getHot is get for a statement of every request: it is prepared once a
// connection, for planning it anew costs more than running it.
func (d *DB) getHot(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(ctx, query)
	prepared, err := d.prepared(ctx, query) //nolint:sqlclosecheck // it is kept
	if err == nil {
		err = prepared.GetContext(ctx, dest, args...)
	}
	return d.came(ctx, span, err)
}

func (d *DB) selectHot(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(ctx, query)
	prepared, err := d.prepared(ctx, query) //nolint:sqlclosecheck // it is kept
	if err == nil {
		err = prepared.SelectContext(ctx, dest, args...)
	}
	return d.came(ctx, span, err)
}

func (d *DB) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	d.preparing.Lock()
	statement, ok := d.hot[query]
	d.preparing.Unlock()
	if ok {
		return statement, nil
	}
	// Outside of the lock: who waits for a table here must not hold up the others.
	//nolint:sqlclosecheck // kept for as long as the database is open, and closed with it
	statement, err := d.x.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	d.preparing.Lock()
	defer d.preparing.Unlock()
	if first, ok := d.hot[query]; ok {
		return first, statement.Close() //nolint:sqlclosecheck // another was first, and its statement stays
	}
	d.hot[query] = statement
	return statement, nil
}

// Prepare makes the statements ready that leads, motion starts and steps run in
// their transactions: planning them anew every time costs more than running them.
// Not when they are first run, for whoever holds a transaction must not wait for
// another connection. Until they are ready they are planned every time.
func (d *DB) Prepare(ctx context.Context) error {
	if d.inScope.Load() != nil {
		return nil
	}
	ready := make(map[string]*sqlx.Stmt)
	for _, query := range []string{
		matches, lockIdentity, insertCompany, insertDomain, insertContact, fillContact, leadByKey, insertLead, queueLead,
		motionToStart, entryByKey, companyExists, contactsAt, queueEntry,
		lockEnrollment, moveEnrollment, endEnrollment, addNote,
	} {
		statement, err := d.prepared(ctx, query) //nolint:sqlclosecheck // it is kept
		if err != nil {
			return d.came(ctx, trace.Off, err)
		}
		ready[query] = statement
	}
	d.inScope.Store(&ready)
	return nil
}

// prepared gives the statement as the transaction runs it, nil where Prepare did
// not make it ready.
func (s *Scope) prepared(ctx context.Context, query string) *sqlx.Stmt {
	ready := s.d.inScope.Load()
	if ready == nil || (*ready)[query] == nil {
		return nil
	}
	return s.tx.StmtxContext(ctx, (*ready)[query])
}

func (d *DB) selectAll(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(ctx, query)
	return d.came(ctx, span, d.x.SelectContext(ctx, dest, query, args...))
}

func (d *DB) exec(ctx context.Context, query string, args ...any) error {
	ctx, span := statement(ctx, query)
	_, err := d.x.ExecContext(ctx, query, args...)
	return d.came(ctx, span, err)
}

// A Scope is a transaction in one workspace.
type Scope struct {
	tx        *sqlx.Tx
	d         *DB
	span      trace.Span
	workspace int64
}

const attempts = 5 // of a transaction that others keep getting in the way of

// In runs a transaction in a workspace, and commits it if fn returns nil; those of
// one workspace take a third of the connections at most. Where
// PostgreSQL asks for a retry (serialization failure, deadlock) fn is run
// again, so it must have no effect outside the transaction.
func (d *DB) In(ctx context.Context, workspace int64, fn func(*Scope) error) error {
	return d.transaction(ctx, func(ctx context.Context, span trace.Span) error {
		giveBack, err := d.turns.take(ctx, workspace)
		if err != nil {
			return d.came(ctx, trace.Off, err)
		}
		defer giveBack()
		return d.transact(ctx, nil, span, func(t *Tx) error { return fn(t.Scope(workspace)) })
	})
}

// Snapshot runs reading statements that all see the same state.
func (d *DB) Snapshot(ctx context.Context, workspace int64, fn func(*Scope) error) error {
	options := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	return d.transaction(ctx, func(ctx context.Context, span trace.Span) error {
		return d.transact(ctx, options, span, func(t *Tx) error { return fn(t.Scope(workspace)) })
	})
}

// A Tx is a transaction across workspaces, for what is done by the people who
// run the server; requests of clients have a Scope.
type Tx struct {
	tx   *sqlx.Tx
	d    *DB
	span trace.Span
}

// Across is like In, but of no single workspace.
func (d *DB) Across(ctx context.Context, fn func(*Tx) error) error {
	return d.transaction(ctx, func(ctx context.Context, span trace.Span) error {
		return d.transact(ctx, nil, span, fn)
	})
}

// transaction notes how long a transaction takes, with all that it waits for.
func (d *DB) transaction(ctx context.Context, run func(context.Context, trace.Span) error) error {
	began := time.Now()
	ctx, span := trace.Child(ctx, "transaction")
	defer func() {
		d.metrics.transactions.Observe(time.Since(began).Seconds())
		span.End()
	}()
	return run(ctx, span)
}

// Scope gives the transaction in one workspace.
func (t *Tx) Scope(workspace int64) *Scope { return &Scope{t.tx, t.d, t.span, workspace} }

func (t *Tx) get(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(trace.Under(ctx, t.span), query)
	return t.d.came(ctx, span, t.tx.GetContext(ctx, dest, query, args...))
}

func (d *DB) transact(ctx context.Context, options *sql.TxOptions, span trace.Span, fn func(*Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := d.once(ctx, options, span, fn)
		if attempt == attempts || !retryable(err) {
			return err
		}
		pause := time.Duration(rand.Int64N(int64(attempt) * int64(20*time.Millisecond)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (d *DB) once(ctx context.Context, options *sql.TxOptions, span trace.Span, fn func(*Tx) error) error {
	tx, err := d.x.BeginTxx(ctx, options)
	if err != nil {
		return d.came(ctx, trace.Off, err)
	}
	// After a commit this does nothing; it ends the transaction on an error and
	// on a panic.
	defer tx.Rollback()
	if err := fn(&Tx{tx, d, span}); err != nil {
		return err
	}
	ctx, committing := statement(ctx, commit)
	return d.came(ctx, committing, tx.Commit())
}

// commit stands for what the driver says.
const commit = "commit"

// Workspace is the workspace of the scope.
func (s *Scope) Workspace() int64 { return s.workspace }

func (s *Scope) args(args []any) []any { return append([]any{s.workspace}, args...) }

func (s *Scope) get(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(trace.Under(ctx, s.span), query)
	var err error
	if prepared := s.prepared(ctx, query); prepared != nil { //nolint:sqlclosecheck // it is kept
		err = prepared.GetContext(ctx, dest, s.args(args)...)
	} else {
		err = s.tx.GetContext(ctx, dest, query, s.args(args)...)
	}
	return s.d.came(ctx, span, err)
}

func (s *Scope) selectAll(ctx context.Context, dest any, query string, args ...any) error {
	ctx, span := statement(trace.Under(ctx, s.span), query)
	var err error
	if prepared := s.prepared(ctx, query); prepared != nil { //nolint:sqlclosecheck // it is kept
		err = prepared.SelectContext(ctx, dest, s.args(args)...)
	} else {
		err = s.tx.SelectContext(ctx, dest, query, s.args(args)...)
	}
	return s.d.came(ctx, span, err)
}

func (s *Scope) exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, span := statement(trace.Under(ctx, s.span), query)
	var result sql.Result
	var err error
	if prepared := s.prepared(ctx, query); prepared != nil { //nolint:sqlclosecheck // it is kept
		result, err = prepared.ExecContext(ctx, s.args(args)...)
	} else {
		result, err = s.tx.ExecContext(ctx, query, s.args(args)...)
	}
	if err = s.d.came(ctx, span, err); err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
