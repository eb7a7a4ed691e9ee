package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/auth"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/limit"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key and print its token, once."`
	List   keyListCmd   `cmd:"" help:"List the keys of a workspace."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key; it ends with the very next request."`
}

type keyCreateCmd struct {
	databaseConfig
	Workspace         string    `required:"" help:"Slug of the workspace."`
	Name              string    `required:"" help:"What the key is for."`
	Owner             string    `help:"E-mail address of a person of the workspace. A service key needs one, and a key has events.send only while its owner has it."`
	Scopes            []string  `default:"leads.manage" help:"Scopes, with commas in between (default ${default})."`
	Kind              string    `enum:"api,service" default:"api" help:"api (amp_…) or service (svc_sk_…, preview)."`
	Role              string    `enum:",admin,manager,member,viewer" default:"" help:"Narrows the key to what a role holds."`
	Expires           time.Time `help:"When it ends, such as 2027-01-01T00:00:00Z; default never."`
	RequestsPerMinute int       `default:"${requests}" help:"Its own request limit (default ${default})."`
	Test              bool      `help:"Leads of this key are tests."`
	JSON              bool      `help:"Print JSON."`
}

func (c *keyCreateCmd) Run() error {
	for _, s := range c.Scopes {
		if !slices.Contains(auth.Scopes(), s) {
			return fmt.Errorf("there is no scope %s; want some of %s", s, strings.Join(auth.Scopes(), ", "))
		}
	}
	if c.RequestsPerMinute < 1 || c.RequestsPerMinute > limit.KeyRequestsMost {
		return fmt.Errorf("want at least 1 request per minute and at most %d", limit.KeyRequestsMost)
	}
	if c.Kind == "service" && c.Owner == "" {
		return errors.New("a service key needs an --owner")
	}
	if slices.Contains(c.Scopes, auth.EventsSend) && c.Owner == "" {
		fmt.Fprintln(os.Stderr, "note: without an --owner who holds it, the key does not have events.send")
	}
	token := auth.NewToken(auth.Kind(c.Kind))
	credential, _ := auth.ParseToken(token)
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		key := db.APIKey{
			Kind: c.Kind, Hash: credential.Hash, Prefix: credential.Kind.Prefix(), Last4: credential.Last4, Name: c.Name,
			Role: c.Role, Scopes: c.Scopes, RequestsPerMinute: c.RequestsPerMinute, Test: c.Test, ExpiresAt: c.Expires,
		}
		if c.Owner != "" {
			owner, err := s.PersonByEmail(ctx, contact.NormalizeEmail(c.Owner))
			if errors.Is(err, db.ErrNotFound) {
				return fmt.Errorf("nobody in the workspace has the e-mail address %s", c.Owner)
			}
			if err != nil {
				return err
			}
			key.Owner = owner
		}
		id, err := s.CreateAPIKey(ctx, key)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(map[string]any{"id": id, "token": token})
		}
		fmt.Fprintf(os.Stderr, "key %d; its token is shown this once:\n", id)
		fmt.Println(token)
		return nil
	})
}

type keyListCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *keyListCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		keys, err := s.APIKeys(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(keys)
		}
		head := []string{"ID", "NAME", "KIND", "TOKEN", "OWNER", "ROLE", "SCOPES", "A MINUTE", "TEST", "EXPIRES", "STATUS"}
		return printTable(head, len(keys), func(i int) []any {
			k := keys[i]
			expires := "never"
			if k.ExpiresAt != nil {
				expires = k.ExpiresAt.Format(time.RFC3339)
			}
			return []any{k.ID, k.Name, k.Kind, k.Shown, orDash(k.Owner), orDash(k.Role), strings.Join(k.Scopes, ","),
				k.RequestsPerMinute, k.Test, expires, k.Status}
		})
	})
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

type keyRevokeCmd struct {
	databaseConfig
	ID        int64  `arg:"" help:"Id of the key, as inlet key list shows it."`
	Workspace string `required:"" help:"Slug of the workspace."`
}

func (c *keyRevokeCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		if err := s.RevokeAPIKey(ctx, c.ID); errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("the workspace has no key %d", c.ID)
		} else if err != nil {
			return err
		}
		fmt.Printf("key %d is revoked\n", c.ID)
		return nil
	})
}

// requests is the default that a flag's text needs.
var requests = fmt.Sprint(limit.KeyRequestsPerMinute)
