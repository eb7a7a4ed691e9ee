package db_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/inletdev/inlet/db"
)

// A process of its own uses the private PostgreSQL of the folder in this
// variable, says so, and waits for its input to end.
const helperDir = "INLET_TEST_EMBEDDED_DIR"

func TestEmbeddedHelperProcess(t *testing.T) {
	dir := os.Getenv(helperDir)
	if dir == "" {
		t.Skip("run by the other tests")
	}
	e, err := db.StartEmbedded(t.Context(), dir, quiet)
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	d, err := db.Open(t.Context(), db.Config{URL: e.URL()})
	if err == nil {
		err = d.Migrate(t.Context(), quiet)
	}
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println("ready")
	io.ReadAll(os.Stdin)
	d.Close()
	if err := e.Stop(); err != nil {
		fmt.Println("failed:", err)
	}
}

type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// reachable copies the test binary to where every user can enter.
func reachable(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(filepath.Dir(dir), "db.test")
	if err := os.WriteFile(binary, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	return binary
}

func self(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// startHelper runs a helper process, as the user of this one or, for root, as
// another.
func startHelper(t *testing.T, binary, dir string, as *syscall.Credential) helper {
	t.Helper()
	cmd := exec.Command(binary, "-test.run=^TestEmbeddedHelperProcess$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperDir+"="+dir, "HOME=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if lines.Text() == "ready" {
			go io.Copy(io.Discard, stdout)
			return helper{cmd, stdin}
		}
		if strings.HasPrefix(lines.Text(), "failed") {
			t.Fatal(lines.Text())
		}
	}
	t.Fatal("the helper ended")
	return helper{}
}

func (h helper) leave(t *testing.T) {
	t.Helper()
	h.stdin.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// privateDir is a folder that every user can reach, as t.TempDir is not.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "inlet-embedded")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

func runs(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "postgres", "postmaster.pid"))
	return err == nil
}

func TestThePrivateDatabaseIsSharedAndStopsWithItsLastUser(t *testing.T) {
	for _, user := range []string{"this user", "an ordinary user"} {
		t.Run(user, func(t *testing.T) {
			var as *syscall.Credential
			if user == "an ordinary user" {
				if os.Geteuid() != 0 {
					t.Skip("this user is one already")
				}
				as = &syscall.Credential{Uid: 65534, Gid: 65534}
			}
			dir := privateDir(t)
			binary := reachable(t, dir)
			var both [2]helper
			var parallel sync.WaitGroup
			for i := range both {
				parallel.Go(func() { both[i] = startHelper(t, binary, dir, as) })
			}
			parallel.Wait()
			if t.Failed() {
				return
			}
			both[0].leave(t)
			if !runs(dir) {
				t.Error("it stopped although another process uses it")
			}
			both[1].leave(t)
			if runs(dir) {
				t.Error("it runs although nobody uses it")
			}
		})
	}
}

func TestThePrivateDatabaseSurvivesAKilledProcess(t *testing.T) {
	dir := privateDir(t)
	killed := startHelper(t, self(t), dir, nil)
	killed.cmd.Process.Kill()
	killed.cmd.Wait()
	next := startHelper(t, self(t), dir, nil)
	next.leave(t)
	if runs(dir) {
		t.Error("it runs although nobody uses it")
	}

	// And a crash of its own.
	crashed := startHelper(t, self(t), dir, nil)
	raw, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	fmt.Sscan(string(raw), &pid)
	syscall.Kill(pid, syscall.SIGKILL)
	crashed.cmd.Process.Kill()
	crashed.cmd.Wait()
	again := startHelper(t, self(t), dir, nil)
	again.leave(t)
}

func TestRootsDatabaseLivesElsewhereWhenTheDataFolderIsClosed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's PostgreSQL runs as another user")
	}
	dir := filepath.Join(privateDir(t), "closed", "data")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := db.StartEmbedded(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if runs(dir) {
		t.Error("it lives in a folder that its user cannot enter")
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}
