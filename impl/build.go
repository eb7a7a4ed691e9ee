package impl

import (
	"cmp"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/inletdev/inlet/openapi"
)

// source is the revision that make build fills in. Go's own way would tell when it
// was committed too, and not build where git does not trust the folder.
var source string

// Build says which server this is: the version of the module and the revision of
// its source, as far as the build knows them.
func Build() (version, revision string) {
	revision = source
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && revision == "" {
				revision = s.Value
			}
		}
	}
	return cmp.Or(version, "unknown"), cmp.Or(revision, "unknown")
}

func registerBuild(r prometheus.Registerer) {
	version, revision := Build()
	promauto.With(r).NewGauge(prometheus.GaugeOpts{
		Name:        "inlet_build_info",
		Help:        "Always 1; the labels say which server this is and which document it serves.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "document": openapi.Hash()},
	}).Set(1)
}
