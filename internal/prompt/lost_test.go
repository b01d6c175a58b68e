package prompt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func TestLosing(t *testing.T) {
	lose := func(context.Context, []session.Answer) (bool, error) { return false, nil }
	t.Run("to another client's answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute).start(timedCard(colours))
			s.desk.ended <- Ended{Outcome: EndedAnswered, By: "shell 2"}
			if r := s.ends(Gone); r.By != "shell 2" {
				t.Fatal(r)
			}
			s.sees("answered by shell 2")
		})
	})
	t.Run("to another client's answer, which is told, and so is what was typed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute).start(timedCard(colours))
			s.press("mauve")
			s.desk.ended <- Ended{Outcome: EndedAnswered, Answers: []session.Answer{{ID: "c", Selected: []string{"green"}}}}
			s.ends(Gone)
			s.sees("? Colour: green (answered, not by this card)", "  what you had typed: mauve")
		})
	})
	t.Run("to another client's word that closes it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 0).start(timedCard(colours))
			s.press("mauve")
			s.desk.ended <- Ended{Outcome: EndedCancelled}
			s.ends(Gone)
			s.sees("Colour: closed", "  what you had typed: mauve")
		})
	})
	t.Run("to another's expiry, untouched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute).start(timedCard(colours))
			s.desk.ended <- Ended{Outcome: EndedPending}
			s.ends(Expired)
			s.sees("left pending, answer later with:")
		})
	})
	t.Run("to another's expiry, untouched: what another card has kept stays", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		synctest.Test(t, func(t *testing.T) {
			s := withDrafts(t, dir, time.Minute).start(timedCard(colours))
			other := newState(timedCard(colours))
			press(other, "mauve")
			if err := s.prompt.Drafts.Save("s1", "call_1", []session.Question{colours}, other.draft()); err != nil {
				t.Fatal(err)
			}
			s.desk.ended <- Ended{Outcome: EndedPending}
			s.ends(Expired)
			if _, ok := s.prompt.Drafts.Load("s1", "call_1", []session.Question{colours}); !ok {
				t.Error("the draft of a question that waits is gone")
			}
		})
	})
	t.Run("to another's expiry, touched: the same answer goes late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute).start(timedCard(colours))
			s.press("mauve")
			s.desk.ended <- Ended{Outcome: EndedPending, By: "the host"}
			synctest.Wait()
			s.sees("ended by the host", "mauve", "late answer")
			s.press("\r") // within half a second: meant for the card as it was
			s.pass(enterGuard)
			s.press("\r")
			s.ends(LateAnswered)
			s.told("attach late:c=/mauve detach")
			s.sees("answered late")
		})
	})
	t.Run("to expiry while submitting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.desk.respond = lose
			s.start(timedCard(colours))
			s.press(down, "\r")
			s.desk.ended <- Ended{Outcome: EndedPending}
			s.pass(enterGuard)
			s.sees("late answer", "> green")
			s.press("\r")
			s.ends(LateAnswered)
			s.told("respond:c=green late:c=green detach")
		})
	})
	t.Run("while submitting, and nobody says to whom", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.desk.respond = lose
			s.desk.state = func(context.Context) (string, error) { return StateSettled, nil }
			s.start(timedCard(colours))
			s.press("\r")
			s.ends(Gone)
			s.told("respond:c=red state detach")
		})
	})
	t.Run("the countdown to an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Second)
			s.desk.reject = func(context.Context, string) (bool, error) {
				s.desk.ended <- Ended{Outcome: EndedAnswered, By: "another shell"}
				return false, nil
			}
			s.start(timedCard(colours))
			s.ends(Gone)
			s.sees("answered by another shell")
		})
	})
	t.Run("a refused late answer stays on the card", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			card := timedCard(colours)
			card.Continued = true
			s := newStage(t, 0)
			s.desk.late = func(context.Context, []session.Answer) (bool, error) {
				return false, &Refused{Code: "REPLY_QUEUED", Message: "an answer waits already"}
			}
			s.start(card)
			s.sees("late answer")
			s.press("\r")
			s.sees("REPLY_QUEUED: an answer waits already")
			s.press(ctrlO)
			s.ends(HandedOver)
		})
	})
	t.Run("the run is cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute).start(timedCard(colours))
			s.desk.ended <- Ended{Outcome: EndedAborted}
			s.ends(Gone)
			s.sees("the run was cancelled, answer later with:")
		})
	})
	t.Run("the wait is gone before the card", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.desk.attachErr = ErrGone
			s.start(timedCard(colours)).ends(Gone)
			if s.term.starts != 0 {
				t.Fatal("a card was drawn")
			}
		})
	})
}

func TestLostConnection(t *testing.T) {
	broken := errors.New("connection reset")
	states := func(st string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return st, err }
	}
	for _, c := range []struct {
		name  string
		state func(context.Context) (string, error)
		want  Outcome
		sees  string
	}{
		{"state unknown", states("", broken), Unknown, "the outcome is unknown, answer later with:"},
		{"settled, by whom nobody knows", states(StateSettled, nil), Unknown, "the question has an answer"},
		{"removed", states(StateRemoved, nil), Gone, "the question is closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, time.Minute)
				s.desk.respond = func(context.Context, []session.Answer) (bool, error) { return false, broken }
				s.desk.state = c.state
				s.start(timedCard(colours))
				s.press("\r")
				s.ends(c.want)
				if flat := strings.ReplaceAll(s.term.screen(), "\n", " "); !strings.Contains(flat, c.sees) || strings.Contains(flat, "(answered)") {
					t.Fatal(flat)
				}
			})
		})
	}
	t.Run("still open: claimed again and sent again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			calls := 0
			s.desk.respond = func(context.Context, []session.Answer) (bool, error) {
				if calls++; calls == 1 {
					return false, broken
				}
				return true, nil
			}
			s.desk.state = states(StateOpen, nil)
			s.start(timedCard(colours))
			s.press("\r")
			s.sees("question is still open")
			s.press("\r")
			s.pass(enterGuard)
			s.press("\r")
			s.ends(Answered)
			s.told("attach respond:c=red state attach respond:c=red detach")
		})
	})
	t.Run("became continued: sent late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.desk.state = states(StateContinued, nil)
			s.start(timedCard(colours))
			s.press("mauve")
			close(s.desk.ended)
			s.pass(enterGuard)
			s.sees("the outcome is unknown", "Enter sends", "mauve")
			s.press("\r")
			s.ends(LateAnswered)
		})
	})
	t.Run("a connection that keeps breaking ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.desk.state = states(StateOpen, nil)
			close(s.desk.ended)
			s.start(timedCard(colours)).ends(Unknown)
		})
	})
}

func TestALostClaimIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Second)
		calls := 0
		s.desk.reject = func(context.Context, string) (bool, error) {
			if calls++; calls == 1 {
				return false, &Refused{Code: CodeNoClaim, Message: "the claim was lost"}
			}
			return true, nil
		}
		s.desk.state = func(context.Context) (string, error) { return StateOpen, nil }
		s.start(timedCard(colours))
		s.ends(Expired)
		if got := s.desk.said(); got != "attach reject:ASK_TIMED_OUT state attach reject:ASK_TIMED_OUT detach" {
			t.Fatal(got)
		}
	})
}

func TestALateCardWhoseQuestionWasSettledMeanwhileEnds(t *testing.T) {
	for _, c := range []struct {
		name, key, state string
		want             Outcome
		says             string
	}{
		{"Enter", "\r", StateSettled, Gone, "the question has an answer"},
		{"Enter, closed", "\r", StateRemoved, Gone, "the question is closed"},
		{"put away", "\x0f", StateSettled, Gone, "the question has an answer"},
		{"Ctrl+C", ctrlC, StateSettled, Interrupted, "the question has an answer"},
		{"Ctrl+C, closed", ctrlC, StateRemoved, Interrupted, "the question is closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			synctest.Test(t, func(t *testing.T) {
				s := withDrafts(t, dir, 0)
				s.desk.late = func(context.Context, []session.Answer) (bool, error) { return false, nil }
				state := newQuestionState()
				s.desk.state = state.read
				late := timedCard(colours)
				late.Continued = true
				s.start(late)
				s.press("mauve")
				s.pass(draftWait)
				state.Store(c.state)
				s.press(c.key)
				if res := s.ends(c.want); res.State != c.state {
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
