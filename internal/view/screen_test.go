package view

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"deepseek/internal/session"
)

var update = flag.Bool("update", false, "write the golden files")

// sink is a buffer that may be looked at while somebody writes.
type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// play is a run that has something of everything.
func play(s *Screen) {
	exit := 1
	s.Session("20261130-171203-7f3kq")
	s.Thinking(time.Now())
	time.Sleep(1250 * time.Millisecond) // never at a tick of the spinner: which comes first would be chance
	stream(s, session.BlockReasoning, "The user wants the tests to pass, so I look at them first and then at what they test.")
	said := "I will run the tests.\x1b]0;owned\a\r\nThen I read 文件, in which the names of the files are 長い名前で、折り返しが必要です。\n\n" +
		"- see https://example.org/a/very/long/address/that/no/line/of/forty/columns/holds for more\n\n```go\n" +
		"if err := run(ctx, options); err != nil { return fmt.Errorf(\"run: %w\", err) }\n```\n"
	stream(s, session.BlockText, said)
	s.Message(said, false)
	s.ToolStarted("c1", "bash", `{"command":"go test -race ./internal/... ./cmd/... 2>&1 | tail -40\necho done"}`, time.Now())
	time.Sleep(1100 * time.Millisecond)
	s.ToolDone("c1", "", "", outcome(now(), nil, &session.ToolMeta{ExitCode: &exit}, "FAIL one\nFAIL two\nexit code 1"))
	s.ToolStarted("c2", "read", `{"file_path":"docs/文件/とても長い名前のファイル.md","offset":3}`, time.Now())
	s.ToolStarted("c3", "grep", `{"pattern":"TODO"}`, time.Now())
	time.Sleep(130 * time.Millisecond)
	s.ToolDone("c3", "", "", Outcome{})
	s.ToolDone("c2", "", "", Outcome{Code: "FS_NOT_FOUND", Result: "FS_NOT_FOUND: no such file"})
	s.ToolStarted("c5", "mcp__tracker__search_issues_and_comments", `{"query":"port"}`, time.Now())
	s.ToolDone("c5", "", "", Outcome{Took: 12 * time.Millisecond})
	s.ToolDone("c4", "write", "", Outcome{Code: "ABORTED_BEFORE_DISPATCH"})
	s.Thinking(time.Now())
	s.Delta(session.BlockText, "half an ans")
	s.Retry(1, 500*time.Millisecond, "SERVER", "overloaded\x1b[2J")

	s.ToolStarted("call_1", session.AskTool, `{"questions":[{"id":"port","question":"Which port shall the new server listen on?"}]}`, time.Now())
	s.Announce("question call_1: Port: Which port shall the new server listen on?", "  deepseek answer 20261130-171203-7f3kq call_1")
	time.Sleep(12250 * time.Millisecond)
	s.AnnounceAfter("call_1", "left pending, answer later with:", "  deepseek answer 20261130-171203-7f3kq call_1")
	s.ToolDone("call_1", "", "", Outcome{Result: `{"pending":true,"callId":"call_1","message":"m"}`})
	s.ToolStarted("c6", "bash", `{"command":"rm -r build"}`, time.Now())
	s.Announce("approval c6: run rm -r build", "  deepseek answer 20261130-171203-7f3kq c6")
	s.Pause()
	s.Announce("question call_2: Name: What is it called?", "  deepseek answer 20261130-171203-7f3kq call_2")
	time.Sleep(time.Second)
	s.Resume()
	s.ToolDone("c6", "", "", Outcome{Code: "DENIED"})
	s.Event(event(session.TypeUserMessage, lateAnswer()))
	s.Note("left over: one message waits in the inbox, which the next run of this session will take")
	s.Delta(session.BlockText, "All is well.")
	s.Message("All is well.", true)
	s.Error("deepseek: warning\x1b[1m")
	cost := 0.0123
	s.Summary(Total{
		SessionID: "20261130-171203-7f3kq", FinishReason: "max-steps", Steps: 3, Took: 65 * time.Second, Denied: 1,
		Usage: session.Usage{InputTokens: 2345, CacheReadTokens: 10_000, OutputTokens: 999, CostUSD: &cost},
	})
	s.Hint("1 question waits", "deepseek answer 20261130-171203-7f3kq call_2")
}

// stream says a text in pieces, as a model does.
func stream(s *Screen, kind, text string) {
	for text != "" {
		n := min(7, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		s.Delta(kind, text[:n])
		text = text[n:]
	}
}

func now() session.Event { return session.Event{Time: time.Now().UnixMilli()} }

func event(typ string, data any) session.Event {
	e, err := session.NewEvent(typ, time.Now().UnixMilli(), data)
	if err != nil {
		panic(err)
	}
	return e
}

func lateAnswer() session.UserMessage {
	text, err := session.ReplyText("call_1", []session.Question{port()}, []session.Answer{{ID: "port", Selected: []string{"9090"}}})
	if err != nil {
		panic(err)
	}
	return session.NewUserMessage("late", text, session.Source{Kind: session.SourceQuestionReply, CallID: "call_1", Outcome: "answered"})
}

// settled is what stands on the terminal in the end: what the spinner drew and
// took away is gone. Escapes that are left show as ␛.
func settled(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if at := strings.LastIndex(line, eraseLine); at >= 0 {
			line = line[at+len(eraseLine):]
		}
		b.WriteString(line)
	}
	return strings.NewReplacer("\x1b", "␛", "\r", "␍").Replace(b.String())
}

func TestScreenGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		o    ScreenOptions
		cols int
	}{
		{"terminal-40", ScreenOptions{Terminal: true, Cursor: true}, 40},
		{"terminal-40-colour", ScreenOptions{Terminal: true, Cursor: true, Colour: true}, 40},
		{"terminal-80", ScreenOptions{Terminal: true, Cursor: true}, 80},
		{"terminal-80-colour", ScreenOptions{Terminal: true, Cursor: true, Colour: true}, 80},
		{"terminal-80-quiet", ScreenOptions{Terminal: true, Cursor: true, Quiet: true}, 80},
		{"terminal-80-verbose", ScreenOptions{Terminal: true, Cursor: true, Verbose: true}, 80},
		{"terminal-200", ScreenOptions{Terminal: true, Cursor: true}, 200},
		{"terminal-200-colour", ScreenOptions{Terminal: true, Cursor: true, Colour: true}, 200},
		{"dumb-80-ascii", ScreenOptions{Terminal: true, ASCII: true}, 80},
		{"pipe-200", ScreenOptions{}, 200},
		{"pipe-200-quiet", ScreenOptions{Quiet: true}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out sink
				c.o.Width = func() int { return c.cols }
				s := NewScreen(&out, c.o)
				play(s)
				s.Close()
				s.Note("after Close nothing is shown")
				got := settled(out.String())
				golden(t, c.name, got)
				if !c.o.Colour && strings.Contains(got, "␛") && c.o.Terminal {
					t.Error("escapes")
				}
				if !c.o.Terminal && out.String() != strings.ReplaceAll(strings.ReplaceAll(got, "␛", "\x1b"), "␍", "\r") {
					t.Error("a pipe has a spinner")
				}
				for line := range strings.Lines(got) {
					line = regexp.MustCompile(`␛\[\d+m`).ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
					whole := strings.HasPrefix(line, "  deepseek ") || strings.Contains(line, "https://") || strings.Contains(line, "err != nil")
					if c.o.Terminal && !whole && width(line) > c.cols {
						t.Errorf("%q has %d columns", line, width(line))
					}
				}
			})
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "screen", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	for _, cols := range []int{20, 40, 80, 200} {
		synctest.Test(t, func(t *testing.T) {
			var out sink
			s := NewScreen(&out, ScreenOptions{Terminal: true, Cursor: true, Width: func() int { return cols }})
			s.ToolStarted("1", "bash", `{"command":"`+strings.Repeat("长 and wide ", 60)+`"}`, time.Now())
			time.Sleep(1200 * time.Millisecond)
			s.ToolDone("1", "", "", Outcome{Code: "ABORTED"})
			s.Close()
			for l := range strings.SplitSeq(strings.ReplaceAll(out.String(), eraseLine, "\n"), "\n") {
				if limit := max(cols, 38); width(l) > limit { // name, outcome and time are never cut
					t.Errorf("%d columns: %q is %d wide", cols, l, width(l))
				}
			}
		})
	}
}

func TestPausedScreenWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		s := NewScreen(&out, ScreenOptions{Terminal: true, Cursor: true})
		s.Thinking(time.Now())
		time.Sleep(time.Second)
		s.Pause()
		s.Pause()
		before := out.String()
		s.Note("one")
		s.ToolStarted("1", "bash", `{}`, time.Now())
		time.Sleep(time.Second)
		s.Resume()
		if got := out.String(); got != before {
			t.Errorf("wrote %q into the card", got[len(before):])
		}
		s.Resume()
		if !strings.HasSuffix(out.String(), "one\n") {
			t.Errorf("held text is not shown: %q", out.String())
		}
		s.Resume() // one too many changes nothing
		s.Close()
	})
}

func TestHeldTextIsBounded(t *testing.T) {
	var out sink
	s := NewScreen(&out, ScreenOptions{Terminal: true})
	s.Pause()
	for i := range 50_000 {
		s.Note(fmt.Sprintf("line %d %s", i, strings.Repeat("x", 100)))
	}
	if n := s.held.Len(); n > holdAtMost {
		t.Errorf("holds %d bytes", n)
	}
	s.Close()
	got := out.String()
	if !strings.HasPrefix(got, "[the beginning of what happened meanwhile is left out]\nline ") || !strings.Contains(got, "line 49999 ") {
		t.Errorf("begins %.100q", got)
	}
}

func TestLastTextIsWhatStandsLastOnTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name string
		o    ScreenOptions
		do   func(*Screen)
		want string
	}{
		{"streamed", ScreenOptions{Terminal: true}, func(s *Screen) {
			s.Delta(session.BlockText, "a\r")
			s.Delta(session.BlockText, "\nb")
			s.Message("a\r\nb", true)
			s.Summary(Total{})
		}, "a\r\nb"},
		{"a tool ran since", ScreenOptions{Terminal: true}, func(s *Screen) {
			s.Delta(session.BlockText, "a")
			s.Message("a", false)
			s.ToolStarted("1", "bash", "{}", time.Now())
			s.ToolDone("1", "", "", Outcome{})
		}, ""},
		{"broken attempt", ScreenOptions{Terminal: true}, func(s *Screen) {
			s.Delta(session.BlockText, "broken")
			s.Retry(1, 0, "SERVER", "")
			s.Delta(session.BlockText, "whole")
			s.Message("whole", true)
		}, "whole"},
		{"broken attempt that nothing follows", ScreenOptions{Terminal: true}, func(s *Screen) {
			s.Delta(session.BlockText, "broken ")
			s.Event(session.Event{Type: session.TypeCompactionStart})
			s.Delta(session.BlockText, "whole")
			s.Message("whole", true)
		}, "whole"},
		{"not streamed but shown", ScreenOptions{Terminal: true}, func(s *Screen) { s.Message("a", true) }, "a"},
		{"reasoning is no text", ScreenOptions{Terminal: true}, func(s *Screen) { s.Delta(session.BlockReasoning, "a"); s.Message("", true) }, ""},
		{"pipe", ScreenOptions{}, func(s *Screen) { s.Delta(session.BlockText, "a"); s.Message("a", true) }, ""},
		{"quiet", ScreenOptions{Terminal: true, Quiet: true}, func(s *Screen) { s.Delta(session.BlockText, "a"); s.Message("a", true) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out sink
			s := NewScreen(&out, c.o)
			defer s.Close()
			c.do(s)
			if got := s.LastText(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTextOfAnAttemptThatFailedForGoodIsMarked(t *testing.T) {
	for _, c := range []struct {
		name string
		o    ScreenOptions
		do   func(*Screen)
		want string
	}{
		{"text", ScreenOptions{Terminal: true}, func(s *Screen) { s.Delta(session.BlockText, "PART") }, "PART\nthe text above is discarded\n"},
		{"reasoning", ScreenOptions{Terminal: true}, func(s *Screen) { s.Delta(session.BlockReasoning, "hm") }, "hm\nthe text above is discarded\n"},
		{"text of a message", ScreenOptions{Terminal: true}, func(s *Screen) {
			s.Delta(session.BlockText, "WHOLE")
			s.Message("WHOLE", true)
		}, "WHOLE\n"},
		{"nothing was shown", ScreenOptions{Terminal: true}, func(*Screen) {}, ""},
		{"quiet", ScreenOptions{Terminal: true, Quiet: true}, func(s *Screen) { s.Delta(session.BlockText, "PART") }, ""},
		{"pipe", ScreenOptions{}, func(s *Screen) { s.Delta(session.BlockText, "PART") }, ""},
		{"marked by the retry already", ScreenOptions{Terminal: true}, func(s *Screen) {
			s.Delta(session.BlockText, "PART")
			s.Retry(1, 0, "SERVER", "m")
		}, "PART\nthe text above is discarded; attempt 1 failed: SERVER: m; trying again in 0 ms\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out sink
			s := NewScreen(&out, c.o)
			c.do(s)
			s.Event(session.Event{Type: session.TypeTurnEnd})
			s.Close()
			if got := out.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSpinnerIsDrawnTenTimesASecondAndOnlyWhileNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		s := NewScreen(&out, ScreenOptions{Terminal: true, Cursor: true})
		time.Sleep(10 * time.Second)
		if out.String() != "" {
			t.Errorf("drew %q with nothing going on", out.String())
		}
		s.Thinking(time.Now())
		time.Sleep(time.Second + time.Millisecond)
		if n := strings.Count(out.String(), "thinking"); n < 8 || n > 11 {
			t.Errorf("%d frames in a second", n)
		}
		s.Idle()
		if !strings.HasSuffix(out.String(), eraseLine) {
			t.Error("the spinner is left on the line")
		}
		before := out.String()
		time.Sleep(time.Hour)
		if out.String() != before {
			t.Error("it is drawn after Idle")
		}
		s.Close()
		s.Close()
	}) // and a goroutine left would fail here
}

type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestClosedStderrStopsNothing(t *testing.T) {
	s := NewScreen(deaf{}, ScreenOptions{Terminal: true, Cursor: true})
	defer s.Close()
	s.Session("x")
	s.Delta(session.BlockText, "a")
	s.Message("a", true)
	if s.LastText() != "a" {
		t.Error("the text is lost")
	}
}

func TestScreenFromManyGoroutines(t *testing.T) {
	var out sink
	s := NewScreen(&out, ScreenOptions{Terminal: true, Cursor: true, Colour: true})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				id := fmt.Sprint(i, j)
				s.ToolStarted(id, "read", `{"file_path":"x"}`, time.Now())
				s.Pause()
				s.Delta(session.BlockText, "x")
				s.Resume()
				s.ToolDone(id, "", "", Outcome{})
			}
		})
	}
	wg.Wait()
	s.Close()
	if n := strings.Count(out.String(), "read"); n < 400 {
		t.Errorf("%d of 400 lines", n)
	}
}

func TestEvents(t *testing.T) {
	var out sink
	s := NewScreen(&out, ScreenOptions{})
	event := func(typ string, data any) { s.Event(event(typ, data)) }
	call := session.Block{Type: session.BlockToolCall, ID: "c", Name: "bash", Arguments: "{}"}
	say := func(blocks ...session.Block) session.AssistantMessage {
		return session.AssistantMessage{Message: session.ModelMessage{Content: blocks}}
	}
	code := 7
	event(session.TypeStepStart, session.StepMark{})
	event(session.TypeAssistantMessage, say(session.Block{Type: session.BlockText, Text: "I look."}, call))
	event(session.TypeToolCall, session.ToolCall{CallID: "c", Name: "bash", Arguments: `{"command":"false"}`})
	event(session.TypeToolResult, session.ToolResult{Message: session.ToolMessage{ToolCallID: "c"}, Meta: &session.ToolMeta{ExitCode: &code, DurationMS: 12}})
	event(session.TypeToolCall, session.ToolCall{CallID: "q", Name: "ask_user_question", Arguments: `{"questions":[{"id":"p","question":"Which port?"}]}`})
	event(session.TypeToolResult, session.ToolResult{Message: session.ToolMessage{ToolCallID: "q", Content: `{"pending":true,"callId":"q"}`}, Meta: &session.ToolMeta{DurationMS: 60_000}})
	event(session.TypeToolResult, session.ToolResult{Message: session.ToolMessage{ToolCallID: "n"}, Error: &session.ToolError{Name: "write", Code: "TOOL_NOT_STARTED"}})
	event(session.TypeLLMRetry, session.Retry{Attempt: 2, DelayMS: 1000, Error: session.ErrorInfo{Code: "TIMEOUT", Message: "no bytes"}})
	event(session.TypeAssistantMessage, say(session.Block{Type: session.BlockText, Text: "final"}))
	event(session.TypeTurnEnd, session.TurnEnd{})
	s.Event(session.Event{Type: session.TypeToolCall, Data: []byte(`{"callId":7}`)})
	s.Close()
	want := `I look.
· bash false  exit 7  12 ms
· ask_user_question Which port?  pending  1 m 00 s
· write  TOOL_NOT_STARTED
attempt 2 failed: TIMEOUT: no bytes; trying again in 1.0 s
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "0 ms", 12 * time.Millisecond: "12 ms", 3400 * time.Millisecond: "3.4 s", 42 * time.Second: "42 s", 125 * time.Second: "2 m 05 s", 2*time.Hour + 3*time.Minute: "2 h 03 m"} {
		if got := Took(d); got != want {
			t.Errorf("Took(%v) = %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 12_345: "12.3k", 999_949: "999.9k", 999_999: "1M", 4_500_000: "4.5M"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	for usd, want := range map[float64]string{0: "$0.00", 0.00123: "$0.0012", 0.00004: "<$0.0001", 0.5: "$0.50", 12: "$12.00"} {
		if got := Dollars(usd); got != want {
			t.Errorf("Dollars(%v) = %s, want %s", usd, got, want)
		}
	}
	for in, want := range map[string]string{
		`{"command":"a\nb"}`: "a b", `{"file_path":"x","content":"y"}`: "x", `{}`: "", `{"path":"p"}`: `{"path":"p"}`,
		`not JSON` + "\x1b": "not JSON^[", `{"command":7}`: `{"command":7}`,
	} {
		if got := CallTitle(in); got != want {
			t.Errorf("CallTitle(%s) = %s, want %s", in, got, want)
		}
	}
	if got := Fit("文件文件", 5, "…"); got != "文件…" {
		t.Errorf("Fit: %s", got)
	}
}

// TestTheSessionIsNeverBroken: its id is to be copied, at the beginning as at the end.
func TestTheSessionIsNeverBroken(t *testing.T) {
	var out sink
	s := NewScreen(&out, ScreenOptions{Terminal: true, Width: func() int { return 20 }})
	s.Session("20261130-171203-7f3kq")
	s.Close()
	if got := out.String(); got != "session 20261130-171203-7f3kq\n" {
		t.Errorf("%q", got)
	}
}
