package db

import "testing"

func TestAStatementIsNamedByWhatItDoesAndToWhat(t *testing.T) {
	for query, want := range map[string]string{
		queueEntry:        "INSERT motion_entries",
		moveEnrollment:    "UPDATE enrollments",
		dropExpiredTokens: "DELETE identify_tokens",
		admitCredential:   "SELECT api_keys",
		recordEvents:      "SELECT record_events",
		decideEntries:     "SELECT decide_entries",
		queuedWorkspaces:  "SELECT motion_entries",
		companyExists:     "SELECT companies",
		flush:             "SELECT pg_logical_emit_message",
		commit:            "COMMIT",
	} {
		for range 2 { // worked out, and then remembered
			if got := summary(query); got != want {
				t.Errorf("it is named %q, want %q:\n%s", got, want, query)
			}
		}
	}
}
