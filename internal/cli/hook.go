package cli

import (
	"bytes"
	"context"
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
// nor fails the run. mu owns closed, and that none starts after it.
type hooks struct {
	command string
	dir     string
	env     []string

	mu     sync.Mutex
	closed bool
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
	h := &hooks{command: o.cfg.OnQuestion, dir: o.cwd}
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

func (h *hooks) run(note []byte, env []string) {
	ctx, cancel := context.WithTimeout(h.ctx, hookTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", h.command)
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, env, bytes.NewReader(note)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	// Whether it could be run is the command's own affair.
	_ = cmd.Run()
}

// close ends what still runs after hookAfter.
func (h *hooks) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	late := time.AfterFunc(hookAfter, h.cancel)
	defer late.Stop()
	h.work.Wait()
	h.cancel()
}
