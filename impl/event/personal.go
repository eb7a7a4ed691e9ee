package event

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// personalProperty tells the property names that stand for personal data.
func personalProperty(key string) bool {
	switch key {
	case "email", "e_mail", "phone", "mobile",
		"name", "first_name", "last_name", "full_name",
		"address", "street", "zip", "postcode",
		"ssn", "password", "secret", "token", "api_key", "card", "iban",
		"dob", "birth_date", "ip", "ip_address":
		return true
	}
	return false
}

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
		if digits, ok := wholeDigits(p.Text); ok && p.Text[0] != '-' && isCard(digits) {
			return "a card number"
		}
	}
	return ""
}

// holdsEmail finds an e-mail address anywhere in a text: an at sign, which may
// be full-width or percent-encoded, with the end of a local part before it and
// a host name that has a top-level domain behind it. Sign-in parts of URLs and
// SSH remotes look the same and count; mentions (@ada.lovelace, also in a path),
// versions (react@18.2.0), sizes of images (logo@2x.png) and hosts without a
// dot or of digits only do not.
func holdsEmail(s string) bool {
	for i := range len(s) {
		size := 0
		switch s[i] {
		case '@':
			size = 1
		case '%':
			if strings.HasPrefix(s[i:], "%40") {
				size = 3
			}
		case "＠"[0]:
			if strings.HasPrefix(s[i:], "＠") || strings.HasPrefix(s[i:], "﹫") {
				size = len("＠")
			}
		}
		if size > 0 && endsLocalPart(s[:i]) && beginsMailHost(s[i+size:]) {
			return true
		}
	}
	return false
}

// endsLocalPart tells whether a text ends like the part of an address before
// its at sign: in a letter or digit, but for some of the signs that an address
// can end in (RFC 5322). Those that set a mention off in a path or a query are
// not among these.
func endsLocalPart(s string) bool {
	const longest = 64
	for range longest {
		r, size := lastRune(s)
		if isWord(r) || r == '_' {
			return true
		}
		if size == 0 || !strings.ContainsRune(".+-'!$%*^`{|}~\"", r) {
			return false
		}
		s = s[:len(s)-size]
	}
	return false
}

// lastRune gives the last character of a text, which may be percent-encoded; of
// a sequence beyond ASCII it says no more than that it is some letter.
func lastRune(s string) (r rune, size int) {
	if n := len(s); n >= 3 && s[n-3] == '%' && isHex(s[n-2]) && isHex(s[n-1]) {
		if c := hexValue(s[n-2])<<4 | hexValue(s[n-1]); c < utf8.RuneSelf {
			return rune(c), 3
		}
		return 'x', 3
	}
	return utf8.DecodeLastRuneInString(s)
}

// beginsMailHost tells whether a text begins with a host name that mail could
// go to: labels of letters, digits and hyphens with dots in between, one behind
// a dot being of two letters or more, or beginning with these and a hyphen, as
// in Punycode or where the text goes on with a dash.
func beginsMailHost(s string) bool {
	before := ""
	for n := 0; ; n++ {
		letters, count, end := 0, 0, 0 // bytes and number of the letters a label begins with; its end
		for _, r := range s {
			size := utf8.RuneLen(r)
			if unicode.IsLetter(r) || unicode.IsMark(r) {
				if letters == end {
					letters += size
					count++
				}
			} else if r != '-' && !unicode.IsDigit(r) {
				break
			}
			end += size
		}
		label := s[:end]
		if n > 0 && count >= 2 && (letters == end || s[letters] == '-') {
			return n > 1 || !isScale(before) || !isImage(label)
		}
		if end == 0 || end == len(s) || s[end] != '.' {
			return false
		}
		before, s = label, s[end+1:]
	}
}

// isScale tells the 2x of logo@2x.png.
func isScale(label string) bool {
	return len(label) == 2 && '1' <= label[0] && label[0] <= '9' && label[1] == 'x'
}

func isImage(extension string) bool {
	switch strings.ToLower(extension) {
	case "png", "jpg", "jpeg", "gif", "webp", "svg", "avif", "heic", "bmp", "ico", "tiff":
		return true
	}
	return false
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

const longestCard = 19 // digits

// holdsCard finds a card number anywhere in a text, as one run of digits or
// several with spaces and dashes in between. Runs count whole: a part of a
// longer run is no card number, nor are digits that a letter touches, that
// follow a plus sign as in telephone numbers, or that are a fraction, a part of
// an IBAN or of a UUID.
func holdsCard(s string) bool {
	for i := range len(s) {
		if isDigit(s[i]) && (i+1 == len(s) || !isDigit(s[i+1])) && cardEnds(s, i+1) {
			return true
		}
	}
	return false
}

// cardEnds tells whether a card number ends before end, where a run of digits
// does. It reads backwards, at most the digits of one card number.
func cardEnds(s string, end int) bool {
	if next, _ := utf8.DecodeRuneInString(s[end:]); unicode.IsLetter(next) {
		return false
	}
	var number [longestCard]byte // filled from its end
	at, sum := longestCard, 0
	for i := end; i > 0; {
		c := s[i-1]
		if !isDigit(c) {
			size := 1
			if c != ' ' && c != '-' {
				var r rune
				if r, size = utf8.DecodeLastRuneInString(s[:i]); !unicode.In(r, unicode.Zs, unicode.Pd) {
					return false
				}
			}
			i -= size
			continue
		}
		if at == 0 {
			return false
		}
		sum += luhn(c, longestCard-at)
		i--
		at--
		number[at] = c
		if sum%10 == 0 && (i == 0 || !isDigit(s[i-1])) && isIssued(string(number[at:])) &&
			!isContinued(s[:i]) && !inUUID(s, i) && !inIBAN(s, i, end) {
			return true
		}
	}
	return false
}

// isContinued tells whether digits that follow a text belong to what it ends in.
func isContinued(s string) bool {
	last, size := utf8.DecodeLastRuneInString(s)
	s = s[:len(s)-size]
	return unicode.IsLetter(last) || last == '+' || last == '.' && s != "" && isDigit(s[len(s)-1])
}

// inUUID tells whether digits are the first groups of a UUID, or the last.
func inUUID(s string, from int) bool {
	return isUUID(s[from:]) || from >= 19 && isUUID(s[from-19:])
}

func isUUID(s string) bool {
	if len(s) < 36 {
		return false
	}
	for i := range 36 {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// inIBAN tells whether the digits between from and to are part of a valid
// IBAN, written in groups; one without spaces has letters touching its digits.
func inIBAN(s string, from, to int) bool {
	const longest = 34 + 8 // with its spaces
	for start := max(0, to-longest); start+4 <= from; start++ {
		if start > 0 && isWord(rune(s[start-1])) || !isUpper(s[start]) || !isUpper(s[start+1]) ||
			!isDigit(s[start+2]) || !isDigit(s[start+3]) {
			continue
		}
		country := 100*ibanValue(s[start]) + ibanValue(s[start+1])
		check := int(s[start+2]-'0')*10 + int(s[start+3]-'0')
		account := 0 // all arithmetic is modulo 97 (ISO 13616)
		for i := start + 4; i < len(s) && i < start+longest; i++ {
			switch c := s[i]; {
			case isDigit(c):
				account = (account*10 + int(c-'0')) % 97
			case isUpper(c):
				account = (account*100 + ibanValue(c)) % 97
			case c != ' ':
				i = len(s)
				continue
			}
			if i+1 >= to && (account*1000000+country*100+check)%97 == 1 {
				return true
			}
		}
	}
	return false
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func ibanValue(c byte) int { return int(c-'A') + 10 }

// An issuer is a range of prefixes of card numbers (ISO/IEC 7812 issuer
// identification numbers) and the lengths that cards of it come in.
type issuer struct {
	from, to string
	lengths  uint32 // a bit each
}

const (
	visaLengths    = 1<<13 | 1<<16 | 1<<19
	maestroLengths = 1<<20 - 1<<13 // 13 to 19
	dinersLengths  = 1<<20 - 1<<14 // 14 to 19
	newerLengths   = 1<<20 - 1<<16 // 16 to 19
)

var issuers = []issuer{
	{"4", "4", visaLengths},
	{"51", "55", 1 << 16},          // Mastercard
	{"2221", "2720", 1 << 16},      // Mastercard
	{"34", "34", 1 << 15},          // American Express
	{"37", "37", 1 << 15},          // American Express
	{"6011", "6011", newerLengths}, // Discover
	{"644", "649", newerLengths},   // Discover
	{"65", "65", newerLengths},     // Discover, RuPay
	{"300", "305", dinersLengths},
	{"3095", "3095", dinersLengths},
	{"36", "36", dinersLengths},
	{"38", "39", dinersLengths},
	{"3528", "3589", newerLengths}, // JCB
	{"62", "62", newerLengths},     // UnionPay
	{"50", "50", maestroLengths},
	{"56", "58", maestroLengths},
	{"6304", "6304", maestroLengths},
	{"6759", "6759", maestroLengths},
	{"6761", "6763", maestroLengths},
	{"2200", "2204", newerLengths}, // Mir
	{"60", "60", 1 << 16},          // RuPay
	{"81", "82", 1 << 16},          // RuPay
	{"9792", "9792", 1 << 16},      // Troy
}

// isCard tells whether digits are a card number: a known issuer's prefix and
// length, and a valid check digit.
func isCard(digits string) bool {
	sum := 0
	for i := range len(digits) {
		sum += luhn(digits[i], len(digits)-1-i)
	}
	return sum%10 == 0 && isIssued(digits)
}

// luhn gives what a digit adds to the check sum, which has to be a multiple of
// ten, by its place from the end.
func luhn(digit byte, place int) int {
	d := int(digit - '0')
	if place%2 == 0 {
		return d
	}
	return d*2/10 + d*2%10
}

// isIssued tells whether a known issuer's cards have the prefix and the length.
func isIssued(digits string) bool {
	if len(digits) < 13 || len(digits) > longestCard {
		return false
	}
	for i := range issuers {
		if issuers[i].lengths>>len(digits)&1 == 0 {
			continue
		}
		prefix := digits[:len(issuers[i].from)]
		if issuers[i].from <= prefix && prefix <= issuers[i].to {
			return true
		}
	}
	return false
}
