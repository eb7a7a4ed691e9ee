package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// renewalsWithin is how often the files of a certificate are looked at, at most.
const renewalsWithin = time.Second

// A certificate is read from its files again when they change, so that whoever
// renews it does not restart the server.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	looked time.Time
	files  string // what they were like when they were read last, well or not
	good   *tls.Certificate
}

// loadCertificate reads a certificate with its chain, and its key, from PEM files.
// Errors name the settings and the files, not what is in them.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *certificate) read() error {
	c.files = c.stamp()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("INLET_TLS_CERT and INLET_TLS_KEY: %w", err)
	}
	c.good = &pair
	return nil
}

// stamp changes when the files do, also where they are links to others.
func (c *certificate) stamp() string {
	var stamp string
	for _, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ")
		}
	}
	return stamp
}

// current gives the certificate for a handshake. One that cannot be read, perhaps
// because it is half written, leaves the one before in use.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < renewalsWithin {
		return c.good, nil
	}
	c.looked = time.Now()
	if c.stamp() == c.files {
		return c.good, nil
	}
	if err := c.read(); err != nil {
		c.log.Error("the certificate is not renewed", "error", err)
	} else {
		c.log.Info("the certificate is renewed", "until", c.good.Leaf.NotAfter)
	}
	return c.good, nil
}
