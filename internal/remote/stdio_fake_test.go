package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/session"
)

// fakeBackend is a store of sessions in memory. mu guards the maps.
type fakeBackend struct {
	mu      sync.Mutex
	host    map[string]*fakeHost // all that there are
	elses   map[string]bool      // those with another owner
	owned   map[string]*fakeSession
	cause   string // of the last Rest
	restErr error
	setup   func(*fakeHost) // of a session that begins; may be nil
	hold    chan struct{}   // List waits for it, if it is not nil
	listing chan struct{}   // closed when List begins to wait
}

func newBackend() *fakeBackend {
	return &fakeBackend{host: map[string]*fakeHost{}, elses: map[string]bool{}, owned: map[string]*fakeSession{}}
}

// add makes an old session with so many events.
func (b *fakeBackend) add(id string, events int) *fakeHost {
	h := newHost()
	h.id = id
	for range events {
		h.log(session.TypeTurnStart, session.TurnStart{Turn: 1})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.host[id] = h
	return h
}

func (b *fakeBackend) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.owned)
}

func (b *fakeBackend) own(h *fakeHost) *fakeSession {
	s := &fakeSession{fakeHost: h, b: b, first: int64(len(h.events))}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owned[h.id] = s
	return s
}

func (b *fakeBackend) Initialize(_ context.Context, p *InitializeParams) (ServerCapabilities, error) {
	if p.Cwd == "/nowhere" {
		return ServerCapabilities{}, invalid("cwd", "is no folder")
	}
	return ServerCapabilities{Questions: true, Approvals: p.Capabilities != nil && p.Capabilities.Approvals}, nil
}

func (b *fakeBackend) Begin(ctx context.Context, content []session.Block) (Session, string, error) {
	if session.TextOf(content) == "no key" {
		return nil, "", refuse("CONFIG", "there is no key")
	}
	b.mu.Lock()
	n := len(b.host)
	b.mu.Unlock()
	h := b.add(fmt.Sprintf("new-%d", n), 0)
	if b.setup != nil {
		b.setup(h)
	}
	s := b.own(h)
	s.log(session.TypeInboxSpliced, session.InboxSpliced{Inserted: []session.UserMessage{{ID: "m"}}})
	id, err := h.Prompt(ctx, content)
	return s, id, err
}

func (b *fakeBackend) Take(_ context.Context, ref string) (Session, error) {
	if err := b.Free(context.Background(), ref); err != nil {
		return nil, err
	}
	b.mu.Lock()
	h := b.host[ref]
	b.mu.Unlock()
	return b.own(h), nil
}

func (b *fakeBackend) Find(_ context.Context, ref string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.host[ref] == nil {
		return "", refuse(CodeSessionNotFound, "there is no session %s", ref)
	}
	return ref, nil
}

func (b *fakeBackend) Free(_ context.Context, ref string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.elses[ref] {
		return refuse(CodeSessionBusy, "it has an owner")
	}
	return nil
}

func (b *fakeBackend) Read(ctx context.Context, ref string, from int64, most int) (session.Header, Page, error) {
	b.mu.Lock()
	h := b.host[ref]
	b.mu.Unlock()
	page, err := h.Read(ctx, from, most)
	return h.Header(), page, err
}

func (b *fakeBackend) Questions(context.Context, string) (QuestionList, error) {
	return QuestionList{Active: []ActiveQuestion{{CallID: "dead"}}}, nil
}

func (b *fakeBackend) List(ctx context.Context) (any, error) {
	if b.hold != nil {
		close(b.listing)
		select {
		case <-b.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return []string{"row"}, nil
}

// fakeSession is a session that is owned. It writes an event when it rests.
type fakeSession struct {
	*fakeHost
	b     *fakeBackend
	first int64
}

func (s *fakeSession) First() int64 { return s.first }
func (s *fakeSession) Start()       { s.log(session.TypeTurnStart, session.TurnStart{Turn: 1}) }

func (s *fakeSession) Rest(_ context.Context, cause string) error {
	s.record("rest %s", cause)
	s.log(session.TypeTurnEnd, session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: "aborted"}})
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.cause = cause
	return s.b.restErr
}

func (s *fakeSession) Close() error {
	s.record("close")
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.owned, s.id)
	return nil
}

// pipes is a server on two pipes, and its client.
type pipes struct {
	t    *testing.T
	in   *os.File // the client writes
	out  *bufio.Reader
	raw  *os.File
	done chan error
	stop context.CancelFunc
	id   int
	seen []message // notifications, and errors without an id
}

func serveBackend(t *testing.T, b Backend, lim limits) *pipes {
	t.Helper()
	noLeak(t)
	if lim == stdioLimits { // a slow machine is no slow client
		lim.stall, lim.flush = patience, patience
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &pipes{t: t, in: inW, raw: outR, out: bufio.NewReader(outR), done: make(chan error, 1), stop: stop}
	go func() {
		files, err := newFileStream(inR, outW)
		if err == nil {
			err = serveStdio(ctx, files, b, Options{Version: "1.2.3"}.orQuiet(), lim)
			err = errors.Join(err, files.release())
		}
		p.done <- errors.Join(err, inR.Close(), outW.Close())
	}()
	t.Cleanup(func() {
		stop()
		_ = inW.Close() // a test may have
		_ = outR.Close()
	})
	return p
}

func (p *pipes) write(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipes) next() (message, error) {
	if err := p.raw.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return message{}, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return message{}, err
	}
	var m message
	err = json.Unmarshal(line, &m)
	return m, err
}

// answer reads to the answer of a request.
func (p *pipes) answer(id string) message {
	p.t.Helper()
	for {
		m, err := p.next()
		if err != nil {
			p.t.Fatalf("no answer to %s: %v", id, err)
		}
		if string(m.ID) == id {
			return m
		}
		p.seen = append(p.seen, m)
	}
}

// call sends a request and returns its result, or the code of its refusal.
func (p *pipes) call(method, params string) (result, code string) {
	p.t.Helper()
	p.id++
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", p.id, method, params))
	m := p.answer(fmt.Sprint(p.id))
	if m.Error != nil {
		e := fromWire(m.Error)
		if e.Path != "" {
			return "", e.Code + " " + e.Path
		}
		return "", e.Code
	}
	return string(m.Result), ""
}

func (p *pipes) initialize() {
	p.t.Helper()
	if _, code := p.call(MethodInitialize, `{"cwd":"/"}`); code != "" {
		p.t.Fatal(code)
	}
}

// rest reads to the end of the output.
func (p *pipes) rest() []message {
	p.t.Helper()
	for {
		m, err := p.next()
		if errors.Is(err, io.EOF) {
			return p.seen
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.seen = append(p.seen, m)
	}
}

// ended returns the server's own error.
func (p *pipes) ended() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(patience):
		p.t.Fatal("the server does not end")
		return nil
	}
}

// words are notifications as words.
func words(list []message) string {
	var out []string
	for _, m := range list {
		var p struct {
			SessionID, Status string
			Event             struct {
				Seq  int64
				Type string
			}
		}
		switch {
		case m.Method == NoteDelta:
			continue
		case m.Method == "":
			out = append(out, "error")
			continue
		case json.Unmarshal(m.Params, &p) != nil:
			out = append(out, "?")
			continue
		}
		word := p.SessionID + " " + strings.TrimPrefix(m.Method, "session.")
		if p.Event.Type != "" {
			word += fmt.Sprintf(" %d %s", p.Event.Seq, p.Event.Type)
		}
		out = append(out, strings.TrimSpace(word+" "+p.Status))
	}
	return strings.Join(out, "; ")
}
