package prompt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deepseek/internal/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func msDuration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

var epoch = time.Unix(1_700_000_000, 0)

// plainOf draws a frame as text, the cursor as |.
func plainOf(f frame) string {
	var b strings.Builder
	for i, l := range f.lines {
		text := l.text
		if f.cursor && i == f.row {
			cut, n := len(text), 0
			for j, r := range text {
				if n >= f.col {
					cut = j
					break
				}
				n += cells.RuneWidth(r)
			}
			text = text[:cut] + strings.Repeat(" ", max(f.col-n, 0)) + "|" + text[cut:]
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func press(s *cardState, codes ...any) {
	s.drawn = true
	for _, c := range codes {
		switch c := c.(type) {
		case keyCode:
			s.key(key{code: c}, epoch)
		case string:
			s.key(key{code: keyPaste, text: c}, epoch)
		}
		s.drawn = true
	}
}

func many(n int) session.Question {
	q := session.Question{ID: "x", Header: "Many", Question: "Which one of the many?"}
	for i := range n {
		q.Options = append(q.Options, session.Option{Label: fmt.Sprintf("option %d", i+1)})
	}
	return q
}

func TestViewGolden(t *testing.T) {
	multi := colours
	multi.MultiSelect = true
	hostile := session.Question{ID: "h", Header: "A\x1b[2J\nB", Question: "Clear\r the \x1b]0;x\x07screen?\u202e", Options: []session.Option{
		{Label: "שלום עולם", Description: "right to left"}, {Label: "蓝色的天空和绿色的草地", Description: "宽字符"}, {Label: "tab\tand\nnewline"},
	}}
	plan := approvalCard()
	plan.Kind = KindPlan
	plan.Questions[0].Question = "Carry this plan out?"
	plan.Questions[0].Detail = "1. Look\n2. Leap\n" + strings.Repeat("   - and a long line that goes on\n", 30)
	states := []struct {
		name string
		make func() *cardState
	}{
		{"untouched", func() *cardState {
			s := newState(timedCard(colours))
			s.count = startCountdown(epoch, 119*time.Second)
			return s
		}},
		{"focused", func() *cardState {
			s := newState(timedCard(colours))
			s.count = startCountdown(epoch, 29*time.Second)
			press(s, keyDown)
			return s
		}},
		{"typed", func() *cardState {
			s := newState(timedCard(colours))
			s.count = startCountdown(epoch, 29*time.Second)
			press(s, "a colour that has no name and is not listed\nnor will be", keyLeft, keyLeft)
			return s
		}},
		{"multi", func() *cardState {
			s := newState(timedCard(multi))
			press(s, keyDown)
			s.key(key{code: keyText, text: " "}, epoch)
			press(s, "and this")
			return s
		}},
		{"words", func() *cardState {
			s := newState(timedCard(session.Question{ID: "n", Header: "Name", Question: "What shall the new server be called, and why?"}))
			s.count = startCountdown(epoch, 29*time.Second)
			press(s, "router, since that is what it does and what everybody calls it", keyLeft)
			return s
		}},
		{"batch", func() *cardState {
			s := newState(batch())
			s.count = startCountdown(epoch, 29*time.Second)
			return s
		}},
		{"diff", func() *cardState {
			c := approvalCard()
			c.Questions[0].Question = "Write cmd/server/main.go outside the workspace?\nIt is not below /home/ada/shop."
			c.Questions[0].Detail = "--- cmd/server/main.go\n+++ cmd/server/main.go\n@@ -3,3 +3,4 @@\n package main\n \n-const port = 8080 // what the tests use, and what the documentation says\n+const port = 9090 // 文件 の 名前 が とても 長い ので 折り返し が 必要 です\n+\n func main() {}\n"
			return newState(c)
		}},
		{"hostile", func() *cardState { return newState(timedCard(hostile)) }},
		{"many", func() *cardState {
			s := newState(timedCard(many(40)))
			for range 20 {
				press(s, keyDown)
			}
			return s
		}},
		{"plan", func() *cardState { s := newState(plan); s.view(epoch, 40, 16); press(s, keyPageDown); return s }},
		{"approval", func() *cardState { s := newState(approvalCard()); press(s, keyDown, keyEnter); return s }},
		{"review", func() *cardState { s := newState(batch()); press(s, keyEnter, "Ann", keyEnter, keyEnter); return s }},
		{"hidden", func() *cardState {
			s := newState(timedCard(colours))
			s.count = startCountdown(epoch, 29*time.Second)
			press(s, keyCtrlL)
			return s
		}},
		{"late", func() *cardState {
			s := newState(timedCard(colours))
			press(s, "mauve")
			s.becomeLate(epoch, "the wait ended: Enter sends a late answer")
			return s
		}},
	}
	for _, c := range states {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range [][2]int{{20, 5}, {20, 8}, {20, 12}, {40, 16}, {80, 24}, {200, 24}} {
				f := c.make().view(epoch, size[0], size[1])
				fmt.Fprintf(&b, "== %d columns, %d rows\n%s", size[0], size[1], plainOf(f))
				fits(t, f, size[0], size[1])
			}
			f := c.make().view(epoch, 80, 24)
			painted, err := coloured(f.lines, true)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "== 80 columns in colour\n%s\n", strings.ReplaceAll(strings.Join(painted, "\n"), "\x1b", "␛"))
			fmt.Fprintf(&b, "== without cursor control\n%s", c.make().plainText())
			golden(t, c.name, b.String())
		})
	}
}

// TestAnsweringAndLeavingAreNamedAtEverySize: whatever has to go, the line that says how to
// answer and how to leave stays.
func TestAnsweringAndLeavingAreNamedAtEverySize(t *testing.T) {
	multi := colours
	multi.MultiSelect = true
	free := session.Question{ID: "n", Header: "Name", Question: "What is it called?"}
	late := func() *cardState {
		s := newState(timedCard(colours))
		s.becomeLate(epoch, "the wait ended before this answer: it was left pending. Enter sends it as a late answer")
		return s
	}
	for name, c := range map[string]struct {
		make func() *cardState
		want []string // each in one of its forms
	}{
		"question": {func() *cardState { return newState(timedCard(colours)) }, []string{"Enter", "Ctrl+L later|^L later"}},
		"several":  {func() *cardState { return newState(timedCard(multi)) }, []string{"Space", "Enter", "Ctrl+L|^L"}},
		"words":    {func() *cardState { return newState(timedCard(free)) }, []string{"Enter", "Ctrl+L later|^L later"}},
		"approval": {func() *cardState { return newState(approvalCard()) }, []string{"Enter", "Esc Esc: no|2×Esc no"}},
		"late":     {late, []string{"Enter", "Ctrl+O leaves|^O leave"}},
	} {
		for cols := minColumns; cols < 100; cols += 3 {
			for rows := 3; rows < 14; rows++ {
				f := c.make().view(epoch, cols, rows)
				fits(t, f, cols, rows)
				got := plainOf(f)
				for _, want := range c.want {
					if a, b, _ := strings.Cut(want, "|"); !strings.Contains(got, a) && (b == "" || !strings.Contains(got, b)) {
						t.Fatalf("%s, %d×%d: no %s:\n%s", name, cols, rows, want, got)
					}
				}
			}
		}
	}
}

// fits: no line reaches the last column, and there are not more lines than rows.
func fits(t *testing.T, f frame, cols, rows int) {
	t.Helper()
	if len(f.lines) > rows {
		t.Errorf("%d lines in %d rows", len(f.lines), rows)
	}
	for _, l := range f.lines {
		if width(l.text) > cols-1 {
			t.Errorf("%q is wider than %d", l.text, cols-1)
		}
	}
	if f.cursor && (f.row < 0 || f.row >= len(f.lines) || f.col < 0 || f.col >= cols) {
		t.Errorf("cursor at %d,%d of %d lines", f.row, f.col, len(f.lines))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed (-update writes it anew):\n%s", path, got)
	}
}

// TestEveryStateFitsEverySize: the highlighted row is always to be seen.
func TestEveryStateFitsEverySize(t *testing.T) {
	cards := []Card{timedCard(colours), timedCard(many(50)), approvalCard(), batch()}
	for _, card := range cards {
		for cols := 16; cols < 90; cols += 24 {
			for rows := 3; rows < 30; rows += 6 {
				s := newState(card)
				s.count = startCountdown(epoch, time.Minute)
				for range 55 {
					f := s.view(epoch, cols, rows)
					fits(t, f, cols, rows)
					if !strings.Contains(plainOf(f), "> ") && !f.cursor {
						t.Fatalf("%d×%d: no row highlighted:\n%s", cols, rows, plainOf(f))
					}
					press(s, keyDown)
				}
				press(s, strings.Repeat("many words ", 40))
				f := s.view(epoch, cols, rows)
				fits(t, f, cols, rows)
				if s.field() != nil && !f.cursor {
					t.Fatalf("%d×%d: no cursor:\n%s", cols, rows, plainOf(f))
				}
			}
		}
	}
}

func TestTheFirstDrawNamesTheKeysAtEveryWidth(t *testing.T) {
	for cols := 20; cols <= 100; cols += 5 {
		s := newState(timedCard(colours))
		s.count = startCountdown(epoch, time.Minute)
		got := strings.Join(strings.Fields(plainOf(s.view(epoch, cols, 12))), " ")
		for _, k := range []string{"Ctrl+T", "Ctrl+O", "Ctrl+L", "1:00"} {
			if !strings.Contains(got, k) {
				t.Errorf("%d columns: no %s:\n%s", cols, k, got)
			}
		}
	}
}

// TestAFrozenCardOffersNoTimeAgain: Esc, hiding and stopping give focus up, but the countdown of
// a card that was typed into never comes back.
func TestAFrozenCardOffersNoTimeAgain(t *testing.T) {
	for _, way := range [][]any{{keyCtrlT}, {"x"}} {
		for _, leave := range [][]any{{keyEsc}, {keyCtrlL, keyDown}, {keyCtrlZ}} {
			s := newState(timedCard(colours))
			s.count = startCountdown(epoch, time.Minute)
			press(s, append(way, leave...)...)
			if got := plainOf(s.view(epoch, 100, 24)); strings.Contains(got, "Ctrl+T") {
				t.Errorf("after %v and %v:\n%s", way, leave, got)
			}
		}
	}
}

func TestOnlyWhatCanBeMarkedIsSaidToBe(t *testing.T) {
	some := colours
	some.MultiSelect = true
	none := some
	none.Options = nil
	for _, c := range []struct {
		q     session.Question
		marks bool
	}{{some, true}, {none, false}, {colours, false}} {
		s := newState(timedCard(c.q))
		hint := strings.Join(s.hint(), " ")
		if strings.Contains(hint, "Space") != c.marks || strings.Contains(s.brief(80), "Space") != c.marks {
			t.Errorf("%d options, multi-select %v: %s; %s", len(c.q.Options), c.q.MultiSelect, hint, s.brief(80))
		}
	}
}
