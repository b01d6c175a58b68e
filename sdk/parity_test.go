package deepseek_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	deepseek "deepseek/sdk"
)

// steered performs the run of testdata/steered.yaml: a steer and a late answer
// join it in the middle.
func steered(t *testing.T, b box) *deepseek.RunResult {
	t.Helper()
	c := b.start(b.options("steered.yaml"))
	ctx := testContext(t)
	told := c.Events(ctx, "")
	go func() {
		for n, err := range told {
			if err != nil || !calls(n, "wait1") {
				continue
			}
			if _, err := c.Steer(ctx, n.SessionID, "also the docs"); err != nil {
				t.Errorf("steer: %v", err)
			}
			if ok, err := c.Answer(ctx, n.SessionID, "ask1", []deepseek.Answer{{ID: "port", Selected: []string{"9090"}}}); !ok || err != nil {
				t.Errorf("answer: %v %v", ok, err)
			}
			b.release()
		}
	}()
	r, err := c.Run(ctx, "port the server")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARunIsWiderThanItsTask(t *testing.T) {
	t.Parallel()
	r := steered(t, newBox(t))
	want := deepseek.Usage{InputTokens: 550, CacheReadTokens: 390, OutputTokens: 27}
	if r.FinalResponse != "All is done." || *r.FinishReason != "completed" || r.Steps != 4 || r.Usage != want {
		t.Errorf("%q, %s, %d steps, usage %+v", r.FinalResponse, *r.FinishReason, r.Steps, r.Usage)
	}
	if len(r.Questions) != 1 || r.Questions[0].CallID != "ask2" || r.Questions[0].State != "continued" || r.Questions[0].Queued {
		t.Errorf("questions: %+v", r.Questions)
	}
	for _, kind := range []string{`"kind":"user"`, "also the docs", "user-question-reply"} {
		if !strings.Contains(text(r, "user/message"), kind) {
			t.Errorf("no message with %s in the interval", kind)
		}
	}
}

// TestResultsAreTheSameInAllLanguages compares what the three packages say of
// the same run, but for ids and times.
func TestResultsAreTheSameInAllLanguages(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(steered(t, newBox(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := normal(t, raw)
	for name, words := range map[string][]string{
		"python":       {"python3", "-B", "python/tests/steered.py", "sync"},
		"python-async": {"python3", "-B", "python/tests/steered.py", "async"},
		"node":         {"node", "typescript/test/steered.js"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			out := b.program(words[0], append(words[1:], b.ws)...)
			if got := normal(t, out); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

func TestPythonPackage(t *testing.T) {
	t.Parallel()
	forEach(t, "python/tests/test_*.py", func(b box, file string) {
		b.program("python3", "-B", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "python/tests", "-p", filepath.Base(file))
	})
}

func TestTypeScriptPackage(t *testing.T) {
	t.Parallel()
	forEach(t, "typescript/test/*.test.js", func(b box, file string) { b.program("node", "--test", file) })
}

// forEach runs the files of tests at the same time.
func forEach(t *testing.T, pattern string, test func(b box, file string)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			test(newBox(t), f)
		})
	}
}

// A strict program of Node 20 compiles with the package's types.
func TestTypeScriptTypes(t *testing.T) {
	t.Parallel()
	newBox(t).program("tsc", "-p", "typescript/test")
}

// program runs a program with this test program as its server, and returns its output.
func (b box) program(name string, args ...string) []byte {
	b.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		b.t.Skipf("%s is not there, so its package is not tested", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	b.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), b.env()...), "DEEPSEEK="+self(b.t))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(path), strings.Join(args, " "), err, out, errs.String())
	}
	return out
}

// normal is a result without what differs from run to run, by the names of the protocol.
func normal(t *testing.T, raw []byte) any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	id, _ := v["sessionId"].(string)
	if id == "" {
		id, _ = v["session_id"].(string)
	}
	out := camel(v).(map[string]any)
	for _, key := range []string{"sessionId", "messageId", "durationMs"} {
		if out[key] == nil || out[key] == "" {
			t.Errorf("%s is %v", key, out[key])
		}
		delete(out, key)
	}
	for _, q := range out["questions"].([]any) {
		q := q.(map[string]any)
		q["answer"] = strings.ReplaceAll(q["answer"].(string), id, "ID")
		for _, one := range q["questions"].([]any) {
			drop(one.(map[string]any))
		}
	}
	var types []any
	for _, e := range v["events"].([]any) {
		types = append(types, e.(map[string]any)["type"])
	}
	out["events"] = types
	drop(out)
	drop(out["usage"].(map[string]any))
	return out
}

// drop takes away what stands for nothing and may be left out.
func drop(m map[string]any) {
	for k, v := range m {
		if k == "finalResponse" || k == "denied" {
			continue
		}
		list, isList := v.([]any)
		if v == nil || v == "" || v == false || v == 0.0 || isList && len(list) == 0 {
			delete(m, k)
		}
	}
}

// camel gives keys the protocol's way of writing.
func camel(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			words := strings.Split(k, "_")
			for i := 1; i < len(words); i++ {
				words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
			}
			out[strings.Join(words, "")] = camel(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = camel(x)
		}
		return out
	}
	return v
}
