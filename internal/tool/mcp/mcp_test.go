package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/permission"
	"deepseek/internal/redact"
	"deepseek/internal/tool"
	"deepseek/internal/tool/shell"
)

const (
	testKey   = "sk-test-secret-key"
	testLimit = 1 << 20
)

// patience bounds every wait for something that has to come.
const patience = time.Minute

// rig is a family over real processes.
type rig struct {
	*Family
	t      *testing.T
	shell  *shell.Family
	policy *fakePolicy
	tools  []tool.Tool

	mu    sync.Mutex
	notes []string
	heard chan string
}

type fakePolicy struct {
	err     error
	mu      sync.Mutex
	asked   []permission.Request
	trusted []bool
}

func (p *fakePolicy) Server(_ context.Context, r permission.Request, trusted bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.trusted = append(p.asked, r), append(p.trusted, trusted)
	return p.err
}

// self is this test binary.
var self = func() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}()

func local(how string) config.Server {
	return config.Server{Command: self, Args: []string{how}, Env: map[string]string{"MCP_TEST_SERVER": "1"}}
}

func newRig(t *testing.T, servers map[string]config.Server) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	r := &rig{t: t, policy: &fakePolicy{}, heard: make(chan string, 1000)}
	r.shell = shell.New(shell.Env{Cwd: t.TempDir(), Environ: append(os.Environ(), "DEEPSEEK_API_KEY="+testKey, "GORACE=atexit_sleep_ms=1"), Redact: redact.New(testKey)})
	r.Family = New(Env{
		Servers: named(servers), Cwd: t.TempDir(), Key: redact.New(testKey), Version: "test",
		Serve: func(cmd *exec.Cmd) (Service, error) { return r.shell.Serve(cmd) },
		Note: func(l string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notes = append(r.notes, l)
		},
		Stderr: func(server, l string) { r.heard <- server + ": " + l },
	})
	r.max = testLimit
	r.up, r.letGo, r.exit = patience, patience, patience
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := r.shell.Close(ctx); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<16)
				t.Fatalf("%d goroutines are left\n%s", runtime.NumGoroutine()-before, buf[:runtime.Stack(buf, true)])
			}
		}
	})
	return r
}

// named are servers as the configuration has them.
func named(servers map[string]config.Server) []config.Server {
	var list []config.Server
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		s.Name = name
		list = append(list, s)
	}
	return list
}

func (r *rig) start() *rig {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	err := r.Start(ctx)
	cancel() // the connections outlive it
	if err != nil {
		r.t.Fatal(err)
	}
	r.tools = r.Tools(r.policy)
	return r
}

func (r *rig) noted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.notes, "\n")
}

func (r *rig) names() []string {
	var names []string
	for _, t := range r.tools {
		names = append(names, t.Spec().Name)
	}
	return names
}

func (r *rig) run(ctx context.Context, name, args string) tool.Result {
	r.t.Helper()
	for _, t := range r.tools {
		if t.Spec().Name == name {
			return t.Run(ctx, tool.Call{ID: "call_1", Arguments: json.RawMessage(args)})
		}
	}
	r.t.Fatalf("no tool %s in %v; %s", name, r.names(), r.noted())
	return tool.Result{}
}

func TestToolsAreOfferedAndCalled(t *testing.T) {
	r := newRig(t, map[string]config.Server{"b": local("normal"), "a": local("noisy")}).start()
	if r.noted() != "" {
		t.Error(r.noted())
	}
	names := r.names()
	if len(names) != 24 || names[0] != "mcp__a__chatters" || !slices.IsSorted(names) {
		t.Fatal(names)
	}
	i := slices.Index(names, "mcp__b__echo")
	spec := r.tools[i].Spec()
	if spec.Description != "Says it again." || string(spec.Parameters) != `{"additionalProperties":false,"properties":{"text":{"description":"what to say","type":"string"}},"required":["text"],"type":"object"}` {
		t.Errorf("%s %s", spec.Description, spec.Parameters)
	}
	if tr := r.tools[i].Traits(); tr.ReadOnly || tr.Parallel || tr.Person {
		t.Errorf("%+v", tr)
	}
	for _, c := range []struct{ name, args, code, want string }{
		{"mcp__b__echo", `{"text":"<hi>"}`, "", "you said <hi>"},
		{"mcp__a__echo", `{"text":"after noise"}`, "", "you said after noise"},
		{"mcp__b__fails", `{}`, CodeError, "MCP_ERROR: no such table"},
		{"mcp__b__refuses", `{}`, CodeError, "MCP_ERROR: bad weather"},
		{"mcp__b__mixed", `{}`, "", "one\n[image image/png, 12345 bytes]\n[audio audio/wav, 7 bytes]\n[resource file:///a] a\n[resource file:///b]\nof b\n[resource file:///c x/y, 3 bytes]\ntwo"},
		{"mcp__b__structured", `{}`, "", `{"a":[1],"z":"<1>"}`},
		{"mcp__b__nothing", `{}`, "", ""},
	} {
		if got := r.run(t.Context(), c.name, c.args); got.Code != c.code || got.Content != c.want {
			t.Errorf("%s: %s %q", c.name, got.Code, got.Content)
		}
	}
	env := r.run(t.Context(), "mcp__b__environ", `{}`).Content
	if strings.Contains(env, testKey) || !strings.Contains(env, "DEEPSEEK_TOOL=1") || !strings.Contains(env, "MCP_TEST_SERVER=1") {
		t.Error(env)
	}
}

func TestApprovalShowsTheCallAndItsRefusalIsTold(t *testing.T) {
	trusted := local("normal")
	trusted.Trust = true
	r := newRig(t, map[string]config.Server{"x": local("normal"), "y": trusted}).start()
	if got := r.run(t.Context(), "mcp__x__echo", `{"text":"hi"}`); got.Code != "" {
		t.Fatal(got)
	}
	q := r.policy.asked[0]
	if q.Title != "call echo of the MCP server x" || q.Detail != "{\n  \"text\": \"hi\"\n}" || q.Prefix != "" || q.CallID != "call_1" || r.policy.trusted[0] {
		t.Errorf("%+v", q)
	}
	r.run(t.Context(), "mcp__y__echo", `{"text":"hi"}`)
	if !r.policy.trusted[1] {
		t.Error("the trusted server is not told apart")
	}
	for _, asked := range []bool{false, true} {
		r.policy.err = &permission.Denied{Message: "no", Asked: asked}
		got := r.run(t.Context(), "mcp__x__echo", `{"text":"hi"}`)
		if got.Content != "DENIED: no" || (got.Meta != nil && got.Meta.Denied) != asked {
			t.Errorf("%v: %+v", asked, got)
		}
	}
}

func TestServersThatDoNotComeUpAreNoted(t *testing.T) {
	for _, c := range []struct {
		how  string
		conf config.Server
		want string
	}{
		{"exits", local("exits"), "the MCP server x is left out: it ended: exit status 3 (no such database: [key])"},
		{"babbles", local("babbles"), "it sent more than 1 MB without an answer"},
		{"missing", config.Server{Command: "no-such-mcp-server"}, `its command "no-such-mcp-server" is not found`},
		{"in the workspace", config.Server{Command: "./server"}, `its command "./server" is neither a name nor a whole path`},
		{"no folder", config.Server{Command: "/bin/true", Cwd: "/dev/null/none"}, "the folder /dev/null/none that it is to start in (cwd) cannot be used: not a directory"},
		{"missing folder", config.Server{Command: "/bin/true", Cwd: "/no-such-folder"}, "(cwd) cannot be used: no such file or directory"},
		{"handshake refused", local("refuses-handshake"), "the MCP server x is left out: it answers the handshake with an error: no way\\x1B[31m"},
		{"old protocol", local("old-protocol"), `the MCP server x is left out: it speaks version "1999-01-01" of the protocol`},
		{"no tools", local("no-tools"), "the MCP server x has no tools"},
		{"refuses to list", local("refuses-list"), "the MCP server x is left out: it answers the question for its tools with an error: not today"},
		{"nobody listens", config.Server{URL: "http://127.0.0.1:1/mcp"}, "connection refused"},
	} {
		t.Run(c.how, func(t *testing.T) {
			r := newRig(t, map[string]config.Server{"x": c.conf, "ok": local("normal")}).start()
			if got := r.noted(); !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
				t.Error(got)
			}
			if len(r.tools) != 12 {
				t.Error(r.names())
			}
		})
	}
}

func TestAServerThatHangsIsLeftOutInTime(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("hangs")})
	r.up = 300 * time.Millisecond
	r.start()
	if got := r.noted(); got != "the MCP server x is left out: it did not come up in 300ms" || len(r.tools) != 0 {
		t.Error(got, r.names())
	}
}

func TestCancelOfTheStart(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("hangs"), "y": local("normal")})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	time.AfterFunc(200*time.Millisecond, func() { cancel(stop) })
	if err := r.Start(ctx); !errors.Is(err, stop) || r.noted() != "" {
		t.Error(err, r.noted())
	}
}

func TestAServerThatDiedIsStartedAnew(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("normal")}).start()
	for range 2 {
		got := r.run(t.Context(), "mcp__x__dies", `{}`)
		if got.Code != CodeBroken || !strings.Contains(got.Content, "exit status 7 (fatal: out of cheese)") {
			t.Fatal(got)
		}
		if got := r.run(t.Context(), "mcp__x__echo", `{"text":"again"}`); got.Content != "you said again" {
			t.Fatal(got)
		}
	}
}

func TestEndlessOutputIsBounded(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("normal")}).start()
	for name, want := range map[string]string{"mcp__x__endless": "a line of more than 1 MB", "mcp__x__prints": "more than 1 MB without an answer", "mcp__x__chatters": "more than 1 MB without an answer"} {
		if got := r.run(t.Context(), name, `{}`); got.Code != CodeBroken || !strings.Contains(got.Content, want) {
			t.Fatal(name, got.Code, got.Content[:min(len(got.Content), 200)])
		}
		if got := r.run(t.Context(), "mcp__x__echo", `{"text":"on"}`); got.Content != "you said on" {
			t.Fatal(got)
		}
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("normal")}).start()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan tool.Result, 1)
	go func() { got <- r.run(ctx, "mcp__x__waits", `{}`) }()
	r.hear("x: waiting")
	cancel()
	if res := <-got; res.Code != tool.CodeAborted {
		t.Fatal(res)
	}
	r.hear("x: told to stop")
	if got := r.run(t.Context(), "mcp__x__echo", `{"text":"on"}`); got.Content != "you said on" {
		t.Fatal(got)
	}
}

func (r *rig) hear(want string) {
	r.t.Helper()
	late := time.After(patience)
	for {
		select {
		case l := <-r.heard:
			if l == want {
				return
			}
		case <-late:
			r.t.Fatalf("%q was not heard", want)
		}
	}
}

func TestTimeoutIsAnErrorOfTheCallAlone(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("normal")}).start()
	r.call = 100 * time.Millisecond
	if got := r.run(t.Context(), "mcp__x__waits", `{}`); got.Code != CodeTimeout {
		t.Fatal(got)
	}
	r.call = callTime
	if got := r.run(t.Context(), "mcp__x__echo", `{"text":"on"}`); got.Content != "you said on" {
		t.Fatal(got)
	}
}

// The times of one server are its own.
func TestTimesOfTheConfiguration(t *testing.T) {
	hurried, patient, hanging := local("normal"), local("normal"), local("hangs")
	hurried.CallTimeout = 100 * time.Millisecond
	hanging.StartTimeout = 300 * time.Millisecond
	patient.StartTimeout, patient.CallTimeout = time.Minute, time.Minute
	r := newRig(t, map[string]config.Server{"hurried": hurried, "patient": patient, "hanging": hanging})
	r.up, r.call = 2*patience, time.Nanosecond
	begun := time.Now()
	r.start()
	if got := r.noted(); got != "the MCP server hanging is left out: it did not come up in 300ms" || time.Since(begun) > patience {
		t.Error(got, time.Since(begun))
	}
	if got := r.run(t.Context(), "mcp__hurried__waits", `{}`); got.Code != CodeTimeout || !strings.Contains(got.Content, "did not answer in 100ms") {
		t.Error(got)
	}
	if got := r.run(t.Context(), "mcp__patient__echo", `{"text":"on"}`); got.Content != "you said on" {
		t.Error(got)
	}
}

// A server that came up within its own time is waited for as long when it is started anew.
func TestStartTimeoutHoldsForARestart(t *testing.T) {
	conf := local("normal")
	conf.StartTimeout = time.Minute
	r := newRig(t, map[string]config.Server{"x": conf}).start()
	r.up = time.Nanosecond
	if got := r.run(t.Context(), "mcp__x__dies", `{}`); got.Code != CodeBroken {
		t.Fatal(got)
	}
	if got := r.run(t.Context(), "mcp__x__echo", `{"text":"again"}`); got.Content != "you said again" {
		t.Fatal(got)
	}
}

// A program that does not read holds a write; a cancel ends it all the same.
func TestCancelOfACallThatTheServerDoesNotRead(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("deaf")}).start()
	r.letGo = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	begun := time.Now()
	got := r.run(ctx, "mcp__x__t", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	if got.Code != tool.CodeAborted || time.Since(begun) > patience {
		t.Fatal(got, time.Since(begun))
	}
}

func TestCloseLeavesNothingOfAStubbornServer(t *testing.T) {
	r := newRig(t, map[string]config.Server{"x": local("stubborn"), "y": local("stubborn")}).start()
	begun := time.Now()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > patience {
		t.Error(took)
	}
	if got := r.run(t.Context(), "mcp__x__echo", `{"text":"x"}`); got.Code != CodeUnreachable {
		t.Error(got)
	}
	out, err := exec.CommandContext(t.Context(), "ps", "-eo", "ppid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(out)) {
		if strings.Contains(l, "trap '' TERM; sleep 300") || strings.Contains(l, os.Args[0]+" stubborn") {
			t.Error("left: " + l)
		}
	}
}

func TestOverHTTP(t *testing.T) {
	web := exec.CommandContext(t.Context(), os.Args[0], "web")
	web.Env = append(os.Environ(), "MCP_TEST_SERVER=1")
	out, err := web.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	heard, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close() //nolint:errcheck // a test's
	web.Stderr = heard
	if err := web.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = web.Process.Kill() // it may have ended
		_ = web.Wait()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	token := map[string]string{"X-Token": "t0k"}
	r := newRig(t, map[string]config.Server{
		"ok": {URL: address + "/mcp", Headers: token}, "closed": {URL: address + "/mcp"}, "away": {URL: address + "/away", Headers: token},
	}).start()
	notes := r.noted()
	for _, want := range []string{"the MCP server closed is left out: it answers 401 Unauthorized", "the MCP server away is left out: it sends on to http://localhost:1/mcp"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in %s", want, notes)
		}
	}
	if got := r.run(t.Context(), "mcp__ok__echo", `{"text":"web"}`); got.Content != "you said web" {
		t.Fatal(got)
	}
	if got := r.run(t.Context(), "mcp__ok__endless", `{}`); got.Code != CodeBroken || !strings.Contains(got.Content, "more than 1 MB") {
		t.Fatal(got.Code, got.Content[:min(200, len(got.Content))])
	}
	if got := r.run(t.Context(), "mcp__ok__echo", `{"text":"again"}`); got.Content != "you said again" {
		t.Fatal(got)
	}
	said := func(what string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			b, err := os.ReadFile(heard.Name())
			if err != nil || time.Now().After(end) {
				t.Fatalf("the server did not say %q: %v %s", what, err, b)
			}
			if strings.Contains(string(b), what) {
				return
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan tool.Result, 1)
	go func() { got <- r.run(ctx, "mcp__ok__waits", `{}`) }()
	said("waiting")
	cancel()
	if res := <-got; res.Code != tool.CodeAborted {
		t.Fatal(res)
	}
	said("told to stop")
}
