package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// patience bounds every wait for something that has to come.
const patience = time.Minute

// fake is a session whose log and status the test writes. mu guards what is below it.
type fake struct {
	id      string
	notices chan remote.Notice
	queued  chan string // texts
	failure error       // of following, once notices is closed
	past    remote.Page // what was in the log when it was taken

	mu        sync.Mutex
	seq       int64
	status    string
	cancels   []bool // keepInbox
	discarded []string
	inInbox   bool
	rested    string
	watcher   func(question.Event)
	claim     remote.Claim
	closed    int
}

func newFake() *fake {
	return &fake{id: "S", notices: make(chan remote.Notice, 64), queued: make(chan string, 8), status: statusIdle}
}

func (f *fake) Header() session.Header                 { return session.Header{ID: f.id} }
func (f *fake) Dir() string                            { return "/ws" }
func (f *fake) First() int64                           { return 0 }
func (f *fake) Level() string                          { return "read-only" }
func (f *fake) SetLevel(context.Context, string) error { return nil }
func (f *fake) AnswerCommand(callID string) string     { return "deepseek answer S " + callID }

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

func (f *fake) Queue(_ context.Context, text string) (string, error) {
	if text == "refuse" {
		return "", errors.New("the disk is full")
	}
	f.queued <- text
	return "m-" + text, nil
}

func (f *fake) Start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = "running"
}

func (f *fake) Status() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *fake) Cancel(_ context.Context, keepInbox bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancels = append(f.cancels, keepInbox)
	return nil
}

func (f *fake) Discard(_ context.Context, id string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discarded = append(f.discarded, id)
	return f.inInbox, nil
}

func (f *fake) Durable() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

func (f *fake) Read(context.Context, int64, int) (remote.Page, error) { return f.past, nil }

func (f *fake) Follow(ctx context.Context, _ int64, sink func(remote.Notice) error) error {
	if err := sink(remote.Notice{Status: statusIdle}); err != nil {
		return err
	}
	for {
		select {
		case n, ok := <-f.notices:
			if !ok {
				return f.failure
			}
			if err := sink(n); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fake) Watch(w func(question.Event)) (stop func()) {
	f.watcher = w
	return func() {}
}

func (f *fake) Attach(string) (remote.Claim, bool)                             { return f.claim, f.claim != nil }
func (f *fake) Waiting(context.Context) ([]remote.ActiveQuestion, error)       { return nil, nil }
func (f *fake) Answer(context.Context, string, []session.Answer) (bool, error) { return false, nil }

func (f *fake) Rest(_ context.Context, cause string) error {
	f.mu.Lock()
	f.rested = cause
	f.mu.Unlock()
	f.idle()
	return nil
}

// event puts one event on disk and tells it.
func (f *fake) event(typ string, data any) {
	e, err := session.NewEvent(typ, 1, data)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	e.Seq = f.seq
	f.seq++
	f.mu.Unlock()
	f.notices <- remote.Notice{Seq: e.Seq, Event: []byte(strings.TrimSpace(string(e.AppendLine(nil))))}
}

func (f *fake) idle() {
	f.mu.Lock()
	f.status = statusIdle
	f.mu.Unlock()
	f.notices <- remote.Notice{Status: statusIdle}
}

func (f *fake) receipt(text string) {
	f.event(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextTurn, Inserted: []session.UserMessage{message(text)}})
}

func message(text string) session.UserMessage {
	return session.NewUserMessage("m-"+text, text, session.Source{Kind: session.SourceUser})
}

// turn is a turn that claims the messages.
func (f *fake) turn(n int, end session.Reason, texts ...string) {
	f.event(session.TypeTurnStart, session.TurnStart{Turn: n})
	for _, text := range texts {
		f.event(session.TypeUserMessage, message(text))
	}
	f.event(session.TypeTurnEnd, session.TurnEnd{Turn: n, Reason: end})
}

// desk is a client that is spoken to by calls. It is Backend, lines and writer.
type desk struct {
	t    *testing.T
	fake *fake
	in   chan string
	out  chan string
	done chan error

	// Of sessions that are slow to open:
	opening chan string // their ids
	opened  chan error  // from the test: nil = it is there
	late    chan *fake  // it
}

func (d *desk) New(ctx context.Context, cwd string, _ []config.Server) (Session, error) {
	if cwd != "/slow" {
		return d.fake, nil
	}
	return d.slowly(ctx, "NEW")
}

func (d *desk) Load(ctx context.Context, id, cwd string, _ []config.Server) (Session, error) {
	if cwd != "/slow" {
		return d.fake, nil
	}
	return d.slowly(ctx, id)
}

func (d *desk) List(context.Context) ([]Info, error) { return nil, nil }

// slowly is a session that is there when the test says so, or cannot be opened.
func (d *desk) slowly(ctx context.Context, id string) (Session, error) {
	d.opening <- id
	select {
	case err := <-d.opened:
		if err != nil {
			return nil, err
		}
		f := newFake()
		f.id = id
		d.late <- f
		return f, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *desk) Next() ([]byte, bool, error) {
	line, ok := <-d.in
	if !ok {
		return nil, false, io.EOF
	}
	return []byte(line), false, nil
}

func (d *desk) Write(line []byte) (int, error) {
	d.out <- string(line)
	return len(line), nil
}

func newDesk(t *testing.T) *desk {
	d := &desk{
		t: t, fake: newFake(), in: make(chan string), out: make(chan string, 256), done: make(chan error, 1),
		opening: make(chan string, 16), opened: make(chan error, 16), late: make(chan *fake, 16),
	}
	go func() { d.done <- serve(context.Background(), d, d, d, Options{}) }()
	d.in <- `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`
	d.in <- `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/ws","mcpServers":[]}}`
	d.answer(2)
	return d
}

func (d *desk) prompt(id int, text string) {
	d.in <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"text","text":%q}]}}`, id, text)
}

// queue is a prompt whose message is on disk.
func (d *desk) queue(id int, text string) {
	d.t.Helper()
	d.prompt(id, text)
	select {
	case <-d.fake.queued:
	case <-time.After(patience):
		d.t.Fatal("the message is not queued")
	}
	d.fake.receipt(text)
}

// answer is the answer to a request, as "result …" or "error …".
func (d *desk) answer(id int) string {
	d.t.Helper()
	for {
		select {
		case line := <-d.out:
			var m struct {
				ID     json.RawMessage
				Result json.RawMessage
				Error  json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				d.t.Fatal(err)
			}
			if string(m.ID) != fmt.Sprint(id) {
				continue
			}
			if m.Error != nil {
				return "error " + string(m.Error)
			}
			return "result " + string(m.Result)
		case <-time.After(patience):
			d.t.Fatalf("%d is not answered", id)
		}
	}
}

func (d *desk) want(id int, part string) {
	d.t.Helper()
	if got := d.answer(id); !strings.Contains(got, part) {
		d.t.Errorf("%d: %s, want %s", id, got, part)
	}
}

func (d *desk) end() {
	d.t.Helper()
	close(d.in)
	select {
	case err := <-d.done:
		if err != nil {
			d.t.Error(err)
		}
	case <-time.After(patience):
		d.t.Fatal("the server does not end")
	}
}

var (
	completed = session.Reason{Kind: session.EndCompleted}
	failed    = session.Reason{Kind: session.EndError, Error: &session.ErrorInfo{Code: "SERVER", Message: "down", Status: 503}}
)

func TestAPromptEndsAtIdleAndNotWithItsTurn(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.turn(1, completed, "a")
	d.fake.turn(2, session.Reason{Kind: session.EndMaxTokens}) // somebody else's
	d.fake.turn(3, failed)
	d.prompt(4, "b")
	d.want(4, "error {\"code\":-32602")
	d.fake.idle()
	d.want(3, `result {"stopReason":"end_turn"}`)
	d.end()
}

func TestIdlenessBeforeTheReceiptIsNotThePrompts(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.turn(1, completed, "a")
	d.fake.idle()
	d.want(3, "end_turn")
	d.prompt(4, "b")
	<-d.fake.queued
	d.fake.idle() // of what went on before
	d.fake.receipt("b")
	d.prompt(5, "c")
	d.want(5, "error {\"code\":-32602")
	d.fake.turn(2, completed, "b")
	d.fake.idle()
	d.want(4, "end_turn")
	d.end()
}

func TestAModelErrorRejectsAtOnceAndTheSlotStaysTakenUntilIdle(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.turn(1, failed, "a")
	d.want(3, `SERVER: down (HTTP 503)`)
	d.prompt(4, "b")
	d.want(4, "error {\"code\":-32602")
	d.fake.turn(2, completed)
	d.fake.idle()
	for { // idleness is told by another goroutine
		d.prompt(5, "c")
		select {
		case <-d.fake.queued:
			d.fake.receipt("c")
			d.fake.turn(3, completed, "c")
			d.fake.idle()
			d.want(5, "end_turn")
			d.end()
			return
		case line := <-d.out:
			if !strings.Contains(line, "-32602") {
				t.Fatal(line)
			}
		case <-time.After(patience):
			t.Fatal("the slot stays taken")
		}
	}
}

func TestAMessageThatNobodyClaimedIsTakenBackAndCancelled(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.mu.Lock()
	d.fake.inInbox = true
	d.fake.mu.Unlock()
	d.fake.turn(1, failed, "of somebody else")
	d.fake.idle()
	d.want(3, `result {"stopReason":"cancelled"}`)
	d.end()
	if len(d.fake.discarded) != 1 || d.fake.discarded[0] != "m-a" {
		t.Errorf("discarded: %v", d.fake.discarded)
	}
}

func TestCancelGoesBeforeAModelError(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.in <- `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"S"}}`
	d.in <- `{"jsonrpc":"2.0","id":4,"method":"session/list","params":{}}`
	d.answer(4)
	d.fake.turn(1, failed, "a")
	d.fake.idle()
	d.want(3, "cancelled")
	d.end()
	if len(d.fake.cancels) == 0 || d.fake.cancels[0] {
		t.Errorf("cancels: %v, want one that throws the inbox out", d.fake.cancels)
	}
}

func TestACancelWithoutAPromptKeepsWhatOthersQueued(t *testing.T) {
	d := newDesk(t)
	d.in <- `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"S"}}`
	d.end()
	if len(d.fake.cancels) != 1 || !d.fake.cancels[0] {
		t.Errorf("cancels: %v", d.fake.cancels)
	}
}

func TestDisconnectCancelsThePromptAndKeepsTheInbox(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.turn(1, session.Reason{Kind: session.EndAborted}, "a")
	close(d.in)
	d.want(3, "cancelled")
	if err := <-d.done; err != nil {
		t.Error(err)
	}
	if d.fake.rested != session.CauseDisposed {
		t.Errorf("rested as %q", d.fake.rested)
	}
	for _, keep := range d.fake.cancels {
		if !keep {
			t.Error("the inbox was thrown out")
		}
	}
}

func TestUpdatesThatCannotBeToldFailThePrompt(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.failure = errors.New("the log is gone")
	close(d.fake.notices)
	d.want(3, "the log is gone")
	d.prompt(4, "b")
	d.want(4, "load it again")
	d.fake.notices = make(chan remote.Notice, 8) // for Rest
	d.end()
}

func TestAMessageThatCannotBeQueuedFailsThePromptAndFreesTheSlot(t *testing.T) {
	d := newDesk(t)
	for id := range 2 {
		d.prompt(3+id, "refuse")
		d.want(3+id, "the disk is full")
	}
	d.end()
}

func TestACancelAfterTheModelFailedEndsWhatOthersStarted(t *testing.T) {
	d := newDesk(t)
	d.queue(3, "a")
	d.fake.turn(1, failed, "a")
	d.want(3, "SERVER")
	d.in <- `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"S"}}`
	d.end()
	if len(d.fake.cancels) != 1 || !d.fake.cancels[0] {
		t.Errorf("cancels: %v, want one that keeps the inbox", d.fake.cancels)
	}
}

// beaten is a claim on a wait that another client answers at the moment when
// its time is up.
type beaten struct{ ended chan question.Ended }

func (b beaten) Card() question.Card                                     { return question.Card{} }
func (b beaten) Remaining() time.Duration                                { return time.Millisecond }
func (b beaten) Respond(context.Context, []session.Answer) (bool, error) { return false, nil }
func (b beaten) Ended() <-chan question.Ended                            { return b.ended }
func (b beaten) Detach()                                                 {}

func (b beaten) Reject(context.Context, string) (bool, error) {
	b.ended <- question.Ended{Outcome: question.Answered}
	close(b.ended)
	return false, nil
}

func TestExpiryThatLosesToAnAnswerIsNotToldAsPending(t *testing.T) {
	d := newDesk(t)
	b := beaten{ended: make(chan question.Ended, 1)}
	d.fake.claim = b
	d.fake.watcher(question.Event{Type: question.Opened, Card: question.Card{
		CallID: "q1", Kind: question.KindQuestion, Timed: true,
		Questions: []session.Question{{ID: "a", Question: "A?", Options: []session.Option{{Label: "x"}}}},
	}})
	for line := range d.out {
		if strings.Contains(line, "$/cancel_request") {
			break
		}
		if strings.Contains(line, "Left pending. Answer it later") {
			t.Error("it was told as pending")
		}
	}
	d.end()
}
