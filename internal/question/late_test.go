package question

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"deepseek/internal/session"
)

// late is a service whose root holds the question "c" in state continued.
func late(t *testing.T) (*Service, *fakeRoot) {
	root := newRoot(t)
	root.header(askTimedSchema)
	root.message()
	root.call("c", dbArgs)
	root.result("c", "", session.CodeOutcomeUnknown)
	s := New("session", SystemClock{})
	s.Bind(root)
	return s, root
}

func TestLateAnswer(t *testing.T) {
	tests := []struct {
		name  string
		setup func(*testing.T, *Service, *fakeRoot)
		id    string
		batch []session.Answer
		want  string // "true", "false" or a code
		state session.QuestionState
	}{
		{"continued", nil, "c", pick("pg"), "true", session.QuestionContinued},
		{"unknown", nil, "x", pick("pg"), "false", ""},
		{"open", func(t *testing.T, _ *Service, r *fakeRoot) { r.call("o", dbArgs) }, "o", pick("pg"), "false", session.QuestionOpen},
		{"settled", func(t *testing.T, s *Service, r *fakeRoot) {
			r.call("o", dbArgs)
			r.result("o", `{"answers":[{"id":"db","selected":[]}]}`, "")
		}, "o", nil, "false", session.QuestionSettled},
		{"a bad batch", nil, "c", pick("oracle"), CodeBadAnswer, session.QuestionContinued},
		{"an empty batch", nil, "c", nil, CodeBadAnswer, session.QuestionContinued},
		{"one is queued, whatever the batch", func(t *testing.T, s *Service, r *fakeRoot) { answer(t, s) }, "c", nil, CodeReplyQueued, session.QuestionContinued},
		{"one is claimed", func(t *testing.T, s *Service, r *fakeRoot) {
			answer(t, s)
			r.claim()
		}, "c", pick("pg"), CodeReplyQueued, session.QuestionContinued},
		{"one was claimed by a turn that ended without it", func(t *testing.T, s *Service, r *fakeRoot) {
			answer(t, s)
			r.claim()
			r.put(session.TypeTurnEnd, session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndAborted}})
		}, "c", pick("pg"), CodeReplyQueued, session.QuestionContinued},
		{"one was admitted", func(t *testing.T, s *Service, r *fakeRoot) {
			answer(t, s)
			for _, m := range r.claim() {
				r.put(session.TypeUserMessage, m)
			}
		}, "c", pick("pg"), "false", session.QuestionSettled},
		{"one was withdrawn", func(t *testing.T, s *Service, r *fakeRoot) {
			answer(t, s)
			if ok, err := s.Withdraw(t.Context(), "c"); !ok || err != nil {
				t.Fatalf("withdraw: %v, %v", ok, err)
			}
		}, "c", pick("lite"), "true", session.QuestionContinued},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, root := late(t)
			if tt.setup != nil {
				tt.setup(t, s, root)
			}
			before := root.st.Next
			ok, err := s.Answer(t.Context(), tt.id, tt.batch)
			got := fmt.Sprint(ok)
			if err != nil {
				got = code(err)
			}
			if got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
			if wrote := root.st.Next > before; wrote != (tt.want == "true") {
				t.Errorf("wrote: %v", wrote)
			}
			q, queued, _ := s.State(tt.id)
			if q.State != tt.state || tt.want == "true" && !queued {
				t.Errorf("state %q, queued %v", q.State, queued)
			}
		})
	}
}

func answer(t *testing.T, s *Service) {
	t.Helper()
	if ok, err := s.Answer(t.Context(), "c", pick("pg")); !ok || err != nil {
		t.Fatalf("answer: %v, %v", ok, err)
	}
}

func TestLateAnswerSettlesOnAdmission(t *testing.T) {
	s, root := late(t)
	answer(t, s)
	m, _, _ := root.st.Inbox.Reply("c")
	if m.Source != (session.Source{Kind: session.SourceQuestionReply, CallID: "c", Outcome: "answered"}) || len(m.Content) != 1 {
		t.Errorf("%+v", m)
	}
	for _, m := range root.claim() {
		root.put(session.TypeUserMessage, m)
	}
	q, queued, _ := s.State("c")
	if q.State != session.QuestionSettled || !q.Late || queued || len(q.Answers) != 1 || q.Answers[0].Selected[0] != "pg" {
		t.Errorf("%+v, %v", q, queued)
	}
}

func TestWithdraw(t *testing.T) {
	s, root := late(t)
	withdraw := func(id string, want bool, reason string) {
		t.Helper()
		_, err := DecideWithdraw(&root.st, id)
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("decided: %v, want %q", err, reason)
		}
		if ok, err := s.Withdraw(t.Context(), id); ok != want || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
	withdraw("x", false, "no question of this session")
	withdraw("c", false, "no queued reply")
	answer(t, s)
	withdraw("c", true, "")
	withdraw("c", false, "no queued reply")
	answer(t, s)
	root.claim()
	withdraw("c", false, "on its way")
}

func TestDecideAnswerNamesTheState(t *testing.T) {
	_, root := late(t)
	root.call("o", dbArgs)
	for id, want := range map[string]session.QuestionState{"o": session.QuestionOpen, "x": ""} {
		_, err := DecideAnswer(&root.st, id, pick("pg"))
		var not *NotContinued
		if !errors.As(err, &not) || not.State != want || not.CallID != id {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestOfManyLateAnswersOneIsQueued(t *testing.T) {
	for range 100 {
		s, root := late(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		got := map[string]int{}
		for range 8 {
			wg.Go(func() {
				ok, err := s.Answer(t.Context(), "c", pick("pg"))
				mu.Lock()
				defer mu.Unlock()
				if ok {
					got["true"]++
				} else {
					got[code(err)]++
				}
			})
		}
		wg.Wait()
		if got["true"] != 1 || got[CodeReplyQueued] != 7 || root.st.Inbox.Len(session.NextStep) != 1 {
			t.Fatalf("%v", got)
		}
	}
}

// Two questions may have replies queued at once, and one step takes both.
func TestTwoRepliesAtOnce(t *testing.T) {
	s, root := late(t)
	root.call("d", dbArgs)
	root.result("d", "", session.CodeAskAborted)
	for _, id := range []string{"c", "d"} {
		if ok, err := s.Answer(t.Context(), id, pick("pg")); !ok || err != nil {
			t.Errorf("%s: %v, %v", id, ok, err)
		}
	}
	for _, m := range root.claim() {
		root.put(session.TypeUserMessage, m)
	}
	if got := len(root.st.Questions.Settled()); got != 2 {
		t.Errorf("%d settled", got)
	}
}
