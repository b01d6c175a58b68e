package search

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"deepseek/internal/tool"
)

func TestGrep(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.go":       "package a\n\nfunc One() {}\nfunc two() {}\n",
		"b.txt":      "one\r\ntwo\r\none two\r\n",
		"sub/c.go":   "func One() int { return 1 }",
		"sub/d.md":   "größe 世界\nstraße\n",
		".hidden":    "One\n",
		"bin":        "One\x00",
		"ignored":    "One\n",
		".gitignore": "ignored\n",
		".git/HEAD":  "One\n",
		"bom.txt":    "\xEF\xBB\xBFalpha\nbeta alpha\n\xEF\xBB\xBFalpha\n",
		"bom":        "\xEF\xBB\xBF",
	})
	if err := os.Symlink("a.go", filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "sub", "up")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args grepArgs
		want string
	}{
		{"a literal", grepArgs{Pattern: "One"}, ".hidden:1:One\na.go:3:func One() {}\nsub/c.go:1:func One() int { return 1 }"},
		{"an expression", grepArgs{Pattern: `func \w+\(\) \{`}, "a.go:3:func One() {}\na.go:4:func two() {}"},
		{"without case", grepArgs{Pattern: `(?i)ONE`, Include: "*.txt"}, "b.txt:1:one\nb.txt:3:one two"},
		{"alternatives", grepArgs{Pattern: `One|two`, Include: "*.go"}, "a.go:3:func One() {}\na.go:4:func two() {}\nsub/c.go:1:func One() int { return 1 }"},
		{"ends of lines, CRLF", grepArgs{Pattern: `two$`}, "b.txt:2:two\nb.txt:3:one two"},
		{"starts of lines", grepArgs{Pattern: `^one`}, "b.txt:1:one\nb.txt:3:one two"},
		{"a byte order mark is no part of the first line", grepArgs{Pattern: `^alpha$`}, "bom.txt:1:alpha"},
		{"a byte order mark is not shown", grepArgs{Pattern: `alpha`, Path: "bom.txt"}, "bom.txt:1:alpha\nbom.txt:2:beta alpha\nbom.txt:3:\xEF\xBB\xBFalpha"},
		{"a byte order mark alone", grepArgs{Pattern: `.`, Path: "bom"}, "No lines match."},
		{"whole lines", grepArgs{Pattern: `^one$`}, "b.txt:1:one"},
		{"text anchors are a line's", grepArgs{Pattern: `\Aone\z`}, "b.txt:1:one"},
		{"empty lines", grepArgs{Pattern: `^$`, Path: "a.go"}, "a.go:2:"},
		{"never across lines", grepArgs{Pattern: `One\(\) \{\}\s+func`}, "No lines match."},
		{"white space that could cross", grepArgs{Pattern: `one\s*`, Include: "*.txt"}, "b.txt:1:one\nb.txt:3:one two"},
		{"a class that could cross", grepArgs{Pattern: `[^a]two`, Include: "*.txt"}, "b.txt:3:one two"},
		{"other letters", grepArgs{Pattern: "世界|straße"}, "sub/d.md:1:größe 世界\nsub/d.md:2:straße"},
		{"other letters without case", grepArgs{Pattern: "(?i)GRÖSSE|GRÖßE"}, "sub/d.md:1:größe 世界"},
		{"a file", grepArgs{Pattern: "One", Path: "a.go"}, "a.go:3:func One() {}"},
		{"a link that is named", grepArgs{Pattern: "One", Path: "link.go"}, "link.go:3:func One() {}"},
		{"an ignored file that is named", grepArgs{Pattern: "One", Path: "ignored"}, "ignored:1:One"},
		{"a folder", grepArgs{Pattern: "One", Path: "sub"}, "sub/c.go:1:func One() int { return 1 }"},
		{"include with folders", grepArgs{Pattern: "One", Include: "sub/**/*.go"}, "sub/c.go:1:func One() int { return 1 }"},
		{"include of several", grepArgs{Pattern: "One", Include: "*.{go,md}"}, "a.go:3:func One() {}\nsub/c.go:1:func One() int { return 1 }"},
		{"nothing", grepArgs{Pattern: "zzz"}, "No lines match."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", c.args)
			if r.Code != "" || r.Content != c.want {
				t.Fatalf("got\n%s\nwant\n%s", r.Content, c.want)
			}
		})
	}
}

func TestGrepErrorsHaveAPlace(t *testing.T) {
	dir := tree(t, map[string]string{"a": "", "bin": "\x00"})
	for _, c := range []struct {
		args       grepArgs
		code, want string
	}{
		{grepArgs{Pattern: "a(b"}, tool.CodeInvalidArguments, `pattern "a(b" has missing closing ) at character 2`},
		{grepArgs{Pattern: "ab)c"}, tool.CodeInvalidArguments, "unexpected ) at character 3"},
		{grepArgs{Pattern: `größe[a`}, tool.CodeInvalidArguments, "missing closing ] `[a` at character 6"},
		{grepArgs{Pattern: "*a"}, tool.CodeInvalidArguments, "missing argument to repetition operator `*` at character 1"},
		{grepArgs{Pattern: `a\`}, tool.CodeInvalidArguments, "trailing backslash at end of expression at character 2"},
		{grepArgs{Pattern: `x(?=a)`}, tool.CodeInvalidArguments, "no look-around"},
		{grepArgs{Pattern: `(a)\1`}, tool.CodeInvalidArguments, "at character 4"},
		{grepArgs{Pattern: `a{2000}`}, tool.CodeInvalidArguments, "invalid repeat count"},
		{grepArgs{Pattern: "a", Include: "[x"}, tool.CodeInvalidArguments, `include "[x" has a [ without its ] at character 1`},
		{grepArgs{Pattern: "a", Path: "nowhere"}, CodeNotFound, "does not exist"},
		{grepArgs{Pattern: "a", Path: "~"}, tool.CodeInvalidArguments, `path "~": ~ does not stand for a home here`},
		{grepArgs{Pattern: "a", Path: "bin"}, tool.CodeInvalidArguments, "binary"},
	} {
		r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", c.args)
		if r.Code != c.code || !strings.Contains(r.Content, c.want) || strings.Contains(r.Content, "(?m)") {
			t.Errorf("%+v: %+v", c.args, r)
		}
	}
}

func TestGrepIsCappedAndCounts(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("f%03d", i)] = strings.Repeat("hit\nno\n", 30)
	}
	dir := tree(t, files)
	r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "hit"})
	lines := strings.Split(r.Content, "\n")
	if len(lines) != 201 || lines[0] != "f000:1:hit" || lines[199] != "f006:39:hit" || lines[200] != "… 8800 more" {
		t.Fatalf("%d lines: %s … %s", len(lines), lines[0], lines[len(lines)-2:])
	}
	r = run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "hit", Path: "f000"})
	if n := strings.Count(r.Content, "\n"); n != 29 {
		t.Fatalf("%d", n)
	}
}

func TestGrepCutsLongLinesAroundTheMatch(t *testing.T) {
	dir := tree(t, map[string]string{"f": strings.Repeat("世", 5000) + "needle" + strings.Repeat("界", 5000) + "\nneedle\n" + strings.Repeat("x", 250_000) + "needle\n"})
	r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "needle"})
	if !utf8.ValidString(r.Content) || strings.Count(r.Content, "needle") != 3 || len(r.Content) > 1200 {
		t.Fatalf("%d bytes: %s", len(r.Content), r.Content)
	}
	if !strings.Contains(r.Content, "f:1:…世") || !strings.Contains(r.Content, "f:2:needle\n") || !strings.Contains(r.Content, "f:3:…x") {
		t.Fatalf("got %s", r.Content)
	}
}

func TestGrepAnswersStayWithinTheirBytes(t *testing.T) {
	dir := tree(t, map[string]string{"f": strings.Repeat(strings.Repeat("\xff", 290)+"needle\n", 400)})
	r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "needle"})
	if len(r.Content) > tool.MaxContent || !utf8.ValidString(r.Content) || !strings.Contains(r.Content, " more") {
		t.Fatalf("%d bytes", len(r.Content))
	}
}

func TestGrepStreamsHugeFiles(t *testing.T) {
	var b bytes.Buffer
	for i := range 120_000 {
		fmt.Fprintf(&b, "this is line number %d of many\n", i+1)
	}
	b.WriteString("the needle")
	dir := tree(t, map[string]string{"f": b.String(), "one": strings.Repeat("x", 9<<20) + "needle" + strings.Repeat("y", 100)})
	r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "needle"})
	if !strings.HasPrefix(r.Content, "f:120001:the needle\none:1:…") {
		t.Fatalf("got %.200s", r.Content)
	}
	r = run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: `number 1?19999 of \w+$`})
	if r.Content != "f:19999:this is line number 19999 of many\nf:119999:this is line number 119999 of many" {
		t.Fatalf("got %s", r.Content)
	}
}

func TestGrepHidesProtectedFiles(t *testing.T) {
	dir := tree(t, map[string]string{"key": "sk-secret\n", "a": "sk-secret\n"})
	env := Env{Cwd: dir, Guard: guard{secret: dir + "/key"}}
	if r := run(t, env, "grep", grepArgs{Pattern: "sk-"}); r.Content != "a:1:sk-secret" {
		t.Fatalf("got %s", r.Content)
	}
	if r := run(t, env, "grep", grepArgs{Pattern: "sk-", Path: "key"}); r.Code != tool.CodeDenied || strings.Contains(r.Content, "secret") {
		t.Fatalf("got %+v", r)
	}
	if err := os.Symlink("key", dir+"/other"); err != nil {
		t.Fatal(err)
	}
	if r := run(t, env, "grep", grepArgs{Pattern: "sk-", Path: "other"}); r.Code != tool.CodeDenied {
		t.Fatalf("through a link: %+v", r)
	}
}

func TestSearchesMayOverlap(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x\n", "b/c": "x\n", "b/d/e": "x\n"})
	done := make(chan string)
	for range 8 {
		go func() {
			done <- run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "x"}).Content
		}()
	}
	for range 8 {
		if got := <-done; got != "a:1:x\nb/c:1:x\nb/d/e:1:x" {
			t.Errorf("got %s", got)
		}
	}
}

// The short cuts must find what the expression finds line by line.
func FuzzMatcher(f *testing.F) {
	for _, s := range [][2]string{
		{"foo", "a foo\nbar\r\nfoo\n"},
		{"(?i)kelvin|mass", "\u212aelvin\nMAſS\n"},
		{`\s+x`, "a\n x\n\nx"},
		{`^$`, "\n\r\n\n"},
		{`a[^b]*c`, "a\nc\nabc\nadc"},
		{`(foo|fab)+z?`, "fab\nfo\nfoofab"},
		{`\Aa|b\z`, "a\nb\nab\n"},
		{`.$`, "x\r\ny"},
		{``, "a\n\nb"},
		{`\bx\b`, "x\n xx\n"},
		{`$`, "a\nb"},
	} {
		f.Add(s[0], []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, pattern string, text []byte) {
		m, _, err := newMatcher(pattern)
		if err != nil || len(pattern) > 50 {
			return
		}
		re := regexp.MustCompile("(?m)" + pattern)
		var got, want []string
		m.lines(&scratch{}, text, func(from, to int) { got = append(got, fmt.Sprint(from, to)) })
		at := 0
		for line := range bytes.Lines(text) {
			bare := bytes.TrimSuffix(line, []byte("\n"))
			if bare = bytes.TrimSuffix(bare, []byte("\r")); re.Match(bare) {
				want = append(want, fmt.Sprint(at, at+len(bare)))
			}
			at += len(line)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q in %q: got %v, want %v", pattern, text, got, want)
		}
	})
}
