package cli

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

func TestFirstSignalEndsTheContextAndTheSecondTheProcess(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGQUIT, 131}} {
		exited := make(chan int, 1)
		ctx, s := Watch(t.Context(), func(code int) { exited <- code })
		restored := false
		s.Last(func() { restored = true })
		s.Last(func() { t.Error("a forgotten deed is done") })()
		s.in <- c.sig
		<-ctx.Done()
		var got Signal
		if !errors.As(context.Cause(ctx), &got) || got.Signal != c.sig || failure(context.Cause(ctx)).Exit != c.code {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		s.in <- c.sig
		if code := <-exited; code != c.code || !restored {
			t.Errorf("exit %d, restored %v", code, restored)
		}
		s.Stop()
		s.Stop()
	}
}

func TestARealSignalArrives(t *testing.T) {
	ctx, s := Watch(t.Context(), func(int) { t.Error("ended by the first signal") })
	defer s.Stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := context.Cause(ctx); err.Error() != "ended by SIGTERM" {
		t.Errorf("cause %v", err)
	}
}

func TestASecondSignalOnTheWayOutEndsTheProcessWithItsCode(t *testing.T) {
	note := newSignalNote()
	exited := make(chan int, 1)
	ctx, s := Watch(context.WithValue(t.Context(), signalNoteKey{}, note), func(code int) { exited <- code })
	s.Raise(syscall.SIGTERM)
	<-ctx.Done()
	s.Stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil { // to which nobody listening is the end
		t.Fatal(err)
	}
	if code := <-exited; code != 143 {
		t.Errorf("exit %d", code)
	}
	note.end()
}

func TestStopEndsTheContextWithoutASignal(t *testing.T) {
	ctx, s := Watch(t.Context(), func(int) {})
	s.Stop()
	var sig Signal
	if ctx.Err() == nil || errors.As(context.Cause(ctx), &sig) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}
