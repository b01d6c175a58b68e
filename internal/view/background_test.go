package view

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoSpinnerInTheBackground: the terminal is the shell's then, and what is typed there is not to
// be written over. What happens is still told, in lines of its own.
func TestNoSpinnerInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		var away atomic.Bool
		s := NewScreen(&out, ScreenOptions{Terminal: true, Cursor: true, Background: away.Load})
		defer s.Close()
		written := func(do func()) string {
			before := len(out.String())
			do()
			synctest.Wait()
			return out.String()[before:]
		}
		thinks := func() { time.Sleep(time.Second) }

		away.Store(true)
		s.Thinking(time.Now())
		if got := written(thinks); got != "" {
			t.Errorf("started in the background it writes %q", got)
		}
		if got := written(func() { s.Note("news") }); got != "news\n" {
			t.Errorf("a line in the background is %q", got)
		}
		away.Store(false)
		if got := written(thinks); !strings.Contains(got, "thinking") {
			t.Errorf("back in the foreground there is no spinner: %q", got)
		}
		away.Store(true) // in the midst of a frame
		if got := written(func() { s.Note("more"); thinks() }); got != "more\n" {
			t.Errorf("gone to the background it writes %q", got)
		}
		away.Store(false)
		if got := written(thinks); !strings.Contains(got, "thinking") {
			t.Errorf("back again there is no spinner: %q", got)
		}
		away.Store(true)
		if got := written(s.Idle); got != "" {
			t.Errorf("it erases a line of the shell's: %q", got)
		}
	})
}
