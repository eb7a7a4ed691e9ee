package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
)

// A Pinned keeps one connection, for statements that follow each other all the
// time: on a connection that is another one each time they would find the
// database's caches cold. It is for one goroutine.
type Pinned struct {
	db         *DB
	conn       *sqlx.Conn
	statements map[string]*sqlx.Stmt
	used       time.Time

	unflushed bool // something was recorded that may not be on the disk yet
	lost      bool // and then the connection went
}

// pinnedTrust is how long after its use a connection is taken to be whole. The
// database may have been restarted since: nobody should hear of that afterwards.
const pinnedTrust = 100 * time.Millisecond

// Pin gives a Pinned, which connects when it is first used.
func (d *DB) Pin() *Pinned { return &Pinned{db: d} }

// get runs a statement for one row. After an error the next one gets a fresh
// connection, unless it was only a lock that could not be had: then this one is
// whole, and still vouches for what was recorded over it.
func (p *Pinned) get(ctx context.Context, dest any, query string, args ...any) error {
	if p.conn != nil && time.Since(p.used) > pinnedTrust && p.conn.PingContext(ctx) != nil {
		p.Close()
	}
	p.used = time.Now()
	ctx, span := statement(ctx, query)
	prepared, err := p.prepared(ctx, query) //nolint:sqlclosecheck // it is kept
	if err == nil {
		err = prepared.GetContext(ctx, dest, args...)
	}
	if err == nil {
		// Its time was up, and the database was asked to cancel it: then it may not
		// have waited for its replicas before it said that all is well.
		err = ctx.Err()
	}
	if err != nil && (ctx.Err() != nil || !hasCode(err, lockTimeout)) {
		p.Close()
	}
	return p.db.came(ctx, span, err)
}

func (p *Pinned) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if statement, ok := p.statements[query]; ok {
		return statement, nil
	}
	if p.conn == nil {
		conn, err := p.db.whole(ctx)
		if err != nil {
			return nil, err
		}
		p.conn, p.statements = conn, make(map[string]*sqlx.Stmt)
	}
	//nolint:sqlclosecheck // kept for as long as the connection is, and closed with it
	statement, err := p.conn.PreparexContext(ctx, query)
	if err == nil {
		p.statements[query] = statement
	}
	return statement, err
}

// whole gives a connection that answers: those that lay idle while the database
// was away are thrown away on the way.
func (d *DB) whole(ctx context.Context) (*sqlx.Conn, error) {
	for {
		conn, err := d.x.Connx(ctx)
		if err != nil {
			return nil, err
		}
		if err = conn.PingContext(ctx); err == nil {
			return conn, nil
		}
		conn.Close() //nolint:errcheck // it is broken
		if !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
}

// Close gives the connection back.
func (p *Pinned) Close() {
	p.lost = p.lost || p.unflushed
	for _, statement := range p.statements {
		statement.Close() //nolint:errcheck // the connection may be broken
	}
	if p.conn != nil {
		p.conn.Close() //nolint:errcheck // the connection may be broken
	}
	p.conn, p.statements = nil, nil
}
