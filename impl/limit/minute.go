package limit

import (
	"sync"
	"time"
)

// Minute counts requests by name within the calendar minute (UTC), for one
// process: a brake on what anybody may call, not an account.
type Minute struct {
	mu     sync.Mutex
	minute int64
	counts map[string]int
}

// mostNames bounds the memory that names take; past it counting starts anew.
const mostNames = 100_000

// Take counts a request of a name. It is false, with the time to the end of the
// minute, once as many as are allowed were counted.
func (m *Minute) Take(name string, allowed int, now time.Time) (left time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	minute := now.Unix() / 60
	if minute != m.minute || len(m.counts) >= mostNames {
		m.minute, m.counts = minute, make(map[string]int)
	}
	if m.counts[name] >= allowed {
		return time.Unix((minute+1)*60, 0).Sub(now), false
	}
	m.counts[name]++
	return 0, true
}
