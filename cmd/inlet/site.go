package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/contact"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/visitor"
)

type siteCmd struct {
	Create siteCreateCmd `cmd:"" help:"Create a site. Its signing secret is shown this once."`
	List   siteListCmd   `cmd:"" help:"List the sites of a workspace."`
	Set    siteSetCmd    `cmd:"" help:"Set the origins of a site's pages."`
	Rotate siteRotateCmd `cmd:"" help:"Add a new signing secret; the newest before it stays valid until it is retired."`
	Retire siteRetireCmd `cmd:"" help:"Retire the signing secrets of a site but the newest."`
}

type siteCreateCmd struct {
	databaseConfig
	Workspace string   `required:"" help:"Slug of the workspace."`
	Origin    []string `required:"" help:"Origin of the site's pages, such as https://www.example.com; may be repeated."`
	JSON      bool     `help:"Print JSON."`
}

func (c *siteCreateCmd) Run() error {
	if err := checkOrigins(c.Origin); err != nil {
		return err
	}
	key, secret := "site_"+strings.ToLower(rand.Text()), rand.Text()+rand.Text()
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		id, err := s.SaveSite(ctx, 0, key, secret, c.Origin)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(map[string]any{"id": id, "site_key": key, "secret": secret})
		}
		fmt.Printf("site %d has the key %s\n", id, key)
		return printSecret(secret)
	})
}

// printSecret prints a secret alone on standard output's last line.
func printSecret(secret string) error {
	fmt.Fprintln(os.Stderr, "its signing secret is shown this once; keep it on your server:")
	_, err := fmt.Println(secret)
	return err
}

func checkOrigins(origins []string) error {
	for _, origin := range origins {
		if !visitor.IsOrigin(origin) {
			return fmt.Errorf("%s is no origin; want one such as https://www.example.com", origin)
		}
	}
	return nil
}

type siteListCmd struct {
	databaseConfig
	Workspace string `required:"" help:"Slug of the workspace."`
	JSON      bool   `help:"Print JSON."`
}

func (c *siteListCmd) Run() error {
	return c.inWorkspace(c.Workspace, func(ctx context.Context, s *db.Scope, _ db.Workspace) error {
		all, err := s.Sites(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(all)
		}
		return printTable([]string{"ID", "KEY", "ORIGINS", "SECRETS", "CREATED"}, len(all), func(i int) []any {
			return []any{all[i].ID, all[i].Key, strings.Join(all[i].Origins, ","), len(all[i].Secrets), all[i].CreatedAt.Format("2006-01-02")}
		})
	})
}

// siteArgs name a site on the command line.
type siteArgs struct {
	databaseConfig
	SiteKey string `arg:"" help:"The site key, as inlet site list shows it."`
}

func (c *siteArgs) inSite(do func(context.Context, *db.Scope, db.Site) error) error {
	return c.with(func(ctx context.Context, d *db.DB) error {
		site, err := d.SiteByKey(ctx, c.SiteKey)
		if errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("there is no site %s; inlet site list shows what there is", c.SiteKey)
		}
		if err != nil {
			return err
		}
		return d.In(ctx, site.Workspace, func(s *db.Scope) error { return do(ctx, s, site) })
	})
}

type siteSetCmd struct {
	siteArgs
	Origin []string `required:"" help:"Origin of the site's pages; may be repeated. They take the place of those before."`
}

func (c *siteSetCmd) Run() error {
	if err := checkOrigins(c.Origin); err != nil {
		return err
	}
	return c.inSite(func(ctx context.Context, s *db.Scope, site db.Site) error {
		_, err := s.SaveSite(ctx, site.ID, site.Key, "", c.Origin)
		return err
	})
}

type siteRotateCmd struct{ siteArgs }

func (c *siteRotateCmd) Run() error {
	return c.inSite(func(ctx context.Context, s *db.Scope, site db.Site) error {
		secret := rand.Text() + rand.Text()
		if err := s.AddSiteSecret(ctx, site.ID, secret); err != nil {
			return err
		}
		return printSecret(secret)
	})
}

type siteRetireCmd struct{ siteArgs }

func (c *siteRetireCmd) Run() error {
	return c.inSite(func(ctx context.Context, s *db.Scope, site db.Site) error {
		n, err := s.RetireOlderSecrets(ctx, site.ID)
		if err == nil {
			fmt.Printf("%d retired\n", n)
		}
		return err
	})
}

type identifyCmd struct {
	Sign identifySignCmd `cmd:"" help:"Print a signed identify token, as your server would make it."`
}

type identifySignCmd struct {
	siteArgs
	Email    string        `required:"" help:"Whom it identifies."`
	Lifetime time.Duration `default:"10m" help:"How long it is valid; 24h at most."`
	Reusable bool          `help:"Leave out the jti: it can then be used again, and adds nobody."`
}

func (c *identifySignCmd) Run() error {
	if c.Lifetime <= 0 || c.Lifetime > limit.IdentifyTokenLifetime {
		return fmt.Errorf("a token is valid for %s at most", limit.IdentifyTokenLifetime)
	}
	return c.inSite(func(_ context.Context, _ *db.Scope, site db.Site) error {
		if len(site.Secrets) == 0 {
			return errors.New("the site has no secret; inlet site rotate makes one")
		}
		token, err := visitor.SignToken(site.Secrets[0], site.Key, c.Email, c.Lifetime, !c.Reusable)
		if err != nil {
			return err
		}
		_, err = fmt.Println(token)
		return err
	})
}

type linkCmd struct {
	Create linkCreateCmd `cmd:"" help:"Print the address of a link that leads a contact to a page of the site."`
}

type linkCreateCmd struct {
	siteArgs
	Contact   string        `required:"" help:"E-mail address of the contact it is sent to."`
	Page      string        `required:"" help:"Where it leads: a page with one of the site's origins."`
	Lifetime  time.Duration `default:"2160h" help:"How long it works; 90 days where nothing is said."`
	PublicURL string        `name:"public-url" env:"INLET_PUBLIC_URL" default:"http://127.0.0.1:8080" help:"Base address of the server as clients see it ($$${env}; default ${default})."`
}

func (c *linkCreateCmd) Run() error {
	return c.inSite(func(ctx context.Context, s *db.Scope, site db.Site) error {
		id, err := s.ContactByEmail(ctx, contact.NormalizeEmail(c.Contact))
		if err != nil {
			return err
		}
		if id == 0 {
			return fmt.Errorf("the workspace has no contact %s", c.Contact)
		}
		token, err := visitor.MakeLink(ctx, s, site, id, c.Page, c.Lifetime)
		if err != nil {
			return err
		}
		_, err = fmt.Println(strings.TrimSuffix(c.PublicURL, "/") + "/l/" + token)
		return err
	})
}
