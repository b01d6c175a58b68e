package prompt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

// questionState is a state that the test changes while a card looks at it.
type questionState struct{ atomic.Value }

func newQuestionState() *questionState {
	s := &questionState{}
	s.Store(StateContinued)
	return s
}

func (s *questionState) read(context.Context) (string, error) { return s.Load().(string), nil }

// lateStage is a late card with drafts in dir, whose desk tells the state that the function returns.
func lateStage(t *testing.T, dir string, state func(context.Context) (string, error)) *stage {
	late := timedCard(colours)
	late.Continued = true
	s := withDrafts(t, dir, 0)
	s.desk.state = state
	return s.start(late)
}

func TestALateCardEndsByItselfWhenItsQuestionHas(t *testing.T) {
	for _, c := range []struct{ name, state, says string }{
		{"answered", StateSettled, "? Colour: answered, not by this card"},
		{"closed", StateRemoved, "? Colour: closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			synctest.Test(t, func(t *testing.T) {
				state := newQuestionState()
				s := lateStage(t, dir, state.read)
				s.press("mauve")
				s.pass(10 * lateLook)
				s.sees("mauve")
				state.Store(c.state)
				s.pass(lateLook)
				if res := s.ends(Gone); res.State != c.state {
					t.Error(res)
				}
				s.sees(c.says, "what you had typed: mauve")
				s.misses("answer later with")
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Error("the draft stayed:", err)
				}
			})
		})
	}
}

func TestACardThatIsNotLateDoesNotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute).start(timedCard(colours))
		s.press("mauve")
		s.pass(time.Hour)
		s.press(ctrlC)
		s.ends(Interrupted)
		if said := s.desk.said(); strings.Contains(said, "state") {
			t.Error(said)
		}
	})
}

func TestALookThatCannotSeeChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	synctest.Test(t, func(t *testing.T) {
		s := lateStage(t, dir, func(context.Context) (string, error) { return "", errors.New("no connection") })
		s.press("mauve")
		s.pass(time.Minute)
		s.sees("mauve", "late answer")
		if _, ok := s.prompt.Drafts.Load("s1", "call_1", []session.Question{colours}); !ok {
			t.Error("there is no draft of a question that may still wait")
		}
		s.press("\r")
		s.ends(LateAnswered)
	})
}

// TestALookIsGivenUpForTheAnswer: the calls of a card never overlap.
func TestALookIsGivenUpForTheAnswer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	synctest.Test(t, func(t *testing.T) {
		var looking atomic.Bool
		s := lateStage(t, dir, func(ctx context.Context) (string, error) {
			looking.Store(true)
			<-ctx.Done()
			looking.Store(false)
			return "", ctx.Err()
		})
		s.desk.late = func(context.Context, []session.Answer) (bool, error) {
			if looking.Load() {
				t.Error("the look goes on")
			}
			return true, nil
		}
		s.pass(lateLook)
		if !looking.Load() {
			t.Fatal("it does not look")
		}
		s.press("\r")
		s.ends(LateAnswered)
	})
}

// TestADraftDoesNotComeBackAfterItsQuestion: the owner of the session has dropped it.
func TestADraftDoesNotComeBackAfterItsQuestion(t *testing.T) {
	typesMore := func(s *stage) { s.press("!") }
	for name, c := range map[string]struct {
		then func(*stage)
		want Outcome
	}{
		"while it is typed": {func(s *stage) { typesMore(s); s.pass(draftWait) }, Gone},
		"by Ctrl+Z":         {func(s *stage) { typesMore(s); s.press(ctrlZ) }, Gone},
		"by Ctrl+C":         {func(s *stage) { typesMore(s); s.press(ctrlC) }, Interrupted},
		"by Ctrl+O":         {func(s *stage) { typesMore(s); s.press(ctrlO) }, Gone},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			synctest.Test(t, func(t *testing.T) {
				state := newQuestionState()
				s := lateStage(t, dir, state.read)
				s.press("mauve")
				s.pass(draftWait)
				s.settledBy(state, dir)
				c.then(s)
				s.ends(c.want)
				s.sees("what you had typed: mauve!")
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Error("there is a draft again:", err)
				}
			})
		})
	}
	t.Run("by the end of the program", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		synctest.Test(t, func(t *testing.T) {
			state := newQuestionState()
			s := lateStage(t, dir, state.read)
			s.press("mauve")
			s.pass(draftWait)
			s.settledBy(state, dir)
			typesMore(s)
			s.cancel()
			<-s.done
			if s.err == nil || s.res.State != StateSettled {
				t.Error(s.res, s.err)
			}
			s.sees("not answered; the question has an answer", "what you had typed: mauve!")
			s.misses("answer later with")
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Error("there is a draft again:", err)
			}
		})
	})
	t.Run("by a second Ctrl+C while the answer is on its way", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		synctest.Test(t, func(t *testing.T) {
			state := newQuestionState()
			s := lateStage(t, dir, state.read)
			s.desk.late = func(ctx context.Context, _ []session.Answer) (bool, error) {
				<-ctx.Done()
				return false, ctx.Err()
			}
			s.press("mauve", "\r")
			s.settledBy(state, dir)
			s.press(ctrlC)
			s.ends(Interrupted)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Error("there is a draft again:", err)
			}
		})
	})
}

// settledBy settles the question as the owner of a session does: drafts and all.
func (s *stage) settledBy(state *questionState, dir string) {
	s.t.Helper()
	if _, err := os.Stat(dir); err != nil {
		s.t.Fatal("there was no draft:", err)
	}
	state.Store(StateSettled)
	if err := (FileDrafts{Dir: dir}).Keep(func() []string { return nil }); err != nil {
		s.t.Fatal(err)
	}
}

// TestAnUntouchedCardWhoseConnectionWasLostExpires, as it does when Ctrl+Z stopped it: it does not
// stay as a late one that nobody wants.
func TestAnUntouchedCardWhoseConnectionWasLostExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.desk.state = func(context.Context) (string, error) { return StateContinued, nil }
		s.start(timedCard(colours))
		close(s.desk.ended)
		s.ends(Expired)
		s.sees("left pending, answer later with:")
	})
}
