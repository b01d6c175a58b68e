package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deepseek/internal/logstore"
)

// What is wrong with a file that a person named is said in words of theirs: of
// which file it is, where in it, and what helps.
func TestErrorsOfNamedFiles(t *testing.T) {
	b := newBox(t)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none := filepath.Join(t.TempDir(), "none")
	bad := file("bad.yaml", "mode: 3\n")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"tasks that are no list":     {[]string{"run", "--script", file("t.yaml", "tasks: x\n")}, []string{"line 1: the text `x` is no list"}},
		"a task of lists":            {[]string{"run", "--script", file("t.yaml", "tasks: [{task: x, mode: [y]}]\n")}, []string{"a list is no text"}},
		"a script that is a list":    {[]string{"run", "--script", file("t.yaml", "[x]\n")}, []string{"a list is no mapping"}},
		"answers that are not there": {[]string{"run", "--answers", none, "--model", "demo", "x"}, []string{none, "with --answers FILE"}},
		"answers of another form":    {[]string{"run", "--answers", file("a.yaml", "a: b\n"), "--model", "demo", "x"}, []string{"an entry is {match"}},
		"a script model not there":   {[]string{"run", "--model", "script:" + none, "x"}, []string{none, "with --model script:FILE"}},
		"a configuration not there":  {[]string{"--config", none, "run", "x"}, []string{none + ": there is no such configuration file", "another file with --config FILE"}},
		"a bad configuration":        {[]string{"--config", bad, "run", "x"}, []string{bad + ":1: mode", "deepseek config edit --config " + bad}},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.call(c.args...)
			if got.code != ExitUsage || strings.Contains(got.err, "cli.") || strings.Contains(got.err, "!!") {
				t.Errorf("%+v", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got.err, want) {
					t.Errorf("%s\nlacks %q", got.err, want)
				}
			}
		})
	}
}

func TestWhatHelpsAgainstALogThatCannotBeWritten(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "make room", syscall.EDQUOT: "make room", syscall.EROFS: "--home DIR", syscall.EPERM: "--home DIR",
		syscall.ENOENT: "--home DIR", syscall.EIO: "does not work", syscall.EINTR: "make room on the disk, or mend",
	} {
		err := &logstore.WriteError{Path: "/a/b.jsonl", Err: errno}
		if got := failure(err); got.Code != CodeLogWrite || !strings.Contains(got.Hint, want) {
			t.Errorf("%v: %+v", errno, got)
		}
		// Writers and readers of a log meet the same failure.
		if once, twice := failure(err), failure(errors.Join(err, err)); *once != *twice {
			t.Errorf("%v: %+v, joined %+v", errno, once, twice)
		}
	}
}
