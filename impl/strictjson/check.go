// Package strictjson refuses what JSON readers disagree about: duplicate
// names, invalid UTF-8, lone surrogates, trailing data; and what a reader or a
// database could choke on: deep nesting, huge numbers, U+0000 in text.
package strictjson

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth    = 64  // objects and arrays inside each other
	maxExponent = 400 // either way; doubles end at 308 and -324
)

// An Error says what is wrong and, where it is inside one, with which field.
type Error struct {
	Path    string // such as company.domain or contactIds[3]; empty for the body as a whole
	Message string // for people; never quotes the body
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Check reads a body of one JSON value and gives the first thing that is wrong
// with it, or nil. Of the body it keeps nothing but the names of the objects
// that it is inside of.
func Check(body []byte) *Error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return explain(err, d)
		}
		switch token.Kind() {
		case '{', '[':
			if d.StackDepth() > maxDepth {
				return &Error{path(d, first(d.StackPointer())), "the value is nested too deeply"}
			}
		case '"':
			if strings.IndexByte(token.String(), 0) >= 0 {
				return &Error{path(d, d.StackPointer()), "want text without U+0000"}
			}
		case '0':
			if !IsFinite(token.String()) {
				return &Error{path(d, d.StackPointer()), "want a number that a double-precision float can hold"}
			}
		}
		if d.StackDepth() == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return &Error{Message: "something follows the JSON value; want one value alone"}
	}
	return nil
}

// IsFinite tells whether a JSON number is one that a double-precision float
// can hold, rounded. A number written with an exponent beyond 400 either way is
// none, even if it is as good as zero: exact arithmetic would expand it into
// megabytes of digits.
func IsFinite(number string) bool {
	if e := strings.IndexAny(number, "eE"); e >= 0 {
		if n, err := strconv.Atoi(number[e+1:]); err != nil || n > maxExponent || n < -maxExponent {
			return false
		}
	} else if len(number) < 300 {
		return true
	}
	_, err := strconv.ParseFloat(number, 64)
	return err == nil
}

// explain says what a decoder stopped at. The text of its errors is all there
// is to tell some of them apart.
func explain(err error, d *jsontext.Decoder) *Error {
	if errors.Is(err, io.EOF) {
		return &Error{Message: "want a JSON value, not an empty body"}
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return &Error{Message: "the body is not valid JSON"}
	}
	at, what := path(d, syntax.JSONPointer), syntax.Err.Error()
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{at, "the field stands twice; send it once"}
	case strings.Contains(what, "UTF-8"):
		return &Error{at, "the body is not valid UTF-8"}
	case strings.Contains(what, "surrogate"):
		return &Error{at, "a string holds half of a surrogate pair"}
	case strings.Contains(what, "escape"):
		return &Error{at, "a string holds a broken escape"}
	}
	return &Error{Message: "the body is not valid JSON"}
}

// path writes a JSON pointer into the value that d is inside of as clients see
// it: company.domain, contactIds[3].
func path(d *jsontext.Decoder, pointer jsontext.Pointer) string {
	var b strings.Builder
	level := 0
	for step := range pointer.Tokens() {
		if level++; level <= d.StackDepth() {
			if kind, _ := d.StackIndex(level); kind == '[' {
				b.WriteString("[" + step + "]")
				continue
			}
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(Clip(step))
	}
	return b.String()
}

// first gives the first step of a pointer.
func first(p jsontext.Pointer) jsontext.Pointer {
	if next := strings.IndexByte(string(p[1:]), '/'); next >= 0 {
		return p[:1+next]
	}
	return p
}

// Clip keeps a caller's own field name from filling an answer.
func Clip(name string) string {
	const most = 64 // characters
	n := 0
	for i := range name {
		if n++; n > most {
			return name[:i] + "…"
		}
	}
	return name
}
