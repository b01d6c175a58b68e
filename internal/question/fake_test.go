package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"deepseek/internal/session"
)

// fakeRoot is a live agent made of the real folds, without a driver or a disk.
type fakeRoot struct {
	t  *testing.T
	mu sync.Mutex
	st session.State
	n  int
}

func newRoot(t *testing.T) *fakeRoot { return &fakeRoot{t: t} }

func (r *fakeRoot) put(typ string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apply(typ, data)
}

func (r *fakeRoot) apply(typ string, data any) {
	e, err := session.NewEvent(typ, 1, data)
	if err != nil {
		r.t.Error(err)
	}
	e.Seq = r.st.Next
	if err := r.st.Apply(e); err != nil {
		r.t.Error(err)
	}
}

func (r *fakeRoot) View(f func(*session.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.st)
}

func (r *fakeRoot) SteerIf(_ context.Context, src session.Source, decide func(*session.State) (string, error)) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := decide(&r.st)
	if err != nil {
		return "", err
	}
	r.n++
	m := session.NewUserMessage(fmt.Sprint("m", r.n), text, src)
	r.apply(session.TypeInboxSpliced, r.st.Inbox.Insert(session.NextStep, m))
	return m.ID, nil
}

func (r *fakeRoot) DiscardIf(_ context.Context, decide func(*session.State) (string, error)) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := decide(&r.st)
	if err != nil {
		return false, err
	}
	splice, ok := r.st.Inbox.Discard(id)
	if ok {
		r.apply(session.TypeInboxSpliced, splice)
	}
	return ok, nil
}

// claim takes what is queued, as the step of a turn does.
func (r *fakeRoot) claim() (claimed []session.UserMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	splices, claimed := r.st.Inbox.Claim(true)
	for _, s := range splices {
		r.apply(session.TypeInboxSpliced, s)
	}
	return claimed
}

func (r *fakeRoot) header(schema string) {
	r.put(session.TypeRequestHeader, session.RequestHeader{Header: session.HeaderBody{
		Tools: []session.ToolSpec{{Name: session.AskTool, Parameters: json.RawMessage(schema)}},
	}})
}

func (r *fakeRoot) message() { r.put(session.TypeAssistantMessage, session.AssistantMessage{}) }

func (r *fakeRoot) call(id, args string) {
	r.put(session.TypeToolCall, session.ToolCall{CallID: id, Name: session.AskTool, Arguments: args})
}

func (r *fakeRoot) result(id, content, code string) {
	res := session.ToolResult{Message: session.ToolMessage{ToolCallID: id, Content: content, IsError: code != ""}}
	if code != "" {
		res.Error = &session.ToolError{Name: session.AskTool, Code: code}
	}
	r.put(session.TypeToolResult, res)
}

const dbArgs = `{"questions":[{"id":"db","question":"Which?","options":[{"label":"pg"},{"label":"lite"}]}]}`

func dbQuestions() []session.Question {
	qs, _, _ := session.ParseQuestions(dbArgs)
	return qs
}

func pick(label string) []session.Answer {
	return []session.Answer{{ID: "db", Selected: []string{label}}}
}

// everybody is a provider for all cards.
func everybody(Card) bool { return true }

func request(id string, kind Kind) Request {
	return Request{CallID: id, Kind: kind, Questions: dbQuestions(), Caller: Caller{Live: true}}
}

func newService(t *testing.T) *Service {
	s := New("session", SystemClock{})
	s.Bind(newRoot(t))
	return s
}

// empty fails unless every ending has freed all that belonged to it.
func empty(t *testing.T, s *Service) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waits) != 0 || len(s.events) != 0 || s.delivering {
		t.Errorf("left over: %d waits, %d events", len(s.waits), len(s.events))
	}
}

func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}
