package shell

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A service is ended with everything it started, also what left its session.
func TestServiceIsEndedWithAllItStarted(t *testing.T) {
	for _, by := range []string{"End", "Close"} {
		t.Run(by, func(t *testing.T) {
			r := newRig(t, nil)
			dir := t.TempDir()
			out, err := os.Create(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close() //nolint:errcheck // a test's
			cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", `trap '' TERM; env; (setsid sleep 300 &) ; sleep 300 & echo $! > pids; pgrep -f 'sleep 30[0]' >> pids; echo ready; wait`)
			cmd.Dir, cmd.Env, cmd.Stdout = dir, []string{"MINE=1"}, out
			s, err := r.Serve(cmd)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for end := time.Now().Add(patience); !strings.Contains(text, "ready\n"); time.Sleep(time.Millisecond) {
				b, err := os.ReadFile(out.Name())
				if err != nil || time.Now().After(end) {
					t.Fatal(err, text)
				}
				text = string(b)
			}
			if strings.Contains(text, testKey) || !strings.Contains(text, "MINE=1\n") || !strings.Contains(text, "DEEPSEEK_TOOL=1\n") {
				t.Error(text)
			}
			if by == "End" {
				if err := s.End(); err != nil {
					t.Error(err)
				}
			} else if err := r.Close(context.Background()); err != nil {
				t.Error(err)
			}
			select {
			case <-s.Exited():
			case <-time.After(patience):
				t.Fatal("it runs on")
			}
			if s.Err() == nil {
				t.Error("it was killed, and no error says so")
			}
			if err := syscall.Kill(-cmd.Process.Pid, 0); err == nil {
				t.Error("its group still has a process")
			}
		})
	}
}

func TestNoServiceAfterClose(t *testing.T) {
	r := newRig(t, nil)
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Serve(exec.CommandContext(t.Context(), "/bin/true")); err == nil {
		t.Error("it was started")
	}
}
