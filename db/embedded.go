package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
)

// nobody is the user that the private PostgreSQL runs as under root, which it
// refuses to run as, where the machine has no user postgres.
const nobody = 65534

// An Embedded is the private PostgreSQL of a data folder, shared by all
// processes that use the folder: the first one starts it, the last one to leave
// stops it. It listens on a Unix socket only. A process that is killed leaves
// it running, and the next one finds it.
type Embedded struct {
	url     string
	cluster cluster
	users   *os.File // locked shared while this process uses the server
}

// StartEmbedded attaches to the private PostgreSQL of a data folder, or starts
// it. flags are handed to postgres.
func StartEmbedded(ctx context.Context, dataDir string, log *slog.Logger, flags ...string) (*Embedded, error) {
	c, err := clusterAt(dataDir, log)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	users, err := os.OpenFile(filepath.Join(c.home, "users"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	e := &Embedded{cluster: c, users: users}
	if err := e.attach(ctx, log, flags); err != nil {
		users.Close()
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	return e, nil
}

// attach starts the server unless it runs. A second lock keeps others out
// meanwhile: those who start and, in Stop, those who leave.
func (e *Embedded) attach(ctx context.Context, log *slog.Logger, flags []string) error {
	unlock, err := e.cluster.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if !e.cluster.answers(ctx) {
		if err := e.cluster.start(ctx, log, flags); err != nil {
			return err
		}
	}
	if err := e.cluster.createDatabase(ctx); err != nil {
		return err
	}
	e.url = e.cluster.url("inlet")
	return syscall.Flock(int(e.users.Fd()), syscall.LOCK_SH)
}

// URL is the connection string of the database.
func (e *Embedded) URL() string { return e.url }

// Stop leaves the server, and stops it if no other process uses it.
func (e *Embedded) Stop() error {
	defer e.users.Close()
	unlock, err := e.cluster.lock()
	if err != nil {
		return err
	}
	defer unlock()
	err = syscall.Flock(int(e.users.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.cluster.stop()
}

// A cluster is PostgreSQL's own folder and the user it belongs to.
type cluster struct {
	home    string              // holds the locks, and data where it can
	data    string              // PostgreSQL's folder
	as      *syscall.Credential // nil: the user of this process
	sockets string              // folder of the socket that a start makes
}

// clusterAt finds where the cluster of a data folder lives. Root's PostgreSQL
// runs as another user; where that one cannot reach the data folder, the
// cluster lives below /var/lib/inlet.
func clusterAt(dataDir string, log *slog.Logger) (cluster, error) {
	home, err := filepath.Abs(dataDir)
	if err != nil {
		return cluster{}, err
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return cluster{}, err
	}
	sum := sha256.Sum256([]byte(home))
	name := hex.EncodeToString(sum[:6])
	c := cluster{home: home, data: filepath.Join(home, "postgres")}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if runtime == "" || len(runtime) > 60 { // a socket's path has at most 107 bytes
		runtime = "/tmp"
	}
	if os.Geteuid() == 0 {
		c.as = &syscall.Credential{Uid: nobody, Gid: nobody}
		if u, err := user.Lookup("postgres"); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			c.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
		runtime = "/run"
		if !open(home) {
			c.data = filepath.Join("/var/lib/inlet", name)
			log.Info("the data folder is closed to the user PostgreSQL runs as; the database lives elsewhere",
				"data_dir", home, "database", c.data)
		}
	}
	c.sockets = filepath.Join(runtime, "inlet-"+name)
	return c, nil
}

// open tells whether every user can pass through a folder and its parents.
func open(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func (c *cluster) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(c.home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

// url gives the connection string of a database, by the socket that the running
// server wrote into its lock file: the one who started it may have another
// environment.
func (c *cluster) url(database string) string {
	sockets := c.sockets
	if raw, err := os.ReadFile(filepath.Join(c.data, "postmaster.pid")); err == nil {
		if lines := strings.Split(string(raw), "\n"); len(lines) > 4 && lines[4] != "" {
			sockets = lines[4]
		}
	}
	query := url.Values{"host": {sockets}, "sslmode": {"disable"}}
	return "postgres://inlet@/" + database + "?" + query.Encode()
}

func (c *cluster) answers(ctx context.Context) bool {
	if _, err := os.Stat(filepath.Join(c.data, "postmaster.pid")); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	x, err := sqlx.ConnectContext(ctx, "postgres", c.url("postgres"))
	if err != nil {
		return false
	}
	return x.Close() == nil
}

func (c *cluster) start(ctx context.Context, log *slog.Logger, flags []string) error {
	bin, err := findPostgres(ctx, c, log)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.data, "PG_VERSION")); err != nil {
		if err := c.create(ctx, bin, log); err != nil {
			return err
		}
	}
	if err := c.makeSockets(); err != nil {
		return err
	}
	// Terse: what it logs of an error would else hold the row that it is about.
	flags = append([]string{"-k", c.sockets, "-c log_error_verbosity=terse"}, flags...)
	log.Info("starting the private PostgreSQL", "database", c.data, "programs", bin)
	// A server that was killed leaves processes behind that hold on to its shared
	// memory for a moment, and no other starts meanwhile.
	for wait := 0; ; wait++ {
		err := c.run(ctx, bin, "pg_ctl", "-D", c.data, "-l", filepath.Join(c.data, "log"), "-w", "-t", "60",
			"-o", strings.Join(flags, " "), "start")
		if err == nil || wait == 20 || ctx.Err() != nil {
			return err
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// settings keep what was acknowledged safe, and wait for nobody on the network.
const settings = `
# Written by inlet.
listen_addresses = ''
max_connections = 100
shared_buffers = 256MB
min_wal_size = 1GB
max_wal_size = 4GB
fsync = on
synchronous_commit = on
`

// create makes a new cluster, elsewhere first, so that one that was interrupted
// is never taken for whole.
func (c *cluster) create(ctx context.Context, bin string, log *slog.Logger) error {
	log.Info("creating a private PostgreSQL", "database", c.data)
	parent := filepath.Dir(c.data)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	fresh := c.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	if err := c.own(fresh); err != nil {
		return err
	}
	if err := c.run(ctx, bin, "initdb", "-D", fresh, "-U", "inlet", "--auth=trust", "--encoding=UTF8", "--locale=C",
		"--data-checksums"); err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(fresh, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString(settings)
	if err := errors.Join(err, conf.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, c.data)
}

// makeSockets makes the folder of the socket, which only the server's user and
// root can enter; no password guards the server.
func (c *cluster) makeSockets() error {
	if err := os.Mkdir(c.sockets, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := c.own(c.sockets); err != nil {
		return err
	}
	info, err := os.Lstat(c.sockets)
	if err != nil {
		return err
	}
	owner := uint32(os.Geteuid())
	if c.as != nil {
		owner = c.as.Uid
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || stat.Uid != owner {
		return fmt.Errorf("%s is not a folder of this user alone; remove it", c.sockets)
	}
	return nil
}

func (c *cluster) own(path string) error {
	if c.as == nil {
		return nil
	}
	return os.Lchown(path, int(c.as.Uid), int(c.as.Gid))
}

func (c *cluster) createDatabase(ctx context.Context) error {
	x, err := sqlx.ConnectContext(ctx, "postgres", c.url("postgres"))
	if err != nil {
		return err
	}
	defer x.Close()
	var there bool
	if err := x.GetContext(ctx, &there, `select exists (select from pg_database where datname = 'inlet')`); err != nil || there {
		return err // one that follows another server could not make it
	}
	_, err = x.ExecContext(ctx, `create database inlet`)
	const duplicateDatabase = "42P04"
	if hasCode(err, duplicateDatabase) {
		return nil
	}
	return err
}

func (c *cluster) stop() error {
	raw, err := os.ReadFile(filepath.Join(c.data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("postmaster.pid: %w", err)
	}
	// SIGINT is PostgreSQL's fast shutdown: it ends sessions and leaves nothing
	// to recover. One that was killed leaves its file behind.
	if err := syscall.Kill(pid, syscall.SIGINT); errors.Is(err, syscall.ESRCH) {
		return nil
	} else if err != nil {
		return err
	}
	for range 600 {
		if _, err := os.Stat(filepath.Join(c.data, "postmaster.pid")); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("PostgreSQL does not stop")
}

// run runs one of PostgreSQL's programs as the cluster's user, apart from the
// terminal, so that its Ctrl-C does not reach the server.
func (c *cluster) run(ctx context.Context, bin, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.as}
	// A file, not a pipe: the server inherits it and would hold a pipe open.
	out, err := os.CreateTemp("", "inlet-"+program)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(said)))
	}
	return nil
}
