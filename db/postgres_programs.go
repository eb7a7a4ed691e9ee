package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetched is the PostgreSQL that is fetched where the machine has none.
const fetched = embeddedpostgres.V18

// findPostgres finds a folder of PostgreSQL's programs for a cluster: of the
// version that it was created with, else the newest. INLET_PG_BIN names the
// folder outright. Where the machine has none, a build is fetched once.
func findPostgres(ctx context.Context, c *cluster, log *slog.Logger) (string, error) {
	created := 0
	if raw, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION")); err == nil {
		created, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
	}
	best, newest := "", 0
	for _, bin := range installed() {
		version := majorVersion(ctx, bin)
		if created == version && version != 0 {
			return bin, nil
		}
		if version > newest && version >= minVersion/10000 {
			best, newest = bin, version
		}
	}
	if created == 0 && best != "" {
		return best, nil
	}
	if major, _, _ := strings.Cut(string(fetched), "."); created == 0 || major == strconv.Itoa(created) {
		return fetchPostgres(c, log)
	}
	return "", fmt.Errorf("%s was created by PostgreSQL %d, and its programs are not on this machine; "+
		"install that version or name its folder in INLET_PG_BIN", c.data, created)
}

// installed lists the folders of this machine that have PostgreSQL's programs.
func installed() []string {
	var candidates []string
	if own := os.Getenv("INLET_PG_BIN"); own != "" {
		candidates = []string{own}
	} else {
		for _, pattern := range []string{
			"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
			"/usr/pgsql-*/bin",                  // PostgreSQL's own packages for Red Hat's family
			"/usr/libexec/postgresql*",          // Alpine
			"/opt/homebrew/opt/postgresql*/bin", // Homebrew
			"/usr/local/opt/postgresql*/bin",    //
			"/Applications/Postgres.app/Contents/Versions/*/bin",
		} {
			found, _ := filepath.Glob(pattern)
			candidates = append(candidates, found...)
		}
		if path, err := exec.LookPath("initdb"); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				candidates = append(candidates, filepath.Dir(real))
			}
		}
	}
	var whole []string
	for _, bin := range candidates {
		if hasPrograms(bin) {
			whole = append(whole, bin)
		}
	}
	return whole
}

func hasPrograms(bin string) bool {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			return false
		}
	}
	return true
}

var versionNumber = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func majorVersion(ctx context.Context, bin string) int {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	found := versionNumber.FindSubmatch(out)
	if found == nil {
		return 0
	}
	major, _ := strconv.Atoi(string(found[1]))
	return major
}

// fetchPostgres fetches a build of PostgreSQL into the user's cache, or finds it
// there. The library fetches as the first step of a start and offers it in no
// other way; under root the start then fails, which does not matter.
func fetchPostgres(c *cluster, log *slog.Logger) (string, error) {
	cache, err := os.UserCacheDir()
	if c.as != nil {
		cache, err = "/var/cache", nil // root's own is closed to others
	}
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "inlet", "postgresql-"+string(fetched))
	bin := filepath.Join(home, "bin")
	if hasPrograms(bin) {
		return bin, nil
	}
	log.Warn("no PostgreSQL on this machine; fetching one, once", "version", string(fetched), "into", home)
	scratch, err := os.MkdirTemp("", "inlet-fetch")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(fetched).
		CachePath(filepath.Join(home, "archive")).
		BinariesPath(home).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(filepath.Join(scratch, "data")).
		StartParameters(map[string]string{"unix_socket_directories": scratch}).
		Logger(nil))
	started := server.Start()
	if started == nil {
		started = server.Stop()
	}
	if !hasPrograms(bin) {
		return "", errors.Join(errors.New("no PostgreSQL could be fetched; install PostgreSQL 14 or newer"), started)
	}
	return bin, nil
}
