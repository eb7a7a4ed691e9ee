package main

import (
	"fmt"
	"os"
	"strings"
)

// secret gives a setting that is one: its value, or what is in the file that
// NAME_FILE names, as Docker and Kubernetes hand out secrets. Errors say nothing of
// what is in it.
func secret(name, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("%s and %[1]s_FILE are both set; want one of them", name)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	if value = strings.TrimSpace(string(content)); value == "" {
		return "", fmt.Errorf("%s_FILE: %s is empty", name, file)
	}
	return value, nil
}

// collectorSecrets are what a collector of telemetry may know its clients by;
// OpenTelemetry takes them from the environment alone.
func collectorSecrets() error {
	for _, name := range []string{
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
	} {
		value, err := secret(name, os.Getenv(name), os.Getenv(name+"_FILE"))
		if err == nil && value != "" {
			err = os.Setenv(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
