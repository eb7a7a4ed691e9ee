package main

import (
	"io"
	"sync"
	"time"
)

const (
	logDelay  = 50 * time.Millisecond // at most between a line and its writing
	logBuffer = 64 << 10
)

// A lineBuffer writes log lines together: a busy server would otherwise make as
// many system calls for its log as for its answers. A process that is killed
// takes the lines of the last moment with it.
type lineBuffer struct {
	out io.Writer

	mu    sync.Mutex
	lines []byte
}

func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) == 0 {
		time.AfterFunc(logDelay, b.flush)
	}
	b.lines = append(b.lines, line...)
	if len(b.lines) >= logBuffer {
		b.write()
	}
	return len(line), nil
}

func (b *lineBuffer) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write()
}

func (b *lineBuffer) write() {
	b.out.Write(b.lines) //nolint:errcheck // where the log cannot be written, nothing can say so
	b.lines = b.lines[:0]
}
