package prompt

import (
	"fmt"
	"time"
)

// countdown is a card's own clock. Its owner hands the time in.
type countdown struct {
	mode     countMode
	deadline time.Time     // while running
	left     time.Duration // while paused
}

type countMode int

const (
	countNone   countMode = iota // the wait has no end of its own
	countRuns                    // to the deadline
	countPaused                  // by focus; goes on with what is left
	countFrozen                  // by an edit or Ctrl+T; never goes on
)

func startCountdown(now time.Time, remaining time.Duration) countdown {
	return countdown{mode: countRuns, deadline: now.Add(max(remaining, 0))}
}

func (c *countdown) expired(now time.Time) bool {
	return c.mode == countRuns && !now.Before(c.deadline)
}

func (c *countdown) pause(now time.Time) {
	if c.mode == countRuns {
		c.mode, c.left = countPaused, max(c.deadline.Sub(now), 0)
	}
}

func (c *countdown) resume(now time.Time) {
	if c.mode == countPaused {
		*c = startCountdown(now, c.left)
	}
}

func (c *countdown) freeze() {
	if c.mode != countNone {
		c.mode = countFrozen
	}
}

// tick is how long what the countdown shows stays as it is; 0 when it stands still.
func (c *countdown) tick(now time.Time) time.Duration {
	if c.mode != countRuns {
		return 0
	}
	left := c.deadline.Sub(now)
	if left <= 0 {
		return 1 // over: due at once
	}
	return left - (seconds(left)-1)*time.Second
}

// String shows the remainder, rounded up, so that 0s is never seen.
func (c *countdown) show(now time.Time) string {
	switch c.mode {
	case countRuns:
		return clockFace(c.deadline.Sub(now))
	case countPaused:
		return clockFace(c.left) + " paused"
	case countFrozen:
		return "no countdown"
	}
	return ""
}

func seconds(d time.Duration) time.Duration { return (max(d, 0) + time.Second - 1) / time.Second }

func clockFace(d time.Duration) string {
	s := int64(seconds(d))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
