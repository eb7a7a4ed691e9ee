package event

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// personalNames are the property names that stand for personal data.
var personalNames = map[string]bool{
	"email": true, "e_mail": true, "phone": true, "mobile": true, "name": true, "first_name": true,
	"last_name": true, "full_name": true, "address": true, "street": true, "zip": true, "postcode": true,
	"ssn": true, "password": true, "secret": true, "token": true, "api_key": true, "card": true, "iban": true,
	"dob": true, "birth_date": true, "ip": true, "ip_address": true,
}

func personalProperty(key string) bool { return personalNames[key] }

// personalValue says what personal data a value looks like, or nothing.
func personalValue(p *Property) string {
	switch p.Type {
	case TypeString:
		if holdsEmail(p.Text) {
			return "an e-mail address"
		}
		if holdsCard(p.Text) {
			return "a card number"
		}
	case TypeNumber:
		if digits, ok := wholeDigits(p.Text); ok && isCard(digits) {
			return "a card number"
		}
	}
	return ""
}

// holdsEmail finds an e-mail address anywhere in a text: something before an
// at sign, which may be full-width or percent-encoded, and behind it a host
// name whose last label is of two letters or more.
func holdsEmail(s string) bool {
	for i := 0; i < len(s); i++ {
		size := 0
		switch {
		case s[i] == '@':
			size = 1
		case strings.HasPrefix(s[i:], "%40"), strings.HasPrefix(s[i:], "＠"):
			size = 3
		}
		if size == 0 {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		if i > 0 && localRune(before) && mailHost(s[i+size:]) {
			return true
		}
	}
	return false
}

func localRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("._%+-'/!#$&*=?^`{|}~\"", r)
}

// mailHost tells whether a text begins with a host name that mail could go to:
// labels with dots in between, one behind a dot being of two letters or more,
// or in Punycode.
func mailHost(s string) bool {
	for label := 0; ; label++ {
		end, letters := 0, 0
		for _, r := range s {
			if unicode.IsLetter(r) || unicode.IsMark(r) {
				letters += utf8.RuneLen(r)
			} else if !unicode.IsDigit(r) && r != '-' {
				break
			}
			end += utf8.RuneLen(r)
		}
		first, _ := utf8.DecodeRuneInString(s)
		if label > 0 && letters == end && end > utf8.RuneLen(first) || strings.HasPrefix(s[:end], "xn--") {
			return true
		}
		if end == 0 || end == len(s) || s[end] != '.' {
			return false
		}
		s = s[end+1:]
	}
}

// holdsCard finds a card number in a text: groups of digits with single spaces
// or dashes in between.
func holdsCard(s string) bool {
	const most = 19
	var (
		digits [most]byte
		n      int    // digits of the groups in hand
		starts []int  // where each of those groups starts in digits
		prev   = ' '  // what stands before the position
		broken = true // a letter touches the group being read, or it is too long
	)
	check := func() bool {
		if broken {
			return false
		}
		for _, from := range starts {
			if isCard(string(digits[from:n])) {
				return true
			}
		}
		return false
	}
	for i, r := range s + "." {
		if '0' <= r && r <= '9' {
			if prev < '0' || prev > '9' {
				joined := (prev == ' ' || prev == '-') && i >= 2 && s[i-2] >= '0' && s[i-2] <= '9' && !broken
				if !joined {
					n, starts = 0, starts[:0]
				}
				broken = unicode.IsLetter(prev)
				starts = append(starts, n)
			}
			for n == most && len(starts) > 1 {
				// The oldest group cannot be part of a number that ends here.
				drop := starts[1]
				copy(digits[:], digits[drop:n])
				n -= drop
				starts = starts[1:]
				for k := range starts {
					starts[k] -= drop
				}
			}
			if n == most {
				broken = true
			} else {
				digits[n] = byte(r)
				n++
			}
		} else if '0' <= prev && prev <= '9' {
			if unicode.IsLetter(r) {
				broken = true
			}
			if check() {
				return true
			}
		}
		prev = r
	}
	return false
}

// An issuer is a range of prefixes of card numbers and the lengths they come
// in (ISO/IEC 7812 issuer identification numbers).
type issuer struct {
	from, to, digits  int
	shortest, longest int
}

var issuers = []issuer{
	{4, 4, 1, 13, 19},       // Visa, of 13, 16 or 19
	{51, 55, 2, 16, 16},     // Mastercard
	{2221, 2720, 4, 16, 16}, // Mastercard
	{34, 34, 2, 15, 15},     // American Express
	{37, 37, 2, 15, 15},     // American Express
	{6011, 6011, 4, 16, 19}, // Discover
	{644, 649, 3, 16, 19},   // Discover
	{65, 65, 2, 16, 19},     // Discover, RuPay
	{300, 305, 3, 14, 19},   // Diners Club
	{3095, 3095, 4, 14, 19}, // Diners Club
	{36, 36, 2, 14, 19},     // Diners Club
	{38, 39, 2, 14, 19},     // Diners Club
	{3528, 3589, 4, 16, 19}, // JCB
	{62, 62, 2, 16, 19},     // UnionPay
	{2200, 2204, 4, 16, 19}, // Mir
	{60, 60, 2, 16, 16},     // RuPay
	{50, 50, 2, 13, 19},     // Maestro
	{56, 58, 2, 13, 19},     // Maestro
	{6304, 6304, 4, 13, 19}, // Maestro
	{6759, 6763, 4, 13, 19}, // Maestro
	{9792, 9792, 4, 16, 16}, // Troy
}

// isCard tells whether digits are a card number: a known issuer's prefix and
// length, and a valid check digit (Luhn).
func isCard(digits string) bool {
	n := len(digits)
	if n < 13 || n > 19 {
		return false
	}
	known := false
	for _, i := range issuers {
		prefix := 0
		for _, c := range []byte(digits[:i.digits]) {
			prefix = prefix*10 + int(c-'0')
		}
		if i.from <= prefix && prefix <= i.to && i.shortest <= n && n <= i.longest {
			known = true
			break
		}
	}
	if !known {
		return false
	}
	sum := 0
	for i := range n {
		d := int(digits[n-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
