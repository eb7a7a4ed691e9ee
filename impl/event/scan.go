package event

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep a value that no field takes may be nested; what an
// event needs is two objects.
const maxDepth = 64

// A scanner reads JSON (RFC 8259) strictly: valid UTF-8, no lone surrogates.
// It allocates only for strings with escapes. After the first broken piece it
// stands still at the end, so that every loop ends.
type scanner struct {
	text    string
	pos     int
	broken  string // what is wrong with the JSON itself; empty while nothing is
	inField bool   // the breakage is one of the field being read, not of the syntax
	spaced  bool   // white space was passed over since this was last reset
}

// What can be wrong inside a value, with the syntax still whole.
const (
	notUTF8     = "the body is not valid UTF-8"
	halfPair    = "a string holds half of a surrogate pair"
	control     = "a string holds a control character; write it as an escape"
	nestedDeep  = "the value is nested too deeply"
	notJSON     = "the body is not valid JSON"
	notJSONMore = "something follows the JSON value; want one value alone"
)

func (s *scanner) fail(what string) {
	if s.broken == "" {
		s.broken = what
		s.inField = what != notJSON && what != notJSONMore
	}
	s.pos = len(s.text)
}

// peek passes over white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		if c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
		s.pos++
		s.spaced = true
	}
	return 0
}

// take passes over white space and one certain byte.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		s.fail(notJSON)
		return false
	}
	s.pos++
	return true
}

// end makes sure that nothing follows.
func (s *scanner) end() {
	if s.peek(); s.pos < len(s.text) {
		s.fail(notJSONMore)
	}
}

// members reads the object that begins here and gives every key, each time
// standing before its value, which the loop must read.
func (s *scanner) members(yield func(key string) bool) {
	s.pos++ // the brace
	if s.peek() == '}' {
		s.pos++
		return
	}
	for {
		if s.peek() != '"' {
			s.fail(notJSON)
			return
		}
		key, _ := s.str()
		if !s.take(':') || !yield(key) || !s.another('}') {
			return
		}
	}
}

// elements reads the array that begins here, each time standing before an
// element, which the loop must read.
func (s *scanner) elements(yield func() bool) {
	s.pos++ // the bracket
	if s.peek() == ']' {
		s.pos++
		return
	}
	for yield() && s.another(']') {
	}
}

// another reads the comma before another member or element, or the closer.
func (s *scanner) another(closer byte) bool {
	if s.peek() == ',' {
		s.pos++
		return true
	}
	s.take(closer)
	return false
}

// str reads the string that begins here. It tells whether that is free of NUL,
// which PostgreSQL's text cannot hold.
func (s *scanner) str() (value string, ok bool) {
	start := s.pos + 1 // behind the quote
	for i := start; i < len(s.text); {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			return s.text[start:i], true
		case c == '\\':
			s.pos = i
			return s.escaped(start)
		case c < ' ':
			s.fail(control)
			return "", false
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRuneInString(s.text[i:])
			if r == utf8.RuneError && size == 1 {
				s.fail(notUTF8)
				return "", false
			}
			i += size
		}
	}
	s.fail(notJSON)
	return "", false
}

// escaped reads on from the first escape of a string that began at start.
func (s *scanner) escaped(start int) (string, bool) {
	var b strings.Builder
	b.WriteString(s.text[start:s.pos])
	ok := true
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			return b.String(), ok
		case c == '\\':
			r := s.escape()
			ok = ok && r != 0
			b.WriteRune(r)
		case c < ' ':
			s.fail(control)
		case c < utf8.RuneSelf:
			b.WriteByte(c)
		default:
			r, size := utf8.DecodeRuneInString(s.text[s.pos-1:])
			if r == utf8.RuneError && size == 1 {
				s.fail(notUTF8)
				break
			}
			b.WriteRune(r)
			s.pos += size - 1
		}
	}
	s.fail(notJSON)
	return "", false
}

// escape reads an escape from behind its backslash.
func (s *scanner) escape() rune {
	if s.pos == len(s.text) {
		return 0
	}
	c := s.text[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c)
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		r := s.hex4()
		if !utf16.IsSurrogate(r) {
			return r
		}
		if strings.HasPrefix(s.text[s.pos:], `\u`) {
			s.pos += 2
			if r = utf16.DecodeRune(r, s.hex4()); r != utf8.RuneError {
				return r
			}
		}
		s.fail(halfPair)
		return 0
	}
	s.fail(notJSON)
	return 0
}

func (s *scanner) hex4() rune {
	if len(s.text)-s.pos < 4 {
		s.fail(notJSON)
		return 0
	}
	var r rune
	for _, c := range []byte(s.text[s.pos : s.pos+4]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			s.fail(notJSON)
			return 0
		}
	}
	s.pos += 4
	return r
}

// isNumber tells the first byte of a number.
func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// number reads the literal of the number that begins here.
func (s *scanner) number() string {
	i := s.pos
	digits := func() bool {
		from := i
		for i < len(s.text) && '0' <= s.text[i] && s.text[i] <= '9' {
			i++
		}
		return i > from
	}
	at := func(c byte) bool { return i < len(s.text) && s.text[i] == c }

	if at('-') {
		i++
	}
	ok := true
	if at('0') {
		i++
	} else {
		ok = digits()
	}
	if ok && at('.') {
		i++
		ok = digits()
	}
	if ok && (at('e') || at('E')) {
		i++
		if at('+') || at('-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		s.fail(notJSON)
		return ""
	}
	literal := s.text[s.pos:i]
	s.pos = i
	return literal
}

// word reads true, false or null.
func (s *scanner) word(word string) {
	if !strings.HasPrefix(s.text[s.pos:], word) {
		s.fail(notJSON)
		return
	}
	s.pos += len(word)
}

// skip reads a value that no field takes.
func (s *scanner) skip() { s.skipWithin(maxDepth) }

func (s *scanner) skipWithin(depth int) {
	c := s.peek()
	if depth == 0 && (c == '{' || c == '[') {
		s.fail(nestedDeep)
		return
	}
	switch {
	case c == '{':
		for range s.members {
			s.skipWithin(depth - 1)
		}
	case c == '[':
		for range s.elements {
			s.skipWithin(depth - 1)
		}
	case c == '"':
		s.str()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	case isNumber(c):
		s.number()
	default:
		s.fail(notJSON)
	}
}
