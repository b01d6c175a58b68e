package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// patience bounds every wait for something that has to come.
const patience = time.Minute

// rpcClient is a raw client of `deepseek rpc` in this process.
type rpcClient struct {
	t    *testing.T
	in   *os.File
	raw  *os.File
	out  *bufio.Reader
	errs bytes.Buffer // readable once done
	done chan int
	id   int
	told []rpcLine
	seen int // of told, by until
}

type rpcLine struct {
	ID     int
	Method string
	Params struct {
		SessionID string
		Status    string
		Event     json.RawMessage
		CallID    string
	}
	Result json.RawMessage
	Error  *struct {
		Message string
		Data    struct{ Code, Path string }
	}
}

func (l rpcLine) event() (e session.Event) {
	if l.Params.Event != nil {
		e, _ = session.ParseEvent(l.Params.Event)
	}
	return e
}

func (b box) rpc(t *testing.T, args ...string) *rpcClient {
	t.Helper()
	inR, inW, err1 := os.Pipe()
	outR, outW, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	c := &rpcClient{t: t, in: inW, raw: outR, out: bufio.NewReader(outR), done: make(chan int, 1)}
	go func() {
		code := Main(append([]string{"deepseek", "rpc"}, args...), Streams{In: inR, Out: outW, Err: &c.errs}, b.env)
		_ = errors.Join(inR.Close(), outW.Close())
		c.done <- code
	}()
	t.Cleanup(func() {
		_ = inW.Close() // a test may have
		for range c.done {
			break
		}
		_ = outR.Close()
	})
	return c
}

// next is the next line, io.EOF at the end.
func (c *rpcClient) next() (l rpcLine, err error) {
	if err := c.raw.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return l, err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(line, &l)
}

// until goes on to the next notification of a kind.
func (c *rpcClient) until(what string, is func(rpcLine) bool) rpcLine {
	c.t.Helper()
	for {
		for c.seen < len(c.told) {
			c.seen++
			if l := c.told[c.seen-1]; is(l) {
				return l
			}
		}
		c.read(what)
	}
}

// read reads one line, which it returns if it is an answer.
func (c *rpcClient) read(what string) rpcLine {
	c.t.Helper()
	l, err := c.next()
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", what, err)
	}
	if l.Method != "" {
		c.told = append(c.told, l)
	}
	return l
}

func (c *rpcClient) call(method, params string, into any) (code string) {
	c.t.Helper()
	c.id++
	id := c.id
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		c.t.Fatal(err)
	}
	var l rpcLine
	for l.ID != id {
		l = c.read("the answer to " + method)
	}
	if l.Error != nil {
		return strings.TrimSpace(l.Error.Data.Code + " " + l.Error.Data.Path)
	}
	if into != nil {
		if err := json.Unmarshal(l.Result, into); err != nil {
			c.t.Fatal(err)
		}
	}
	return ""
}

// prompt sends a message to a session, "" for a new one.
func (c *rpcClient) prompt(id, text string) string {
	c.t.Helper()
	var r struct{ SessionID, MessageID string }
	ref := ""
	if id != "" {
		ref = fmt.Sprintf(`"sessionId":%q,`, id)
	}
	if code := c.call("session/prompt", fmt.Sprintf(`{%s"contentBlocks":[{"type":"text","text":%q}]}`, ref, text), &r); code != "" {
		c.t.Fatalf("prompt: %s", code)
	}
	return r.SessionID
}

func (c *rpcClient) untilEvent(typ string) session.Event {
	c.t.Helper()
	return c.until(typ, func(l rpcLine) bool { return l.event().Type == typ }).event()
}

func (c *rpcClient) untilIdle() {
	c.t.Helper()
	c.until("idle", func(l rpcLine) bool { return l.Params.Status == "idle" })
}

// end waits for the exit code.
func (c *rpcClient) end() int {
	c.t.Helper()
	for {
		if _, err := c.next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			c.t.Fatal(err)
		}
	}
	code := <-c.done
	c.done <- code
	return code
}

// script writes a scripted model into the box and names it.
func (b box) script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(b.cwd), "script.yaml")
	b.write(t, path, text)
	return "script:" + path
}

const scriptTexts = "responses:\n  - text: one\n  - text: two\n  - text: three\n"

const scriptSleep = `responses:
  - tool_calls: [{id: c1, name: bash, arguments: {command: "echo $$ > pid; sleep 300"}}]
  - text: after
`

func (b box) initialize(t *testing.T, c *rpcClient, model, more string) {
	t.Helper()
	if code := c.call("initialize", fmt.Sprintf(`{"cwd":%q,"model":%q,"permission":"full-access"%s}`, b.cwd, model, more), nil); code != "" {
		t.Fatalf("initialize: %s", code)
	}
}

// logOf is the lines of a session's file.
func (b box) logOf(t *testing.T, id string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.home, "sessions", "*", id+".jsonl"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v %v", paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestRPCTellsTheLogAsItStands(t *testing.T) {
	b := newBox(t)
	c := b.rpc(t)
	b.initialize(t, c, b.script(t, scriptTexts), "")
	id := c.prompt("", "go")
	c.untilIdle()
	c.prompt(id, "go on")
	c.untilEvent(session.TypeTurnEnd)
	c.untilIdle()
	if code := c.call("shutdown", "{}", nil); code != "" {
		t.Error(code)
	}
	lines := b.logOf(t, id)[1:]
	var told []string
	for _, l := range c.told {
		if l.Params.Event != nil {
			told = append(told, string(l.Params.Event))
		}
	}
	if strings.Join(told, "\n") != strings.Join(lines, "\n") {
		t.Errorf("told\n%s\nlogged\n%s", strings.Join(told, "\n"), strings.Join(lines, "\n"))
	}
	for i, want := range []string{session.TypeSettings, session.TypeInboxSpliced, session.TypeTurnStart} {
		if e, err := session.ParseEvent([]byte(lines[i])); err != nil || e.Type != want {
			t.Errorf("event %d is %s, want %s", i, e.Type, want)
		}
	}
	if code := c.end(); code != 0 || c.errs.Len() > 0 {
		t.Errorf("exit %d: %s", code, c.errs.String())
	}
}

// A page that would begin behind the log's end leads to its end, so that a client
// which goes on from there misses nothing.
func TestRPCReadsNoFurtherThanTheLog(t *testing.T) {
	b := newBox(t)
	c := b.rpc(t)
	b.initialize(t, c, b.script(t, scriptTexts), "")
	id := c.prompt("", "go")
	c.untilIdle()
	read := func(from int) remote.ReadResult {
		t.Helper()
		var page remote.ReadResult
		if code := c.call("session/read", fmt.Sprintf(`{"sessionId":%q,"fromSeq":%d}`, id, from), &page); code != "" {
			t.Fatal(code)
		}
		return page
	}
	for _, where := range []string{"open here", "closed"} {
		end := int64(len(b.logOf(t, id)) - 1)
		if whole := read(0); whole.NextSeq != end || int64(len(whole.Events)) != end {
			t.Errorf("%s: %d events, next is %d, want %d", where, len(whole.Events), whole.NextSeq, end)
		}
		for _, from := range []int{int(end), 9999} {
			if page := read(from); page.NextSeq != end || page.More || len(page.Events) > 0 {
				t.Errorf("%s: from %d: %d events, next is %d, more %v, want %d", where, from, len(page.Events), page.NextSeq, page.More, end)
			}
		}
		if code := c.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id), nil); code != "" {
			t.Fatal(code)
		}
	}
}

func TestRPCGoesOnWithTheSettingsOfTheLog(t *testing.T) {
	b := newBox(t)
	model := b.script(t, scriptTexts)
	c := b.rpc(t)
	b.initialize(t, c, model, `,"mode":"timed","timeout":7`)
	id := c.prompt("", "go")
	c.untilEvent(session.TypeTurnEnd)
	if code := c.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id), nil); code != "" {
		t.Fatal(code)
	}
	// Another server, which says nothing of all that.
	d := b.rpc(t)
	if code := d.call("initialize", fmt.Sprintf(`{"cwd":%q}`, filepath.Dir(b.cwd)), nil); code != "" {
		t.Fatal(code)
	}
	n := len(b.logOf(t, id)) - 1
	d.prompt(id, "go on")
	e := d.untilEvent(session.TypeSettings)
	if want := `{"mode":"timed","timeout":7,"permission":"full-access","approve":"ask"}`; e.Seq != int64(n) || string(e.Data) != want {
		t.Errorf("event %d: %s, want %d: %s", e.Seq, e.Data, n, want)
	}
	e = d.untilEvent(session.TypeAssistantMessage)
	if !strings.Contains(string(e.Data), "two") {
		t.Errorf("the answer is %s", e.Data)
	}
	for _, ref := range []string{id[:8], "last", "20000101-000000-aaaaa"} {
		if code := d.call("session/read", fmt.Sprintf(`{"sessionId":%q}`, ref), nil); code != "SESSION_NOT_FOUND" {
			t.Errorf("%s: %s", ref, code)
		}
	}
}

// gone tells whether the command of scriptSleep has ended.
func (b box) gone(t *testing.T) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.cwd, "pid"))
	var pid int
	if _, scan := fmt.Sscan(string(data), &pid); err != nil || scan != nil {
		t.Fatalf("%q %v", data, err)
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestRPCEndsByEOFAndBySignals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		end   func(*rpcClient) error
		code  int
		cause string
	}{
		{"EOF", func(c *rpcClient) error { return c.in.Close() }, 0, `"disposed"`},
		{"SIGTERM", func(*rpcClient) error { return syscall.Kill(os.Getpid(), syscall.SIGTERM) }, 143, `"user"`},
		{"SIGINT", func(*rpcClient) error { return syscall.Kill(os.Getpid(), syscall.SIGINT) }, 130, `"user"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			c := b.rpc(t)
			b.initialize(t, c, b.script(t, scriptSleep), "")
			id := c.prompt("", "go")
			c.untilEvent(session.TypeToolCall)
			c.prompt(id, "and then")
			for { // the command runs
				if data, err := os.ReadFile(filepath.Join(b.cwd, "pid")); err == nil && len(data) > 1 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			begun := time.Now()
			if err := tt.end(c); err != nil {
				t.Fatal(err)
			}
			if code := c.end(); code != tt.code || time.Since(begun) > patience {
				t.Errorf("exit %d after %v: %s", code, time.Since(begun), c.errs.String())
			}
			if !b.gone(t) {
				t.Error("the command runs on")
			}
			lines := b.logOf(t, id)
			if last := lines[len(lines)-1]; !strings.Contains(last, `"aborted"`) || !strings.Contains(last, tt.cause) {
				t.Errorf("last line %s", last)
			}
			// What was queued is kept, and the lock is free.
			r := b.call("run", "--session", id, "--output", "json")
			var res session.RunResult
			if err := json.Unmarshal([]byte(r.out), &res); err != nil || r.code != 0 || res.FinalResponse != "after" {
				t.Errorf("going on: exit %d, %s%s", r.code, r.out, r.err)
			}
		})
	}
}

func TestRPCSessionsCanBeReachedFromOtherShells(t *testing.T) {
	b := newBox(t)
	c := b.rpc(t)
	b.initialize(t, c, b.script(t, `responses:
  - tool_calls: [{id: q1, name: ask_user_question, arguments: {timeout: 1, questions: [{id: port, question: "Which?", options: [{label: "a"}]}]}}]
  - tool_calls: [{id: c1, name: bash, arguments: {command: "while [ ! -e go ]; do sleep 0.02; done"}}]
  - text: done
`), `,"mode":"timed"`)
	id := c.prompt("", "go")
	c.until("questions/request", func(l rpcLine) bool { return l.Method == "questions/request" && l.Params.CallID == "q1" })
	c.until("the command", func(l rpcLine) bool {
		return l.event().Type == session.TypeToolCall && strings.Contains(string(l.Params.Event), "c1")
	})
	if r := b.call("answer", id, "q1", "--select", "port=a", "--output", "json"); r.code != 0 || !strings.Contains(r.out, `"via":"late"`) {
		t.Errorf("answer: %d %s%s", r.code, r.out, r.err)
	}
	if r := b.call("send", "--steer", id, "hello"); r.code != 0 {
		t.Errorf("send: %d %s", r.code, r.err)
	}
	if r := b.call("run", "--session", id, "x"); r.code != ExitBusy {
		t.Errorf("run: %d %s", r.code, r.err)
	}
	b.write(t, filepath.Join(b.cwd, "go"), "")
	c.until("questions/settled", func(l rpcLine) bool { return l.Method == "questions/settled" && l.Params.CallID == "q1" })
	c.untilEvent(session.TypeTurnEnd)
	var list struct{ Active, Settled []struct{ CallID string } }
	if code := c.call("questions/list", fmt.Sprintf(`{"sessionId":%q}`, id), &list); code != "" || len(list.Active) != 0 || len(list.Settled) != 1 {
		t.Errorf("%s %+v", code, list)
	}
}

func TestRPCBlockingQuestionsNeedSomebodyToAsk(t *testing.T) {
	const asks = `responses:
  - tool_calls: [{id: q1, name: ask_user_question, arguments: {questions: [{id: a, question: "Which?"}]}}]
  - text: done
`
	for capability, want := range map[string]string{"": "NO_PROVIDER", `,"capabilities":{"questions":true}`: "words"} {
		b := newBox(t)
		c := b.rpc(t)
		b.initialize(t, c, b.script(t, asks), capability)
		id := c.prompt("", "go")
		if capability != "" {
			c.until("questions/request", func(l rpcLine) bool { return l.Method == "questions/request" })
			call := fmt.Sprintf(`{"sessionId":%q,"callId":"q1"`, id)
			if code := c.call("questions/respond", call+`,"answers":[{"id":"a","selected":[],"custom":"words"}]}`, nil); code != "NO_CLAIM" {
				t.Errorf("without a claim: %s", code)
			}
			if code := c.call("questions/attachWait", call+"}", nil); code != "" {
				t.Error(code)
			}
			if code := c.call("questions/respond", call+`,"answers":[{"id":"a","selected":[],"custom":"words"}]}`, nil); code != "" {
				t.Error(code)
			}
		}
		c.untilEvent(session.TypeTurnEnd)
		found := false
		for _, l := range c.told {
			found = found || l.event().Type == session.TypeToolResult && strings.Contains(string(l.Params.Event), want)
		}
		if !found {
			t.Errorf("%q: no result with %s", capability, want)
		}
	}
}

func TestRPCEndsWhatLastsTooLong(t *testing.T) {
	b := newBox(t)
	c := b.rpc(t, "--max-duration", "4s") // more than a turn takes that waits for nothing
	b.initialize(t, c, b.script(t, scriptSleep), "")
	id := c.prompt("", "go")
	if e := c.untilEvent(session.TypeTurnEnd); !strings.Contains(string(e.Data), `"hook":"duration"`) {
		t.Errorf("turn/end: %s", e.Data)
	}
	c.untilIdle()
	c.prompt(id, "go on") // idle time does not count
	if e := c.untilEvent(session.TypeTurnEnd); !strings.Contains(string(e.Data), `"completed"`) {
		t.Errorf("turn/end: %s", e.Data)
	}
}

func TestRPCRefusesWhatIsWrongBeforeItWrites(t *testing.T) {
	b := newBox(t)
	for args, want := range map[string]string{"--answerer=tty": "no terminal", "--mode=nope": "mode", "x": "x"} {
		if r := b.call("rpc", args); r.code != ExitUsage || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%s: %d %s", args, r.code, r.err)
		}
	}
	inTool := b
	inTool.env = append(inTool.env[:len(inTool.env):len(inTool.env)], "DEEPSEEK_TOOL=1")
	if r := inTool.call("rpc"); r.code != ExitUsage || !strings.Contains(r.err, CodeCallerIsTool) {
		t.Errorf("in a tool: %d %s", r.code, r.err)
	}
	c := b.rpc(t)
	for params, want := range map[string]string{
		fmt.Sprintf(`{"cwd":%q}`, filepath.Join(b.cwd, "no")): "cwd",
		fmt.Sprintf(`{"cwd":%q,"mode":"x"}`, b.cwd):           "mode",
		fmt.Sprintf(`{"cwd":%q,"permission":"x"}`, b.cwd):     "permission",
		fmt.Sprintf(`{"cwd":%q,"timeout":5}`, b.cwd):          "timeout",
	} {
		if code := c.call("initialize", params, nil); code != want {
			t.Errorf("%s: %q, want %q", params, code, want)
		}
	}
	if code := c.call("initialize", fmt.Sprintf(`{"cwd":%q}`, b.cwd), nil); code != "" {
		t.Fatal(code)
	}
	if code := c.call("session/prompt", `{"contentBlocks":[{"type":"text","text":"go"}]}`, nil); code != CodeConfig {
		t.Errorf("without a key: %q", code)
	}
	if files, err := filepath.Glob(filepath.Join(b.home, "sessions", "*", "*")); err != nil || len(files) != 0 {
		t.Errorf("written: %v %v", files, err)
	}
}
