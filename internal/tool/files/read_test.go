package files

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

func TestReadShows(t *testing.T) {
	for _, c := range []struct {
		name, content string
		args          readArgs
		want          string
	}{
		{"lines", "one\ntwo\n", readArgs{}, "     1\tone\n     2\ttwo"},
		{"no last line end", "one\ntwo", readArgs{}, "     1\tone\n     2\ttwo"},
		{"empty lines", "\n\nx\n\n", readArgs{}, "     1\t\n     2\t\n     3\tx\n     4\t"},
		{"an empty file", "", readArgs{}, "(f is empty)"},
		{"offset", "a\nb\nc\n", readArgs{Offset: 2}, "     2\tb\n     3\tc"},
		{"limit", "a\nb\nc\n", readArgs{Limit: 2}, "     1\ta\n     2\tb\n(lines 1-2 of 3; go on with offset=3)"},
		{"offset and limit", "a\nb\nc\nd", readArgs{Offset: 2, Limit: 1}, "     2\tb\n(lines 2-2 of 4; go on with offset=3)"},
		{"limit to the end", "a\nb", readArgs{Limit: 2}, "     1\ta\n     2\tb"},
		{"CRLF", "a\r\nb\r\n", readArgs{}, "     1\ta\n     2\tb\n(CRLF line ends)"},
		{"mixed line ends", "a\r\nb\nc\r\n", readArgs{}, "     1\ta\n     2\tb\n     3\tc\n(mixed line ends: 2 CRLF, 1 LF)"},
		{"a lone CR stays", "a\rb\n", readArgs{}, "     1\ta\rb"},
		{"byte order mark", "\xEF\xBB\xBFa\n", readArgs{}, "     1\ta\n(starts with a UTF-8 byte order mark)"},
		{"byte order mark alone", "\xEF\xBB\xBF", readArgs{}, "(f holds a byte order mark only)"},
		{"not UTF-8", "caf\xe9\n", readArgs{}, "     1\tcaf\\xE9\n(not UTF-8: such bytes are shown as \\xNN, edit refuses this file)"},
		{"unicode", "größe 世界 😀", readArgs{}, "     1\tgröße 世界 😀"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			b.put("f", c.content)
			c.args.FilePath = "f"
			r := b.call("read", c.args)
			want(t, r, "")
			if r.Content != c.want {
				t.Fatalf("got  %q\nwant %q", r.Content, c.want)
			}
			if len(r.Meta.Observed) != 1 || r.Meta.Observed[0] != (session.Observed{Path: b.path("f"), Hash: hashOf([]byte(c.content))}) {
				t.Fatalf("observed %+v", r.Meta.Observed)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	b := newBox(t)
	b.put("README.md", "x")
	b.put("dir/inner.txt", "x")
	b.put("empty/x", "")
	b.put("line/a\n; it holds b", "")
	b.put("bin", "abc\x00def")
	b.put("pic.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b.put("utf16", "\xff\xfea\x00b\x00")
	if err := syscall.Mkfifo(b.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", b.path("sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's socket
	for _, c := range []struct {
		path, code string
		parts      []string
	}{
		{"", tool.CodeInvalidArguments, nil},
		{"readme.md", CodeNotFound, []string{"readme.md does not exist; similar names there: README.md"}},
		{"README.txt", CodeNotFound, []string{"README.md"}},
		{"REDME.md", CodeNotFound, []string{"README.md"}},
		{"zzzzzzzz", CodeNotFound, []string{"zzzzzzzz does not exist"}},
		{"no/such/file", CodeNotFound, []string{"nor does its folder; the nearest folder that does is " + b.dir}},
		{"README.md/x", CodeNotAFile, []string{"a part of the path is a file"}},
		{"dir", CodeNotAFile, []string{"dir is a directory; it holds inner.txt"}},
		{"bin", CodeNotText, []string{"bin is a binary file, 7 bytes"}},
		{"/proc/self/cmdline", CodeNotText, []string{"/proc/self/cmdline is a binary file; read"}},
		{"line", CodeNotAFile, []string{`it holds a\x0A; it holds b`}},
		{"line/a\n; it holds c", CodeNotFound, []string{`similar names there: a\x0A; it holds b`}},
		{"pic.png", CodeNotText, []string{"image/png"}},
		{"utf16", CodeNotText, []string{"UTF-16"}},
		{"fifo", CodeNotAFile, []string{"a named pipe"}},
		{"sock", CodeNotAFile, []string{"a socket"}},
		{"/dev/zero", CodeNotAFile, []string{"/dev/zero is a device"}},
	} {
		t.Run(c.path, func(t *testing.T) { want(t, b.read(c.path), c.code, c.parts...) })
	}
	b.put("f", "a\nb\n")
	want(t, b.call("read", readArgs{"f", 3, 0}), tool.CodeInvalidArguments, "offset 3 is past the end: f has 2 lines")
}

func TestReadPagesThroughLongFiles(t *testing.T) {
	b := newBox(t)
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, "line %d\n", i+1)
	}
	b.put("f", all.String())
	r := b.read("f")
	want(t, r, "", "\n  2000\tline 2000\n(lines 1-2000 of 5000; go on with offset=2001)")
	r = b.call("read", readArgs{"f", 4001, 9999})
	want(t, r, "", "  4001\tline 4001", "  5000\tline 5000")
	if strings.Contains(r.Content, "go on") {
		t.Fatal("says to go on at the end")
	}
}

func TestReadStaysWithinItsBytes(t *testing.T) {
	b := newBox(t)
	for _, unit := range []string{"x", "世", "\xff"} {
		b.put("f", strings.Repeat(strings.Repeat(unit, 1500)+"\n", 100))
		r := b.read("f")
		want(t, r, "", "go on with offset=")
		if len(r.Content) > maxBytes || !utf8.ValidString(r.Content) {
			t.Fatalf("%d bytes", len(r.Content))
		}
		seen := 0
		for offset := 1; offset <= 100; { // what it says leads through the whole file
			r := b.call("read", readArgs{"f", offset, 0})
			lines := strings.Count(r.Content, "\t")
			seen += lines
			offset += lines
		}
		if seen != 100 {
			t.Fatalf("%d lines seen", seen)
		}
	}
}

func TestReadCutsLongLines(t *testing.T) {
	b := newBox(t)
	for _, n := range []int{1999, 2000, 2001, 5000, 300_000} {
		b.put("f", strings.Repeat("é", n)+"\r\nnext\r\n")
		r := b.read("f")
		want(t, r, "", "\n     2\tnext")
		first, _, _ := strings.Cut(r.Content, "\n")
		if n <= 2000 && first != "     1\t"+strings.Repeat("é", n) {
			t.Errorf("%d: cut", n)
		}
		if n > 2000 && !strings.HasPrefix(first, "     1\t"+strings.Repeat("é", 2000)+" … (") {
			t.Errorf("%d: %q", n, first[len(first)-60:])
		}
	}
	b.put("f", strings.Repeat("x", 3000))
	want(t, b.read("f"), "", " … (1000 more characters in this line)")
}

func TestHugeFilesAreReadInPartAndNotKept(t *testing.T) {
	b := newBox(t)
	b.put("f", "first\n"+strings.Repeat("y", 100_000)+"\n")
	if err := os.Truncate(b.path("f"), maxWhole+10); err != nil {
		t.Fatal(err)
	}
	r := b.call("read", readArgs{"f", 1, 1})
	want(t, r, "", "     1\tfirst\n(lines 1-1; go on with offset=2)\n(larger than 64 MB")
	if len(r.Meta.Observed) > 0 {
		t.Fatal("observed")
	}
	want(t, b.call("edit", editArgs{"f", "first", "x", false}), CodeTooLarge, "larger than 64 MB")
	want(t, b.call("write", writeArgs{"f", "x"}), CodeTooLarge)
}

func TestACancelledReadEnds(t *testing.T) {
	b := newBox(t)
	b.put("f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, b.callCtx(ctx, "read", readArgs{FilePath: "f"}), tool.CodeAborted)
}

func TestABlockedReadEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // a test's pipe
	defer w.Close() //nolint:errcheck // a test's pipe
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := chunks(ctx, r, func([]byte) bool { return true }); err != context.DeadlineExceeded { //nolint:errorlint // the very error
		t.Fatalf("got %v", err)
	}
}

func TestSeedTakesUpWhatTheLogSays(t *testing.T) {
	b := newBox(t)
	b.put("f", "one")
	b.env.Observed.Seed([]session.Observed{{Path: b.path("f"), Hash: "old"}, {Path: b.path("f"), Hash: hashOf([]byte("one"))}})
	want(t, b.call("write", writeArgs{"f", "two"}), "")
}

func TestReadsMayOverlap(t *testing.T) {
	b := newBox(t)
	b.put("f", strings.Repeat("line\n", 1000))
	done := make(chan struct{})
	for range 8 {
		go func() {
			b.tools["read"].Run(t.Context(), tool.Call{Arguments: []byte(`{"file_path":"f"}`)})
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
}

// The parts in which a file arrives must not show.
func FuzzPager(f *testing.F) {
	f.Add([]byte("a\r\nb\nc"), 4, 1, 2)
	f.Add([]byte("\xEF\xBB\xBFa\xe4\xb8\x96\n"), 4, 1, 10)
	f.Add([]byte("\n\n\r\r\n\xff"), 5, 2, 1)
	f.Fuzz(func(t *testing.T, data []byte, cut, first, limit int) {
		if first < 1 || limit < 1 || limit > 2000 || cut < 3 {
			return
		}
		show := func(parts ...[]byte) string {
			p := newPager(first, limit)
			for _, part := range parts {
				p.feed(part)
			}
			p.end()
			return fmt.Sprint(p.total, p.crlf, p.lf, p.bad, p.hasBOM) + p.text("f", true)
		}
		whole := show(data)
		if cut < len(data) {
			if split := show(data[:cut], data[cut:]); split != whole {
				t.Fatalf("got %q, want %q", split, whole)
			}
			parts := [][]byte{data[:cut]}
			for _, b := range data[cut:] {
				parts = append(parts, []byte{b})
			}
			if split := show(parts...); split != whole {
				t.Fatalf("byte by byte: got %q, want %q", split, whole)
			}
		}
	})
}
