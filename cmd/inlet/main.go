// Command inlet is the server and everything that the people who run it do from
// the command line.
package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

var commands struct {
	Serve      serveCmd      `cmd:"" help:"Serve the API until SIGTERM or Ctrl-C."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database's schema up to date; serve does it by itself."`
	Check      checkCmd      `cmd:"" help:"Check that what is stored belongs together, such as after a restore; it reads every event."`
	Restored   restoredCmd   `cmd:"" help:"Leave out the ids that may have been given out after the moment to which the database was brought back."`
	Distribute distributeCmd `cmd:"" help:"Spread the tables over the nodes of a Citus cluster, by workspace."`
	Seed       seedCmd       `cmd:"" help:"Load workspaces and what is in them from a YAML file; loading it again changes nothing."`
	Workspace  workspaceCmd  `cmd:"" help:"Create, list, show and change workspaces."`
	EventType  eventTypeCmd  `cmd:"" help:"List the event names of a workspace, rename, archive or block them."`
	Refusals   refusalsCmd   `cmd:"" help:"Show which events of a workspace were refused, and why."`
	Company    companyCmd    `cmd:"" help:"Show what is known of a company."`
	Motion     motionCmd     `cmd:"" help:"List motions, show, pause, activate and archive them."`
	Site       siteCmd       `cmd:"" help:"Create sites, list them, change their origins, and rotate their secrets."`
	Form       formCmd       `cmd:"" help:"Create forms to embed, and list them."`
	Meeting    meetingCmd    `cmd:"" help:"Create meeting forms, set their hours, and list them and what is booked."`
	Identify   identifyCmd   `cmd:"" name:"identify-token" help:"Sign identify tokens, to test an integration with."`
	Link       linkCmd       `cmd:"" help:"Make links for e-mails, by which visitors are recognised."`
	Openapi    openapiCmd    `cmd:"" name:"openapi" help:"Print the OpenAPI description of the API."`
	Docs       docsCmd       `cmd:"" help:"Write the documentation as files."`
	Key        keyCmd        `cmd:"" help:"Create, list and revoke API keys."`
	Version    versionCmd    `cmd:"" help:"Print what this program was built from."`
	Licenses   licensesCmd   `cmd:"" help:"Print the licenses of what this program is made with."`
}

func main() {
	parser := kong.Must(&commands,
		kong.Name("inlet"),
		kong.Description("A workspace-scoped sales and customer-data API server on PostgreSQL."),
		kong.Vars{"requests": requests},
	)
	command, err := parser.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "inlet:", err)
		os.Exit(2)
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "inlet:", err)
		os.Exit(1)
	}
}
