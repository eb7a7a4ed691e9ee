package auth_test

import (
	"errors"
	"testing"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/db/dbtest"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/fault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// Its finder must not wait in the line of the workspace that it was of.
func TestAKeyThatIsRevokedIsAStrangerAgain(t *testing.T) {
	d := dbtest.DB(t)
	for _, kind := range []auth.Kind{auth.APIKey, auth.ServiceKey} {
		var workspace int64
		token := auth.NewToken(kind)
		credential, _ := auth.ParseToken(token)
		if err := d.Across(t.Context(), func(tx *db.Tx) error {
			var err error
			if workspace, err = tx.CreateWorkspace(t.Context(), "revoked-"+string(kind), "Revoked", map[string][]string{"admin": auth.Scopes()}); err != nil {
				return err
			}
			scope := tx.Scope(workspace)
			owner, err := scope.SavePerson(t.Context(), 0, db.Person{Email: "a@revoked.example", Name: "A", Role: "admin"})
			if err != nil {
				return err
			}
			_, err = scope.CreateAPIKey(t.Context(), db.APIKey{
				Kind: string(kind), Hash: credential.Hash, Prefix: kind.Prefix(), Last4: credential.Last4, Name: "k", Owner: owner,
				Scopes: []string{"events.send"}, RequestsPerMinute: 1000,
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		dbtest.Exec(t, dbtest.URL(t), `update workspaces set api_enabled = true where workspace_id = $1`, workspace)
		admitter, header := auth.NewAdmitter(d), []string{"Bearer " + token}
		if _, line := admitter.Recall(header); line != 0 {
			t.Errorf("a %s key that nobody met waits in the line of %d", kind, line)
		}
		if _, err := admitter.Admit(t.Context(), header); err != nil {
			t.Fatal(err)
		}
		if caller, line := admitter.Recall(header); line != workspace || (caller != nil) != (kind == auth.APIKey) {
			t.Errorf("a %s key that was met waits in the line of %d, its caller is %v", kind, line, caller)
		}
		dbtest.Exec(t, dbtest.URL(t), `update api_keys set revoked_at = now() where workspace_id = $1`, workspace)
		var refused *fault.Fault
		if _, err := admitter.Admit(t.Context(), header); !errors.As(err, &refused) || refused.Code != fault.InvalidAPIKey {
			t.Errorf("a revoked %s key: %v", kind, err)
		}
		if _, line := admitter.Recall(header); line != 0 {
			t.Errorf("a revoked %s key waits in the line of %d", kind, line)
		}
	}
}
