package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/lib/pq"
)

const (
	queuedEntries   = 100_000
	entryWorkspaces = 20     // that entries are spread over in the figure of many
	dueSteps        = 20_000 // enrollments with a step to be taken
	startClients    = 32
	startRate       = 500   // starts a second
	startCompanies  = 1_000 // that the starts are for
)

// start is traffic of motion starts, every answer to which is read.
var start = traffic{"/api/v1/motions/2/start", 1, 1}

// storeMotions gives the first workspace as many companies as entries are queued
// and each other one its share, with a contact each, and all of them two motions:
// one that the queued entries are for, with every check that costs something, and
// one that requests start, whose enrollments have nothing to do for a while.
var storeMotions = fmt.Sprintf(`
	set local session_replication_role = replica;
	update workspaces set agents_enabled = true;
	insert into companies (workspace_id, company_id, name, name_key, source)
	select w.workspace_id, n, 'Company ' || n, 'company ' || n, 'seed'
	from workspaces w, generate_series(1, case w.workspace_id when 1 then %[1]d else %[1]d / %[2]d end) n;
	insert into contacts (workspace_id, contact_id, company_id, email, source)
	select workspace_id, company_id, company_id, 'p@c' || company_id || '.internal', 'seed' from companies;
	insert into segments (workspace_id, segment_id, name) select workspace_id, 1, 'Customers' from workspaces;
	insert into motions (workspace_id, motion_id, name, status, entry, steps)
	select w.workspace_id, m.*
	from workspaces w, (values
		(1, 'Queued', 'active', '{"api_call": true, "lead_created": false, "events": [], "signals": [],
			"in_segments": [], "not_in_segments": [1], "reentry_days": 30, "daily_cap": 1000000}'::jsonb,
			'[{"kind": "add_note", "text": "Entered."}]'::jsonb),
		(2, 'Started', 'active', '{"api_call": true, "lead_created": false, "events": [], "signals": [],
			"in_segments": [], "not_in_segments": [], "reentry_days": 0, "daily_cap": null}',
			'[{"kind": "wait", "hours": 720}]')) m`, queuedEntries, entryWorkspaces)

// queueEntries queues entries, evenly over $1 workspaces, all at once: none is
// decided before the last is queued. It gives the last one of each workspace.
var queueEntries = fmt.Sprintf(`
	with queued as (
		insert into motion_entries (workspace_id, motion_id, company_id, trigger, key_id, idempotency_key)
		select 1 + n %% $1::int, 1, 1 + n / $1::int, 'api', 0, 'queued-' || n from generate_series(0, %d - 1) n
		returning workspace_id, entry_id
	)
	select array_agg(last) from (select max(entry_id) as last from queued group by workspace_id) each`, queuedEntries)

// storeEnrollments has a step to be taken in so many enrollments.
var storeEnrollments = fmt.Sprintf(`
	insert into enrollments (workspace_id, motion_id, company_id, contact_ids, steps, due_at)
	select 1, motion_id, n, '{}', steps, inlet_now() from motions, generate_series(1, %d) n
	where workspace_id = 1 and motion_id = 1`, dueSteps)

// removeEntries takes away what a measurement left. The tables are in the order in
// which the server locks them.
const removeEntries = `truncate motion_entries, enrollments, notes`

// prepareMotions starts the server that motions are measured on, on a database of
// its own.
func (b *bench) prepareMotions() error {
	fmt.Fprintln(os.Stderr, "storing companies to enter motions")
	if err := execSQL(b.ctx, b.pg.url, `create database motions`); err != nil {
		return err
	}
	address, err := url.Parse(b.pg.url)
	if err != nil {
		return err
	}
	address.Path = "/motions"
	s := &server{url: address.String()}
	if s.tenants, err = s.seed(b.ctx, "motions", entryWorkspaces, 0); err != nil {
		return err
	}
	if err := execSQL(b.ctx, s.url, storeMotions, `vacuum analyze`); err != nil {
		return err
	}
	b.motions = s
	return s.serve()
}

// withMotions is what is measured of motions.
func (b *bench) withMotions() []measurement {
	return []measurement{
		{name: "decisions one", do: func(int) (sample, error) { return b.motions.decisions(b.ctx, 1) }},
		{name: "decisions many", do: func(int) (sample, error) { return b.motions.decisions(b.ctx, entryWorkspaces) }},
		{name: "starts alone", do: func(int) (sample, error) { return b.motions.starts(b.ctx, false) }},
		{name: "starts meanwhile", do: func(int) (sample, error) { return b.motions.starts(b.ctx, true) }},
		{name: "steps", do: func(int) (sample, error) { return b.motions.steps(b.ctx) }},
	}
}

// clear takes away what the last measurement left, steps still to be taken
// included. It says nothing of the empty tables to PostgreSQL's planner, which
// nobody does in earnest.
func (s *server) clear(ctx context.Context) error {
	return execSQL(ctx, s.url, removeEntries, `checkpoint`)
}

// queue queues entries in so many workspaces and gives the last one of each.
func (s *server) queue(ctx context.Context, workspaces int) (pq.Int64Array, error) {
	return querySQL[pq.Int64Array](ctx, s.url, queueEntries, workspaces)
}

// queued tells how many of these entries wait for their decision. Entries of a
// workspace are decided in order: with its last one all are.
func (s *server) queued(ctx context.Context, last pq.Int64Array) (int, error) {
	return querySQL[int](ctx, s.url, `select count(*) from unnest($1::bigint[]) as l(entry_id)
		join motion_entries e on e.entry_id = l.entry_id and e.workspace_id = any(array(select workspace_id from workspaces))
		where e.decided_at is null`, last)
}

// until waits for a count to become zero.
func until(ctx context.Context, left func() (int, error)) error {
	for begun := time.Now(); ; {
		n, err := left()
		if err != nil || n == 0 {
			return err
		}
		if time.Since(begun) > 10*time.Minute {
			return fmt.Errorf("%d are still to be done after %v", n, time.Since(begun))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// decisions has the server decide what is queued in so many workspaces. It takes
// the steps of those that entered meanwhile.
func (s *server) decisions(ctx context.Context, workspaces int) (sample, error) {
	if err := s.clear(ctx); err != nil {
		return sample{}, err
	}
	s.forgetPeak()
	last, err := s.queue(ctx, workspaces)
	if err != nil {
		return sample{}, err
	}
	begun := time.Now()
	if err := until(ctx, func() (int, error) { return s.queued(ctx, last) }); err != nil {
		return sample{}, err
	}
	got := sample{rate: queuedEntries / time.Since(begun).Seconds(), memory: s.peak()}
	return got, s.checkDecided(ctx, queuedEntries)
}

// starts sends starts at fixed times, with nothing else to be decided or with
// much.
func (s *server) starts(ctx context.Context, meanwhile bool) (sample, error) {
	if err := s.clear(ctx); err != nil {
		return sample{}, err
	}
	l, err := s.connect(s.tenants[:1], startClients, start)
	if err != nil {
		return sample{}, err
	}
	defer l.hangUp()
	if _, _, err := l.run(ctx, warmUp(*length), startRate); err != nil {
		return sample{}, err
	}
	wanted := 0
	var last pq.Int64Array
	if meanwhile {
		if last, err = s.queue(ctx, 1); err != nil {
			return sample{}, err
		}
		wanted = queuedEntries
	}
	took, gap, err := l.run(ctx, *length, startRate)
	if err != nil {
		return sample{}, err
	}
	got := summary(took)
	got.rate, got.gap = float64(len(took))/length.Seconds(), gap
	if meanwhile {
		switch left, err := s.queued(ctx, last); {
		case err != nil:
			return sample{}, err
		case left == 0:
			return sample{}, errors.New("the queue was empty before the starts were over: take a shorter -length")
		}
	}
	for _, c := range l.clients {
		wanted += c.kept
	}
	return got, s.checkDecided(ctx, wanted)
}

// steps has the server take the step of each enrollment.
func (s *server) steps(ctx context.Context) (sample, error) {
	if err := s.clear(ctx); err != nil {
		return sample{}, err
	}
	s.forgetPeak()
	if err := execSQL(ctx, s.url, storeEnrollments); err != nil {
		return sample{}, err
	}
	begun := time.Now()
	if err := until(ctx, func() (int, error) {
		return querySQL[int](ctx, s.url, `select count(*) from enrollments where status = 'active'`)
	}); err != nil {
		return sample{}, err
	}
	got := sample{rate: dueSteps / time.Since(begun).Seconds(), memory: s.peak()}
	taken, err := querySQL[pq.Int64Array](ctx, s.url, `
		select array[count(*), count(distinct n.enrollment_id), count(*) filter (where n.status = 'completed' and n.step = 1)]
		from notes left join enrollments n using (workspace_id, enrollment_id)`)
	for _, n := range taken {
		if err == nil && n != dueSteps {
			err = fmt.Errorf("of %d steps, notes, enrollments with one and completed ones are %v", dueSteps, taken)
		}
	}
	return got, err
}

// checkDecided waits for all entries to be decided and makes sure that they are
// as many as were answered or queued, that every queued one entered, and that
// each that entered has an enrollment of its own, and no other is there.
func (s *server) checkDecided(ctx context.Context, wanted int) error {
	if err := until(ctx, func() (int, error) {
		return querySQL[int](ctx, s.url, `select count(*) from motion_entries where decided_at is null`)
	}); err != nil {
		return err
	}
	got, err := querySQL[pq.Int64Array](ctx, s.url, `
		select array[count(*), count(*) filter (where e.motion_id = 1 and e.reason_code <> 'entered'),
			count(*) filter (where e.reason_code = 'entered'), count(distinct n.enrollment_id),
			(select count(*) from enrollments)]
		from motion_entries e
		left join enrollments n on n.workspace_id = e.workspace_id and n.enrollment_id = e.enrollment_id
			and n.motion_id = e.motion_id and n.company_id = e.company_id`)
	if err == nil && (got[0] != int64(wanted) || got[1] != 0 || got[2] != got[3] || got[2] != got[4]) {
		err = fmt.Errorf("of %d entries, those that there are, that did not enter though they should have, that entered, "+
			"their enrollments and all enrollments are %v", wanted, got)
	}
	return err
}

// A startState is what a client knows of the starts it sends.
type startState struct {
	company int64
	key     string
	repeat  bool // the request repeats the last one
}

// start writes a motion start; one in fifty repeats the last one.
func (c *client) start() {
	s := &c.starts
	if s.repeat = s.key != "" && c.random.IntN(50) == 0; !s.repeat {
		c.events++
		c.kept++
		s.company, s.key = 1+c.random.Int64N(startCompanies), c.prefix+strconv.Itoa(c.events)
	}
	c.body = fmt.Appendf(c.body, `{"companyId":%d}`, s.company)
	c.header = fmt.Appendf(c.header[:0], "\r\nIdempotency-Key: %s", s.key)
}

// checkStart makes sure that the answer is of the start: queued, or decided where
// it was sent before.
func (c *client) checkStart() error {
	wanted := "queued"
	if c.starts.repeat && c.status() == "200" {
		wanted = "decided"
	}
	body, err := c.content()
	if err != nil {
		return err
	}
	var got struct {
		Status    string
		MotionID  int64
		CompanyID int64
	}
	if c.status() == "202" || wanted == "decided" {
		err = json.Unmarshal(body, &got)
	}
	if err != nil || got.Status != wanted || got.MotionID != 2 || got.CompanyID != c.starts.company {
		return fmt.Errorf("%s\nwhere a start was due to be %s for %s", c.answer, wanted, c.body)
	}
	return nil
}
