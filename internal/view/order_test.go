package view

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hinshun/vt10x"

	"deepseek/internal/session"
)

// TestAQuestionFollowsTheTextThatLedToIt: in a pipe, whether the question service
// or the log is the first to tell.
func TestAQuestionFollowsTheTextThatLedToIt(t *testing.T) {
	said := session.AssistantMessage{Message: session.ModelMessage{Content: []session.Block{
		{Type: session.BlockText, Text: "I have to ask."}, {Type: session.BlockToolCall, ID: "q", Name: session.AskTool},
	}}}
	text := func(s *Screen) { s.Event(event(session.TypeAssistantMessage, said)) }
	call := func(s *Screen) {
		s.Event(event(session.TypeToolCall, session.ToolCall{CallID: "q", Name: session.AskTool, Arguments: "{}"}))
	}
	inner := func(s *Screen) {
		s.Event(event(session.TypePTCDispatchStart, session.PTCStart{SubCallID: "q", Name: "bash", Arguments: "{}"}))
	}
	asks := func(s *Screen) { s.AnnounceOf("q", "question q: Which?", "  deepseek answer s q") }
	pending := func(s *Screen) { s.AnnounceAfter("q", "left pending") }
	result := func(s *Screen) {
		s.Event(event(session.TypeToolResult, session.ToolResult{
			Message: session.ToolMessage{ToolCallID: "q", Content: `{"pending":true,"callId":"q"}`}, Meta: &session.ToolMeta{DurationMS: 120_000},
		}))
	}
	const question = "question q: Which?\n  deepseek answer s q\n"
	const whole = "I have to ask.\n" + question + "· ask_user_question  pending  2 m 00 s\nleft pending\n"
	for name, c := range map[string]struct {
		o    ScreenOptions
		do   []func(*Screen)
		want string
	}{
		"the log first":             {ScreenOptions{}, []func(*Screen){text, call, asks, pending, result}, whole},
		"the service first":         {ScreenOptions{}, []func(*Screen){asks, text, call, pending, result}, whole},
		"the service long before":   {ScreenOptions{}, []func(*Screen){asks, pending, text, call, result}, whole},
		"the log never tells":       {ScreenOptions{}, []func(*Screen){asks}, question},
		"the turn ends before":      {ScreenOptions{}, []func(*Screen){asks, (*Screen).Idle}, question},
		"within a call":             {ScreenOptions{}, []func(*Screen){asks, text, inner}, "I have to ask.\n" + question},
		"within a call, late":       {ScreenOptions{}, []func(*Screen){text, inner, asks}, "I have to ask.\n" + question},
		"quiet hides no question":   {ScreenOptions{Quiet: true}, []func(*Screen){asks, text, call}, question},
		"a terminal does not delay": {ScreenOptions{Terminal: true}, []func(*Screen){asks}, question},
	} {
		t.Run(name, func(t *testing.T) {
			var out sink
			s := NewScreen(&out, c.o)
			for _, do := range c.do {
				do(s)
			}
			if name == "within a call, late" && out.String() != c.want {
				t.Errorf("before the end: %q", out.String())
			}
			s.Close()
			if out.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}

// TestTimesAreThoseOfTheEvents: who follows a run came to it later.
func TestTimesAreThoseOfTheEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		s := NewScreen(&out, ScreenOptions{Terminal: true, Cursor: true, Width: func() int { return 80 }})
		began := time.Now().Add(-90 * time.Second)
		s.ToolStarted("running", "bash", `{"command":"make"}`, began)
		time.Sleep(150 * time.Millisecond)
		if !strings.Contains(out.String(), "bash make  1 m 30 s") {
			t.Errorf("the spinner counts from when it was looked at: %q", out.String())
		}
		logged := func(typ string, at time.Time, data any) {
			e := event(typ, data)
			e.Time = at.UnixMilli()
			s.Event(e)
		}
		logged(session.TypeToolResult, began.Add(91*time.Second), session.ToolResult{Message: session.ToolMessage{ToolCallID: "running"}})
		logged(session.TypeToolCall, began, session.ToolCall{CallID: "over", Name: "read", Arguments: `{"file_path":"x"}`})
		logged(session.TypeToolResult, began.Add(3400*time.Millisecond), session.ToolResult{Message: session.ToolMessage{ToolCallID: "over"}})
		s.Close()
		if got, want := settled(out.String()), "· bash make  ok  1 m 31 s\n· read x  ok  3.4 s\n"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestNothingOfTheSpinnerIsLeft: what is typed is shown by the terminal where the
// cursor stands, and a terminal that gets narrower breaks the line.
func TestNothingOfTheSpinnerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vt := vt10x.New(vt10x.WithSize(30, 8))
		s := NewScreen(lines{vt}, ScreenOptions{Terminal: true, Cursor: true, Width: func() int { return 30 }})
		s.ToolStarted("1", "bash", `{"command":"make all the things of this tree"}`, time.Now())
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if c := vt.Cursor(); c.X != 0 {
			t.Errorf("the cursor stands in column %d", c.X)
		}
		for range 10 {
			synctest.Wait()
			_, _ = vt.Write([]byte("^[[A"))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		// A narrower terminal breaks the line and leaves the cursor at its beginning.
		_, _ = vt.Write([]byte("\r\x1b[Jthe first half of the\r\nsecond\r\x1b[1A"))
		time.Sleep(100 * time.Millisecond)
		s.ToolDone("1", "", "", Outcome{Took: time.Second})
		s.Close()
		synctest.Wait()
		got := strings.TrimSpace(vt.String())
		if n := strings.Count(got, "\n"); !strings.HasPrefix(got, "· bash make") || strings.Contains(got, "^[") || n > 7 || strings.Contains(got, "second") {
			t.Errorf("%s", got)
		}
	})
}

// lines is a terminal whose line discipline begins lines anew.
type lines struct{ vt vt10x.Terminal }

func (l lines) Write(p []byte) (int, error) {
	_, err := l.vt.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}
