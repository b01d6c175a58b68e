package prompt

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hinshun/vt10x"
)

// TestPaintFollowsEveryFrame: whatever frames come one after the other, the screen shows the
// last one below what stood there before.
func TestPaintFollowsEveryFrame(t *testing.T) {
	vt := vt10x.New(vt10x.WithSize(30, 10))
	_, _ = vt.Write([]byte("before\r\n"))
	p := painter{w: vt}
	frames := []frame{
		{lines: []line{{text: "one"}}},
		{lines: []line{{text: "one"}, {text: "two"}, {text: "three"}}, cursor: true, row: 1, col: 2},
		{lines: []line{{text: "one"}, {text: "2"}, {text: "three"}}, cursor: true, row: 0, col: 0},
		{lines: []line{{text: "one"}, {text: "2"}}},
		{lines: []line{{text: ""}, {text: "2"}, {text: ""}, {text: "蓝"}}, cursor: true, row: 3, col: 2},
		{lines: []line{{text: "one"}}},
		{lines: []line{{text: "a"}, {text: "b"}, {text: "c"}, {text: "d"}, {text: "e"}, {text: "f"}, {text: "g"}, {text: "h"}, {text: "i"}}},
		{lines: []line{{text: "a"}, {text: "b"}}},
	}
	for i, f := range frames {
		if err := p.paint(f); err != nil {
			t.Fatal(err)
		}
		want := []string{"before"}
		for _, l := range f.lines {
			if l.text != "" {
				want = append(want, l.text)
			}
		}
		if got := trimScreen(vt.String()); got != strings.Join(want, "\n") {
			t.Fatalf("frame %d:\n%s\nwant\n%s", i, got, strings.Join(want, "\n"))
		}
		if f.cursor {
			if c := vt.Cursor(); c.Y != f.row+1 || c.X != f.col {
				t.Fatalf("frame %d: cursor at %d,%d", i, c.Y, c.X)
			}
		}
	}
}

func TestPaintWritesOnlyWhatChanged(t *testing.T) {
	var out strings.Builder
	p := painter{w: &out}
	f := frame{lines: []line{{text: "29s"}, {text: "question"}}}
	if err := p.paint(f); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	f.lines = []line{{text: "28s"}, {text: "question"}}
	if err := p.paint(f); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "28s") || strings.Contains(s, "question") {
		t.Fatalf("%q", s)
	}
}

// TestEraseAfterAResize: a terminal that breaks long lines anew has more rows to erase.
func TestEraseAfterAResize(t *testing.T) {
	for reflow, want := range map[bool]string{false: "\r\x1b[2A" + eraseBelow, true: "\r\x1b[5A" + eraseBelow} {
		var out strings.Builder
		p := painter{w: &out, reflow: reflow}
		f := frame{lines: []line{{text: strings.Repeat("x", 25)}, {text: ""}, {text: strings.Repeat("y", 15)}}, cursor: true, row: 2, col: 12}
		if err := p.paint(f); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := p.erase(10, 24); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("reflow %v: %q, want %q", reflow, out.String(), want)
		}
	}
}

// TestACardThatWasPushedOutAboveIsErasedWhenItComesBack: a terminal made too low for
// the card keeps its first lines, and most bring them back when they get higher.
func TestACardThatWasPushedOutAboveIsErasedWhenItComesBack(t *testing.T) {
	var out strings.Builder
	p := painter{w: &out, reflow: true}
	wide := func(n int) line { return line{text: strings.Repeat("x", n)} }
	erases := func(cols, height int, want string) {
		t.Helper()
		out.Reset()
		if err := p.erase(cols, height); err != nil {
			t.Fatal(err)
		}
		if out.String() != want+eraseBelow {
			t.Errorf("%dx%d: %q, want %q", cols, height, out.String(), want)
		}
	}
	paint := func(lines ...line) {
		t.Helper()
		if err := p.paint(frame{lines: lines, cursor: true, row: len(lines) - 1}); err != nil {
			t.Fatal(err)
		}
	}
	paint(wide(60), wide(70), wide(20), wide(5), wide(0))
	erases(10, 5, "\r\x1b[16A") // 6, 7, 2 and 1 rows, and the cursor's; 12 of them are above
	paint(wide(9), wide(9), wide(0))
	erases(10, 8, "\r\x1b[14A") // three come back
	paint(wide(9), wide(0))
	erases(80, 24, "\r\x1b[3A") // the rest: the first line, and a part of the second
	paint(wide(60), wide(70), wide(0))
	erases(80, 24, "\r\x1b[2A")
	if p.lost != nil {
		t.Errorf("nothing is above any more: %v", p.lost)
	}
}

func TestReflows(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(name string) string {
			if len(kv) == 2 && kv[0] == name {
				return kv[1]
			}
			return ""
		}
	}
	if !Reflows(env("VTE_VERSION", "7600")) || !Reflows(env("TERM", "tmux-256color")) || !Reflows(env("TERM_PROGRAM", "vscode")) {
		t.Error("a terminal that breaks lines anew is not known")
	}
	if Reflows(env("TERM", "xterm-256color")) || Reflows(env()) {
		t.Error("xterm does not")
	}
}

func TestAResizeRedrawsForTheNewSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, time.Minute).start(timedCard(colours))
		for _, size := range [][2]int{{24, 16}, {80, 8}, {20, 5}, {60, 16}} {
			s.term.resize(size[0], size[1])
			synctest.Wait()
			if n := strings.Count(s.term.screen(), "Which colour?"); n != 1 {
				t.Fatalf("%v: the question stands there %d times:\n%s", size, n, s.term.screen())
			}
			s.sees("> red")
		}
		s.press("\r")
		s.ends(Answered)
	})
}
