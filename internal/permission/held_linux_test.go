package permission

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startsForEver is set for a process that is to be killed while it starts commands.
const startsForEver = "DEEPSEEK_TEST_STARTS"

// TestStartsForEver is the program of the test below.
func TestStartsForEver(t *testing.T) {
	dir := os.Getenv(startsForEver)
	if dir == "" {
		t.Skip("the program of another test")
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: dir}
				if err := (&Sandbox{Writable: []string{dir}}).Start(cmd); err != nil {
					t.Error(err)
					return
				}
				_ = cmd.Wait()
				fmt.Print(".")
			}
		})
	}
	group.Wait()
}

// A command asks to be traced by its parent. Where that has just been killed,
// whoever takes the orphan in would be its tracer, which nobody ever ends.
func TestAKilledOwnerLeavesNoHeldCommand(t *testing.T) {
	needSandbox(t)
	if !canForgo {
		t.Skip("not on this processor")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) //nolint:errcheck // as it was
	dir := t.TempDir()
	for i := range 60 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestStartsForEver$")
		cmd.Env = append(os.Environ(), startsForEver+"="+dir, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, out, int64(5+i%7)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(i%9) * 200 * time.Microsecond) // anywhere in a start
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if left := stillHeld(t, dir); left != "" {
			t.Fatalf("after %d kills: %s", i+1, left)
		}
	}
}

// stillHeld waits until no child of this process is at work in dir, and names one
// that is traced by this process, after ending it.
func stillHeld(t *testing.T, dir string) string {
	t.Helper()
	for t.Context().Err() == nil {
		found := false
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range stats {
			text, err := os.ReadFile(name)
			_, rest, ok := strings.Cut(string(text), ") ")
			fields := strings.Fields(rest)
			if err != nil || !ok || len(fields) < 2 || fields[1] != fmt.Sprint(os.Getpid()) {
				continue
			}
			var pid int
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				t.Fatal(err)
			}
			if fields[0] == "Z" {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				continue
			}
			if cwd, _ := os.Readlink(filepath.Dir(name) + "/cwd"); cwd != dir {
				continue
			}
			found = true
			if fields[0] == "t" {
				_ = unix.Kill(pid, unix.SIGKILL)
				_, _ = unix.Wait4(pid, nil, 0, nil)
				return fmt.Sprintf("process %d is stopped, and traced by whoever took it in", pid)
			}
		}
		if !found {
			return ""
		}
		time.Sleep(time.Millisecond)
	}
	return "the test was ended"
}
