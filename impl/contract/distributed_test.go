package contract

import (
	"fmt"
	"os"
	"testing"

	"github.com/inletdev/inlet/db/dbtest"
)

// Of use only where make scale runs the suites: that they ran over several nodes.
func TestOverCitusWorkspacesLiveOnSeveralNodesEachWholeOnOne(t *testing.T) {
	t.Parallel()
	if os.Getenv("INLET_TEST_CITUS_WORKERS") == "" {
		t.Skip("the database is one PostgreSQL; make scale tests several")
	}
	s := sharedServer(t)
	nodes := make(map[int]int)
	for i := range 12 {
		w := workspace(t)
		if a := w.record(t, s, fmt.Sprintf(`{"id":"e%d","name":"n","company":{"domain":"globex.com"}}`, i)); a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		// The shards of a workspace in every table that is distributed, by their node.
		ports := dbtest.Query[string](t, dbtest.URL(t), `
			select string_agg(distinct nodeport::text, ' ') from citus_tables c
			join pg_dist_shard_placement p on p.shardid = get_shard_id_for_distribution_column(c.table_name, $1::bigint)
			where c.citus_table_type = 'distributed'`, w.ID)
		var port int
		if n, err := fmt.Sscan(ports, &port); n != 1 || err != nil || fmt.Sprint(port) != ports {
			t.Errorf("the workspace is on the nodes %s", ports)
		}
		nodes[port]++
		w.factsAgree(t, dbtest.URL(t))
	}
	if len(nodes) < 2 {
		t.Errorf("12 workspaces are on %d node", len(nodes))
	}
	t.Logf("workspaces by the port of their node: %v", nodes)
}
