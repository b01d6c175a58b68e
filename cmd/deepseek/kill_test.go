package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/fakellm"
	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

var (
	kills    = flag.Int("kills", 6, "how many runs TestKilledRuns kills")
	killSeed = flag.Uint64("kill-seed", 1, "what TestKilledRuns draws its moments from")
)

// killsPerSession bounds a session's length, so that what it checks at the end stays quick.
const killsPerSession = 6

// Runs are killed at random moments while messages and late answers are sent to
// their session from outside, to the live owner or to the file of the dead one.
// In the end every message and every answer that was acknowledged has entered
// the history once, none of the others twice, and the model server, which takes
// no history that is not balanced, had nothing to refuse.
func TestKilledRuns(t *testing.T) {
	var mu sync.Mutex
	total := tally{}
	t.Cleanup(func() { t.Logf("%+v", total) })
	for n := 0; n*killsPerSession < *kills; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			k := newKilled(t, newRandom(n))
			for range min(killsPerSession, *kills-n*killsPerSession) {
				k.round()
			}
			k.finish()
			mu.Lock()
			defer mu.Unlock()
			total.add(k.tally)
		})
	}
}

func newRandom(n int) *rand.Rand { return rand.New(rand.NewPCG(*killSeed, uint64(n))) }

// tally is what happened, to show that a test tested something.
type tally struct {
	Kills, Messages, Answers, Refused, Unknown int
}

func (t *tally) add(o tally) {
	t.Kills += o.Kills
	t.Messages += o.Messages
	t.Answers += o.Answers
	t.Refused += o.Refused
	t.Unknown += o.Unknown
}

// killed is one session and what is known of it. mu guards what the senders and
// the model server share; the rest is the test's.
type killed struct {
	t           *testing.T
	server      *fakellm.Server
	ws, temp    string
	environ     []string
	id, logPath string

	mu     sync.Mutex
	random *rand.Rand
	calm   bool // the model only ends turns from now on
	hold   bool // and waits with that for a release
	asked  []string
	sent   map[string]fate // by text
	given  map[string]fate // by call
	names  int
	tally
}

// fate is what a sender was told.
type fate int

const (
	undelivered fate = iota // refused: it must not be there
	unknown                 // killed, or told that nobody knows
	acknowledged
)

func newKilled(t *testing.T, random *rand.Rand) *killed {
	k := &killed{t: t, random: random, sent: map[string]fate{}, given: map[string]fate{}, ws: t.TempDir()}
	k.server = fakellm.Start(t, fakellm.Script{Next: k.model})
	temp, err := os.MkdirTemp("/tmp", "ds") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(temp); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(k.ws, name), []byte("hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	k.temp = temp
	k.environ = append(os.Environ(), "HOME="+home, "TMPDIR="+temp, "XDG_RUNTIME_DIR=", "NO_COLOR=1", "GORACE=atexit_sleep_ms=1",
		"DEEPSEEK_BASE_URL="+k.server.URL, "DEEPSEEK_API_KEY=sk-killed-runs", "DEEPSEEK_PERMISSION=full-access")
	return k
}

// model reads, looks, asks, and ends its turns, as chance has it.
func (k *killed) model(n int, _ fakellm.Request) fakellm.Step {
	k.mu.Lock()
	defer k.mu.Unlock()
	step := fakellm.Step{Text: fmt.Sprintf("answer %d", n), Chunk: 7, FirstDelay: time.Duration(k.random.IntN(20)) * time.Millisecond}
	if k.calm || k.random.IntN(3) == 0 {
		step.Hold = k.hold
		return step
	}
	step.Delay = time.Duration(k.random.IntN(3)) * time.Millisecond
	for range 1 + k.random.IntN(3) {
		c := fakellm.Call{ID: fmt.Sprintf("call_%d_%d", n, len(step.Calls))}
		switch k.random.IntN(6) {
		case 0:
			c.Name, c.Arguments = "read", `{"file_path":"a.txt"}`
		case 1:
			c.Name, c.Arguments = "glob", `{"pattern":"*"}`
		case 2:
			c.Name, c.Arguments = "delegate", `{"description":"look","prompt":"look around"}`
		default:
			c.ID = fmt.Sprintf("q%d-%d", n, len(step.Calls))
			c.Name = session.AskTool
			c.Arguments = fakellm.Arguments(fmt.Sprintf(`{"questions":[{"id":"port","question":"Which port of %s?","options":[{"label":"80"},{"label":"90"}]}],"timeout":1}`, c.ID))
			k.asked = append(k.asked, c.ID)
		}
		step.Calls = append(step.Calls, c)
	}
	return step
}

// chance is a number below n.
func (k *killed) chance(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.random.IntN(n)
}

func (k *killed) name() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names++
	return fmt.Sprintf("message %d.", k.names)
}

func (k *killed) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(k.t.Context(), "deepseek", args...)
	cmd.Dir, cmd.Env = k.ws, k.environ
	return cmd
}

// round kills one run and, meanwhile and afterwards, sends and answers.
func (k *killed) round() {
	r := k.run()
	if k.id == "" {
		k.find(r)
	}
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() { k.send(k.name()) })
	}
	others.Go(k.answer)
	late := time.NewTimer(time.Duration(k.chance(250)) * time.Millisecond)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.done:
	}
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.done
	if code := status(r.cmd.ProcessState); code < 0 {
		k.Kills++
	} else if code != 0 && code != 4 {
		k.t.Errorf("the run ended with %d:\n%s", code, r.err.String())
	}
	others.Go(k.answer)
	others.Wait()
}

// run starts a run with a task, in the session if there is one.
func (k *killed) run() *process {
	args := []string{"run", "--mode", "timed", "--answerer", "none"}
	if k.id != "" {
		args = append(args, "--session", k.id)
	}
	task := k.name()
	k.note(k.sent, task, unknown)
	p := &process{cmd: k.command(append(args, task)...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() { // ends with the process, which ends with the test's context
		defer close(p.done)
		_ = p.cmd.Wait() // the state says it
	}()
	return p
}

// find waits until the session's file is there.
func (k *killed) find(r *process) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for k.id == "" {
		if m := sessionLine.FindStringSubmatch(r.err.String()); m != nil {
			k.id = m[1]
			break
		}
		select {
		case <-tick.C:
		case <-r.done:
			k.t.Fatalf("the run ended without a session:\n%s", r.err.String())
		}
	}
	out, err := k.command("sessions", "path", k.id).Output()
	if err != nil {
		k.t.Fatal(err)
	}
	k.logPath = strings.TrimSpace(string(out))
}

func (k *killed) note(m map[string]fate, name string, f fate) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m[name] = max(m[name], f)
	switch f {
	case undelivered:
		k.Refused++
	case unknown:
		k.Unknown++
	}
}

// send queues a message, and may be killed at it itself.
func (k *killed) send(text string) {
	args := []string{"send"}
	if k.chance(3) == 0 {
		args = append(args, "--steer")
	}
	out, f := k.tell(append(args, k.id, text))
	if f == acknowledged && len(strings.TrimSpace(out)) != 36 {
		k.t.Errorf("send printed %q", out)
	}
	k.note(k.sent, text, f)
}

// answer answers the latest question that takes an answer, of a few.
func (k *killed) answer() {
	k.mu.Lock()
	calls := slices.Clone(k.asked[max(0, len(k.asked)-4):])
	k.mu.Unlock()
	for _, call := range slices.Backward(calls) {
		k.mu.Lock()
		already := k.given[call] == acknowledged
		k.mu.Unlock()
		_, f := k.tell([]string{"answer", k.id, call, "--queue", "--select", "port=90"})
		if already && f == acknowledged {
			k.t.Errorf("%s was answered twice", call)
		}
		k.note(k.given, call, f)
		if f != undelivered {
			return
		}
	}
}

func (k *killed) tell(args []string) (string, fate) {
	cmd := k.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		k.t.Error(err)
		return "", undelivered
	}
	if k.chance(8) == 0 {
		kill := time.AfterFunc(time.Duration(k.chance(60))*time.Millisecond, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer kill.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		k.t.Error(err)
	}
	switch code := status(cmd.ProcessState); {
	case code == 0:
		return stdout.String(), acknowledged
	case code < 0, code == 4 && strings.Contains(stderr.String(), "OUTCOME_UNKNOWN"):
		return "", unknown
	case code != 4 && code != 5:
		k.t.Errorf("%v ended with %d:\n%s", args, code, &stderr)
	}
	return "", undelivered
}

// finish lets a run come to its end and reads what became of everything.
func (k *killed) finish() {
	k.mu.Lock()
	k.calm = true
	k.mu.Unlock()
	last := k.name()
	if out, err := k.command("run", "-q", "--session", k.id, last).CombinedOutput(); err != nil {
		k.t.Fatalf("the last run: %v\n%s", err, out)
	}
	k.note(k.sent, last, acknowledged)
	if out, err := k.command("sessions", "check", k.id).CombinedOutput(); err != nil {
		k.t.Errorf("sessions check: %v\n%s", err, out)
	}
	entered, answered := map[string]int{}, map[string]int{}
	next := int64(0)
	_, err := logstore.ReadEvents(k.t.Context(), k.logPath, func(e session.Event) error {
		if e.Seq != next {
			k.t.Errorf("seq %d after %d", e.Seq, next-1)
		}
		next = e.Seq + 1
		return k.count(e, entered, answered)
	})
	if err != nil {
		k.t.Error(err)
	}
	k.judge("message", k.sent, entered, &k.Messages)
	k.judge("answer", k.given, answered, &k.Answers)
	k.leftovers()
	if k.t.Failed() {
		k.keep()
	}
}

func (k *killed) count(e session.Event, entered, answered map[string]int) error {
	switch e.Type {
	case session.TypeUserMessage:
		var m session.UserMessage
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return err
		}
		if m.Source.Kind == session.SourceQuestionReply {
			answered[m.Source.CallID]++
		} else {
			entered[m.Content[0].Text]++
		}
	case session.TypeToolResult:
		var r session.ToolResult
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return err
		}
		if strings.HasPrefix(r.Message.Content, `{"answers":`) {
			answered[r.Message.ToolCallID]++
		}
	}
	return nil
}

func (k *killed) judge(what string, told map[string]fate, found map[string]int, good *int) {
	for name, n := range found {
		if _, ok := told[name]; !ok || n > 1 {
			k.t.Errorf("%s %q is there %d times, known: %v", what, name, n, ok)
		}
	}
	for name, f := range told {
		switch n := found[name]; {
		case f == acknowledged && n == 0:
			k.t.Errorf("%s %q was acknowledged and is lost", what, name)
		case f == acknowledged:
			*good++
		case f == undelivered && n > 0:
			k.t.Errorf("%s %q was said not to be delivered and is there", what, name)
		}
	}
}

// leftovers: when another session has begun in the folder, nothing but logs and
// what repair set aside lies in it.
func (k *killed) leftovers() {
	if out, err := k.command("run", "-q", "another session").CombinedOutput(); err != nil {
		k.t.Errorf("another session: %v\n%s", err, out)
	}
	entries, err := os.ReadDir(filepath.Dir(k.logPath))
	if err != nil {
		k.t.Error(err)
	}
	for _, e := range entries {
		if name := e.Name(); name[0] == '.' || !strings.HasSuffix(strings.TrimSuffix(name, ".torn"), ".jsonl") {
			k.t.Errorf("left over: %s", name)
		}
	}
}

// keep copies the log of a session that went wrong to where it can be looked at.
func (k *killed) keep() {
	data, err := os.ReadFile(k.logPath)
	if err != nil {
		k.t.Error(err)
		return
	}
	f, err := os.CreateTemp("", "killed-*.jsonl")
	if err != nil {
		k.t.Error(err)
		return
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		k.t.Error(err)
	}
	k.t.Logf("its log is %s", f.Name())
}
