package fakellm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"deepseek/internal/fakellm"
)

// post sends a body and returns status and answer.
func post(t *testing.T, s *fakellm.Server, body string) (int, string, error) {
	t.Helper()
	res, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	return res.StatusCode, string(out), err
}

func bodyOf(messages ...string) string {
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `],"stream":true,"stream_options":{"include_usage":true}}`
}

const (
	hi    = `{"role":"user","content":"hi"}`
	calls = `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}]}`
	ans1  = `{"role":"tool","content":"x","tool_call_id":"c1"}`
	ans2  = `{"role":"tool","content":"x","tool_call_id":"c2"}`
)

func TestRules(t *testing.T) {
	call := func(id, name, args string) string {
		return fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, name, args)
	}
	for _, tt := range []struct{ name, body, want string }{
		{"good", bodyOf(hi, calls, ans1, ans2, hi), ""},
		{"no JSON", `{`, "no JSON"},
		{"no model", `{"messages":[]}`, "model is missing"},
		{"not streamed", `{"model":"m","messages":[` + hi + `]}`, "stream"},
		{"no messages", bodyOf(), "messages is empty"},
		{"null content", bodyOf(`{"role":"user","content":null}`), "null or missing"},
		{"unknown role", bodyOf(`{"role":"robot","content":"x"}`), "unknown role"},
		{"late system", bodyOf(hi, `{"role":"system","content":"x"}`), "only the first"},
		{"unanswered call", bodyOf(hi, calls, ans1), `"c2" has no tool message`},
		{"answers out of order", bodyOf(hi, calls, ans2, ans1), `expected the tool message that answers "c1"`},
		{"something between", bodyOf(hi, calls, ans1, hi, ans2), `expected the tool message that answers "c2"`},
		{"orphan", bodyOf(hi, ans1), "no call before it"},
		{"empty result", bodyOf(hi, call("c1", "x", "{}"), `{"role":"tool","content":"","tool_call_id":"c1"}`), "content is empty"},
		{"empty assistant", bodyOf(hi, `{"role":"assistant","content":""}`, hi), "neither content nor tool_calls"},
		{"assistant last", bodyOf(hi, `{"role":"assistant","content":"x"}`), "must not be the assistant's"},
		{"bad arguments", bodyOf(hi, call("c1", "x", `{"a":`), ans1), "arguments that are a JSON object"},
		{"null arguments", bodyOf(hi, call("c1", "x", `null`), ans1), "arguments that are a JSON object"},
		{"no id", bodyOf(hi, call("", "x", "{}"), ans1), "an id of its own"},
		{"bad name", bodyOf(hi, call("c1", "a b", "{}"), ans1), "a name of at most 64 in"},
		{"repeated id", bodyOf(hi, call("c1", "x", "{}"), ans1, call("c1", "x", "{}"), ans1), "an id of its own"},
		{"bad tool", strings.TrimSuffix(bodyOf(hi), "}") + `,"tools":[{"type":"function","function":{"name":"x"}}]}`, "tools[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := fakellm.New(fakellm.Script{Steps: []fakellm.Step{{Text: "ok"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			status, out, err := post(t, s, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" && (status != 200 || len(s.Violations()) != 0) || tt.want != "" && (status != 400 || len(s.Violations()) != 1 || !strings.Contains(s.Violations()[0], tt.want)) {
				t.Errorf("status %d, %s, violations %q", status, out, s.Violations())
			}
		})
	}
}

func TestMessagesMustNotChange(t *testing.T) {
	said := `{"role":"assistant","content":"done"}`
	for _, tt := range []struct {
		name     string
		rewrites bool
		next     string
		want     int
	}{
		{"extended", false, bodyOf(hi, said, hi, said, hi), 200},
		{"the same again, as a retry sends it", false, bodyOf(hi, said, hi), 200},
		{"another conversation", false, bodyOf(hi), 200},
		{"changed", false, bodyOf(`{"role":"user","content":"ho"}`, said, hi), 400},
		{"cut", false, bodyOf(said, hi), 400},
		{"changed, as compaction may", true, bodyOf(`{"role":"user","content":"summary"}`, said, hi), 200},
	} {
		s, err := fakellm.New(fakellm.Script{Steps: []fakellm.Step{{}}, RepeatLast: true, Rewrites: tt.rewrites})
		if err != nil {
			t.Fatal(err)
		}
		if status, out, err := post(t, s, bodyOf(hi, said, hi)); status != 200 || err != nil {
			t.Fatal(status, out, err)
		}
		if status, out, err := post(t, s, tt.next); status != tt.want || err != nil {
			t.Errorf("%s: %d %s %v", tt.name, status, out, err)
		}
		s.Close()
	}
}

func TestReasoningMustComeBack(t *testing.T) {
	s, err := fakellm.New(fakellm.Script{Steps: []fakellm.Step{{Reasoning: "hm", Text: "yes"}, {Text: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct {
		body string
		want int
	}{
		{bodyOf(hi), 200},
		{bodyOf(hi, `{"role":"assistant","content":"yes"}`, hi), 400},
		{bodyOf(hi, `{"role":"assistant","content":"yes","reasoning_content":"hm"}`, hi), 200},
		{bodyOf(hi, `{"role":"assistant","content":"yes","reasoning_content":"hm"}`, hi, hi), 400}, // the script's end
	} {
		if status, out, err := post(t, s, tt.body); status != tt.want || err != nil {
			t.Errorf("%s: %d %s %v", tt.body, status, out, err)
		}
	}
}

func TestHoldIsReleased(t *testing.T) {
	s := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "a", Hold: true}, {Text: "b", Hold: true, HoldAt: 20}}})
	for n := 1; n <= 2; n++ {
		done := make(chan string, 1)
		go func() {
			_, out, err := post(t, s, bodyOf(hi))
			done <- fmt.Sprint(out, err)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := s.Wait(ctx, n); err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case out := <-done:
			t.Fatalf("not held: %s", out)
		default:
		}
		s.Release()
		if out := <-done; !strings.Contains(out, "[DONE]") {
			t.Errorf("got %s", out)
		}
	}
}

func TestCloseEndsWhatHolds(t *testing.T) {
	s, err := fakellm.New(fakellm.Script{Steps: []fakellm.Step{{Hold: true}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := post(t, s, bodyOf(hi))
		done <- err
	}()
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := <-done; err == nil {
		t.Error("the held request ended well")
	}
}

func TestCuts(t *testing.T) {
	for cut, bad := range map[fakellm.Cut]bool{fakellm.CutEnd: false, fakellm.CutClose: true, fakellm.CutReset: true} {
		s := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Raw: []string{"0123", "4567"}, Cut: cut, CutAt: 6}}})
		_, out, err := post(t, s, bodyOf(hi))
		if (err != nil) != bad || cut != fakellm.CutReset && out != "012345" {
			t.Errorf("%s: %q, %v", cut, out, err)
		}
	}
}

func TestLoadScript(t *testing.T) {
	dir := t.TempDir()
	load := func(content string) (fakellm.Script, error) {
		path := filepath.Join(dir, "s.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return fakellm.LoadScript(path)
	}
	s, err := load(`
rewrites: true
steps:
  - calls: [{id: c1, name: read, arguments: {b: 1, a: x}}, {name: bash, arguments: '{"broken'}]
    delay: 10ms
    usage: {prompt: 10, cached: 4}
  - {status: 429, headers: {Retry-After: "1"}, body: slow}
  - {text: x, cut: reset, cut_at: 9}
`)
	if err != nil {
		t.Fatal(err)
	}
	if a := s.Steps[0]; !s.Rewrites || a.Calls[0].Arguments != `{"a":"x","b":1}` || a.Calls[1].Arguments != `{"broken` || a.Delay != 10*time.Millisecond || a.Usage.Cached != 4 || s.Steps[1].Headers["Retry-After"] != "1" || s.Steps[2].Cut != fakellm.CutReset {
		t.Errorf("got %+v", s)
	}
	for _, bad := range []string{"stesp: []", "steps: [{cut: never}]", "steps: [{calls: [{arguments: [1]}]}]"} {
		if _, err := load(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if _, err := fakellm.LoadScript(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestCommands runs testdata/*.txtar, where post-hi stands for the program.
func TestCommands(t *testing.T) {
	commands := fakellm.Commands()
	commands["post-hi"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		res, err := http.Post(ts.Getenv("DEEPSEEK_BASE_URL")+"/chat/completions", "application/json", strings.NewReader(bodyOf(hi)))
		ts.Check(err)
		defer func() { _ = res.Body.Close() }()
		out, err := io.ReadAll(res.Body)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs("answer"), out, 0o600))
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", Cmds: commands})
}
