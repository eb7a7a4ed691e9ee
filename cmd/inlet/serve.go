package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl"
	"github.com/inletdev/inlet/impl/limit"
	"github.com/inletdev/inlet/impl/telemetry"
	"github.com/inletdev/inlet/impl/trace"
	"github.com/inletdev/inlet/openapi"
)

// softMemory is what the collector of garbage tries to stay below, whatever the
// load: what requests, events and connections may hold at most is less.
const softMemory = 512 << 20

// flushWithin bounds how long a collector is waited for at the end, while the
// database is closed.
const flushWithin = time.Second

type serveCmd struct {
	databaseConfig
	serverConfig
}

func (c *serveCmd) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lines := &lineBuffer{out: os.Stderr}
	defer lines.flush()
	log := slog.New(slog.NewJSONHandler(lines, nil))
	// The server holds little and makes much garbage: collecting it when the
	// heap has grown threefold costs a few megabytes and saves much of the work.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}

	if err := collectorSecrets(); err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	version, _ := impl.Build()
	sent, err := telemetry.Start(ctx, log, version, metrics)
	if err != nil {
		return err
	}
	if sent.Tracer() != nil {
		log = slog.New(trace.Logs(log.Handler()))
	}
	d, leave, err := c.open(ctx, log, 0)
	if err != nil {
		return err
	}
	err = c.serve(ctx, stop, log, d, metrics, sent.Tracer())
	log.Info("stopped")
	flushed := flush(log, sent)
	err = errors.Join(err, leave())
	<-flushed
	return err
}

// flush sends the last of the telemetry. A collector that does not take it is no
// failure of the server's.
func flush(log *slog.Logger, sent *telemetry.Telemetry) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
		defer cancel()
		if err := sent.Close(ctx); err != nil {
			log.Warn("telemetry is not sent", "error", err)
		}
	}()
	return done
}

func (c *serveCmd) serve(
	ctx context.Context, stop func(), log *slog.Logger, d *db.DB, metrics *prometheus.Registry, tracer *trace.Tracer,
) error {
	secure, err := c.tls(log)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	public, docsURL, err := c.addresses(scheme + "://" + listener.Addr().String())
	if err != nil {
		return err
	}
	server, err := impl.NewServer(ctx, d, log, impl.Config{
		PublicURL: public, DocsURL: docsURL, Proxies: c.TrustedProxies, WebhookNetworks: c.WebhookNetworks,
		OwnMetrics: c.MetricsListen != "", Metrics: metrics, Tracer: tracer,
	})
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	server.HTTP().TLSConfig = secure
	go func() {
		bounded := server.Bounded(listener)
		if secure != nil {
			failed <- server.HTTP().ServeTLS(bounded, "", "")
			return
		}
		failed <- server.HTTP().Serve(bounded)
	}()

	if c.MetricsListen != "" {
		metrics := server.Metrics()
		metrics.Addr = c.MetricsListen
		go func() { failed <- fmt.Errorf("metrics: %w", metrics.ListenAndServe()) }()
		defer metrics.Close()
	}
	log.Info("serving", "addr", listener.Addr().String(), "scheme", scheme, "document", openapi.Hash())

	select {
	case err = <-failed:
	case <-ctx.Done():
		stop() // a second signal ends the process at once
		log.Info("stopping", "drain", c.Drain.String(), "within", limit.StopAnswers.String())
		server.Drain(context.Background(), c.Drain)
	}
	return errors.Join(err, server.Close())
}

// tls says how HTTPS is spoken; nil where it is not.
func (c *serverConfig) tls(log *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, errors.New("INLET_TLS_CERT and INLET_TLS_KEY belong together; only one of them is set")
	}
	certificate, err := loadCertificate(c.TLSCert, c.TLSKey, log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.current}, nil
}
