package contract

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/servertest"
)

// A seeded workspace of one test.
type seeded struct{ servertest.Workspace }

// standard is a workspace with what the tests of requests refer to.
const standard = `
workspaces:
  - slug: SLUG
    api_enabled: true
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
      - {ref: max, email: max@SLUG.example, name: Max, role: member}
      - {ref: leo, email: leo@SLUG.example, name: Leo, role: admin, left: true}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, motions.start, events.send], requests_per_minute: 100000}
      - {ref: none, owner: ada, scopes: [companies.view], requests_per_minute: 100000}
      - {ref: two, owner: ada, scopes: [events.send], requests_per_minute: 2}
      - {ref: expired, owner: ada, scopes: [events.send], expires_at: 2020-01-01T00:00:00Z}
      - {ref: revoked, owner: ada, scopes: [events.send], revoked: true}
      - {ref: ownerless, scopes: [leads.manage, events.send]}
      - {ref: member, owner: max, scopes: [leads.manage, events.send]}
      - {ref: left, owner: leo, scopes: [leads.manage, events.send]}
      - {ref: service, kind: service, owner: ada, scopes: [leads.manage, events.send], requests_per_minute: 3}
      - {ref: service_left, kind: service, owner: leo, scopes: [leads.manage, events.send]}
      - {ref: service_member, kind: service, owner: max, scopes: [leads.manage, motions.start]}
    companies:
      - {ref: globex, name: Globex, domain: globex.com, other_domains: [globex.de, bücher.example]}
      - {ref: initech, name: Initech, domain: initech.co.uk}
    contacts:
      - {ref: hank, email: Hank@Globex.com, first_name: Hank, company: globex}
      - {ref: milton, email: milton@gmail.com, company: initech}
      - {ref: alone, email: alone@example.org}
    motions:
      - {ref: outbound, name: Outbound, entry: {api_call: true}}
    event_types:
      - {name: legacy_event, status: blocked, properties: {plan: string}}
      - {name: old_event, status: archived}
    sites:
      - {ref: www, origins: ["https://www.SLUG.example"]}
    visitors:
      - {id: v-hank, site: www, identified_as: hank}
      - {id: v-nobody, site: www}
`

// workspace makes a workspace of the test's own.
func workspace(t testing.TB) seeded { return seed(t, standard) }

func seed(t testing.TB, file string) seeded {
	t.Helper()
	return seedOn(t, dbtest.URL(t), "t"+strings.ToLower(rand.Text()[:12]), file)
}

// seedOn loads a workspace of this slug into a database, anew where it is there
// already.
func seedOn(t testing.TB, address, slug, file string) seeded {
	t.Helper()
	return seeded{servertest.Seed(t, address, slug, file)}
}
