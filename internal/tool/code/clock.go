package code

import (
	"sync"
	"time"
)

// clock rings when its time is used up; it rests while a person is waited for.
// mu owns all of it.
type clock struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time // it runs since, unless resting
	timer   *time.Timer
	resting int
	stopped bool
}

// newClock starts a clock. ring is called at most once, from a goroutine of its
// own, never after stop has returned true.
func newClock(d time.Duration, ring func()) *clock {
	c := &clock{left: d, since: time.Now()}
	c.timer = time.AfterFunc(d, func() {
		c.mu.Lock()
		due := !c.stopped && c.resting == 0 && time.Since(c.since) >= c.left
		c.mu.Unlock()
		if due { // a rest may have begun while the timer fired
			ring()
		}
	})
	return c
}

// rest stops the clock until the returned function is called, which may be
// called again to no effect. Rests may overlap.
func (c *clock) rest() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting++; c.resting == 1 && !c.stopped {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
	return sync.OnceFunc(c.resume)
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting--; c.resting == 0 && !c.stopped {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}
