package db

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// A Pinned keeps one connection, for statements that follow each other all the
// time: on a connection that is another one each time they would find the
// database's caches cold. It is for one goroutine.
type Pinned struct {
	db         *DB
	conn       *sqlx.Conn
	statements map[string]*sqlx.Stmt
}

// Pin gives a Pinned, which connects when it is first used.
func (d *DB) Pin() *Pinned { return &Pinned{db: d} }

// get runs a statement for one row. After an error the next one gets a fresh
// connection.
func (p *Pinned) get(ctx context.Context, dest any, query string, args ...any) error {
	statement, err := p.prepared(ctx, query) //nolint:sqlclosecheck // it is kept
	if err == nil {
		err = statement.GetContext(ctx, dest, args...)
	}
	if err != nil {
		p.Close()
	}
	return classify(ctx, err)
}

func (p *Pinned) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if statement, ok := p.statements[query]; ok {
		return statement, nil
	}
	if p.conn == nil {
		conn, err := p.db.x.Connx(ctx)
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

// Close gives the connection back.
func (p *Pinned) Close() {
	for _, statement := range p.statements {
		statement.Close() //nolint:errcheck // the connection may be broken
	}
	if p.conn != nil {
		p.conn.Close() //nolint:errcheck // the connection may be broken
	}
	p.conn, p.statements = nil, nil
}
