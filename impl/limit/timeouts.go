package limit

import "time"

// How long anything about a request may take. Balancers give up after 60 seconds
// as a rule, and whoever is answered later is answered in vain: what is not done
// in time ends with an answer that says so.
const (
	// RequestHeaders is how long a client may take to send the headers and as much
	// of the body as comes with them, from the first byte of the request.
	RequestHeaders = 10 * time.Second
	// RequestBody is how long the whole request may take to arrive. A client gets
	// past RequestHeaders only while it sends BodyBytesPerSecond.
	RequestBody        = 30 * time.Second
	BodyBytesPerSecond = 8 << 10
	// Handling is how long an operation may work once the request is there. The
	// database gets to know: a statement that is under way then is cancelled.
	Handling = 15 * time.Second
	// Answer is the time from the headers of a request to the last byte of its
	// answer that the client takes.
	Answer = 60 * time.Second
	// IdleConnection is how long a connection is kept without a request.
	IdleConnection = 2 * time.Minute
	// Ready is how long GET /readyz waits for the database.
	Ready = 2 * time.Second
)

// Webhooks.
const (
	WebhookConnect   = 5 * time.Second  // name and connection
	WebhookHandshake = 5 * time.Second  // TLS
	WebhookAttempt   = 15 * time.Second // from the connection to the end of the answer
)

// How a server ends on SIGTERM.
const (
	StopAnswers = 7 * time.Second         // for requests in flight
	StopRest    = 1500 * time.Millisecond // more, for what then is left
)
