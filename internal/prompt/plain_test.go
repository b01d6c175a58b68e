package prompt

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func TestPlainFaceAnswers(t *testing.T) {
	multi := colours
	multi.MultiSelect = true
	free := session.Question{ID: "f", Question: "Which name?"}
	blocking := timedCard(colours)
	blocking.Blocking = true
	for _, c := range []struct {
		name string
		card Card
		keys []string
		want Outcome
		told string
	}{
		{"a number", timedCard(colours), []string{"2\n"}, Answered, "respond:c=green "},
		{"Enter takes the first", timedCard(colours), []string{"\n"}, Answered, "respond:c=red "},
		{"words", timedCard(colours), []string{"4\n"}, Answered, "respond:c=/4 "},
		{"a line in pieces", timedCard(colours), []string{"ma", "uve\n"}, Answered, "respond:c=/mauve "},
		{"several numbers", timedCard(multi), []string{"1, 3\n"}, Answered, "respond:c=red,blue "},
		{"no options", timedCard(free), []string{"\n", "2\n"}, Answered, "respond:f=/2 "},
		{"approval: a number", approvalCard(), []string{"yes\n", "3\n"}, Answered, "respond:approve=yes, once "},
		{"approval: words are asked for", approvalCard(), []string{"2\n", "1 is mine\n"}, Answered, "respond:approve=no, because…/1 is mine "},
		{"a batch with a review", batch(), []string{"1\n", "Ann\n", "2\n", "9\n", "1\n", "3\n", "\n"}, Answered, "respond:c=blue;n=/Ann;m=two "},
		{"hand over", timedCard(colours), []string{"\x0f\n"}, HandedOver, "detach"},
		{"Esc twice closes", blocking, []string{"\x1b\x1b\n"}, Closed, "reject:ASK_CANCELLED"},
		{"Esc, and Esc again", blocking, []string{"\x1b\n", "\x1b\n"}, Closed, "reject:ASK_CANCELLED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, time.Minute)
				s.prompt.Plain = true
				s.start(c.card)
				s.press(c.keys...)
				s.ends(c.want)
				s.told(c.told)
				if out := s.term.out.String(); strings.Contains(out, "\x1b") {
					t.Fatalf("an escape sequence: %q", out)
				}
			})
		})
	}
}

func TestPlainFaceExpiresTakesTimeAndGoesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 5*time.Second)
		s.prompt.Plain = true
		s.start(timedCard(colours))
		s.sees("1. red - like a rose", "Time left: 5s")
		s.press("\x1b\x1b\n") // nothing to hide
		s.ends(Expired)
		s.sees("left pending, answer later with:")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, 5*time.Second)
		s.prompt.Plain = true
		s.start(timedCard(colours))
		s.press("\x14\n")
		s.pass(time.Minute)
		s.desk.ended <- Ended{Outcome: EndedPending}
		s.pass(enterGuard)
		s.sees("as a late answer")
		s.press("2\n")
		s.ends(LateAnswered)
	})
}

func TestPlainFaceDoesNotTakeALineTypedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.prompt.Plain = true
		s.term.ahead = []byte("\n3\n")
		s.start(approvalCard())
		s.sees("typed before the question was shown: 3")
		s.press("1\n")
		s.ends(Answered)
		s.told("approve=no ")
	})
}

func TestPlainFaceEndOfInputHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.prompt.Plain = true
		s.start(timedCard(colours))
		s.term.input <- Input{Err: io.EOF}
		s.ends(HandedOver)
	})
}

func TestATooNarrowTerminalIsPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute)
		s.term.cols = minColumns - 1
		s.start(timedCard(colours))
		if s.term.raw {
			t.Fatal("raw")
		}
		s.press("1\n")
		s.ends(Answered)
	})
}
