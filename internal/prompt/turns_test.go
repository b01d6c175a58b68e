package prompt

import (
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func TestCardsTakeTurnsAndAHiddenOneMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newStage(t, time.Minute).start(timedCard(colours))
		second := &stage{t: t, term: first.term, desk: newFakeDesk(time.Minute), prompt: first.prompt}
		second.start(timedCard(session.Question{ID: "n", Question: "Which name?"}))
		if second.desk.said() != "" {
			t.Fatal("a card that waits its turn has a claim")
		}
		first.press(ctrlL)
		first.sees("Which name?")
		second.press("Ann\r")
		second.ends2(Answered)
		first.sees("a question waits, any key shows it")
		first.press("x", "\r")
		first.ends(Answered)
	})
}

// ends2 is ends for a card after which another has the terminal.
func (s *stage) ends2(want Outcome) {
	s.t.Helper()
	<-s.done
	if s.err != nil || s.res.Outcome != want {
		s.t.Fatalf("ended %v, %v; want %v", s.res, s.err, want)
	}
}

func TestAHiddenCardExpiresUnderAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newStage(t, 10*time.Second).start(timedCard(colours))
		second := &stage{t: t, term: first.term, desk: newFakeDesk(time.Minute), prompt: first.prompt}
		second.start(timedCard(session.Question{ID: "n", Question: "Which name?"}))
		first.press(ctrlL)
		first.pass(10 * time.Second)
		first.ends2(Expired)
		first.sees("Colour: left pending, answer later with:", "Which name?") // above the card, which is drawn again
		second.press("Ann\r")
		second.ends(Answered)
		first.sees("Colour: left pending, answer later with:", "(answered)")
	})
}

func TestTwoHiddenCardsDoNotFightForTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newStage(t, 10*time.Second).start(timedCard(colours))
		second := &stage{t: t, term: first.term, desk: newFakeDesk(time.Minute), prompt: first.prompt}
		second.start(timedCard(session.Question{ID: "n", Question: "Which name?"}))
		first.press(ctrlL)
		first.press(ctrlL)
		first.pass(5 * time.Second)
		if n := first.term.starts; n > 3 {
			t.Fatalf("the terminal was taken %d times", n)
		}
		first.cancel()
		second.cancel()
		<-first.done
		<-second.done
		if first.term.started {
			t.Fatal("the terminal was not given back")
		}
	})
}

func TestOthersAreHeardAboveTheCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := newStage(t, 10*time.Second)
		if card.prompt.Tell([]string{"nobody has the terminal"}) {
			t.Fatal("took words without a card")
		}
		card.start(timedCard(colours))
		if !card.prompt.Tell([]string{"question two: Which name?", "  deepseek answer s two"}) {
			t.Fatal("did not take the words")
		}
		card.pass(time.Millisecond)
		card.sees("question two: Which name?", "deepseek answer s two", "Which colour")
		card.press("\r")
		card.ends(Answered)
	})
}

// The goroutines of cards that are asked at once run in any order.
func TestCardsComeInTheOrderInWhichTheyJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newStage(t, time.Minute)
		second := &stage{t: t, term: first.term, desk: newFakeDesk(time.Minute), prompt: first.prompt}
		one := first.prompt.Join(timedCard(colours), first.desk)
		two := second.prompt.Join(timedCard(session.Question{ID: "n", Question: "Which name?"}), second.desk)
		second.play(two)
		first.misses("Which name?")
		first.play(one)
		first.sees("Which colour")
		first.press("\r")
		first.ends2(Answered)
		second.sees("Which name?")
		second.press("Ann\r")
		second.ends(Answered)
	})
}
