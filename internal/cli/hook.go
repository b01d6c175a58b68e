package cli

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/question"
	"deepseek/internal/session"
)

const (
	hookTime  = 30 * time.Second // of a command, from its start
	hookAfter = 5 * time.Second  // of all of them, from the end of the run
)

// hooks runs the command of --on-question. What becomes of it neither delays
// nor fails the run. mu owns closed, and that none starts after it, late and groups.
type hooks struct {
	command string
	dir     string
	env     []string

	mu     sync.Mutex
	closed bool
	late   *time.Timer  // of the end, once closed
	groups map[int]bool // of the commands that run
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
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
		h.work.Go(func() { h.run(o.key.Bytes(note), env) })
	}
}

// run ends when the command and everything in its process group has ended.
func (h *hooks) run(note []byte, env []string) {
	ctx, cancel := context.WithTimeout(h.ctx, hookTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", h.command)
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, env, bytes.NewReader(note)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if cmd.Start() != nil {
		return // whether it can be run is the command's own affair, and how it ends
	}
	group := cmd.Process.Pid
	h.note(group, true)
	defer h.note(group, false)
	_ = cmd.Wait()
	endGroup(ctx, group)
}

// endGroup returns when nothing of a process group runs any more, which it ends
// by force when ctx ends. The group's leader has been reaped; its number stays
// the group's as long as a process is in it.
//
// On Linux the leader's orphans are children of this process, and are reaped
// here. Asking for those of the group alone takes none from anybody else.
func endGroup(ctx context.Context, group int) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	done := ctx.Done()
	for forced := 0; forced < 50; { // one that even force does not end is not waited for
		for {
			pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if syscall.Kill(-group, 0) != nil {
			return
		}
		if ctx.Err() != nil {
			forced++
			if syscall.Kill(-group, syscall.SIGKILL) != nil {
				return
			}
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
		h.late = time.AfterFunc(hookAfter, h.cancel)
	}
}

// close returns when none runs any more.
func (h *hooks) close() {
	if h == nil {
		return
	}
	h.ending()
	h.work.Wait()
	h.cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late != nil { // nil where kill came first
		h.late.Stop()
	}
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
