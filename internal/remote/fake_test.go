package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// fakeHost is a session in memory. It records what is asked of it, in order.
type fakeHost struct {
	id        string
	approvals bool

	mu       sync.Mutex
	calls    []string
	events   []json.RawMessage
	changed  chan struct{} // closed and replaced with every event
	waits    map[string]*fakeWait
	watchers map[int]func(question.Event)
	watched  int
	fail     error         // what Prompt answers
	hold     chan struct{} // Prompt waits for it, if it is not nil
	held     chan struct{} // gets a token when Prompt begins to wait
}

func newHost() *fakeHost {
	return &fakeHost{
		id: "20261130-171203-7f3kq", changed: make(chan struct{}),
		waits: map[string]*fakeWait{}, watchers: map[int]func(question.Event){}, held: make(chan struct{}, 100),
	}
}

func (h *fakeHost) record(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
}

func (h *fakeHost) recorded() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.calls...)
}

func (h *fakeHost) log(typ string, data any) {
	e, err := session.NewEvent(typ, 1, data)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e.Seq = int64(len(h.events))
	line := e.AppendLine(nil)
	h.events = append(h.events, line[:len(line)-1])
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *fakeHost) Header() session.Header {
	return session.Header{Type: "session", Version: 1, ID: h.id, Cwd: "/w"}
}

func (h *fakeHost) Prompt(ctx context.Context, content []session.Block) (string, error) {
	h.mu.Lock()
	hold, fail := h.hold, h.fail
	h.mu.Unlock()
	if hold != nil {
		h.held <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	h.record("prompt %s", session.TextOf(content))
	if session.TextOf(content) == "panic" {
		panic("oh")
	}
	return "m-" + session.TextOf(content), fail
}

func (h *fakeHost) Steer(_ context.Context, content []session.Block) (string, error) {
	h.record("steer %s", session.TextOf(content))
	return "s-" + session.TextOf(content), nil
}

func (h *fakeHost) Cancel(_ context.Context, keepInbox bool) error {
	h.record("cancel %v", keepInbox)
	return nil
}

func (h *fakeHost) Read(_ context.Context, from int64, maxBytes int) (Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := Page{NextSeq: min(from, int64(len(h.events)))}
	size := 0
	for i := from; i < int64(len(h.events)); i++ {
		if size += len(h.events[i]); len(p.Events) > 0 && size > maxBytes {
			p.More = true
			break
		}
		p.Events = append(p.Events, h.events[i])
		p.NextSeq++
	}
	return p, nil
}

func (h *fakeHost) Follow(ctx context.Context, from int64, sink func(Notice) error) error {
	if err := sink(Notice{Status: "running"}); err != nil {
		return err
	}
	for {
		h.mu.Lock()
		changed := h.changed
		fresh := append([]json.RawMessage(nil), h.events[from:]...)
		h.mu.Unlock()
		for _, e := range fresh {
			if err := sink(Notice{Seq: from, Event: e}); err != nil {
				return err
			}
			if err := sink(Notice{Delta: &Delta{Turn: 1, Step: 1, Kind: "text", Text: "d"}}); err != nil {
				return err
			}
			from++
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *fakeHost) Status() string { return "idle" }

func (h *fakeHost) Questions(context.Context) (QuestionList, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var l QuestionList
	for id := range h.waits {
		l.Active = append(l.Active, ActiveQuestion{CallID: id, State: "open"})
	}
	return l, nil
}

func (h *fakeHost) Attach(callID string) (Claim, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waits[callID]
	if w == nil || w.outcome != "" {
		return nil, false
	}
	c := &fakeClaim{w: w, ended: make(chan question.Ended, 1)}
	w.claims = append(w.claims, c)
	return c, true
}

func (h *fakeHost) Answer(_ context.Context, callID string, answers []session.Answer) (bool, error) {
	h.record("answer %s %d", callID, len(answers))
	if callID == "queued" {
		return false, &question.Error{Code: question.CodeReplyQueued, Message: "there is one already"}
	}
	return true, nil
}

func (h *fakeHost) Withdraw(_ context.Context, callID string) (bool, error) {
	h.record("withdraw %s", callID)
	return callID == "queued", nil
}

func (h *fakeHost) Watch(f func(question.Event)) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.watched
	h.watched++
	h.watchers[n] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, n)
	}
}

func (h *fakeHost) happen(e question.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.watchers {
		f(e)
	}
}

func (h *fakeHost) RemoteApprovals() bool { return h.approvals }

// open begins a wait.
func (h *fakeHost) open(callID string, kind question.Kind, remaining time.Duration) *fakeWait {
	w := &fakeWait{h: h, card: question.Card{CallID: callID, Kind: kind, Remaining: remaining, Timed: remaining >= 0}}
	h.mu.Lock()
	h.waits[callID] = w
	h.mu.Unlock()
	return w
}

// fakeWait is a wait whose claims and outcome the host's mutex guards.
type fakeWait struct {
	h       *fakeHost
	card    question.Card
	claims  []*fakeClaim
	outcome string
}

func (w *fakeWait) held() int {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	return len(w.claims)
}

// settle ends the wait for all; by may be nil.
func (w *fakeWait) settle(outcome string, by *fakeClaim) bool {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	if w.outcome != "" {
		return false
	}
	w.outcome = outcome
	for _, c := range w.claims {
		c.ended <- question.Ended{Outcome: outcome, Mine: c == by}
		close(c.ended)
	}
	w.claims = nil
	return true
}

type fakeClaim struct {
	w     *fakeWait
	ended chan question.Ended
}

func (c *fakeClaim) Card() question.Card          { return c.w.card }
func (c *fakeClaim) Remaining() time.Duration     { return c.w.card.Remaining }
func (c *fakeClaim) Ended() <-chan question.Ended { return c.ended }
func (c *fakeClaim) Respond(_ context.Context, a []session.Answer) (bool, error) {
	if len(a) == 0 {
		return false, &question.Error{Code: question.CodeBadAnswer, Message: "no answers"}
	}
	return c.w.settle(question.Answered, c), nil
}

func (c *fakeClaim) Reject(_ context.Context, code string) (bool, error) {
	if code == question.CodeTimedOut {
		return c.w.settle(question.Pending, c), nil
	}
	return c.w.settle(question.Cancelled, c), nil
}

func (c *fakeClaim) Detach() {
	c.w.h.mu.Lock()
	defer c.w.h.mu.Unlock()
	for i, x := range c.w.claims {
		if x == c {
			c.w.claims = append(c.w.claims[:i], c.w.claims[i+1:]...)
			close(c.ended)
			return
		}
	}
}

// served is a session on a real socket.
type served struct {
	*fakeHost
	l    *Listener
	done chan error
}

func serveHost(t *testing.T, h *fakeHost) *served {
	t.Helper()
	noLeak(t)
	l, err := Listen(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	l.lim.page = 10 << 10
	l.lim.stall, l.lim.silence, l.lim.flush = patience, patience, patience // a slow machine is no slow client
	o := &served{h, l, make(chan error, 1)}
	go func() {
		o.done <- l.Serve(context.Background(), h, Options{Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-o.done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return o
}

func (o *served) dial(t *testing.T) *Client {
	t.Helper()
	c, err := Dial(testContext(t), o.l.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

// raw is a connection without a client of ours.
func (o *served) raw(t *testing.T) *net.UnixConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(testContext(t), "unix", o.l.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.UnixConn)
}

// patience bounds every wait for something that has to come.
const patience = time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// shortDir is a folder for sockets: t.TempDir may be too long for one.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := Dir(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// eventually waits for something that another goroutine is about to do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// noLeak fails a test that leaves goroutines of this package behind.
func noLeak(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
			buf := make([]byte, 1<<20)
			left = ""
			for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				if strings.Contains(g, "internal/remote.") && !strings.Contains(g, "testing.tRunner") && !strings.Contains(g, "testing.runFuzz") && !strings.Contains(g, "testing.fRunner") && !strings.Contains(g, "[running]") {
					left += g + "\n\n"
				}
			}
			if left == "" {
				return
			}
		}
		t.Errorf("goroutines left:\n%s", left)
	})
}

func text(s string) []session.Block { return []session.Block{{Type: session.BlockText, Text: s}} }
