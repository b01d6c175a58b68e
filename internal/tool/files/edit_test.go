package files

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"deepseek/internal/tool"
)

// Byte-exact: what stands in the file before and after.
func TestEditBytes(t *testing.T) {
	const b = "\xEF\xBB\xBF"
	for _, c := range []struct {
		name, before, old, new, after string
		all                           bool
	}{
		{"a word", "one\ntwo\nthree\n", "two", "TWO", "one\nTWO\nthree\n", false},
		{"the whole file", "x", "x", "y", "y", false},
		{"to nothing", "x\n", "x\n", "", "", false},
		{"at the start", "abc", "a", "A", "Abc", false},
		{"at the end", "abc", "c", "C", "abC", false},
		{"several lines", "a\nb\nc\n", "a\nb\n", "B\nA\n", "B\nA\nc\n", false},
		{"lines added", "a\nb\n", "a\n", "a\nx\ny\n", "a\nx\ny\nb\n", false},
		{"lines removed", "a\nx\nb\n", "x\n", "", "a\nb\n", false},
		{"no last line end stays so", "a\nb", "b", "c", "a\nc", false},
		{"no last line end, earlier line", "a\nb", "a", "c", "c\nb", false},
		{"a last line end may be added", "a\nb", "b", "b\n", "a\nb\n", false},
		{"a last line end may be removed", "a\nb\n", "b\n", "b", "a\nb", false},
		{"regular expressions are letters", "a.c abc", "a.c", "$1", "$1 abc", false},
		{"backslashes and dollars are letters", `x\n$0`, `\n$0`, `\\1${0}`, `x\\1${0}`, false},
		{"tabs", "\ta\n    a\n", "\ta", "\tb", "\tb\n    a\n", false},
		{"trailing white space", "a  \nb\n", "a  \n", "a\n", "a\nb\n", false},
		{"multi-byte", "größe 世界\n", "世", "地", "größe 地界\n", false},
		{"combining marks are not folded", "e\u0301 é", "é", "E", "e\u0301 E", false},
		{"outside the basic plane", "a😀b", "😀", "😁", "a😁b", false},
		{"all", "a b a b a", "a", "x", "x b x b x", true},
		{"all, once", "a b", "a", "x", "x b", true},
		{"all grows", "aa", "a", "aa", "aaaa", true},
		{"all does not look at what it put", "ab", "a", "aab", "aabb", true},
		{"all, overlapping, from the left", "aaaaa", "aa", "b", "bba", true},
		{"all across lines", "a\nb\na\nb\n", "a\nb\n", "c\n", "c\nc\n", true},
		{"CRLF by LF", "a\r\nb\r\nc\r\n", "a\nb", "a\nX", "a\r\nX\r\nc\r\n", false},
		{"CRLF by CRLF", "a\r\nb\r\n", "a\r\nb", "a\r\nX", "a\r\nX\r\n", false},
		{"CRLF within one line", "a\r\nb\r\n", "b", "c", "a\r\nc\r\n", false},
		{"CRLF, lines added", "a\r\nb\r\n", "a", "a\nx\ny", "a\r\nx\r\ny\r\nb\r\n", false},
		{"CRLF, lines added with CRLF", "a\r\nb\r\n", "a", "a\r\nx", "a\r\nx\r\nb\r\n", false},
		{"CRLF, lines added at the end", "a\r\nb", "b", "b\nc", "a\r\nb\r\nc", false},
		{"CRLF, line removed", "a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n", false},
		{"CRLF, joined", "a\r\nb\r\n", "a\nb", "ab", "ab\r\n", false},
		{"CRLF, split", "ab\r\n", "ab", "a\nb", "a\r\nb\r\n", false},
		{"CRLF, all", "a\r\nx\r\na\r\n", "a\n", "b\nc\n", "b\r\nc\r\nx\r\nb\r\nc\r\n", true},
		{"CRLF, a line end alone", "a\r\nb", "\n", "\n\n", "a\r\n\r\nb", false},
		{"CRLF, no last line end", "a\r\nb", "a\nb", "a\nc", "a\r\nc", false},
		{"mixed, CRLF line", "a\r\nb\nc\n", "a", "a\nx", "a\r\nx\r\nb\nc\n", false},
		{"mixed, LF line", "a\r\nb\nc\n", "b", "b\nx", "a\r\nb\nx\nc\n", false},
		{"mixed, elsewhere untouched", "a\nb\r\nc\nd\r\n", "c", "C", "a\nb\r\nC\nd\r\n", false},
		{"mixed, ends that old and new share stay", "a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\r\n", false},
		{"mixed, exact line ends choose", "x\r\ny x\ny", "x\r\ny", "z", "z x\ny", false},
		{"mixed, no line after", "a\r\nb\nc", "c", "c\nd", "a\r\nb\nc\nd", false},
		{"LF file takes CRLF of new as it is", "a\nb\n", "a", "a\r\nx", "a\r\nx\nb\n", false},
		{"a lone CR is a letter", "a\rb\n", "a\rb", "a\nb", "a\nb\n", false},
		{"a lone CR in a CRLF file", "a\rb\r\nc\r\n", "a\rb", "x", "x\r\nc\r\n", false},
		{"two CR before LF", "a\r\r\nb\r\n", "b", "c", "a\r\r\nc\r\n", false},
		{"two CR before LF in new, LF line", "a\r\nb\nc\n", "b", "x\r\r\ny", "a\r\nx\r\r\ny\nc\n", false},
		{"two CR before LF in new, CRLF line", "a\r\nb\r\n", "b", "x\r\r\ny\nz", "a\r\nx\r\r\ny\r\nz\r\n", false},
		{"two CR before LF in new, at its end", "x\r\n", "x\n", "x\r\r\n", "x\r\r\n", false},
		{"two CR before LF in new, at its end, LF line", "a\r\nx\n", "x\n", "y\r\r\n", "a\r\ny\r\r\n", false},
		{"two CR before LF in old and new", "a\r\r\nb\r\n", "a\r\r\nb", "a\r\r\nc", "a\r\r\nc\r\n", false},
		{"byte order mark", b + "a\nb\n", "a", "c", b + "c\nb\n", false},
		{"byte order mark, first line to nothing", b + "a\n", "a\n", "", b, false},
		{"byte order mark and CRLF", b + "a\r\nb\r\n", "a\nb", "c\nd", b + "c\r\nd\r\n", false},
		{"a mark in the middle is a letter", "a" + b + "b", "b", "c", "a" + b + "c", false},
		{"byte order mark, CRLF, no last line end", b + "a\r\nb", "b", "b\nc", b + "a\r\nb\r\nc", false},
		{"byte order mark, all", b + "a a\r\na", "a", "b", b + "b b\r\nb", true},
		{"CRLF, all, to nothing", "a\r\nx\r\na\r\n", "a\n", "", "x\r\n", true},
		{"CRLF, blank lines removed", "a\r\n\r\n\r\nb\r\n", "a\n\n\nb", "a\nb", "a\r\nb\r\n", false},
		{"CRLF, the whole file", "a\r\nb\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\n", false},
		{"CRLF, the last line end removed", "a\r\nb\r\n", "b\n", "b", "a\r\nb", false},
		{"CRLF, indented by tabs", "if x {\r\n\ty()\r\n}\r\n", "\ty()\n", "\ty()\n\tz()\n", "if x {\r\n\ty()\r\n\tz()\r\n}\r\n", false},
		{"CRLF, new with both ends", "a\r\nb\r\n", "a", "x\r\ny\nz", "x\r\ny\r\nz\r\nb\r\n", false},
		{"mixed, all, each as its lines are", "a\r\nx\r\na\nx\n", "a\n", "a\nb\n", "a\r\nb\r\nx\r\na\nb\nx\n", true},
		{"mixed, a removed line", "a\r\nb\nc\r\n", "b\n", "", "a\r\nc\r\n", false},
		{"form feed and vertical tab are letters", "a\fb\vc\n", "\fb\v", "\f", "a\fc\n", false},
		{"a long file, one byte", strings.Repeat("x\n", 70_000) + "y\n" + strings.Repeat("x\n", 70_000), "y", "Y", strings.Repeat("x\n", 70_000) + "Y\n" + strings.Repeat("x\n", 70_000), false},
		{"NEL and LS are no line ends", "a\u0085b\u2028c\r\n", "b", "x\ny", "a\u0085x\r\ny\u2028c\r\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bx := newBox(t)
			bx.put("f", c.before)
			want(t, bx.read("f"), "")
			want(t, bx.call("edit", editArgs{"f", c.old, c.new, c.all}), "", "Edited f")
			if got := bx.get("f"); got != c.after {
				t.Fatalf("got  %q\nwant %q", got, c.after)
			}
			bx.clean()
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for _, c := range []struct {
		name, before, old, new string
		all                    bool
		code                   string
		parts                  []string
	}{
		{"empty old", "a", "", "b", false, tool.CodeInvalidArguments, []string{"old_string is empty"}},
		{"nothing to change", "a", "a", "a", false, tool.CodeInvalidArguments, []string{"the same"}},
		{"line ends alone", "a\r\nb\r\n", "a\n", "a\r\n", false, tool.CodeInvalidArguments, []string{"line ends only"}},
		{"twice", "a\nb\na\n", "a", "c", false, CodeAmbiguous, []string{"occurs 2 times, at lines 1, 3", "replace_all"}},
		{"twice on a line", "a a\n", "a", "c", false, CodeAmbiguous, []string{"lines 1, 1"}},
		{"overlapping is twice", "aaa", "aa", "b", false, CodeAmbiguous, []string{"occurs 2 times"}},
		{"many", strings.Repeat("a\n", 30), "a", "c", false, CodeAmbiguous, []string{"occurs 30 times", "19, 20 and 10 more"}},
		{"twice with CRLF", "a\r\nb\r\na\r\nb\r\n", "a\nb", "c", false, CodeAmbiguous, []string{"lines 1, 3"}},
		{"not there", "abc\n", "zzz", "c", false, CodeNoMatch, []string{"does not occur. Read the file again"}},
		{"not there, all", "abc\n", "zzz", "c", true, CodeNoMatch, nil},
		{"an empty file", "", "a", "b", false, CodeNoMatch, nil},
		{"white space within", "x\nif  a {\n", "if a {", "b", false, CodeNoMatch, []string{`line 2`, `white space`, `"if  a {"`}},
		{"tab for spaces", "f\n\treturn\n", "    return", "b", false, CodeNoMatch, []string{`white space`, `line 2 is "\treturn", old_string has "    return"`}},
		{"trailing white space", "a \nb\n", "a\nb", "c", false, CodeNoMatch, []string{`white space`, `line 1 is "a ", old_string has "a"`}},
		{"no-break space", "a\u00a0b\n", "a b", "c", false, CodeNoMatch, []string{"white space", `\u00a0`}},
		{"case", "Hello World\n", "hello world", "c", false, CodeNoMatch, []string{"line 1", "upper and lower case", `"Hello World"`}},
		{"quotes", "say “hi”\n", `say "hi"`, "c", false, CodeNoMatch, []string{"look-alike", "“hi”"}},
		{"line ends", "a\nb\n", "a\r\nb", "c", false, CodeNoMatch, []string{"line 1", "line ends differ"}},
		{"line numbers", "a\nb\nc\n", "     2\tb\n     3\tc", "x", false, CodeNoMatch, []string{"Without the line numbers", "line 2"}},
		{"no last line end", "a\nb", "b\n", "c\n", false, CodeNoMatch, []string{"Without its last line end", "line 2"}},
		{"a later line differs", "a\nb\nc\nd\n", "b\nc\nX\n", "c", false, CodeNoMatch, []string{`first 2 lines match at line 2; line 4 is "d", old_string has "X"`}},
		{"the file ends", "a\nb", "a\nb\nc", "x", false, CodeNoMatch, []string{"first 2 lines match at line 1, then the file ends"}},
		{"not UTF-8", "a\nb\xe9\n", "a", "b", false, CodeNotText, []string{"not UTF-8 (byte 0xE9 at offset 3, line 2)"}},
		{"binary", "a\x00b", "a", "b", false, CodeNotText, []string{"binary"}},
		{"UTF-16", "\xff\xfea\x00", "a", "b", false, CodeNotText, []string{"UTF-16"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bx := newBox(t)
			bx.put("f", c.before)
			bx.env.Observed.set(bx.path("f"), hashOf([]byte(c.before)))
			want(t, bx.call("edit", editArgs{"f", c.old, c.new, c.all}), c.code, c.parts...)
			if got := bx.get("f"); got != c.before {
				t.Fatalf("the file was changed: %q", got)
			}
			if len(bx.guard.asked) > 0 {
				t.Fatal("a person was asked about a change that is not possible")
			}
		})
	}
}

func TestEditNeedsTheVersionThatWasRead(t *testing.T) {
	b := newBox(t)
	b.put("f", "one\n")
	args := editArgs{"f", "one", "two", false}
	want(t, b.call("edit", args), CodeNotObserved, "f exists and was not read", "read it first")
	want(t, b.read("f"), "")
	b.put("f", "one one\n")
	want(t, b.call("edit", args), CodeStale, "read it again")
	b.put("f", "one\n")
	want(t, b.call("edit", args), "")
	want(t, b.call("edit", editArgs{"f", "two", "three", false}), "") // its own change counts as seen
	if got := b.get("f"); got != "three\n" {
		t.Fatalf("got %q", got)
	}
}

func TestEditOfWhatIsNotThere(t *testing.T) {
	b := newBox(t)
	b.put("main.go", "x")
	want(t, b.call("edit", editArgs{"mian.go", "a", "b", false}), CodeNotFound, "mian.go does not exist", "main.go")
	want(t, b.call("edit", editArgs{".", "a", "b", false}), CodeNotAFile, "is a directory")
}

func TestEditSaysTheLines(t *testing.T) {
	b := newBox(t)
	b.put("f", "x\na\nx\na\n")
	want(t, b.read("f"), "")
	r := b.call("edit", editArgs{"f", "a", "b", true})
	want(t, r, "", "Edited f: 2 replacements at lines 2, 4.")
	if r.Meta.Path != b.path("f") || !strings.Contains(r.Meta.Diff, "--- a/f\n+++ b/f\n") || !strings.Contains(r.Meta.Diff, "-a\n+b\n") {
		t.Fatalf("meta %+v", r.Meta)
	}
	if len(r.Meta.Observed) != 1 || r.Meta.Observed[0].Hash != hashOf([]byte("x\nb\nx\nb\n")) {
		t.Fatalf("observed %+v", r.Meta.Observed)
	}
}

func TestEditOfAFileThatChangesBeforeTheWrite(t *testing.T) {
	b := newBox(t)
	b.put("f", "one\n")
	want(t, b.read("f"), "")
	b.guard.onWrite = func() { b.put("f", "another\n") }
	want(t, b.call("edit", editArgs{"f", "one", "two", false}), CodeStale, "changed by somebody else")
	b.guard.onWrite = func() {
		b.put("g", "one\n")
		if err := os.Rename(b.path("g"), b.path("f")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(b.path("f")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", b.path("f")); err != nil {
			t.Fatal(err)
		}
	}
	b.put("f", "one\n")
	want(t, b.read("f"), "")
	want(t, b.call("edit", editArgs{"f", "one", "two", false}), CodeStale)
	b.clean()
}

func TestNearMissesNeverTakeLong(t *testing.T) {
	text := strings.Repeat("same line\n", 150_000)
	old := strings.Repeat("same line\n", 1_500) + "other"
	if _, _, err := replaced([]byte(text), editArgs{OldString: old, NewString: "x"}); err == nil {
		t.Fatal("no error")
	}
}

func FuzzEdit(f *testing.F) {
	for _, s := range [][3]string{{"a\nb\n", "a", "c"}, {"a\r\nb\r\n", "a\nb", "x\ny"}, {"aaa", "aa", "b"}, {"\xef\xbb\xbfa\r\n\nb", "\n", "\n\n"}, {"a\r\r\nb", "\r", "x"}} {
		f.Add(s[0], s[1], s[2], true)
		f.Add(s[0], s[1], s[2], false)
	}
	f.Fuzz(func(t *testing.T, text, old, repl string, all bool) {
		if old == "" || !utf8.ValidString(repl) || !utf8.ValidString(old) {
			return
		}
		out, lines, err := replaced([]byte(text), editArgs{OldString: old, NewString: repl, ReplaceAll: all})
		if err != nil {
			if _, ok := err.(coded); !ok { //nolint:errorlint // the very type is the promise
				t.Fatalf("%T", err)
			}
			return
		}
		if len(lines) == 0 || string(out) == text || !utf8.Valid(out) {
			t.Fatalf("%q %q %q: %q at %v", text, old, repl, out, lines)
		}
		if !strings.Contains(text, "\r\n") && !strings.HasPrefix(text, string(bom)) {
			n := 1
			if all {
				n = -1
			}
			if wanted := strings.Replace(text, old, repl, n); string(out) != wanted {
				t.Fatalf("got %q, want %q", out, wanted)
			}
		}
		if !strings.Contains(text, "\r") && strings.Contains(string(out), "\r") && !strings.Contains(repl, "\r") {
			t.Fatal("a carriage return came from nowhere")
		}
	})
}
