package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/fakellm"
	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

// A real disk runs full in the middle of a run, at one page after the other:
// the run ends with the path and the system's words, and when there is room
// again the session goes on with all that was acknowledged.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted here: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	for pages := 0; pages < 12; pages += often(1, 4) {
		t.Run(fmt.Sprint(pages), func(t *testing.T) { fullDisk(t, filepath.Join(disk, fmt.Sprint(pages)), pages) })
	}
}

func fullDisk(t *testing.T, home string, pages int) {
	k := newKilled(t, newRandom(pages))
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil { // the next one needs the room
			t.Error(err)
		}
	})
	k.environ = append(k.environ, "HOME="+home)
	k.calm = true
	first := k.run()
	k.find(first)
	<-first.done
	k.server.Close()

	// From here on each step of a turn takes more than a page.
	talk := fakellm.Start(t, fakellm.Script{Next: func(n int, _ fakellm.Request) fakellm.Step {
		step := fakellm.Step{Text: fmt.Sprintf("%d %s", n, strings.Repeat("many words ", 500))}
		if !k.quiet() {
			step.Calls = []fakellm.Call{{Name: "read", Arguments: `{"file_path":"a.txt"}`}}
		}
		return step
	}})
	k.environ = append(k.environ, "DEEPSEEK_BASE_URL="+talk.URL)
	filler := filepath.Join(home, "filler")
	k.calm = false
	fill(t, filler, pages)
	r := k.run()
	<-r.done
	said := r.err.String()
	if code := status(r.cmd.ProcessState); code != 1 || !strings.Contains(said, "deepseek: LOG_WRITE: ") ||
		!strings.Contains(said, strings.TrimSuffix(k.logPath, "jsonl")) || !strings.Contains(said, "no space left on device") || strings.Contains(said, "goroutine") {
		t.Errorf("exit %d:\n%s", code, said)
	}
	for range 20 { // until not one more fits
		text := k.name()
		out, err := k.command("send", k.id, text).CombinedOutput()
		if err == nil {
			k.note(k.sent, text, acknowledged)
			continue
		}
		k.note(k.sent, text, undelivered)
		if !strings.Contains(string(out), "deepseek: LOG_WRITE: ") {
			t.Errorf("send: %v\n%s", err, out)
		}
	}
	if _, err := logstore.ReadEvents(t.Context(), k.logPath, func(session.Event) error { return nil }); err != nil {
		t.Errorf("on the full disk: %v", err)
	}
	// Nothing can be begun there either, and nothing half done of it stays.
	begin := k.command("run", "another")
	begin.Dir = t.TempDir()
	out, err := begin.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no space left on device") {
		t.Errorf("a new session: %v\n%s", err, out)
	}
	half, err := filepath.Glob(filepath.Join(home, ".deepseek", "sessions", "*", ".*"))
	if err != nil || len(half) > 0 {
		t.Errorf("left over: %q, %v", half, err)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	k.finish()
}

// quiet tells whether the model is to end its turns.
func (k *killed) quiet() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calm
}

// fill leaves so many pages of a small disk.
func fill(t *testing.T, path string, pages int) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	page := make([]byte, os.Getpagesize())
	size := int64(0)
	for {
		n, err := f.Write(page)
		size += int64(n)
		if err != nil {
			break // full
		}
	}
	if err := f.Truncate(size - int64(pages*len(page))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
