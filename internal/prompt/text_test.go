package prompt

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ntext":           "plain\ntext",
		"a\x1b[2Jb\r\x07":       "a^[[2Jb^M^G",
		"\x7f\u009b31m":         "^?<U+009B>31m",
		"a\tb":                  "a    b",
		"evil\u202etxt\u2066x":  "evil<U+202E>txt<U+2066>x",
		"zero\u200bwidth\ufeff": "zero<U+200B>width<U+FEFF>",
		"שלום 蓝 👨‍👩‍👧":          "שלום 蓝 👨‍👩‍👧",
		"bad\xff":               "bad\uFFFD",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		w    int
		want string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two|three"},
		{"one  two", 5, "one|two"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"ab abcdefgh", 4, "ab|abcd|efgh"},
		{"    indented text", 12, "    indented|text"},
		{"a\n\nb", 5, "a||b"},
		{"蓝色蓝色", 5, "蓝色|蓝色"},
		{"a 蓝色", 4, "a|蓝色"},
		{"       ", 3, ""},
		{"       x", 3, "x"},
	} {
		if got := strings.Join(wrap(c.in, c.w), "|"); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.in, c.w, got, c.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two 蓝色 👍🏽 e\u0301", 5)
	f.Add("     x \n y", 3)
	f.Fuzz(func(t *testing.T, s string, w int) {
		w = 4 + int(uint(w)%60)
		s = visible(s)
		lines := wrap(s, w)
		for _, l := range lines {
			if width(l) > w && len([]rune(l)) > 1 && width(l) > maxCluster(l) {
				t.Fatalf("%q is %d wide, more than %d", l, width(l), w)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(strings.Join(lines, "")) != squeeze(s) {
			t.Fatalf("wrap(%q) lost text: %q", s, lines)
		}
	})
}

// maxCluster: one character may be wider than a line.
func maxCluster(s string) int {
	n := 0
	for i, e := range edges(s)[1:] {
		n = max(n, clusterWidth(s[edges(s)[i]:e]))
	}
	return n
}

func TestFieldKeepsWholeCharacters(t *testing.T) {
	var f field
	f.insert("e\u0301👨‍👩‍👧x")
	f.edit(keyLeft)
	f.edit(keyBackspace)
	if f.text != "e\u0301x" {
		t.Fatalf("%q", f.text)
	}
	f.edit(keyBackspace)
	if f.text != "x" || f.pos != 0 {
		t.Fatalf("%q", f.text)
	}
	f.insert("o")
	f.insert("\u0308")
	f.edit(keyBackspace)
	if f.text != "x" {
		t.Fatalf("%q", f.text)
	}
}

func TestFieldLines(t *testing.T) {
	for _, c := range []struct {
		text     string
		pos, w   int
		want     string
		row, col int
	}{
		{"", 0, 10, "", 0, 0},
		{"abc", 3, 10, "abc", 0, 3},
		{"abcdef", 6, 4, "abc|def", 1, 3},
		{"abcdef", 3, 4, "abc|def", 1, 0},
		{"ab\ncd", 3, 10, "ab|cd", 1, 0},
		{"ab\n", 3, 10, "ab|", 1, 0},
		{"蓝色x", 7, 4, "蓝|色x", 1, 3},
	} {
		f := field{c.text, c.pos}
		lines, row, col := f.lines(c.w)
		if got := strings.Join(lines, "|"); got != c.want || row != c.row || col != c.col {
			t.Errorf("%q at %d in %d: %q %d %d, want %q %d %d", c.text, c.pos, c.w, got, row, col, c.want, c.row, c.col)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add("abc\ndef", []byte{1, 2, 3, 4, 5, 6, 7, 8})
	codes := []keyCode{keyLeft, keyRight, keyHome, keyEnd, keyBackspace, keyDelete, keyCtrlA, keyCtrlE, keyCtrlK, keyCtrlU, keyCtrlW}
	f.Fuzz(func(t *testing.T, text string, ops []byte) {
		fd := field{}
		for _, op := range ops {
			if i := int(op) % (len(codes) + 1); i < len(codes) {
				fd.edit(codes[i])
			} else {
				fd.insert(cleanPaste([]byte(text)))
			}
			if fd.pos < 0 || fd.pos > len(fd.text) || !utf8.ValidString(fd.text[:fd.pos]) {
				t.Fatalf("cursor at %d of %q", fd.pos, fd.text)
			}
			if len(fd.text) > 1<<12 {
				return
			}
			fd.lines(10)
		}
	})
}

func TestClockFace(t *testing.T) {
	for ms, want := range map[int64]string{1: "1s", 29000: "29s", 29001: "30s", 59001: "1:00", 119000: "1:59", 3600000: "1:00:00", 2147483000: "596:31:23"} {
		if got := clockFace(msDuration(ms)); got != want {
			t.Errorf("%d ms: %q, want %q", ms, got, want)
		}
	}
}
