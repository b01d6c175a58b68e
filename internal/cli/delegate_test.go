package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/fakellm"
	"deepseek/internal/logstore"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/delegate"
)

// saved is a session as a test reads it back.
type saved struct {
	session.Header
	path   string
	events []session.Event
}

// saved are the sessions of the box by id.
func (b box) saved(t *testing.T) map[string]saved {
	t.Helper()
	entries, err := b.store().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]saved{}
	for _, e := range entries {
		s := saved{path: e.Path}
		end, err := logstore.ReadEvents(t.Context(), e.Path, func(e session.Event) error {
			s.events = append(s.events, e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Header = end.Header
		all[e.ID] = s
	}
	return all
}

// root is the one session that nobody delegated.
func root(t *testing.T, all map[string]saved) saved {
	t.Helper()
	for _, s := range all {
		if s.Origin == "" {
			return s
		}
	}
	t.Fatal("there is no root")
	return saved{}
}

// find decodes the payloads of the events of a type.
func find[T any](t *testing.T, s saved, typ string) []T {
	t.Helper()
	var out []T
	for _, e := range s.events {
		if e.Type != typ {
			continue
		}
		var v T
		if err := json.Unmarshal(e.Data, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func results(t *testing.T, s saved) (texts []string) {
	for _, r := range find[session.ToolResult](t, s, session.TypeToolResult) {
		texts = append(texts, r.Message.Content)
	}
	return texts
}

// A script plays for each session from its beginning, so each sub-agent
// delegates in its turn, until one is too deep to.
func TestDelegationEndsAtTheDeepest(t *testing.T) {
	b := newBox(t)
	script := filepath.Join(b.cwd, "s.yaml")
	b.write(t, script, `responses:
  - tool_calls: [{id: c1, name: delegate, arguments: {description: go down, prompt: deeper}}]
  - text: done
  - tool_calls: [{id: c2, name: delegate, arguments: {description: go down, prompt: deeper}}]
  - text: so it is
`)
	if got := b.call("run", "--model", "script:"+script, "begin"); got.code != ExitOK || got.out != "done\n" {
		t.Fatalf("%+v", got)
	}
	all := b.saved(t)
	if len(all) != 1+delegate.MaxDepth {
		t.Fatalf("%d sessions", len(all))
	}
	s := root(t, all)
	for depth := range delegate.MaxDepth + 1 {
		header := find[session.RequestHeader](t, s, session.TypeRequestHeader)[0]
		offered := strings.Contains(string(mustJSON(t, header.Header.Tools)), `"name":"delegate"`)
		if s.DelegationDepth != depth || !offered {
			t.Errorf("depth %d: %+v, delegate offered: %v", depth, s.Header, offered)
		}
		if depth == delegate.MaxDepth {
			break
		}
		var started []session.Subagent
		for _, d := range find[session.Subagent](t, s, session.TypeSubagent) {
			if d.ParentSessionID == "" {
				started = append(started, d)
			}
		}
		if len(started) != 1 || started[0].CallID != "c1" || started[0].Description != "go down" {
			t.Fatalf("depth %d: %+v", depth, started)
		}
		child := all[started[0].ChildSessionID]
		if child.ParentSession != s.ID || child.Origin != session.OriginSubagent || child.Cwd != s.Cwd {
			t.Fatalf("%+v", child.Header)
		}
		if want := fmt.Sprintf("done\n[sub-agent %s: completed, 2 steps]", child.ID); results(t, s)[0] != want {
			t.Errorf("depth %d: %q", depth, results(t, s))
		}
		s = child
	}
	if !strings.HasPrefix(results(t, s)[0], delegate.CodeDepth+": ") {
		t.Errorf("%q", results(t, s))
	}
	// For a person that goes on with it the session is as deep as it is, and has the same tools.
	if got := b.call("run", "--session", s.ID, "on"); got.code != ExitOK || got.out != "so it is\n" {
		t.Fatalf("%+v", got)
	}
	if last := results(t, b.saved(t)[s.ID])[1]; !strings.HasPrefix(last, delegate.CodeDepth+": ") {
		t.Errorf("%q", last)
	}
	for _, h := range find[session.RequestHeader](t, b.saved(t)[s.ID], session.TypeRequestHeader) {
		if h.Reason == session.HeaderChange {
			t.Error("the resumed sub-agent has other tools than the sub-agent had")
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := session.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// said is the content of the last message of a request.
func said(t *testing.T, r fakellm.Request) string {
	var m struct{ Content string }
	if err := json.Unmarshal(r.Messages[len(r.Messages)-1], &m); err != nil {
		t.Error(err)
	}
	return m.Content
}

func delegating(id, description, prompt string) fakellm.Call {
	raw, _ := json.Marshal(map[string]string{"description": description, "prompt": prompt}) // strings
	return fakellm.Call{ID: id, Name: delegate.Name, Arguments: fakellm.Arguments(raw)}
}

// model starts a model server for the box.
func (b *box) model(t *testing.T, next func(r fakellm.Request) fakellm.Step) *fakellm.Server {
	srv := fakellm.Start(t, fakellm.Script{Rewrites: true, Next: func(_ int, r fakellm.Request) fakellm.Step { return next(r) }})
	b.env = append(b.env, "DEEPSEEK_BASE_URL="+srv.URL, "DEEPSEEK_API_KEY=sk-test")
	return srv
}

func TestSubAgentsOfOneMessageWorkAtTheSameTime(t *testing.T) {
	b := newBox(t)
	srv := b.model(t, func(r fakellm.Request) fakellm.Step {
		switch text := said(t, r); {
		case text == "all of it":
			return fakellm.Step{Calls: []fakellm.Call{delegating("d1", "one", "part 1"), delegating("d2", "two", "part 2"), delegating("d3", "three", "part 3")}}
		case strings.HasPrefix(text, "part "):
			return fakellm.Step{Text: "did " + text, Hold: true}
		}
		return fakellm.Step{Text: "put together"}
	})
	together := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		together <- srv.Wait(ctx, 4)
		srv.Release()
	}()
	got := b.call("run", "all of it")
	if err := <-together; err != nil {
		t.Fatal(err)
	}
	if got.code != ExitOK || got.out != "put together\n" {
		t.Fatalf("%+v", got)
	}
	all := b.saved(t)
	if len(all) != 4 {
		t.Fatalf("%d sessions", len(all))
	}
	for i, text := range results(t, root(t, all)) { // in the model's order
		if !strings.HasPrefix(text, fmt.Sprintf("did part %d\n[sub-agent ", i+1)) {
			t.Errorf("%d: %s", i, text)
		}
	}
	// Nothing says any more that somebody owns them.
	for _, s := range all {
		if _, err := logstore.ReadOwner(s.path); err == nil {
			t.Errorf("%s has an owner", s.ID)
		}
	}
}

func TestASubAgentWorksUnderItsParentsSettings(t *testing.T) {
	b := newBox(t)
	b.write(t, filepath.Join(b.cwd, "AGENTS.md"), "Be brief.")
	b.model(t, func(r fakellm.Request) fakellm.Step {
		switch text := said(t, r); {
		case text == "the task":
			return fakellm.Step{Calls: []fakellm.Call{delegating("d1", "write", "write it")}}
		case strings.HasPrefix(text, "SUBAGENT_"):
			return fakellm.Step{Text: "gave up"}
		}
		return fakellm.Step{Text: "I try", Calls: []fakellm.Call{{Name: "write", Arguments: `{"file_path":"x","content":"y"}`}}}
	})
	got := b.call("run", "--permission", "read-only", "--max-steps", "3", "--effort", "low", "--mode", "timed", "--timeout", "7", "--model", "some-model", "the task")
	if got.code != ExitOK || got.out != "gave up\n" {
		t.Fatalf("%+v", got)
	}
	all := b.saved(t)
	parent := root(t, all)
	text := results(t, parent)[0]
	if !strings.HasPrefix(text, "SUBAGENT_MAX_STEPS: the sub-agent reached its limit of 3 steps.") || !strings.Contains(text, "\nI try\n[sub-agent ") {
		t.Errorf("%s", text)
	}
	child := all[find[session.Subagent](t, parent, session.TypeSubagent)[0].ChildSessionID]
	if r := results(t, child)[0]; !strings.HasPrefix(r, "DENIED: ") || !strings.Contains(r, "read-only") {
		t.Errorf("%s", r)
	}
	settings := find[session.Settings](t, child, session.TypeSettings)[0]
	config := find[session.RequestHeader](t, child, session.TypeRequestHeader)[0].Header.Config
	if settings.Permission != "read-only" || settings.Mode != "timed" || settings.Timeout != 7 || config.Model != "some-model" || config.ReasoningEffort != "low" {
		t.Errorf("%+v %+v", settings, config)
	}
	var first []string
	for _, m := range find[session.UserMessage](t, child, session.TypeUserMessage) {
		first = append(first, m.Source.Kind)
	}
	if strings.Join(first, " ") != "agent-instructions user" {
		t.Errorf("%v", first)
	}
}

// Code that a model wrote delegates as well, several at a time.
func TestCodeDelegates(t *testing.T) {
	b := newBox(t)
	b.model(t, func(r fakellm.Request) fakellm.Step {
		switch text := said(t, r); {
		case text == "the task":
			code := `const a = ["part 1", "part 2"].map(p => tools.delegate({description: p, prompt: p})); return await Promise.all(a)`
			return fakellm.Step{Calls: []fakellm.Call{{ID: "k", Name: "run_code", Arguments: fakellm.Arguments(mustJSON(t, map[string]string{"code": code, "description": "both"}))}}}
		case strings.HasPrefix(text, "part "):
			return fakellm.Step{Text: "did " + text}
		}
		return fakellm.Step{Text: "fin"}
	})
	if got := b.call("run", "the task"); got.code != ExitOK || got.out != "fin\n" {
		t.Fatalf("%+v", got)
	}
	all := b.saved(t)
	text := results(t, root(t, all))[0]
	if len(all) != 3 || !strings.Contains(text, "did part 1") || !strings.Contains(text, "did part 2") {
		t.Errorf("%d sessions\n%s", len(all), text)
	}
	if d := find[session.Subagent](t, root(t, all), session.TypeSubagent); len(d) != 2 || d[0].CallID == d[1].CallID || !strings.HasPrefix(d[0].CallID, "k:ptc:") { // they overlap
		t.Errorf("%+v", d)
	}
}

// An approval that a sub-agent of a sub-agent needs stops the clock of the code,
// at whatever depth, in which the one above it was called.
func TestClocksOfAllThatDelegatedRest(t *testing.T) {
	running := map[string]int{"root": 1, "child": 1}
	clocked := func(name string) context.Context {
		return tool.WithRest(t.Context(), func() func() {
			running[name]--
			return func() { running[name]++ }
		})
	}
	top := &owner{}
	child := &owner{delegation: &delegation{parent: top, rest: func() func() { return top.rest(clocked("root")) }}}
	grandchild := &owner{delegation: &delegation{parent: child, rest: func() func() { return child.rest(clocked("child")) }}}
	resume := grandchild.rest(t.Context())
	if running["root"] != 0 || running["child"] != 0 {
		t.Errorf("%v", running)
	}
	if resume(); running["root"] != 1 || running["child"] != 1 {
		t.Errorf("%v", running)
	}
}

func TestAServerTellsOfSubAgents(t *testing.T) {
	b := newBox(t)
	c := b.rpc(t)
	b.initialize(t, c, b.script(t, `responses:
  - tool_calls: [{id: c1, name: delegate, arguments: {description: go down, prompt: deeper}}]
  - text: done
`), "")
	c.prompt("", "go")
	c.untilEvent(session.TypeTurnEnd)
	var told []string
	for _, l := range c.told {
		if l.Method == remote.NoteSubagentStarted || l.Method == remote.NoteSubagentFinished {
			told = append(told, l.Method)
		}
	}
	if strings.Join(told, " ") != "subagent.started subagent.finished" {
		t.Errorf("%v", told)
	}
}
