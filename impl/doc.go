// Package impl is Inlet's server: what stands between the document in openapi/
// and the database in db/.
//
//	cmd/inlet
//	   │  settings, commands
//	impl           every mount (server.go), every background job (jobs.go)
//	   │
//	transports     api: HTTP and JSON as the document says; embed: what stands in
//	   │           other people's pages; docs: what is published; they decide nothing
//	   │
//	domain         the interface's nouns: event, lead, motion, form, visitor, contact,
//	   │           company, workspace; seed loads a file of them; they decide and
//	   │           speak no protocol
//	foundations    fault (the error catalogue), auth, limit, page, strictjson, work
//	   │
//	db             SQL, and nothing but: it remembers
//
// Imports go down this picture and never up; a layer may be skipped. Only api
// imports gen, only db imports sqlx and lib/pq, and transports do not import
// each other.
//
// A request of an operation passes the edge (request id, route, method, panics,
// log and metrics), the guard (credential, rate, scopes, headers and query,
// size and type and content of the body), the generated strict server and its
// handler. Handlers return errors; refuse.go renders them, all in one place.
//
// An event goes on from its handler as an offer into the queue of event.Recorder.
// A lane takes what waits, in turn from every workspace, and records it with one
// statement, record_events, while its requests wait. Behind that, jobs of all
// processes share the work of event.Process: what was recorded is counted and
// becomes facts, once each.
//
// A lead, a form and a signed token all tell of a person, and contact.Reconcile
// ties that person to a contact and a company: the one place where either is
// added. What starts a motion, an API call or an event, a lead or a signal, queues
// an entry; jobs decide it and take the steps that are due (package motion).
//
// Everything is said once: routes, scopes, caps and codes in the document, from
// which gen/api carries a table; statuses and meanings in fault/catalog.go;
// numbers in limit/limits.go.
package impl
