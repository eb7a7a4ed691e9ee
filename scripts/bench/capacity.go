package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hundredMillion is how many events a second 100 million a day are on average, and
// peakFactor how much more the busiest second of a day has.
const (
	hundredMillion = 1157
	peakFactor     = 5
)

// capacityLoads are the loads under which the use of the machine is measured: paced,
// because a group of few events costs more an event than a large one, and flat out.
var capacityLoads = []struct {
	name    string
	clients int
	traffic traffic
	rate    float64 // requests a second; 0: as many as the server takes
}{
	{"capacity, single events at 1,157/s", 64, single, hundredMillion},
	{"capacity, single events at 5,785/s", 64, single, hundredMillion * peakFactor},
	{"capacity, single events flat out", 256, single, 0},
	{"capacity, batches of 100 flat out", 32, batch, 0},
}

// capacityValues are what is measured of each, of an event that was recorded: what
// the repeats and refused events that come with it cost is part of it, and so is what
// the jobs do with it afterwards.
var capacityValues = []struct {
	name, unit string
	value      func(sample) float64
}{
	{"processor of the server", " µs", func(s sample) float64 { return us(s.serverCPU) }},
	{"processor of PostgreSQL", " µs", func(s sample) float64 { return us(s.postgresCPU) }},
	{"on disk, with its indexes", " bytes", func(s sample) float64 { return s.stored }},
	{"its id on disk, with the index that is found by it", " bytes", func(s sample) float64 { return s.storedIDs }},
	{"write-ahead log", " bytes", func(s sample) float64 { return s.logged }},
	{"of that, whole pages behind a checkpoint", " bytes", func(s sample) float64 { return s.fullPages }},
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func capacityFigures() (all []figure) {
	for _, load := range capacityLoads {
		for _, v := range capacityValues {
			all = append(all, figure{name: load.name + ": " + v.name, clients: load.clients, of: load.name, unit: v.unit, value: v.value})
		}
	}
	flatOut := capacityLoads[2]
	return append(all,
		figure{name: "capacity: memory of the server", clients: flatOut.clients, of: flatOut.name, unit: " MB", value: memory},
		figure{name: "capacity: connections of the server", clients: flatOut.clients, of: flatOut.name, value: func(s sample) float64 { return s.connections }},
		figure{name: "capacity: own memory of a connection in PostgreSQL", clients: flatOut.clients, of: flatOut.name, unit: " MB",
			value: func(s sample) float64 { return s.connectionMemory / 1e6 }},
	)
}

func (b *bench) capacity() (all []measurement) {
	for _, load := range capacityLoads {
		all = append(all, measurement{name: load.name, do: func(int) (sample, error) {
			return b.server.capacity(b.ctx, load.clients, load.traffic, load.rate)
		}})
	}
	return all
}

// used is what was used so far.
type used struct {
	events, stored, ids, logged, pages int64
	server, postgres                   time.Duration
}

// capacity measures what the events of a load take, until all of them are processed.
func (s *server) capacity(ctx context.Context, clients int, t traffic, perSecond float64) (got sample, err error) {
	l, err := s.connect(s.tenants, clients, t)
	if err != nil {
		return got, err
	}
	defer l.hangUp()
	if _, _, err = l.run(ctx, warmUp(*length), perSecond); err != nil {
		return got, err
	}
	if _, err = s.settle(ctx); err != nil {
		return got, err
	}
	postmaster, err := s.postmaster(ctx)
	if err != nil {
		return got, err
	}
	var before, after used
	if err = before.read(ctx, s.url); err != nil {
		return got, err
	}
	s.forgetPeak()
	before.server, before.postgres = s.processor(), familyProcessor(postmaster)
	took, _, err := l.run(ctx, *length, perSecond)
	if err != nil {
		return got, err
	}
	if _, err = s.settle(ctx); err != nil {
		return got, err
	}
	after.server, after.postgres = s.processor(), familyProcessor(postmaster)
	if err = after.read(ctx, s.url); err != nil {
		return got, err
	}
	events := float64(after.events - before.events)
	if events == 0 {
		return got, fmt.Errorf("no event was recorded")
	}
	got = summary(took)
	got.rate = float64(len(took)*t.events) / length.Seconds()
	got.memory = s.peak()
	got.serverCPU = time.Duration(float64(after.server-before.server) / events)
	got.postgresCPU = time.Duration(float64(after.postgres-before.postgres) / events)
	got.stored = float64(after.stored-before.stored) / events
	got.storedIDs = float64(after.ids-before.ids) / events
	got.logged = float64(after.logged-before.logged) / events
	got.fullPages = float64(after.pages-before.pages) * 8192 / events
	pids, err := querySQL[string](ctx, s.url, `select string_agg(pid::text, ' ') from pg_stat_activity
		where datname = current_database() and application_name = 'inlet'`)
	if err != nil {
		return got, err
	}
	for pid := range strings.FieldsSeq(pids) {
		got.connections++
		got.connectionMemory += ownMemory(pid)
	}
	got.connectionMemory /= max(1, got.connections)
	return got, nil
}

// read reads what PostgreSQL counts.
func (u *used) read(ctx context.Context, url string) error {
	const sizeOf = `select sum(pg_total_relation_size(inhrelid))::bigint from pg_inherits where inhparent = `
	for statement, value := range map[string]*int64{
		`select count(*) from events`:               &u.events,
		sizeOf + `'events'::regclass`:               &u.stored,
		sizeOf + `'event_ids'::regclass`:            &u.ids,
		`select wal_bytes::bigint from pg_stat_wal`: &u.logged,
		`select wal_fpi from pg_stat_wal`:           &u.pages,
	} {
		var err error
		if *value, err = querySQL[int64](ctx, url, statement); err != nil {
			return err
		}
	}
	return nil
}

// ownMemory is what a process shares with no other, in bytes.
func ownMemory(pid string) (bytes float64) {
	raw, _ := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[0], "Private_") {
			kb, _ := strconv.ParseFloat(fields[1], 64)
			bytes += kb * 1024
		}
	}
	return bytes
}
