package chaos

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A result is what a fault did to the clients.
type result struct {
	fault                       string
	lasted                      time.Duration
	requests, answered, retried int
	count
	recovery map[string]time.Duration // from the end of the fault to the first 2xx, by kind
	steady   time.Duration            // to the second in which the median of events is at most twice what it was; negative: not while there were clients
	silence  time.Duration            // the longest without a 2xx
}

// first gives how long after a time the first 2xx came to a request of a kind
// that was sent after it; negative where none did.
func first(requests []request, kind string, after time.Time) time.Duration {
	least := time.Duration(-1)
	for _, q := range requests {
		if q.kind == kind && q.status/100 == 2 && q.start.After(after) {
			if took := q.end.Sub(after); least < 0 || took < least {
				least = took
			}
		}
	}
	return least
}

func (r *rig) result(f fault, c count, begun, happened, over time.Time) result {
	requests := r.requests(begun)
	out := result{fault: f.name, lasted: over.Sub(happened), requests: len(requests), count: c, recovery: make(map[string]time.Duration)}
	var answers []time.Time
	for _, q := range requests {
		if q.repeated {
			out.retried++
		}
		if q.status/100 == 2 {
			out.answered++
			answers = append(answers, q.end)
		}
	}
	for _, kind := range []string{events, leads, motions} {
		out.recovery[kind] = first(requests, kind, over)
	}
	slices.SortFunc(answers, time.Time.Compare)
	last := begun
	for _, at := range answers {
		out.silence = max(out.silence, at.Sub(last))
		last = at
	}
	before := median(requests, begun, happened)
	out.steady = -1
	const window = 500 * time.Millisecond
	for at := over; at.Before(last); at = at.Add(window / 5) {
		if m := median(requests, at, at.Add(window)); m > 0 && m <= 2*before {
			out.steady = at.Sub(over)
			break
		}
	}
	return out
}

// median is that of events that were sent and answered between two times; zero
// where none were.
func median(requests []request, from, to time.Time) time.Duration {
	var took []time.Duration
	for _, q := range requests {
		if q.kind == events && q.status/100 == 2 && q.start.After(from) && q.start.Before(to) {
			took = append(took, q.end.Sub(q.start))
		}
	}
	if took == nil {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func seconds(d time.Duration) string {
	if d < 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func (r result) String() string {
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %s, %s, %s | %s | %s |", r.fault, seconds(r.lasted), r.requests, r.answered, r.retried,
		r.lost, r.doubled, seconds(r.recovery[events]), seconds(r.recovery[leads]), seconds(r.recovery[motions]), seconds(r.steady), seconds(r.silence))
}

// A table is what a long run prints, in Markdown.
type table []result

func (t table) print(w io.Writer) {
	fmt.Fprintln(w, "\n| fault | lasted | requests | answered 2xx | repeats | lost | doubled | recovery of events, leads, motions | events as fast as before | longest silence |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|")
	slices.SortStableFunc(t, func(a, b result) int { return position(a.fault) - position(b.fault) })
	for _, r := range t {
		fmt.Fprintln(w, r)
	}
}

func position(name string) int {
	return slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
}
