package prompt

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func TestUntouchedCardCountsDownAndIsLeftPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 61*time.Second).start(timedCard(colours))
		s.sees("1:01", "Which colour?", "> red", "like a rose", "Other…", "Ctrl+T", "Ctrl+O", "Ctrl+L")
		s.pass(1500 * time.Millisecond)
		s.sees("1:00")
		s.pass(time.Second)
		s.sees("59s")
		s.pass(58400 * time.Millisecond)
		s.sees("1s")
		s.ends(Expired)
		s.sees("left pending, answer later with:\n  deepseek answer s1 call_1")
		s.misses("> red")
		if got := s.desk.said(); got != "attach reject:ASK_TIMED_OUT detach" {
			t.Fatal(got)
		}
	})
}

func TestFirstArrowFocusesMovesAndPausesTheCountdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 10*time.Second).start(timedCard(colours))
		s.pass(2 * time.Second)
		s.press(down)
		s.sees("> green", "8s paused")
		s.pass(time.Minute)
		s.press("\x1b")
		s.pass(escapeWait)
		s.sees("> green", "8s")
		s.misses("paused")
		s.pass(5 * time.Second)
		s.sees("3s")
		s.ends(Expired)
	})
}

func TestFreezing(t *testing.T) {
	for name, keys := range map[string]string{"typing": "x", "Ctrl+T": ctrlT, "selecting": " "} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, 5*time.Second).start(timedCard(colours))
				s.press(keys)
				s.pass(time.Hour / 2)
				s.press("\x1b")
				s.pass(time.Hour / 2)
				s.sees("no countdown")
				s.press(ctrlC)
				s.ends(Interrupted)
			})
		})
	}
}

func TestAnswering(t *testing.T) {
	multi := colours
	multi.MultiSelect = true
	free := session.Question{ID: "f", Question: "Which name?"}
	for _, c := range []struct {
		name string
		card Card
		keys []string
		want string
	}{
		{"Enter takes the highlighted option", timedCard(colours), []string{"\r"}, "c=red"},
		{"arrows", timedCard(colours), []string{down, down, up1, "\r"}, "c=green"},
		{"Tab", timedCard(colours), []string{"\t\t\t\t\t", "\r"}, "c=green"},
		{"up wraps to the free text", timedCard(colours), []string{up1, "mauve", "\r"}, "c=/mauve"},
		{"typing goes to the free text", timedCard(colours), []string{"mauve\r"}, "c=/mauve"},
		{"free text that was left is not sent", timedCard(colours), []string{"mauve", down, "\r"}, "c=red"},
		{"blank free text is not taken", timedCard(colours), []string{up1, "\r", "  \r", "x", "\r"}, "c=/  x"},
		{"no options", timedCard(free), []string{"\r", "Ann\r"}, "f=/Ann"},
		{"multi: marks", timedCard(multi), []string{" ", down, down, " ", "\r"}, "c=red,blue"},
		{"multi: nothing marked takes the highlighted", timedCard(multi), []string{down, "\r"}, "c=green"},
		{"multi: unmarked again", timedCard(multi), []string{" ", " ", down, "\r"}, "c=green"},
		{"multi: marks and words", timedCard(multi), []string{" ", "zzz", "\r"}, "c=red/zzz"},
		{"paste with newlines is one answer", timedCard(colours), []string{"\x1b[200~one\r\ntwo\x1b[31m\n\x1b[201~", "\r"}, "c=/one\ntwo[31m\n"},
		{"a paste in pieces", timedCard(colours), []string{"\x1b[20", "0~on", "e\r", "\x1b[2", "01~", "\r"}, "c=/one\n"},
		{"an arrow in pieces", timedCard(colours), []string{"\x1b", "[", "B", "\r"}, "c=green"},
		{"unknown sequences mean nothing", timedCard(colours), []string{"\x1b[1;5C\x1b[I\x1bx\x1b]0;title\x07\x1bP1$r0m\x1b\\\x1b[?1u\x1b[[A\xff", "\r"}, "c=red"},
		{"editing in mid-line", timedCard(free), []string{"bxd", left, "\x7f", "c", "\x01", "a", "\x05", "e", "\x1b[D\x1b[3~", "\r"}, "f=/abcd"},
		{"words are cut", timedCard(free), []string{"one two  ", "\x17", "2", "\x15", "\x7f", "three four", "\x1b[H\x0b", "end\r"}, "f=/end"},
		{"approval: Enter is the first, no", approvalCard(), []string{"\r"}, "approve=no"},
		{"approval: typing does nothing", approvalCard(), []string{"yes", "\r"}, "approve=no"},
		{"approval: no with words", approvalCard(), []string{down, "\r", "it is mine", "\r"}, "approve=no, because…/it is mine"},
		{"approval: yes", approvalCard(), []string{down, down, "\r"}, "approve=yes, once"},
		{"approval: there is no free text row", approvalCard(), []string{up1, "\r"}, "approve=yes, once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, time.Minute).start(c.card)
				s.press(c.keys...)
				s.ends(Answered)
				s.told("respond:" + c.want + " detach")
				s.sees("(answered)")
			})
		})
	}
}

func TestEscTwice(t *testing.T) {
	esc := func(s *stage) { s.press("\x1b"); s.pass(escapeWait) }
	blocking := timedCard(colours)
	blocking.Blocking = true
	plan := approvalCard()
	plan.Kind, plan.EscAnswer = KindPlan, ""
	t.Run("a timed card hides, counts on, and any key shows it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 20*time.Second).start(timedCard(colours))
			s.press("\x1b\x1b")
			s.pass(escapeWait)
			s.misses("Which colour?")
			s.sees("20s, a question waits, any key shows it")
			s.pass(2 * time.Second)
			s.sees("18s")
			s.press("x")
			s.sees("Which colour?", "> red", "18s")
			s.press(ctrlL)
			s.misses("Which colour?")
			s.ends(Expired)
		})
	})
	t.Run("a blocking question is closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 0).start(blocking)
			esc(s)
			esc(s)
			s.ends(Closed)
			s.told("reject:ASK_CANCELLED")
		})
	})
	t.Run("a key between makes it two times once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 0).start(blocking)
			esc(s)
			s.press(down)
			esc(s)
			s.press("\r")
			s.ends(Answered)
		})
	})
	t.Run("an approval is a no", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 0).start(approvalCard())
			s.press(down, down)
			esc(s)
			esc(s)
			s.ends(Answered)
			s.told("respond:approve=no ")
		})
	})
	t.Run("a plan without a label for it is closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 0).start(plan)
			esc(s)
			esc(s)
			s.ends(Closed)
		})
	})
}

func TestHandOverLetsTheClaimGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute).start(timedCard(colours))
		s.press(ctrlO)
		s.ends(HandedOver)
		s.sees("handed over, answer later with:\n  deepseek answer s1 call_1")
	})
}

func TestEnterReadBeforeTheFirstDrawIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.term.ahead = []byte("\r\nhello\r\x1b[200~ a\nb\x1b[201~\n")
		s.start(timedCard(colours))
		s.sees("Other…: hello a", "no countdown")
		s.press("\r")
		s.ends(Answered)
		s.told("respond:c=/hello a\nb ")
	})
}

func batch() Card {
	return timedCard(colours,
		session.Question{ID: "n", Header: "Name", Question: "Which name?"},
		session.Question{ID: "m", Question: "Which many?", MultiSelect: true, Options: []session.Option{{Label: "one"}, {Label: "two"}}})
}

func TestBatchGoesQuestionByQuestionToAReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute).start(batch())
		s.sees("Colour (1/3)")
		s.press("\r\r\r") // all but the first are read before the next question is drawn
		s.sees("Name (2/3)")
		s.press("Ann\r")
		s.sees("Question (3/3)")
		s.press(left)
		s.sees("Name (2/3)", "Ann")
		s.press("e", "\r")
		s.press(" ", "\r")
		s.sees("Review", "red", "Anne", "one", "> Send")
		s.press(down, "\r") // round to the first
		s.sees("Colour (1/3)")
		s.press(down, "\r")
		s.sees("Review", "green", "> Send")
		s.press("\r")
		s.ends(Answered)
		s.told("respond:c=green;n=/Anne;m=one ")
	})
}

func TestCtrlCWhileSendingEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.desk.respond = func(ctx context.Context, _ []session.Answer) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}
		s.start(timedCard(colours))
		s.press("\r")
		s.sees("sending…")
		s.misses("answered")
		s.press("x", ctrlC)
		s.ends(Interrupted)
	})
}

func TestContextEndsACardAndItsCall(t *testing.T) {
	for name, keys := range map[string]string{"reading": down, "sending": "\r"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, time.Minute)
				s.desk.respond = func(ctx context.Context, _ []session.Answer) (bool, error) {
					<-ctx.Done()
					return false, ctx.Err()
				}
				s.start(timedCard(colours))
				s.press(keys)
				s.cancel()
				<-s.done
				if !errors.Is(s.err, context.Canceled) || s.term.started {
					t.Fatal(s.err)
				}
				s.told("detach")
				s.sees("not answered, answer later with:")
			})
		})
	}
}

func TestCtrlZ(t *testing.T) {
	t.Run("an untouched card past its time expires on return", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 10*time.Second)
			s.term.onSuspend = func() { time.Sleep(time.Minute) }
			s.start(timedCard(colours))
			s.press(down, ctrlZ)
			s.ends(Expired)
		})
	})
	t.Run("a touched one is redrawn with what was typed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, 10*time.Second)
			s.term.onSuspend = func() { time.Sleep(time.Minute) }
			s.start(timedCard(colours))
			s.press("mauve", ctrlZ)
			s.pass(time.Minute)
			s.sees("mauve", "no countdown")
			s.press("\r")
			s.ends(Answered)
		})
	})
}

func TestKeysAfterTheAnswerAreKeptForTheNextCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.start(timedCard(colours))
		s.press("\rgre\x1b[200~en\x1b[201~\x1b")
		s.ends(Answered)
		if got := string(s.term.ahead); got != "gre\x1b[200~en\x1b[201~\x1b" {
			t.Fatalf("%q", got)
		}
		s.start(timedCard(colours))
		s.pass(escapeWait)
		s.sees("Other…: green")
		s.press("\r")
		s.ends(Answered)
	})
}

func TestAFailingTerminalLetsTheClaimGo(t *testing.T) {
	t.Run("reading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute).start(timedCard(colours))
			s.term.input <- Input{Err: io.EOF}
			<-s.done
			if !errors.Is(s.err, ErrTerminal) {
				t.Fatal(s.err)
			}
			s.told("attach detach")
		})
	})
	t.Run("writing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.term.writeErr = errors.New("input/output error")
			s.start(timedCard(colours))
			<-s.done
			if !errors.Is(s.err, ErrTerminal) {
				t.Fatal(s.err)
			}
			s.told("attach detach")
		})
	})
}

func TestInTheBackground(t *testing.T) {
	t.Run("nothing is claimed or drawn before the process is in the foreground", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.term.away(true)
			s.start(timedCard(colours))
			s.pass(time.Hour)
			if s.desk.said() != "" || s.term.starts != 0 {
				t.Fatal(s.desk.said(), s.term.starts)
			}
			if s.prompt.Tell([]string{"x"}) {
				t.Error("the words of others wait for the card")
			}
			s.term.away(false)
			s.pass(foregroundLook)
			s.press(down, "\r")
			s.ends(Answered)
			s.told("attach respond:c=green detach")
		})
	})
	t.Run("cards come in their order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			first := newStage(t, time.Minute)
			first.term.away(true)
			first.start(timedCard(colours))
			second := &stage{t: t, term: first.term, desk: newFakeDesk(time.Minute), prompt: first.prompt}
			time.Sleep(foregroundLook / 3)
			second.start(approvalCard())
			first.term.away(false)
			first.pass(2 * foregroundLook)
			first.sees("Which colour?")
			first.press("\r")
			<-first.done
			synctest.Wait()
			second.sees("Run this command?")
			second.press(ctrlC)
			second.ends(Interrupted)
		})
	})
	t.Run("the end of the wait, and of the owner, end the waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.term.away(true)
			s.start(timedCard(colours))
			s.desk.ended <- Ended{Outcome: EndedPending}
			s.ends(Gone)
			s.desk = newFakeDesk(time.Minute)
			s.start(timedCard(colours))
			s.cancel()
			<-s.done
			if !errors.Is(s.err, context.Canceled) || s.desk.said() != "" {
				t.Error(s.err, s.desk.said())
			}
		})
	})
	legacy := timedCard(colours)
	legacy.Timed, legacy.Blocking = false, true
	for name, card := range map[string]Card{"timed": timedCard(colours), "without a draft on disk": legacy} {
		t.Run("a card that goes on there comes back with what was typed, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, 0)
				s.term.onSuspend = func() { s.term.away(true) }
				s.start(card)
				s.press("mauve", ctrlZ)
				s.told("attach detach")
				if s.term.started {
					t.Error("it has the terminal still")
				}
				s.pass(time.Minute)
				s.term.away(false)
				s.pass(foregroundLook)
				s.sees("Other…: mauve")
				s.press("!", "\r")
				s.ends(Answered)
				s.told("detach attach respond:c=/mauve! detach")
			})
		})
	}
	t.Run("an untouched one takes up what is left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.term.onSuspend = func() { s.term.away(true) }
			s.start(timedCard(colours))
			s.press(ctrlZ)
			s.desk.remaining = 10 * time.Second
			s.term.away(false)
			s.pass(foregroundLook)
			s.sees("10s")
			s.pass(10 * time.Second)
			s.ends(Expired)
		})
	})
}

type fakeScreen struct{ log *[]string }

func (f fakeScreen) Pause()  { *f.log = append(*f.log, "pause") }
func (f fakeScreen) Resume() { *f.log = append(*f.log, "resume") }

func TestTheScreenIsPausedWhileACardIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		s := newStage(t, time.Minute)
		s.prompt.Screen = fakeScreen{&log}
		s.start(timedCard(colours))
		if strings.Join(log, " ") != "pause" {
			t.Fatal(log)
		}
		s.press("\r")
		s.ends(Answered)
		if strings.Join(log, " ") != "pause resume" {
			t.Fatal(log)
		}
	})
}

func TestAPanicOfTheDeskComesOutWithTheTerminalBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.desk.onRespond = func() { panic("desk") }
		s.done = make(chan struct{})
		var got any
		go func() {
			defer close(s.done)
			defer func() { got = recover() }()
			_, _ = s.prompt.Run(t.Context(), timedCard(colours), s.desk)
		}()
		synctest.Wait()
		s.press("\r")
		<-s.done
		if got != "desk" || s.term.started {
			t.Fatal(got, s.term.started)
		}
	})
}

func TestKeysTypedWhileSendingWaitAndTheirEnterIsDroppedByARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		calls, answer := 0, make(chan struct{})
		s.desk.respond = func(context.Context, []session.Answer) (bool, error) {
			if calls++; calls > 1 {
				return true, nil
			}
			<-answer
			return false, &Refused{Code: "BAD_ANSWER", Message: "no such label"}
		}
		s.start(timedCard(colours))
		s.press("mauve\r", "!\r")
		close(answer)
		synctest.Wait()
		s.sees("mauve!", "no countdown")
		s.press("\r")
		s.ends(Answered)
		s.told("respond:c=/mauve respond:c=/mauve! detach")
	})
}
