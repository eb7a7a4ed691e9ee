package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The naive handler is what a careful engineer writes first: the same rules, one
// transaction a request and one statement a rule, on indexed tables. It is what
// recording in groups is compared with. Where it is simpler than Inlet, that
// spares it work: it bounds neither names nor properties in number, and turns
// nothing into facts.

// startNaive runs the handler as a process of its own, as Inlet is, for the same
// workspaces.
func startNaive(ctx context.Context, p *postgres, tenants []tenant) (*server, error) {
	if err := execSQL(ctx, p.url, `create schema naive`,
		`create table naive.workspaces (workspace_id bigint primary key, minute bigint not null default 0, minute_events int not null default 0,
			day bigint not null default 0, day_events int not null default 0, events_per_minute int not null, events_per_day int not null)`,
		`insert into naive.workspaces (workspace_id, events_per_minute, events_per_day)
			select workspace_id, events_per_minute, events_per_day from workspace_gates`,
		`create table naive.request_counts (key_id bigint primary key, minute bigint not null, requests int not null)`,
		`create table naive.event_types (workspace_id bigint, name text, status text not null default 'active',
			last_seen_at timestamptz not null default now(), primary key (workspace_id, name))`,
		`insert into naive.event_types (workspace_id, name, status) select workspace_id, name, status from event_types`,
		`create table naive.properties (workspace_id bigint, name text, key text, type text not null,
			last_seen_at timestamptz not null default now(), primary key (workspace_id, name, key))`,
		`create table naive.events (event_id uuid primary key default gen_random_uuid(), workspace_id bigint not null, id text not null,
			name text not null, status text not null, occurred_at timestamptz not null, received_at timestamptz not null default now(),
			company_id bigint, contact_id bigint, domain_hint text, properties jsonb not null)`,
		`create index on naive.events (workspace_id, id, received_at)`,
		`create index on naive.events (workspace_id, received_at)`,
		`create index on naive.events (workspace_id, name, received_at)`,
	); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{url: p.url, tenants: tenants, naive: true}
	s.process = exec.Command(self)
	s.process.Env = append(os.Environ(), "DATABASE_URL="+p.url, "INLET_BENCH_NAIVE=127.0.0.1:0")
	return s, s.start()
}

func serveNaive(address, databaseURL string) error {
	d, err := sql.Open("postgres", databaseURL)
	if err != nil {
		return err
	}
	d.SetMaxOpenConns(20)
	d.SetMaxIdleConns(20)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, `{"msg":"serving","addr":%q}`+"\n", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		code, answer := naive(r, d)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client went away
	})
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener)
}

type naiveEvent struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	OccurredAt *time.Time `json:"occurred_at"`
	Company    *struct {
		ID     int64  `json:"id"`
		Domain string `json:"domain"`
	} `json:"company"`
	Contact *struct {
		ID    int64  `json:"id"`
		Email string `json:"email"`
	} `json:"contact"`
	Visitor *struct {
		ID string `json:"id"`
	} `json:"visitor"`
	Properties map[string]any `json:"properties"`
}

var (
	errRefused = errors.New("refused")
	errLimited = errors.New("limited")
)

func naive(r *http.Request, d *sql.DB) (int, any) {
	var e naiveEvent
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil || e.ID == "" || e.Name == "" {
		return http.StatusBadRequest, "invalid_body"
	}
	tx, err := d.BeginTx(r.Context(), nil)
	if err != nil {
		return http.StatusServiceUnavailable, err.Error()
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	answer, err := recordNaively(r.Context(), tx, r.Header.Get("Authorization"), &e)
	if err == nil || errors.Is(err, errRefused) || errors.Is(err, errLimited) {
		// A request that is turned away counts as well.
		if failed := tx.Commit(); failed != nil {
			err = failed
		}
	}
	switch {
	case errors.Is(err, errRefused):
		return http.StatusUnprocessableEntity, err.Error()
	case errors.Is(err, errLimited):
		return http.StatusTooManyRequests, err.Error()
	case err != nil:
		return http.StatusInternalServerError, err.Error()
	}
	return http.StatusAccepted, answer
}

func recordNaively(ctx context.Context, tx *sql.Tx, authorization string, e *naiveEvent) (map[string]string, error) {
	hash := sha256.Sum256([]byte(strings.TrimPrefix(authorization, "Bearer ")))
	var workspace, key, perMinute int64
	if err := tx.QueryRowContext(ctx, `select k.workspace_id, k.key_id, k.requests_per_minute from api_keys k
		join people p on p.workspace_id = k.workspace_id and p.person_id = k.owner_id
		join roles r on r.workspace_id = p.workspace_id and r.name = p.role
		where k.hash = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
			and 'events.send' = any(k.scopes) and 'events.send' = any(r.scopes)`, hash[:]).Scan(&workspace, &key, &perMinute); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	minute, day := now.Unix()/60, now.Unix()/86400
	var requests int64
	if err := tx.QueryRowContext(ctx, `insert into naive.request_counts as c values ($1, $2, 1) on conflict (key_id) do update
		set requests = case when c.minute = excluded.minute then c.requests + 1 else 1 end, minute = excluded.minute
		returning requests`, key, minute).Scan(&requests); err != nil || requests > perMinute {
		return nil, errors.Join(err, errLimited)
	}
	var minuteEvents, dayEvents, eventsPerMinute, eventsPerDay int64
	if err := tx.QueryRowContext(ctx, `select case minute when $2 then minute_events else 0 end, case day when $3 then day_events else 0 end,
		events_per_minute, events_per_day from naive.workspaces where workspace_id = $1 for update`,
		workspace, minute, day).Scan(&minuteEvents, &dayEvents, &eventsPerMinute, &eventsPerDay); err != nil {
		return nil, err
	}
	if minuteEvents >= eventsPerMinute || dayEvents >= eventsPerDay {
		return nil, errLimited
	}
	var known, status string
	switch err := tx.QueryRowContext(ctx, `select event_id from naive.events where workspace_id = $1 and id = $2
		and received_at > now() - interval '30 days'`, workspace, e.ID).Scan(&known); {
	case err == nil:
		return map[string]string{"id": e.ID, "status": "duplicate", "event_id": known}, nil
	case !errors.Is(err, sql.ErrNoRows):
		return nil, err
	}
	switch err := tx.QueryRowContext(ctx, `select status from naive.event_types where workspace_id = $1 and name = $2`,
		workspace, e.Name).Scan(&status); {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return nil, err
	case status == "blocked" || personal(e.Properties):
		return nil, errRefused
	}
	if _, err := tx.ExecContext(ctx, `insert into naive.event_types (workspace_id, name) values ($1, $2)
		on conflict (workspace_id, name) do update set last_seen_at = now()`, workspace, e.Name); err != nil {
		return nil, err
	}
	for name, value := range e.Properties {
		kind := "number"
		switch value.(type) {
		case string:
			kind = "string"
		case bool:
			kind = "bool"
		}
		var first string
		if err := tx.QueryRowContext(ctx, `insert into naive.properties values ($1, $2, $3, $4)
			on conflict (workspace_id, name, key) do update set last_seen_at = now() returning type`,
			workspace, e.Name, name, kind).Scan(&first); err != nil {
			return nil, err
		}
		if first != kind {
			return nil, errRefused
		}
	}
	company, contact, hint, err := matchNaively(ctx, tx, workspace, e)
	if err != nil {
		return nil, err
	}
	status = "accepted"
	switch {
	case company == nil && contact == nil && e.Visitor != nil && e.Company == nil && e.Contact == nil:
		status = "pending_identity"
	case company == nil && contact == nil:
		status = "unmatched"
	}
	properties, err := json.Marshal(e.Properties)
	if err != nil {
		return nil, err
	}
	occurred := now
	if e.OccurredAt != nil {
		occurred = *e.OccurredAt
	}
	var id string
	if err := tx.QueryRowContext(ctx, `insert into naive.events
		(workspace_id, id, name, status, occurred_at, company_id, contact_id, domain_hint, properties)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning event_id`,
		workspace, e.ID, e.Name, status, occurred, company, contact, hint, string(properties)).Scan(&id); err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `update naive.workspaces set
		minute_events = case when minute = $2 then minute_events + 1 else 1 end, minute = $2,
		day_events = case when day = $3 then day_events + 1 else 1 end, day = $3 where workspace_id = $1`, workspace, minute, day)
	return map[string]string{"id": e.ID, "status": status, "event_id": id}, err
}

// personal tells whether a property holds what looks like an e-mail address.
func personal(properties map[string]any) bool {
	for _, value := range properties {
		if text, ok := value.(string); ok && strings.Contains(text, "@") {
			return true
		}
	}
	return false
}

// matchNaively looks each reference up with a statement of its own.
func matchNaively(ctx context.Context, tx *sql.Tx, workspace int64, e *naiveEvent) (company, contact *int64, hint *string, err error) {
	one := func(into *int64, query string, args ...any) *int64 {
		switch failed := tx.QueryRowContext(ctx, query, args...).Scan(into); {
		case failed == nil:
			return into
		case !errors.Is(failed, sql.ErrNoRows):
			err = failed
		}
		return nil
	}
	var companyID, contactID int64
	switch {
	case e.Company != nil && e.Company.ID != 0:
		company = one(&companyID, `select company_id from companies where workspace_id = $1 and company_id = $2`, workspace, e.Company.ID)
	case e.Company != nil:
		domain := strings.TrimPrefix(strings.ToLower(e.Company.Domain), "www.")
		hint = &domain
		company = one(&companyID, `select company_id from company_domains where workspace_id = $1 and domain = $2`, workspace, domain)
	}
	switch {
	case e.Contact != nil && e.Contact.ID != 0:
		contact = one(&contactID, `select contact_id from contacts where workspace_id = $1 and contact_id = $2`, workspace, e.Contact.ID)
	case e.Contact != nil:
		contact = one(&contactID, `select contact_id from contacts where workspace_id = $1 and email = $2`, workspace, strings.ToLower(e.Contact.Email))
	case e.Visitor != nil:
		contact = one(&contactID, `select contact_id from visitors where workspace_id = $1 and visitor_id = $2 and contact_id is not null`,
			workspace, e.Visitor.ID)
	}
	return company, contact, hint, err
}
