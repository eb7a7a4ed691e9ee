package db

import (
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// PostgreSQL takes connections one after the other, and where many come at once
// those that find no place in the queue of its socket are to wait.
func TestAConnectionWaitsForAPlaceInTheQueueOfASocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems say something else")
	}
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	go func() {
		time.Sleep(200 * time.Millisecond)
		for range 2 {
			if taken, _, err := syscall.Accept(fd); err == nil {
				defer syscall.Close(taken)
			}
		}
	}()
	conn, err := dialer{within: ConnectTimeout}.DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
