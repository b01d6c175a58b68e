package shell

import (
	"io"
	"os/exec"
	"testing"
	"time"
)

// A command that has exited did not take too long, though the clock of a program
// that stood still says so before it has been waited for.
func TestAChildThatHasExitedIsKnownBeforeItIsWaitedFor(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read -r line; echo done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if ended(pid) {
		t.Error("one that runs has ended")
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(patience); !ended(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("one that has exited is not seen")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !ended(pid) {
		t.Error("one that was waited for still runs")
	}
}
