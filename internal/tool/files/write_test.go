package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
)

func TestWriteBytes(t *testing.T) {
	for _, content := range []string{
		"", "x", "made\n", "a\r\nb\r\n", "a\nb\r\nc", "\xEF\xBB\xBFa\n", "größe 世界 😀\n", "tab\tand\x00nul", "\n\n\n", "\r", strings.Repeat("0123456789", 100_000),
	} {
		b := newBox(t)
		r := b.call("write", writeArgs{"new.txt", content})
		want(t, r, "", "Created new.txt")
		if got := b.get("new.txt"); got != content {
			t.Errorf("new: got %.40q", got)
		}
		b.put("old.txt", "before\n")
		want(t, b.read("old.txt"), "")
		want(t, b.call("write", writeArgs{"old.txt", content}), "", "Wrote old.txt")
		if got := b.get("old.txt"); got != content {
			t.Errorf("over: got %.40q", got)
		}
		b.clean()
	}
}

func TestWriteMakesFolders(t *testing.T) {
	b := newBox(t)
	want(t, b.call("write", writeArgs{"a/b/c/new.txt", "x\n"}), "", "Created a/b/c/new.txt (2 bytes, 1 lines).")
	if b.get("a/b/c/new.txt") != "x\n" {
		t.Fatal("content")
	}
	want(t, b.call("write", writeArgs{b.path("a/d.txt"), "y"}), "", "Created a/d.txt")
	b.clean()
}

func TestWriteRefuses(t *testing.T) {
	b := newBox(t)
	b.put("file", "x")
	b.put("dir/inner", "x")
	for _, c := range []struct{ name, path, code, part string }{
		{"nothing", "", tool.CodeInvalidArguments, "file_path is empty"},
		{"NUL", "a\x00b", tool.CodeInvalidArguments, "NUL"},
		{"a folder", "dir", CodeNotAFile, "dir is a directory; it holds inner"},
		{"the working directory", ".", CodeNotAFile, "directory"},
		{"a folder to be", "newdir/", tool.CodeInvalidArguments, "names a folder"},
		{"below a file", "file/x", CodeNotAFile, "a part of the path is a file"},
		{"outside", "../out.txt", tool.CodeDenied, "outside the workspace"},
		{"outside, absolute", "/nonexistent-folder/x", tool.CodeDenied, "outside"},
		{"longer than a path may be", strings.Repeat("d/", 2100) + "f", tool.CodeInvalidArguments, "as a whole path, the limit is"},
		{"a name longer than it may be, in a new folder", "newdir/" + strings.Repeat("x", 256), CodeIO, "too long"},
		{"not read", "file", CodeNotObserved, "read it first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, b.call("write", writeArgs{c.path, "new"}), c.code, c.part)
		})
	}
	b.clean()
	for _, left := range []string{"newdir", "d"} {
		if _, err := os.Lstat(b.path(left)); err == nil {
			t.Errorf("a refused write left the folder %s", left)
		}
	}
}

func TestWriteDeniedIsCounted(t *testing.T) {
	b := newBox(t)
	r := b.call("write", writeArgs{"../out.txt", "x"})
	want(t, r, tool.CodeDenied)
	if r.Meta == nil || !r.Meta.Denied {
		t.Fatalf("meta %+v", r.Meta)
	}
}

func TestWriteShowsTheDiffBeforeItAsks(t *testing.T) {
	b := newBox(t)
	b.guard.allow = true
	outside := filepath.Join(t.TempDir(), "out.txt")
	want(t, b.call("write", writeArgs{outside, "one\n"}), "")
	want(t, b.read(outside), "")
	want(t, b.call("write", writeArgs{outside, "two\n"}), "", "Wrote")
	if len(b.guard.asked) != 2 {
		t.Fatalf("asked %d times", len(b.guard.asked))
	}
	first, second := b.guard.asked[0], b.guard.asked[1]
	if first.Tool != "write" || first.CallID != "c1" || !strings.HasPrefix(first.Title, "create ") || !strings.Contains(first.Detail, "+one\n") {
		t.Errorf("first %+v", first)
	}
	if !strings.HasPrefix(second.Title, "overwrite ") || !strings.Contains(second.Detail, "-one\n+two\n") {
		t.Errorf("second %+v", second)
	}
}

func TestWriteNeedsTheVersionThatWasRead(t *testing.T) {
	b := newBox(t)
	b.put("f", "one")
	want(t, b.read("f"), "")
	b.put("f", "two")
	want(t, b.call("write", writeArgs{"f", "three"}), CodeStale)
	if b.get("f") != "two" {
		t.Fatal("overwritten")
	}
	want(t, b.read("f"), "")
	want(t, b.call("write", writeArgs{"f", "three"}), "")
	want(t, b.call("write", writeArgs{"f", "four"}), "") // its own version counts as seen
	want(t, b.call("write", writeArgs{"f", "four"}), "", "has this content already")
}

func TestARemovedFileIsNewAgain(t *testing.T) {
	b := newBox(t)
	b.put("f", "one")
	want(t, b.read("f"), "")
	if err := os.Remove(b.path("f")); err != nil {
		t.Fatal(err)
	}
	want(t, b.call("write", writeArgs{"f", "two"}), "", "Created f")
}

func TestANewFileNeverOverwritesOneThatAppeared(t *testing.T) {
	b := newBox(t)
	b.guard.onWrite = func() { b.put("f", "somebody else's") }
	want(t, b.call("write", writeArgs{"f", "mine"}), CodeStale)
	if b.get("f") != "somebody else's" {
		t.Fatal("overwritten")
	}
	b.clean()
}

func TestModeIsKept(t *testing.T) {
	b := newBox(t)
	for _, mode := range []fs.FileMode{0o644, 0o600, 0o755, 0o640, 0o777} {
		b.put("f", "one")
		if err := os.Chmod(b.path("f"), mode); err != nil {
			t.Fatal(err)
		}
		want(t, b.read("f"), "")
		want(t, b.call("write", writeArgs{"f", "two"}), "")
		fi, err := os.Stat(b.path("f"))
		if err != nil || fi.Mode().Perm() != mode {
			t.Errorf("mode %v, want %v, %v", fi.Mode(), mode, err)
		}
	}
}

func TestNewFilesFollowTheUmask(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	b := newBox(t)
	want(t, b.call("write", writeArgs{"d/f", "x"}), "")
	for name, mode := range map[string]fs.FileMode{"d/f": 0o640, "d": 0o750} {
		if fi, err := os.Stat(b.path(name)); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", name, fi.Mode(), err)
		}
	}
}

func TestWriteProtectedFilesStay(t *testing.T) {
	b := newBox(t)
	b.put("f", "one")
	if err := os.Chmod(b.path("f"), 0o444); err != nil {
		t.Fatal(err)
	}
	want(t, b.read("f"), "")
	want(t, b.call("write", writeArgs{"f", "two"}), CodeReadOnly, "f: the file is write-protected (mode 0444)")
	if b.get("f") != "one" {
		t.Fatal("changed")
	}
}

func TestLinksAreFollowed(t *testing.T) {
	for _, target := range []string{"sub/real", "ABS/sub/real"} {
		b := newBox(t)
		b.put("sub/real", "one")
		if err := os.Symlink(strings.Replace(target, "ABS", b.dir, 1), b.path("link")); err != nil {
			t.Fatal(err)
		}
		want(t, b.read("link"), "")
		r := b.call("write", writeArgs{"link", "two"})
		want(t, r, "", "Wrote link")
		if b.get("sub/real") != "two" || r.Meta.Path != b.path("sub/real") {
			t.Fatal("the target was not written")
		}
		if fi, err := os.Lstat(b.path("link")); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
			t.Fatal("the link was replaced")
		}
		want(t, b.call("write", writeArgs{"sub/real", "three"}), "") // one file, one version
	}
}

func TestADanglingLinkIsRefused(t *testing.T) {
	b := newBox(t)
	if err := os.Symlink("nowhere", b.path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read", "write"} {
		want(t, b.call(name, map[string]string{"file_path": "link", "content": "x"}), CodeNotFound, "symbolic link to nowhere, where nothing is")
	}
	if err := os.Symlink("loop", b.path("loop")); err != nil {
		t.Fatal(err)
	}
	want(t, b.call("write", writeArgs{"loop", "x"}), CodeIO)
	if _, err := os.Lstat(b.path("nowhere")); err == nil {
		t.Fatal("created through the link")
	}
}

func TestALinkThatLeadsOutIsAskedFor(t *testing.T) {
	b := newBox(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, b.path("out")); err != nil {
		t.Fatal(err)
	}
	want(t, b.read("out/f"), "")
	want(t, b.call("write", writeArgs{"out/f", "two"}), tool.CodeDenied)
	want(t, b.call("write", writeArgs{"out/new", "two"}), tool.CodeDenied)
}

func TestAFolderSwappedForALinkLeadsNowhere(t *testing.T) {
	b := newBox(t)
	outside := t.TempDir()
	b.put("d/f", "one")
	want(t, b.read("d/f"), "")
	swap := func() {
		if err := os.Rename(b.path("d"), filepath.Join(b.dir, "was")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, b.path("d")); err != nil {
			t.Fatal(err)
		}
	}
	b.guard.onWrite = swap
	if r := b.call("write", writeArgs{"d/f", "two"}); r.Code == "" {
		t.Fatal("written through a link that leads out")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) > 0 {
		t.Fatalf("outside: %v %v", entries, err)
	}
}

func TestAFileOfSeveralNamesIsWrittenInPlace(t *testing.T) {
	for _, content := range []string{"longer than before\n", "s", ""} {
		b := newBox(t)
		b.put("f", "one\ntwo\n")
		if err := os.Link(b.path("f"), b.path("g")); err != nil {
			t.Fatal(err)
		}
		want(t, b.read("f"), "")
		want(t, b.call("write", writeArgs{"f", content}), "")
		if b.get("f") != content || b.get("g") != content {
			t.Fatalf("f %q g %q", b.get("f"), b.get("g"))
		}
		b.clean()
	}
}

func TestAFileInAFolderThatTakesNoOthersIsWrittenInPlace(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	b := newBox(t)
	b.put("d/f", "one")
	want(t, b.read("d/f"), "")
	if err := os.Chmod(b.path("d"), 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(b.path("d"), 0o755) //nolint:errcheck // for the clean-up
	want(t, b.call("write", writeArgs{"d/f", "two"}), "")
	want(t, b.call("write", writeArgs{"d/new", "two"}), CodeIO, "d/new: permission denied")
	if b.get("d/f") != "two" {
		t.Fatal("not written")
	}
}

func TestAFailedWriteInPlaceIsTold(t *testing.T) {
	b := newBox(t)
	b.put("f", "one")
	f, err := os.Open(b.path("f")) // for reading: writing fails
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if err := fill(f, []byte("two")); err == nil {
		t.Fatal("no error")
	}
	if b.get("f") != "one" {
		t.Fatal("changed")
	}
}

func TestInPlaceLooksAgain(t *testing.T) {
	b := newBox(t)
	b.put("f", "one")
	if err := os.Link(b.path("f"), b.path("g")); err != nil {
		t.Fatal(err)
	}
	want(t, b.read("f"), "")
	b.guard.onWrite = func() { b.put("g", "two") }
	want(t, b.call("write", writeArgs{"f", "mine"}), CodeStale)
	if b.get("f") != "two" {
		t.Fatal("overwritten")
	}
}

func TestACancelledWriteChangesNothing(t *testing.T) {
	b := newBox(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.guard.onWrite = cancel
	want(t, b.callCtx(ctx, "write", writeArgs{"f", "x"}), tool.CodeAborted)
	if _, err := os.Lstat(b.path("f")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("written")
	}
	b.put("g", "one")
	want(t, b.read("g"), "")
	ctx, cancel = context.WithCancel(t.Context())
	b.guard.onWrite = cancel
	want(t, b.callCtx(ctx, "write", writeArgs{"g", "x"}), tool.CodeAborted)
	if b.get("g") != "one" {
		t.Fatal("written")
	}
	b.clean()
}

func TestWhatOverwritingLosesIsNamed(t *testing.T) {
	b := newBox(t)
	b.put("f", "\xEF\xBB\xBFa\r\nb\r\n")
	want(t, b.read("f"), "")
	want(t, b.call("write", writeArgs{"f", "a\nb\n"}), "", "has lost the byte order mark and the CRLF line ends")
}

func TestProtectedFilesAreNotCompared(t *testing.T) {
	b := newBox(t)
	b.put("key", "sk-secret\n")
	b.guard.secret = b.path("key")
	for name, args := range map[string]any{"read": readArgs{FilePath: "key"}, "write": writeArgs{"key", "x"}, "edit": editArgs{"key", "x", "y", false}} {
		r := b.call(name, args)
		want(t, r, tool.CodeDenied, "not shown")
		if strings.Contains(r.Content, "secret") {
			t.Fatal("the content was told")
		}
	}
}

func TestTheGuardsErrorsAreWorded(t *testing.T) {
	b := newBox(t)
	b.guard.writesErr = &fs.PathError{Op: "openat", Path: "x", Err: syscall.ENOSPC}
	want(t, b.call("write", writeArgs{"f", "x"}), CodeIO, "f: no space left on device")
	b.guard.writesErr = &permission.Denied{Message: "read-only session"}
	want(t, b.call("write", writeArgs{"f", "x"}), tool.CodeDenied, "DENIED: read-only session")
}

func TestDiffsAreBounded(t *testing.T) {
	long := strings.Repeat("some line of text\n", 20_000)
	d := diffOf("f", nil, []byte(long))
	if len(d) > maxDiff+100 || !strings.HasSuffix(d, "more bytes of this diff\n") {
		t.Fatalf("%d bytes", len(d))
	}
	if d := diffOf("f", &version{content: []byte(long)}, []byte(strings.Repeat(long, 20))); !strings.Contains(d, "not compared") {
		t.Fatal("compared")
	}
	if d := diffOf("f", nil, []byte(strings.Repeat("世", maxDiff))); len(d) > maxDiff+200 {
		t.Fatalf("one long line: %d bytes", len(d))
	}
	if d := diffOf("/abs/f", nil, []byte("x\n")); !strings.HasPrefix(d, "--- /dev/null\n+++ b/abs/f\n") {
		t.Fatalf("got %s", d)
	}
}
