package code

import (
	"strings"
	"sync"
)

// output is what the code printed. Safe for concurrent use: an engine that was
// left behind may still print.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	left int // bytes
}

// line adds a line; false means that it is too much, and then nothing was added.
func (o *output) line(s string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.take(len(s) + 1) {
		return false
	}
	o.text.WriteString(s)
	o.text.WriteByte('\n')
	return true
}

// reserve counts what is returned instead of printed.
func (o *output) reserve(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.take(n)
}

func (o *output) take(n int) bool {
	if n > o.left {
		return false
	}
	o.left -= n
	return true
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
