package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// Signal is the cause of a context that a signal ended.
type Signal struct{ Signal syscall.Signal }

func (s Signal) Error() string { return "ended by " + s.Name() }

// Name is the signal's name, such as SIGINT.
func (s Signal) Name() string {
	switch s.Signal {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return s.Signal.String()
}

// Exit is the exit code of a process that the signal ended.
func (s Signal) Exit() int { return ExitSignal + int(s.Signal) }

// Signals turns the first SIGINT, SIGTERM, SIGHUP or SIGQUIT into the end of a context,
// with a Signal as its cause, and the second into the end of the process. A
// signal that was ignored when the program was started (nohup, a background job
// of a script) stays ignored.
//
// One goroutine reads the signals, until Stop, or after a first signal until the
// end of the signalNote. The list of last deeds is under mu. Methods are safe for
// concurrent use.
type Signals struct {
	exit func(code int)
	in   chan os.Signal
	quit chan struct{}
	done chan struct{} // closed when the goroutine has heard of quit, or has ended
	once sync.Once

	mu   sync.Mutex
	last map[int]func()
	next int
}

// Watch begins. The context ends with the parent, by a signal, or by Stop, which
// the caller owes. exit is os.Exit except in tests.
func Watch(parent context.Context, exit func(code int)) (context.Context, *Signals) {
	s := &Signals{exit: exit, in: make(chan os.Signal, 4), quit: make(chan struct{}), done: make(chan struct{}), last: map[int]func(){}}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(s.in, sig)
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	note := noteOf(parent)
	note.reading.Go(func() { s.loop(cancel, note) })
	return ctx, s
}

// signalNote is what the commands' Watches leave to Main. sig is the first signal
// that ended the context of a command: what the command returns then is often no
// more than that its context was cancelled, and Main says how the process ended.
// After such a signal there is always somebody who reads signals, up to end, so
// that the second one is never a death by that signal.
type signalNote struct {
	sig     atomic.Pointer[Signal]
	over    chan struct{} // closed by end; nil where nobody asks
	reading sync.WaitGroup
}

func newSignalNote() *signalNote { return &signalNote{over: make(chan struct{})} }

// end returns when nobody reads signals any more. All Watches are stopped before.
func (n *signalNote) end() {
	close(n.over)
	n.reading.Wait()
}

type signalNoteKey struct{}

func noteOf(ctx context.Context) *signalNote {
	if note, ok := ctx.Value(signalNoteKey{}).(*signalNote); ok {
		return note
	}
	return new(signalNote)
}

func (s *Signals) loop(cancel context.CancelCauseFunc, note *signalNote) {
	stopped := sync.OnceFunc(func() { close(s.done) })
	defer stopped()
	defer cancel(nil)
	defer signal.Stop(s.in)
	quit := s.quit
	for first := true; ; {
		select {
		case <-quit:
			if first || note.over == nil || quit == note.over {
				return
			}
			quit = note.over
			stopped()
		case got := <-s.in:
			sig, ok := got.(syscall.Signal)
			if !ok {
				continue
			}
			if first {
				first = false
				note.sig.CompareAndSwap(nil, &Signal{sig})
				cancel(Signal{sig})
				continue
			}
			s.runLast()
			s.exit(Signal{sig}.Exit())
			return
		}
	}
}

// Raise is as if the signal had come: Ctrl+C at a card, whose terminal makes no
// signal of it. One that finds the goroutine busy is dropped, as a person's would be.
func (s *Signals) Raise(sig syscall.Signal) {
	select {
	case s.in <- sig:
	default:
	}
}

// Last names something to be done, quickly, before a second signal ends the
// process on the spot, such as giving back a raw terminal. The function that it
// returns takes it off the list.
func (s *Signals) Last(do func()) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	s.last[id] = do
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.last, id)
	}
}

func (s *Signals) runLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, do := range s.last {
		do()
	}
}

// Stop ends the context, and gives the signals back if none has come or nobody
// does it later.
func (s *Signals) Stop() {
	s.once.Do(func() { close(s.quit) })
	<-s.done
}
