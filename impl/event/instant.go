package event

import "time"

// instant reads an RFC 3339 time with its zone, truncated to milliseconds. It
// takes what the pattern in the document takes: Go's own parser refuses a
// lower-case t or z and takes an offset of 24 hours.
func instant(s string) (time.Time, bool) {
	number := func(from, to int) int {
		if to > len(s) {
			return -1
		}
		n := 0
		for _, c := range []byte(s[from:to]) {
			if c < '0' || c > '9' {
				return -1
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	const shortest = len("2026-01-31T08:30:00Z")
	if len(s) < shortest || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, false
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second := number(11, 13), number(14, 16), number(17, 19)
	if year < 0 || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 ||
		minute < 0 || minute > 59 || second < 0 || second > 59 {
		return time.Time{}, false
	}
	rest, ms := s[19:], 0
	if rest[0] == '.' {
		n := 1
		for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
			if n <= 3 {
				ms = ms*10 + int(rest[n]-'0')
			}
			n++
		}
		if n == 1 || n > 10 {
			return time.Time{}, false
		}
		for i := n; i <= 3; i++ {
			ms *= 10
		}
		rest = rest[n:]
	}
	offset := 0
	switch {
	case rest == "Z" || rest == "z":
	case len(rest) == len("+00:00") && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':':
		from := len(s) - 5
		hours, minutes := number(from, from+2), number(from+3, from+5)
		if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
			return time.Time{}, false
		}
		offset = (hours*60 + minutes) * 60
		if rest[0] == '-' {
			offset = -offset
		}
	default:
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, ms*1e6, time.UTC)
	if t.Day() != day {
		return time.Time{}, false
	}
	if t = t.Add(-time.Duration(offset) * time.Second); t.IsZero() {
		t = t.Add(time.Millisecond) // the first instant of the year 1 was given, and is no less too old for that
	}
	return t, true
}
