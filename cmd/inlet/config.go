package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
)

const defaultAddress = "http://127.0.0.1:8080"

// Database settings, of every command.
type databaseConfig struct {
	DatabaseURL string `name:"database-url" env:"DATABASE_URL" placeholder:"URL" help:"PostgreSQL 14 or newer; unset, a private one is used ($$${env})."`
	URLFile     string `name:"database-url-file" env:"DATABASE_URL_FILE" placeholder:"FILE" help:"A file that holds the database URL ($$${env})."`
	DataDir     string `name:"data-dir" env:"INLET_DATA_DIR" default:"./.data" placeholder:"DIR" help:"Where the private PostgreSQL lives ($$${env}; default ${default})."`
	Migrate     bool   `env:"INLET_MIGRATE" default:"true" negatable:"" help:"Bring the schema up to date first ($$${env}; default ${default}). Without it, only a schema that is new enough is used."`
}

// url gives the database's, which holds its password.
func (c *databaseConfig) url() (string, error) {
	return secret("DATABASE_URL", c.DatabaseURL, c.URLFile)
}

// Server settings, of serve.
type serverConfig struct {
	publicConfig
	Listen          string         `env:"INLET_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to serve on; port 0 picks a free one ($$${env}; default ${default})."`
	TLSCert         string         `name:"tls-cert" env:"INLET_TLS_CERT" placeholder:"FILE" help:"Serve HTTPS with this certificate and its chain, in PEM; read again when it changes ($$${env})."`
	TLSKey          string         `name:"tls-key" env:"INLET_TLS_KEY" placeholder:"FILE" help:"The certificate's key ($$${env})."`
	MetricsListen   string         `env:"INLET_METRICS_LISTEN" placeholder:"ADDR" help:"Serve /metrics on an address of its own instead of beside the API ($$${env})."`
	Drain           time.Duration  `env:"INLET_DRAIN" default:"0s" placeholder:"DURATION" help:"How long to go on serving after SIGTERM, not ready any more, until balancers have noticed ($$${env}; default ${default})."`
	TrustedProxies  []netip.Prefix `name:"trusted-proxies" env:"INLET_TRUSTED_PROXIES" placeholder:"NETS" help:"Networks, such as 10.0.0.0/8, of the proxies in front, whose X-Forwarded-For and traceparent are believed ($$${env})."`
	WebhookNetworks []netip.Prefix `name:"webhook-networks" env:"INLET_WEBHOOK_NETWORKS" placeholder:"NETS" help:"Networks other than public ones, such as 10.0.0.0/8, that webhooks may reach ($$${env})."`
}

// publicConfig says how clients reach a server, of serve and of the commands that
// write addresses down.
type publicConfig struct {
	PublicURL string `name:"public-url" env:"INLET_PUBLIC_URL" placeholder:"URL" help:"Base address of the API as clients see it ($$${env}; default http://<listen>, https:// with a certificate)."`
	DocsURL   string `name:"docs-url" env:"INLET_DOCS_URL" placeholder:"URL" help:"Base address of the documentation ($$${env}; default <public-url>/docs)."`
}

// webAddress is scheme, host, port and path, of characters that mean nothing in
// patterns of routes, policies of pages and pages themselves.
var webAddress = regexp.MustCompile(`^(?i:https?)://(?:[\w-]+(?:\.[\w-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(/[\w.~-]+)*$`)

// addresses are those of the API and of the documentation, for a server that is
// reached at own where nothing else is said.
func (c *publicConfig) addresses(own string) (public, docs string, err error) {
	public = strings.TrimSuffix(cmp.Or(c.PublicURL, own), "/")
	docs = strings.TrimSuffix(cmp.Or(c.DocsURL, public+"/docs"), "/")
	for _, address := range []string{public, docs} {
		if u, err := url.Parse(address); err != nil || !webAddress.MatchString(address) || u.Path != "" && path.Clean(u.Path) != u.Path {
			return "", "", fmt.Errorf("%q is no address; want one such as https://inlet.example.com", address)
		}
	}
	return public, docs, nil
}
