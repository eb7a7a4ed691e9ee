package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A figure is a row of the table: a measurement, and what it is compared with.
type figure struct {
	name    string
	clients int
	of      string // a measurement
	unit    string // of the value
	value   func(sample) float64
	to      string // the measurement that a ratio is of, empty for none
	toName  string
	ratio   func(of, to sample) float64 // nil for none
	target  float64                     // of the ratio where there is one, else of the value; 0 for none
	atMost  bool                        // the target is an upper bound
	stored  bool                        // it takes stored events
}

func (f figure) title() string { return fmt.Sprintf("%s, %d clients", f.name, f.clients) }

func rate(s sample) float64   { return s.rate }
func p50(s sample) float64    { return ms(s.p50) }
func p99(s sample) float64    { return ms(s.p99) }
func p999(s sample) float64   { return ms(s.p999) }
func max1(s sample) float64   { return ms(s.max) }
func gap(s sample) float64    { return ms(s.gap) }
func cost(s sample) float64   { return float64(s.serverCPU+s.postgresCPU) / float64(time.Microsecond) }
func memory(s sample) float64 { return float64(s.memory) / 1e6 }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// over is the ratio of one value of two measurements.
func over(value func(sample) float64) func(of, to sample) float64 {
	return func(of, to sample) float64 { return value(of) / value(to) }
}

// figures are all rows of the table, in order.
func figures() []figure {
	pgbench64 := "pgbench, 64 clients"
	all := []figure{
		{name: "pgbench, one inserted row a commit", clients: 64, of: "pgbench 64", unit: "/s", value: rate},
	}
	for _, f := range []struct {
		clients int
		target  float64
	}{{64, 0.65}, {256, 0.75}, {1024, 0.9}} {
		all = append(all, figure{name: "single events", clients: f.clients, of: fmt.Sprintf("singles %d", f.clients),
			unit: "/s", value: rate, to: "pgbench 64", toName: pgbench64, ratio: over(rate), target: f.target})
	}
	all = append(all,
		figure{name: fmt.Sprintf("single events, %s workspaces", thousands(*many)), clients: 256, of: "many 256",
			unit: "/s", value: rate, to: "pgbench 64", toName: pgbench64, ratio: over(rate)},
		figure{name: "naive handler", clients: 64, of: "naive 64", unit: "/s", value: rate},
		figure{name: "single events over the naive handler", clients: 64, of: "singles 64", unit: "/s", value: rate,
			to: "naive 64", toName: "naive handler", ratio: over(rate), target: 12},
		figure{name: "COPY into the same tables", clients: copyStreams, of: "copy", unit: " rows/s", value: rate},
		figure{name: "batches of 100", clients: 32, of: "batches 32", unit: " events/s", value: rate,
			to: "copy", toName: "COPY", ratio: over(rate), target: 0.33},
		figure{name: "pgbench, p50", clients: 1, of: "pgbench 1", unit: " ms", value: p50},
		figure{name: "single events, p50", clients: 1, of: "singles 1", unit: " ms", value: p50,
			to: "pgbench 1", toName: "pgbench, 1 client", ratio: over(p50), target: 3, atMost: true},
		figure{name: "open loop at half of the rate of 256 clients, p99", clients: 256, of: "open", unit: " ms", value: p99,
			to: "open", toName: "its p50", ratio: func(of, _ sample) float64 { return p99(of) / p50(of) }, target: 6, atMost: true},
		figure{name: "memory of the server", clients: 1024, of: "singles 1024", unit: " MB", value: memory, target: 200, atMost: true},
		figure{name: "heap allocations of the server a single event", clients: 64, of: "singles 64",
			value: func(s sample) float64 { return s.allocations }, target: 60, atMost: true},
	)
	all = append(all, capacityFigures()...)
	few, many := "leads, "+thousands(fewContacts)+" contacts", "leads, "+millions(allContacts)+" contacts"
	all = append(all,
		figure{name: few, clients: leadClients, of: "leads few", unit: "/s", value: rate},
		figure{name: many, clients: leadClients, of: "leads many", unit: "/s", value: rate,
			to: "leads few", toName: few, ratio: over(rate), target: 0.667},
		figure{name: many + ", p50", clients: leadClients, of: "leads many", unit: " ms", value: p50,
			to: "leads few", toName: few, ratio: over(p50), target: 1.5, atMost: true},
		figure{name: many + ", processor of server and PostgreSQL a lead", clients: leadClients, of: "leads many", unit: " µs", value: cost,
			to: "leads few", toName: few, ratio: over(cost), target: 1.5, atMost: true},
	)
	alone := fmt.Sprintf("motion starts, %d a second", startRate)
	worked := alone + ", while " + thousands(queuedEntries) + " entries are decided"
	all = append(all,
		figure{name: "decisions, " + thousands(queuedEntries) + " entries queued", of: "decisions one", unit: "/s", value: rate},
		figure{name: fmt.Sprintf("decisions, spread over %d workspaces", entryWorkspaces), of: "decisions many", unit: "/s", value: rate,
			to: "decisions one", toName: "in one", ratio: over(rate)},
		figure{name: "memory of the server meanwhile", of: "decisions one", unit: " MB", value: memory, target: 200, atMost: true},
		figure{name: alone + ", p50", clients: startClients, of: "starts alone", unit: " ms", value: p50},
		figure{name: worked + ", p50", clients: startClients, of: "starts meanwhile", unit: " ms", value: p50,
			to: "starts alone", toName: "alone", ratio: over(p50), target: 1.5, atMost: true},
		figure{name: worked + ", p99", clients: startClients, of: "starts meanwhile", unit: " ms", value: p99,
			to: "starts alone", toName: "alone", ratio: over(p99)},
		figure{name: "steps, " + thousands(dueSteps) + " due", of: "steps", unit: "/s", value: rate},
	)
	all = append(all, overloadFigures("leads", "leads of a workspace", "/s", "leads few", "leads alone")...)
	all = append(all, overloadFigures("singles", "single events", "/s", "singles 256", "singles 1")...)
	all = append(all, overloadFigures("batches", "batches of 100", " events/s", "batches 32", "batches 1")...)
	large := "of " + millions(*stored*3/10)
	full := []figure{
		{name: "single events, " + millions(*stored/10) + " stored", clients: 256, of: "stored tenth", unit: "/s", value: rate},
		{name: "single events, " + millions(*stored) + " stored", clients: 256, of: "stored all", unit: "/s", value: rate,
			to: "stored tenth", toName: millions(*stored/10) + " stored", ratio: over(rate), target: 0.8},
		{name: "first page " + large + ", p50", clients: 1, of: "page first", unit: " ms", value: p50},
		{name: "page at depth 90 % " + large + ", p50", clients: 1, of: "page deep", unit: " ms", value: p50,
			to: "page first", toName: "first page", ratio: over(p50), target: 1.2, atMost: true},
	}
	for _, filter := range listFilters {
		full = append(full, figure{name: "page and exact total " + large + ", " + filter.name + ", p99", clients: 1,
			of: "list " + filter.name, unit: " ms", value: p99, target: 10, atMost: true})
	}
	full = append(full,
		figure{name: "steady load, longest wait for an answer", clients: expiryClients, of: "no expiry", unit: " ms", value: max1},
		figure{name: "the same while a day of 333,000 events expires", clients: expiryClients, of: "expiry", unit: " ms", value: max1,
			to: "no expiry", toName: "without", ratio: over(max1), target: 100, atMost: true},
		figure{name: "longest time without any answer meanwhile", clients: expiryClients, of: "expiry", unit: " ms", value: gap,
			to: "no expiry", toName: "without", ratio: over(gap)},
	)
	for _, f := range full {
		f.stored = true
		all = append(all, f)
	}
	return all
}

// boundsValue tells that the target is of the value, although there is a ratio
// as well, or because there is none.
func (f figure) boundsValue() bool { return f.ratio == nil || f.of == "expiry" }

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[len(values)/2] + values[(len(values)-1)/2]) / 2
}

// of gives the median over the rounds of a value of a measurement.
func (b *bench) of(name string, value func(sample) float64) float64 {
	var all []float64
	for _, s := range b.results[name] {
		all = append(all, value(s))
	}
	return median(all)
}

// report prints the figures of which there is at least one round.
func (b *bench) report() {
	var lines, missed []string
	for _, f := range b.figures {
		rounds := len(b.results[f.of])
		if f.ratio != nil {
			rounds = min(rounds, len(b.results[f.to]))
		}
		if rounds == 0 {
			continue
		}
		value := b.of(f.of, f.value)
		bounded, ratio, target := value, "", ""
		if f.ratio != nil {
			var ratios []float64
			for i := range rounds {
				ratios = append(ratios, f.ratio(b.results[f.of][i], b.results[f.to][i]))
			}
			ratio = number(median(ratios))
			if !f.boundsValue() {
				bounded = median(ratios)
			}
		}
		if f.target != 0 {
			target = number(f.target)
			if f.boundsValue() {
				target += f.unit
			}
			if f.atMost {
				target = "≤ " + target
			}
			if (bounded > f.target) == f.atMost && bounded != f.target {
				missed = append(missed, f.title())
			}
		}
		latency := func(value func(sample) float64) string {
			if b.results[f.of][0].p50 == 0 {
				return ""
			}
			return fmt.Sprintf("%.2f", b.of(f.of, value))
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %s%s | %s | %s | %s | %s | %s | %s |", f.name, f.clients, number(value), f.unit,
			f.toName, ratio, target, latency(p50), latency(p99), latency(p999)))
	}
	if len(lines) == 0 {
		return
	}
	fmt.Printf("\n%s, %d processors (%s), %s, %s; median of %d rounds of %v; %d workspaces\n\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), processor(), runtime.Version(), b.about, *rounds, *length, *workspaces)
	fmt.Println("| figure | clients | value | ratio to | ratio | at least (target) | p50 ms | p99 ms | p99.9 ms |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	fmt.Println(strings.Join(lines, "\n"))
	if len(missed) > 0 {
		fmt.Printf("\nShort of the target: %s.\n", strings.Join(missed, "; "))
	}
	b.reportCosts()
}

// reportCosts prints what the rates cost, for what the load generator takes and
// what is left to be done afterwards are part of the picture.
func (b *bench) reportCosts() {
	fmt.Println()
	for _, name := range []string{"singles 64", "singles 256", "singles 1024", "many 256", "batches 32", "singles 1", "naive 64",
		"leads few", "leads many"} {
		if len(b.results[name]) == 0 {
			continue
		}
		us := func(of func(sample) time.Duration) float64 {
			return b.of(name, func(s sample) float64 { return float64(of(s)) / float64(time.Microsecond) })
		}
		fmt.Printf("%s: a request costs the server %.0f µs of processor, PostgreSQL %.0f, the load generator %.1f; jobs went on for %.1f s\n", name,
			us(func(s sample) time.Duration { return s.serverCPU }), us(func(s sample) time.Duration { return s.postgresCPU }), us(func(s sample) time.Duration { return s.loadCPU }),
			b.of(name, func(s sample) float64 { return s.backlog.Seconds() }))
	}
	fmt.Println("Allocations are those of the whole process, background jobs included.")
}

// number prints three digits or the whole part, whichever is more.
func number(v float64) string {
	if v >= 100 {
		return thousands(int(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func millions(n int) string { return fmt.Sprintf("%.3g million", float64(n)/1e6) }

// processor gives the name of the machine's processor.
func processor() string {
	raw, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t: "))
		}
	}
	return runtime.GOARCH
}
