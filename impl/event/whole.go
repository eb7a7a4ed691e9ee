package event

import (
	"strconv"
	"strings"
)

// whole reads a JSON number that is a whole number, however it is written
// (12, 12.0, 1.2e1), exactly. Numbers beyond 64 bits are none.
func whole(literal string) (int64, bool) {
	digits, ok := wholeDigits(literal)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return 0, false
	}
	if strings.HasPrefix(literal, "-") {
		n = -n
	}
	return n, true
}

// wholeDigits gives the digits of a whole number without its sign. Numbers of
// more than 40 digits are none.
func wholeDigits(literal string) (string, bool) {
	const most = 40
	digits, exponent := strings.TrimPrefix(literal, "-"), 0
	if e := strings.IndexAny(digits, "eE"); e >= 0 {
		const huge = 1 << 30 // more than any literal has digits: only zero is whole then
		n, err := strconv.Atoi(digits[e+1:])
		if err != nil || n > huge || n < -huge {
			return "0", strings.Trim(digits[:e], "0.") == ""
		}
		digits, exponent = digits[:e], n
	}
	if point := strings.IndexByte(digits, '.'); point >= 0 {
		fraction := strings.TrimRight(digits[point+1:], "0")
		exponent -= len(fraction)
		digits = digits[:point] + fraction
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0", true
	}
	if exponent >= 0 {
		if len(digits) > most || exponent > most-len(digits) {
			return "", false
		}
		return digits + strings.Repeat("0", exponent), true
	}
	trimmed := strings.TrimRight(digits, "0")
	if len(digits)-len(trimmed) < -exponent || len(digits)+exponent > most {
		return "", false
	}
	return digits[:len(digits)+exponent], true
}
