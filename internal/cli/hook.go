package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"deepseek/internal/config"
	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/tool/shell"
)

const (
	hookTime  = 30 * time.Second // of a command, from its start
	hookAfter = 5 * time.Second  // of all of them, from the end of the run
)

// hooks runs the command of --on-question. What becomes of it neither delays
// nor fails the run: that ends while commands still run, and each has a watcher of
// its own, a process that outlives this one and ends the command's group hookAfter
// later, whatever ended the run. mu owns closed, and that none starts after it, and
// groups.
type hooks struct {
	command string
	dir     string
	env     []string

	mu     sync.Mutex
	closed bool
	groups map[int]bool // of the commands that run
	ctx    context.Context
	cancel context.CancelFunc
	starts sync.WaitGroup // those whose command and watcher are being started
}

// hookNote is what the command reads on its standard input.
type hookNote struct {
	SessionID     string             `json:"sessionId"`
	CallID        string             `json:"callId"`
	State         string             `json:"state"` // opened or pending
	Questions     []session.Question `json:"questions"`
	AnswerCommand string             `json:"answerCommand"`
}

// newHooks prepares the command of the settings; nil where there is none.
func (o *owner) newHooks() *hooks {
	if o.cfg.OnQuestion == "" {
		return nil
	}
	h := &hooks{command: o.cfg.OnQuestion, dir: o.cwd, groups: map[int]bool{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	for _, kv := range o.app.Env {
		if name, value, _ := strings.Cut(kv, "="); name != config.KeyVariable && !o.key.In(value) {
			h.env = append(h.env, kv)
		}
	}
	return h
}

// hook starts the command for a question.
func (o *owner) hook(state string, c question.Card) {
	h := o.hooks
	if h == nil {
		return
	}
	note, err := session.Marshal(hookNote{
		SessionID: o.header.ID, CallID: c.CallID, State: state, Questions: c.Questions, AnswerCommand: o.answerCommand(c.CallID),
	})
	if err != nil { // strings: JSON holds them all
		return
	}
	env := append(h.env[:len(h.env):len(h.env)],
		"DEEPSEEK_SESSION_ID="+o.header.ID, "DEEPSEEK_CALL_ID="+c.CallID, "DEEPSEEK_ANSWER_COMMAND="+o.answerCommand(c.CallID))
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.starts.Add(1)
		go h.run(o.key.Bytes(note), env)
	}
}

// run ends when the command and everything that it left behind has ended, which
// is hookAfter after the end of the run at the latest.
func (h *hooks) run(note []byte, env []string) {
	started := sync.OnceFunc(h.starts.Done)
	defer started()
	ctx, cancel := context.WithTimeout(h.ctx, hookTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", h.command)
	mark := "DEEPSEEK_HOOK=" + uuid.NewString()
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, append(env, mark), bytes.NewReader(note)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	apart := shell.SetApart(mark)
	defer apart.Gone()
	// The watcher is there before the command is: this process may be killed at any time.
	tell, end := watchGroup(mark)
	defer end()
	if cmd.Start() != nil {
		return // whether it can be run is the command's own affair, and how it ends
	}
	group := cmd.Process.Pid
	tell(group)
	h.note(group, true)
	defer h.note(group, false)
	started()
	_ = cmd.Wait()
	endGroup(ctx, group, apart)
}

// groupWatcher reads the number of a process group and waits until its standard
// input ends, as it does with this process too. Then it ends the group unless that ends by
// itself within $1 seconds, and $2 seconds of the watcher's own start. Where the
// system shows environments, what has left the group is known by the variable $3,
// which only the command has, and so is a group whose number never came: that may
// not have begun yet, and is looked for to the end. It asks every second: the
// number stays the group's as long as something is in it.
const groupWatcher = `trap '' HUP INT TERM QUIT
left() { grep -lsF -- "$1" /proc/[0-9]*/environ | sed 's,/proc/,,; s,/environ,,'; }
n=$(($(date +%s) + $2))
read -r group
read -r _
n=$((n - $(date +%s)))
[ "$n" -lt "$1" ] || n=$1
while [ -z "$group" ] || kill -s 0 -- "-$group" 2>/dev/null || [ -n "$(left "$3")" ]; do
	if [ "$n" -le 0 ]; then
		[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
		for pid in $(left "$3"); do kill -s KILL "$pid" 2>/dev/null; done
		exit
	fi
	n=$((n - 1))
	sleep 1
done`

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// watchGroup starts the watcher of a group that tell names to it once it is there.
// end ends the watcher, once the group has ended. Where none can be started, this
// process alone ends the group, as long as it lives.
func watchGroup(mark string) (tell func(group int), end func()) {
	cmd := exec.Command("/bin/sh", "-c", groupWatcher, "sh", seconds(hookAfter), seconds(hookTime), mark)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	// A group of its own, and the session of the run: orphans are looked for in others.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return func(int) {}, func() {}
	}
	return func(group int) { _, _ = fmt.Fprintln(in, group) }, // a watcher that is gone is none
		func() {
			_ = cmd.Process.Kill() // it waits, and has begun nothing
			_ = in.Close()
			_ = cmd.Wait()
		}
}

// endGroup returns when nothing of a process group runs any more, nor what has
// left it, both of which it ends by force when ctx ends. The group's leader has
// been reaped; its number stays the group's as long as a process is in it.
//
// On Linux the leader's orphans are children of this process, and those of the
// group are reaped here. Asking for these alone takes none from anybody else.
func endGroup(ctx context.Context, group int, apart shell.Apart) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	done := ctx.Done()
	inGroup := true
	for forced := 0; forced < 50; { // one that even force does not end is not waited for
		for {
			pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if inGroup && syscall.Kill(-group, 0) != nil {
			inGroup = false
			look.Reset(250 * time.Millisecond) // to look at all processes costs more
		}
		if !inGroup && !apart.Alive() {
			return
		}
		if ctx.Err() != nil {
			forced++
			if inGroup {
				_ = syscall.Kill(-group, syscall.SIGKILL) // the next look tells whether it did
			}
			apart.Kill()
		}
		select {
		case <-done:
			done = nil // from here on by the clock
		case <-look.C:
		}
	}
}

// note keeps which groups there are.
func (h *hooks) note(group int, runs bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if runs {
		h.groups[group] = true
	} else {
		delete(h.groups, group)
	}
}

// ending says that the run ends: no more commands, and those that run have
// hookAfter left. Later calls do nothing.
func (h *hooks) ending() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		time.AfterFunc(hookAfter, h.cancel)
	}
}

// close returns when each command is started and watched: it does not wait for
// their end.
func (h *hooks) close() {
	if h == nil {
		return
	}
	h.ending()
	h.starts.Wait()
}

// kill ends what runs by force, and without waiting: for a process that is about
// to end on the spot.
func (h *hooks) kill() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for group := range h.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended
	}
}
