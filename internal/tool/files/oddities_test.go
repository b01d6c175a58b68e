package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
)

// Nobody expands ~ for a tool: a folder of that name in the workspace is never what was meant.
func TestTildeIsNoNewFolder(t *testing.T) {
	b := newBox(t)
	for _, name := range []string{"~/foo.txt", "~root/foo.txt", "~", "~x"} {
		want(t, b.call("write", writeArgs{name, "x"}), tool.CodeInvalidArguments, "~ does not stand for a home", "./"+name)
		want(t, b.read(name), tool.CodeInvalidArguments, "~ does not stand for a home")
		want(t, b.call("edit", editArgs{FilePath: name, OldString: "a", NewString: "b"}), tool.CodeInvalidArguments, "~")
	}
	if names, err := os.ReadDir(b.dir); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	want(t, b.call("write", writeArgs{"./~/foo.txt", "one\n"}), "")
	want(t, b.call("write", writeArgs{"~/bar.txt", "two\n"}), "") // there is such a folder now
	want(t, b.read("~/foo.txt"), "", "one")
	want(t, b.call("write", writeArgs{"f~", "x"}), "")
}

func TestLinksInACircleAreToldInPlainWords(t *testing.T) {
	b := newBox(t)
	if err := os.Symlink("loop", b.path("loop")); err != nil {
		t.Fatal(err)
	}
	for _, r := range []tool.Result{b.read("loop"), b.read("loop/x"), b.call("write", writeArgs{"loop", "x"}), b.call("write", writeArgs{"loop/x", "x"})} {
		want(t, r, CodeIO, "loop", "too many levels of symbolic links")
		if strings.Contains(r.Content, "EvalSymlinks") {
			t.Error(r.Content)
		}
	}
}

func TestTheListOfAFolderIsSorted(t *testing.T) {
	b := newBox(t)
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("f%02d", i))
		b.put(fmt.Sprintf("d/f%02d", (i*7)%30), "")
	}
	want(t, b.read("d"), CodeNotAFile, "it holds "+strings.Join(names[:20], ", ")+", …")
}

func TestEditKeepsTheBitsForAnotherUserAndGroup(t *testing.T) {
	for _, several := range []bool{false, true} {
		for _, mode := range []fs.FileMode{fs.ModeSetuid | 0o755, fs.ModeSetgid | 0o755, fs.ModeSetuid | fs.ModeSetgid | 0o755, fs.ModeSticky | 0o644} {
			b := newBox(t)
			b.put("f", "one\n")
			if several { // written in place
				if err := os.Link(b.path("f"), b.path("g")); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(b.path("f"), mode); err != nil {
				t.Fatal(err)
			}
			b.read("f")
			want(t, b.call("edit", editArgs{FilePath: "f", OldString: "one", NewString: "two"}), "")
			if fi, err := os.Stat(b.path("f")); err != nil || modeOf(fi) != mode || b.get("f") != "two\n" {
				t.Errorf("several names %v: mode %v, want %v, %v", several, fi.Mode(), mode, err)
			}
		}
	}
}

// A file that is regular by its kind may still keep a reader waiting.
func TestReadEndsWhereAFileNeverDoes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // nothing was written to it
	defer w.Close() //nolint:errcheck // likewise
	if err := chunks(t.Context(), r, func([]byte) bool { return true }); !errors.Is(err, errEndless) {
		t.Errorf("%v", err)
	}
	if os.Geteuid() == 0 {
		if fi, err := os.Stat("/proc/kmsg"); err == nil && fi.Mode().IsRegular() {
			if f, err := os.Open("/proc/kmsg"); err == nil {
				_ = f.Close()
				b := newBox(t)
				r := b.read("/proc/kmsg")
				if r.Code == "" {
					t.Errorf("%+v", r)
				}
			}
		}
	}
}

// The file that is written in place is judged by itself: it may have been put
// at its path after the decision, and be another name of a guarded one.
func TestAHardLinkThatIsPutInPlaceAfterTheDecisionIsNotWritten(t *testing.T) {
	b := newBox(t)
	home := t.TempDir()
	if err := os.WriteFile(home+"/AGENTS.md", []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(home+"/AGENTS.md", b.path("aside")); err != nil {
		t.Fatal(err)
	}
	policy, err := permission.New(permission.Config{Level: permission.FullAccess, Approve: permission.ApproveNever, Cwd: b.dir, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	b.put("f", "one\n")
	acc, err := policy.ForWrite(t.Context(), b.path("f"), permission.AskWrite{})
	if err != nil {
		t.Fatal(err)
	}
	defer acc.Root.Close() //nolint:errcheck // a folder handle
	if err := os.Rename(b.path("aside"), b.path("f")); err != nil {
		t.Fatal(err)
	}
	var denied *permission.Denied
	if err := put(t.Context(), acc, &version{[]byte("one\n")}, []byte("evil\n")); !errors.As(err, &denied) {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(home + "/AGENTS.md"); string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}
}
