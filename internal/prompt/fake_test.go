package prompt

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hinshun/vt10x"

	"deepseek/internal/session"
)

// fakeTerminal is a terminal in memory: a screen that can be looked at, and input that the
// test types. The mutex guards what the test looks at while a card runs.
type fakeTerminal struct {
	input   chan Input
	signals chan os.Signal

	mu        sync.Mutex
	vt        vt10x.Terminal
	out       strings.Builder
	ahead     []byte // typed before
	raw       bool
	started   bool
	starts    int
	suspended int
	onSuspend func()
	cols      int
	rows      int
	writeErr  error
	backgr    bool
}

func newFakeTerminal(cols, rows int) *fakeTerminal {
	return &fakeTerminal{
		input: make(chan Input), signals: make(chan os.Signal, 8),
		vt: vt10x.New(vt10x.WithSize(cols, rows)), cols: cols, rows: rows,
	}
}

func (t *fakeTerminal) with(f func()) { t.mu.Lock(); defer t.mu.Unlock(); f() }

func (t *fakeTerminal) Start(raw bool) error {
	t.with(func() { t.started, t.raw = true, raw; t.starts++ })
	return nil
}

func (t *fakeTerminal) Stop() error { t.with(func() { t.started, t.raw = false, false }); return nil }

func (t *fakeTerminal) Ready() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.ahead
	t.ahead = nil
	return b
}
func (t *fakeTerminal) Input() <-chan Input { return t.input }
func (t *fakeTerminal) Keep(b []byte) {
	t.with(func() { t.ahead = append(slices.Clone(b), t.ahead...) })
}
func (t *fakeTerminal) Signals() <-chan os.Signal { return t.signals }
func (t *fakeTerminal) Resume() error {
	if !t.Foreground() {
		return errBackground
	}
	return nil
}

func (t *fakeTerminal) Foreground() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.backgr
}

func (t *fakeTerminal) away(backgr bool) { t.with(func() { t.backgr = backgr }) }

func (t *fakeTerminal) Size() (int, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cols, t.rows
}

func (t *fakeTerminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writeErr != nil {
		return 0, t.writeErr
	}
	t.out.Write(b)
	return t.vt.Write(b)
}

func (t *fakeTerminal) Suspend() error {
	t.with(func() { t.suspended++ })
	if t.onSuspend != nil {
		t.onSuspend()
	}
	return t.Resume()
}

func (t *fakeTerminal) resize(cols, rows int) {
	t.with(func() { t.cols, t.rows = cols, rows; t.vt.Resize(cols, rows) })
	t.signals <- syscall.SIGWINCH
}

// screen is what can be read on it, without blank lines and trailing space.
func (t *fakeTerminal) screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return trimScreen(t.vt.String())
}

func trimScreen(s string) string {
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimRight(l, " \x00"); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// fakeDesk accepts everything, unless a field says otherwise, and writes down what it was told.
type fakeDesk struct {
	remaining time.Duration
	timed     bool
	attachErr error
	onRespond func()
	respond   func(context.Context, []session.Answer) (bool, error)
	late      func(context.Context, []session.Answer) (bool, error)
	reject    func(context.Context, string) (bool, error)
	state     func(context.Context) (string, error)
	ended     chan Ended

	mu  sync.Mutex
	log []string
}

func newFakeDesk(remaining time.Duration) *fakeDesk {
	return &fakeDesk{remaining: remaining, timed: remaining > 0, ended: make(chan Ended, 1)}
}

func (d *fakeDesk) note(s string) { d.mu.Lock(); defer d.mu.Unlock(); d.log = append(d.log, s) }

func (d *fakeDesk) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.log, " ")
}

func (d *fakeDesk) Attach(context.Context) (time.Duration, bool, error) {
	d.note("attach")
	return d.remaining, d.timed, d.attachErr
}

func (d *fakeDesk) Respond(ctx context.Context, a []session.Answer) (bool, error) {
	d.note("respond:" + brief(a))
	if d.onRespond != nil {
		d.onRespond()
	}
	if d.respond != nil {
		return d.respond(ctx, a)
	}
	return true, nil
}

func (d *fakeDesk) Late(ctx context.Context, a []session.Answer) (bool, error) {
	d.note("late:" + brief(a))
	if d.late != nil {
		return d.late(ctx, a)
	}
	return true, nil
}

func (d *fakeDesk) Reject(ctx context.Context, code string) (bool, error) {
	d.note("reject:" + code)
	if d.reject != nil {
		return d.reject(ctx, code)
	}
	return true, nil
}

func (d *fakeDesk) State(ctx context.Context) (string, error) {
	d.note("state")
	if d.state != nil {
		return d.state(ctx)
	}
	return "", errors.New("no connection")
}

func (d *fakeDesk) Detach(context.Context) error { d.note("detach"); return nil }
func (d *fakeDesk) Ended() <-chan Ended          { return d.ended }

// brief writes answers as id=label,label/custom;…
func brief(answers []session.Answer) string {
	parts := make([]string, 0, len(answers))
	for _, a := range answers {
		s := a.ID + "=" + strings.Join(a.Selected, ",")
		if a.Custom != "" {
			s += "/" + a.Custom
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ";")
}

var colours = session.Question{ID: "c", Header: "Colour", Question: "Which colour?", Options: []session.Option{
	{Label: "red", Description: "like a rose"}, {Label: "green"}, {Label: "blue"},
}}

func timedCard(q ...session.Question) Card {
	return Card{SessionID: "s1", CallID: "call_1", Kind: KindQuestion, Timed: true, Questions: q, AnswerCommand: "deepseek answer s1 call_1"}
}

func approvalCard() Card {
	return Card{SessionID: "s1", CallID: "call_2", Kind: KindApproval, Blocking: true, EscAnswer: "no", Questions: []session.Question{{
		ID: "approve", Question: "Run this command?", Detail: "rm -r build\n+added\n-removed",
		Options: []session.Option{{Label: "no"}, {Label: "no, because…"}, {Label: "yes, once"}},
	}}}
}

// stage is one card being run in a synctest bubble.
type stage struct {
	t      *testing.T
	term   *fakeTerminal
	desk   *fakeDesk
	prompt *Prompter
	cancel context.CancelFunc
	done   chan struct{}
	res    Result
	err    error
}

func (s *stage) start(card Card) *stage { return s.play(s.prompt.Join(card, s.desk)) }

// play runs a card that has joined.
func (s *stage) play(run func(context.Context) (Result, error)) *stage {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.cancel, s.done = cancel, make(chan struct{})
	s.t.Cleanup(cancel)
	go func() {
		defer close(s.done)
		s.res, s.err = run(ctx)
	}()
	synctest.Wait()
	return s
}

// newStage must be called within a bubble. A remaining of 0 is no countdown.
func newStage(t *testing.T, remaining time.Duration) *stage {
	term := newFakeTerminal(60, 16)
	return &stage{t: t, term: term, desk: newFakeDesk(remaining), prompt: &Prompter{Terminal: term}}
}

// press types, in pieces as given, and waits until it is taken in and drawn.
func (s *stage) press(pieces ...string) {
	s.t.Helper()
	for _, p := range pieces {
		select {
		case s.term.input <- Input{Bytes: []byte(p)}:
		case <-s.done:
			s.t.Fatalf("typed %q at a card that had ended: %v %v", p, s.res, s.err)
		}
		synctest.Wait()
	}
}

// pass lets time go by.
func (s *stage) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func (s *stage) sees(want ...string) {
	s.t.Helper()
	screen := s.term.screen()
	for _, w := range want {
		if !strings.Contains(screen, w) {
			s.t.Fatalf("no %q on the screen:\n%s", w, screen)
		}
	}
}

func (s *stage) misses(unwanted string) {
	s.t.Helper()
	if screen := s.term.screen(); strings.Contains(screen, unwanted) {
		s.t.Fatalf("%q on the screen:\n%s", unwanted, screen)
	}
}

// ends waits for the card to end, checks the outcome, and that the terminal is back and the
// claim let go.
func (s *stage) ends(want Outcome) Result {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Hour):
		s.t.Fatalf("the card goes on:\n%s", s.term.screen())
	}
	if s.err != nil || s.res.Outcome != want {
		s.t.Fatalf("ended %v, %v; want %v; the desk heard: %s", s.res, s.err, want, s.desk.said())
	}
	if s.term.started || s.term.raw {
		s.t.Fatal("the terminal was not given back")
	}
	if said := s.desk.said(); strings.Contains(said, "attach") && !strings.HasSuffix(said, "detach") {
		s.t.Fatalf("the claim was not let go: %s", said)
	}
	return s.res
}

func (s *stage) told(want string) {
	s.t.Helper()
	if said := s.desk.said(); !strings.Contains(said, want) {
		s.t.Fatalf("the desk heard %q, want %q", said, want)
	}
}

const (
	up1   = "\x1b[A"
	down  = "\x1b[B"
	left  = "\x1b[D"
	ctrlC = "\x03"
	ctrlL = "\x0c"
	ctrlO = "\x0f"
	ctrlT = "\x14"
	ctrlZ = "\x1a"
)
