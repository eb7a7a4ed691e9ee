// Command monitoring prints the expressions of the dashboard as rules, so that
// promtool can read them.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
)

func main() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		log.Fatal(err)
	}
	fmt.Println("groups:\n- name: dashboard\n  rules:")
	filled := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, p := range dashboard.Panels {
		for _, t := range p.Targets {
			expr, err := json.Marshal(filled.Replace(t.Expr)) // which is YAML too
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("  - {record: \"panel_%d_%s\", expr: %s}\n", p.ID, t.RefID, expr)
		}
	}
}
