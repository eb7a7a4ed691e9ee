// Package impl is Inlet's server: what stands between the document in openapi/
// and the database in db/. It mounts every route (server.go) and runs every
// background job (jobs.go); the packages below it hold the rest.
//
// impl/docs/pages/architecture.md shows the layers, what holds them together, and
// the way of a batch of events and of a motion start through them; the server
// publishes it at /docs/architecture. design_test.go holds imports to it.
package impl
