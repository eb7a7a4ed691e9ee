// Package fault holds the error catalogue and the one error type that a client
// gets to see.
//
// A call site states the code and adds facts only: which field, what was
// wrong, what would be right. The cause of a server-side failure travels along
// for the log and never reaches the client. impl/api renders faults, in both
// shapes of the interface.
package fault

import (
	"fmt"
	"time"
)

// A Fault is a catalogue code met by one request.
type Fault struct {
	Code    *Code
	Message string // for people; what was wrong and what would be right
	Param   string // path of the field at fault; empty where no field is

	// Extras of single codes, rendered only when set.
	Scopes     []string // forbidden_scope: every missing scope
	RetryAfter int      // whole seconds, at least 1, on every code whose Retry is After
	Scope      string   // rate_limited of preview credentials: "credential" or "organization"
	LeadID     int64    // duplicate_request: the lead that the key created

	cause error
}

// Error is for the log: code and cause, but neither message nor param, which
// may quote the request and so hold personal data.
func (f *Fault) Error() string {
	if f.cause != nil {
		return f.Code.Name + ": " + f.cause.Error()
	}
	return f.Code.Name
}

// Unwrap gives the internal cause, if there is one.
func (f *Fault) Unwrap() error { return f.cause }

// At makes a fault of the field named by param. The message says what was
// wrong with it and what would be right.
func (c *Code) At(param, format string, args ...any) *Fault {
	return &Fault{Code: c, Param: param, Message: sprintf(format, args)}
}

// Says makes a fault that concerns no single field.
func (c *Code) Says(format string, args ...any) *Fault {
	return &Fault{Code: c, Message: sprintf(format, args)}
}

// New makes a fault whose message is the code's own meaning.
func (c *Code) New() *Fault { return &Fault{Code: c, Message: c.Meaning} }

// Because makes a fault with the code's own meaning; cause is logged only.
func (c *Code) Because(cause error) *Fault {
	return &Fault{Code: c, Message: c.Meaning, cause: cause}
}

// In makes a fault to be met again no sooner than after wait, which is rounded
// up to whole seconds, at least 1.
func (c *Code) In(wait time.Duration) *Fault {
	return &Fault{Code: c, Message: c.Meaning, RetryAfter: max(1, int((wait+time.Second-1)/time.Second))}
}

// sprintf spares messages without arguments the formatting, and so a literal
// per cent sign in them.
func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
