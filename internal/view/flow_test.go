package view

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"deepseek/internal/session"
)

// flowed is a text as it comes out of a line of so many columns, in pieces.
func flowed(columns, piece int, text string) string {
	f := flow{columns: func() int { return columns }}
	var out []byte
	for text != "" {
		n := min(max(piece, 1), len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		out = f.text(out, text[:n])
		text = text[n:]
	}
	return string(f.end(out))
}

func TestStreamedTextIsBrokenAtWords(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"words":                          {"one two three", "one two \nthree"},
		"a word that just fits":          {"one two34 five", "one two34 \nfive"},
		"lines of the text stay":         {"one\n\ntwo\n", "one\n\ntwo\n"},
		"none is added before a line":    {"one two34\nfive", "one two34\nfive"},
		"spaces beyond the edge":         {"one two34   \nfive six", "one two34 \nfive six"},
		"spaces within stay":             {"a    b c", "a    b c"},
		"a long word":                    {"a verylongwordindeed b", "a \nverylongwordindeed \nb"},
		"a long word first":              {"verylongword b cde", "verylongword b cde"},
		"wide characters":                {"文件文件文件", "文件文件\n文件"},
		"closing marks stay":             {"文件文件。文件", "文件文\n件。文件"},
		"wide after narrow":              {"abcdefg文件", "abcdefg文\n件"},
		"marks combine":                  {"e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301e\u0301e\u0301e\u0301 \ne\u0301e\u0301e\u0301e\u0301"},
		"joined characters":              {"aaaaa 👨\u200d👩", "aaaaa \n👨\u200d👩"},
		"a fence":                        {"```go\na long line of code\n```\none two three", "```go\na long line of code\n```\none two \nthree"},
		"a fence in a list":              {"  ~~~\na long line of code\n  ~~~\none two three", "  ~~~\na long line of code\n  ~~~\none two \nthree"},
		"a shorter mark ends no fence":   {"````\n```\none two three four\n````", "````\n```\none two three four\n````"},
		"words behind a mark end none":   {"```\n``` no\none two three", "```\n``` no\none two three"},
		"marks in a line are no fence":   {"a ``` b\none two three", "a ``` b\none two \nthree"},
		"code in a line is no fence":     {"```x```\none two three", "```x```\none two \nthree"},
		"an indentation wider than this": {"            a b", "            a b"},
		"an item":                        {"- one two three", "- one two \n  three"},
		"an item within":                 {" * one two three\nfour five six", " * one \n   two \n   three\nfour five \nsix"},
		"a number":                       {"1. one two three", "1. one \n   two \n   three"},
		"an indented line":               {"  one two three", "  one two \n  three"},
		"a word wider than an item":      {"- a verylongword b", "- a \nverylongword b"},
		"a word wider than all of it":    {"- verylongwordindeed b", "- verylongwordindeed\n  b"},
		"no item without a space":        {"-one two three", "-one two \nthree"},
		"a mark deep in the line":        {"        - one two", "        - \none two"},
	} {
		t.Run(name, func(t *testing.T) {
			for piece := 1; piece < 8; piece++ {
				if got := flowed(10, piece, c.in); got != c.want {
					t.Errorf("in pieces of %d: %q, want %q", piece, got, c.want)
				}
			}
		})
	}
}

// same tells whether out is text but for line ends that were added, and spaces
// left out before one.
func same(out, text string) bool {
	for i := 0; i < len(out); i++ {
		switch {
		case text != "" && out[i] == text[0]:
			text = text[1:]
		case out[i] == '\n':
			if rest := strings.TrimLeft(text, " \t"); strings.HasPrefix(rest, "\n") {
				text = rest[1:]
				continue
			}
			// An added one: the spaces beyond the edge are gone, up to a word, which may be indented.
			text = strings.TrimLeft(text, " \t")
			for i+1 < len(out) && out[i+1] == ' ' {
				i++
			}
		default:
			return false
		}
	}
	return strings.Trim(text, " \t") == ""
}

func FuzzStreamedTextLosesNothing(f *testing.F) {
	for _, text := range []string{
		"one two three", "```\ncode code code\n```\n", "文件。文件 (文件)", "e\u0301 👨\u200d👩\u200d👧 x", "\t\ta\t\tb   \n", "verylongwordindeed  \n ~~~ x",
		"- one two three four\n  - five six seven\n10) eight 文件文件文件\n",
	} {
		f.Add(text, uint8(10), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, columns, piece uint8) {
		text = strings.ReplaceAll(Visible(strings.ToValidUTF8(text, "")), "\u200b", "")
		out := flowed(int(columns), int(piece), text)
		if !same(out, text) {
			t.Fatalf("%d columns: %q became %q", columns, text, out)
		}
		if whole := flowed(int(columns), len(text), text); whole != out {
			t.Fatalf("%d columns: %q in pieces, %q at once", columns, out, whole)
		}
		long := 0
		for word := range strings.FieldsSeq(text) {
			long = max(long, width(word))
		}
		if strings.ContainsAny(text, "`~\t") || long > int(columns)-1 || strings.Contains(text, "\u200d") {
			return
		}
		for line := range strings.SplitSeq(out, "\n") {
			indented := strings.HasPrefix(line, " ") // such a line may end in a word that is too long for it
			if !indented && strings.Contains(line, " ") && width(strings.TrimRight(line, " ")) > int(columns) {
				t.Fatalf("%d columns: %q", columns, line)
			}
		}
	})
}

func TestAPieceOfTextCostsNoMemory(t *testing.T) {
	f := flow{columns: func() int { return 80 }}
	var out []byte
	if n := testing.AllocsPerRun(1000, func() { out = f.text(out[:0], "some words, 文件 and `code` of an answer\n") }); n != 0 {
		t.Errorf("%v allocations a piece", n)
	}
}

// TestWhatFollowsTheLineOfACall: the words about a question that was left pending
// and the line of its call come from two goroutines, in any order.
func TestWhatFollowsTheLineOfACall(t *testing.T) {
	const want = "· ask_user_question  pending  60 s\nleft pending\n"
	said := func(s *Screen) { s.AnnounceAfter("q", "left pending") }
	done := func(s *Screen) {
		s.ToolDone("q", "", "", Outcome{Took: 60e9, Result: `{"pending":true,"callId":"q"}`})
	}
	for name, c := range map[string]struct {
		do   []func(*Screen)
		o    ScreenOptions
		want string
	}{
		"words first":       {[]func(*Screen){said, done}, ScreenOptions{}, want},
		"line first":        {[]func(*Screen){done, said}, ScreenOptions{}, want},
		"quiet":             {[]func(*Screen){said, done}, ScreenOptions{Quiet: true}, "left pending\n"},
		"the turn is over":  {[]func(*Screen){said, (*Screen).Idle}, ScreenOptions{}, "left pending\n"},
		"the screen closes": {[]func(*Screen){said}, ScreenOptions{}, "left pending\n"},
		"no such call":      {[]func(*Screen){done, said}, ScreenOptions{}, want},
	} {
		t.Run(name, func(t *testing.T) {
			var out sink
			s := NewScreen(&out, c.o)
			s.ToolStarted("q", session.AskTool, "{}", time.Now())
			for _, do := range c.do {
				do(s)
			}
			s.Close()
			if got := strings.ReplaceAll(out.String(), "1 m 00 s", "60 s"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestOnlyAQuestionIsPending(t *testing.T) {
	var out sink
	s := NewScreen(&out, ScreenOptions{})
	s.ToolStarted("r", "read", `{"file_path":"x.json"}`, time.Now())
	s.ToolDone("r", "", "", Outcome{Took: 1e6, Result: `{"pending":true,"callId":"q"}`})
	s.Close()
	if got := out.String(); got != "· read x.json  ok  1 ms\n" {
		t.Error(got)
	}
}

func BenchmarkStreamedText(b *testing.B) {
	f := flow{columns: func() int { return 80 }}
	text := strings.Repeat("some words, 文件 and `code` of an answer that is long ", 1000)
	var out []byte
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		out = f.text(out[:0], text)
	}
}
