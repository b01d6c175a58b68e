package question

import "time"

// Clock is the time that waits run on. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own once d has passed, unless
	// stop was called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// SystemClock is the machine's monotonic clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (SystemClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
