package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Twenty write to a live session while two others would own it; then the owner
// is killed, and all of them are there again at once. One owns the session, the
// other is refused, nothing is lost, and nothing is left.
func TestTwentyWritersTwoOwnersAndAKill(t *testing.T) {
	t.Parallel()
	k := newKilled(t, newRandom(0))
	k.calm, k.hold = true, true
	first := k.run()
	k.find(first)
	if err := k.server.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	writers := k.writers(20)
	for _, r := range []*process{k.run(), k.run()} {
		k.busy(r, first)
	}
	writers.Wait()

	dead := k.sockets()
	if len(dead) != 1 {
		t.Errorf("one owner has the sockets %q", dead)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	a, b := k.run(), k.run()
	writers = k.writers(20)
	winner, loser := a, b
	select {
	case <-a.done:
		winner, loser = b, a
	case <-b.done:
	}
	// Without a pid where the other was slow to say who it is, or where it was
	// the writers, who have the session in turn for a moment.
	if code := status(loser.cmd.ProcessState); code != 4 || !strings.Contains(loser.err.String(), "SESSION_BUSY") {
		t.Errorf("one owner too many: exit %d\n%s", code, loser.err.String())
	}
	writers.Wait()
	<-first.done
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- k.server.Wait(ctx, 2) }() // ends when winner has asked the model, or with ctx
	select {
	case err := <-asked:
		if err != nil {
			t.Error(err)
		}
	case <-winner.done:
		if status(winner.cmd.ProcessState) == 4 {
			winner = k.run() // both lost to the writers
		}
	}
	cancel()
	k.mu.Lock()
	k.hold = false
	k.mu.Unlock()
	k.server.Release()
	<-winner.done
	if code := status(winner.cmd.ProcessState); code != 0 {
		t.Errorf("the owner ended with %d:\n%s", code, winner.err.String())
	}

	// A killed owner's socket goes when one listens that is a minute younger. A
	// writer that was killed may have owned the session, too.
	for _, path := range k.sockets() {
		then := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Error(err)
		}
	}
	k.finish()
	if left := k.sockets(); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	t.Logf("%+v", k.tally)
}

// A session is removed while others send to it and would run it. Either it is
// gone with all that belonged to it, or it is there with all that was acknowledged.
func TestRemovingRacesWithOpening(t *testing.T) {
	t.Parallel()
	removed, kept := 0, 0
	for n := range often(200, 3) {
		k := newKilled(t, newRandom(n))
		k.calm = true
		r := k.run()
		k.find(r)
		<-r.done
		var code int
		var out string
		var remover sync.WaitGroup
		remover.Go(func() {
			<-time.After(time.Duration(k.chance(40)) * time.Millisecond) // any moment will do
			code, out = k.tried("sessions", "rm", k.id)
		})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				text := k.name()
				switch code, out := k.tried("send", k.id, text); code {
				case 0:
					k.note(k.sent, text, acknowledged)
				case 2, 4: // it is not there, or busy
					k.note(k.sent, text, undelivered)
				default:
					t.Errorf("send: exit %d\n%s", code, out)
				}
			})
		}
		r = k.run()
		<-r.done
		all.Wait()
		remover.Wait()
		ran := status(r.cmd.ProcessState)
		switch code {
		case 0:
			removed++
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(k.logPath), "*"+k.id+"*")); err != nil || len(left) > 0 {
				t.Errorf("removed, and there is %q, %v; run: %d %s", left, err, ran, r.err.String())
			}
			if ran != 0 && ran != 2 && ran != 4 {
				t.Errorf("the run of a removed session: exit %d\n%s", ran, r.err.String())
			}
		case 4:
			kept++
			k.finish()
		default:
			t.Errorf("rm: exit %d\n%s", code, out)
		}
	}
	t.Logf("%d removed, %d kept", removed, kept)
}

// writers starts so many that send a message each.
func (k *killed) writers(n int) *sync.WaitGroup {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { k.send(k.name()) })
	}
	return &all
}

// busy waits for a run that was to learn that another owns the session. An owner
// that has much to do may be slower to say who it is than is waited for, but it
// is never said to be somebody else.
func (k *killed) busy(r, owner *process) {
	<-r.done
	code, text := status(r.cmd.ProcessState), r.err.String()
	pid := inUseBy.FindStringSubmatch(text)
	if code != 4 || pid == nil || pid[1] != "another process" && pid[1] != "process "+strconv.Itoa(owner.cmd.Process.Pid) {
		k.t.Errorf("with %d as the owner, another ended with %d:\n%s", owner.cmd.Process.Pid, code, text)
	}
}

var inUseBy = regexp.MustCompile(`is in use by (another process|process \d+)`)

// sockets is the control sockets that there are.
func (k *killed) sockets() []string {
	found, err := filepath.Glob(filepath.Join(k.temp, "deepseek-*", "*"))
	if err != nil {
		k.t.Error(err)
	}
	return found
}
