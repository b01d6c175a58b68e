package script

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, content string) *Script {
	t.Helper()
	s, err := Load(write(t, "s.yaml", content))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const example = `responses:
  - reasoning: I should look first.
    tool_calls:
      - {id: c1, name: read, arguments: {file_path: a.txt, offset: 3, deep: {z: [1, 2.5, true, null, "x<"], a: 2024-01-01}}}
      - {name: bash, arguments: '{"broken'}
      - {name: job_list}
    usage: {input: 100, cached: 64, output: 20}
  - text: All done, and this is a longer text with é and 你.
    delay_ms: 200
  - error: {code: RATE_LIMIT, message: slow down}
  - text: cut
    finish: length
    tool_calls: [{name: read}]
  - {text: filtered, finish: content_filter}
  - {}
`

func TestScriptPlaysTheEntryOfTheNextCommit(t *testing.T) {
	s := load(t, example)
	for _, tt := range []struct {
		committed int
		want      model.Response
		code      string
	}{
		{0, model.Response{
			Reasoning: "I should look first.", Finish: model.FinishToolCalls,
			Calls: []session.Call{
				{ID: "c1", Name: "read", Arguments: `{"file_path":"a.txt","offset":3,"deep":{"z":[1,2.5,true,null,"x<"],"a":"2024-01-01"}}`},
				{Name: "bash", Arguments: `{"broken`},
				{Name: "job_list", Arguments: `{}`},
			},
			Usage: &session.Usage{InputTokens: 100, CacheReadTokens: 64, OutputTokens: 20},
		}, ""},
		{1, model.Response{Text: "All done, and this is a longer text with é and 你.", Finish: model.FinishStop}, ""},
		{2, model.Response{}, "RATE_LIMIT"},
		{3, model.Response{Text: "cut", Finish: model.FinishLength}, ""},
		{4, model.Response{}, "content_filter"},
		{5, model.Response{}, model.CodeEmptyResponse},
		{6, model.Response{}, model.CodeScriptExhausted},
	} {
		synctest.Test(t, func(t *testing.T) {
			for range 2 { // a retry gets the same
				var streamed model.Response
				got, err := s.Generate(t.Context(), model.Request{Committed: tt.committed}, func(d model.Delta) {
					if d.Kind == session.BlockText {
						streamed.Text += d.Text
					} else {
						streamed.Reasoning += d.Text
					}
				})
				var e *model.Error
				if tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code) || tt.code == "" && err != nil {
					t.Errorf("entry %d: %v", tt.committed, err)
				}
				if !reflect.DeepEqual(got, tt.want) || err == nil && (streamed.Text != got.Text || streamed.Reasoning != got.Reasoning) {
					t.Errorf("entry %d: got %+v, streamed %+v, want %+v", tt.committed, got, streamed, tt.want)
				}
			}
		})
	}
}

func TestScriptDelayEndsWithTheContext(t *testing.T) {
	s := load(t, "responses: [{text: a, delay_ms: 60000}]")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := s.Generate(ctx, model.Request{}, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestScriptCancelReturnsWhatWasSent(t *testing.T) {
	s := load(t, "responses: [{text: 0123456789abcdefghijkl, tool_calls: [{name: x}]}]")
	ctx, cancel := context.WithCancel(t.Context())
	got, err := s.Generate(ctx, model.Request{}, func(model.Delta) { cancel() })
	if !errors.Is(err, context.Canceled) || got.Text != "0123456789abcdef" || got.Calls != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLoadJSON(t *testing.T) {
	path := write(t, "s.json", "{\n\t\"responses\": [\n\t\t{\"text\": \"\\ud83d\\ude00 \\/\", \"tool_calls\": [{\"name\": \"x\", \"arguments\": {\"b\": 1e400, \"a\": 12345678901234567890, \"n\": null}}]},\n\t\t{\"delay_ms\": 5, \"text\": \"t\"}\n\t]\n}\n")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Generate(t.Context(), model.Request{}, nil)
	if err != nil || got.Text != "😀 /" || got.Calls[0].Arguments != `{"b":1e400,"a":12345678901234567890,"n":null}` {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLoadErrorsNameFileLineAndKey(t *testing.T) {
	for _, tt := range []struct {
		name, content, want string
	}{
		{"s.yaml", "responses:\n  - txt: a\n", `s.yaml:2: a response has no key "txt"; did you mean "text"?`},
		{"s.yaml", "responses:\n  - text: a\n    usage:\n      inptu: 1\n", `s.yaml:4: usage has no key "inptu"; did you mean "input"?`},
		{"s.yaml", "reponses: []\n", `s.yaml:1: the script has no key "reponses"; did you mean "responses"?`},
		{"s.yaml", "responses:\n  - xylophone: a\n", `it knows delay_ms, error, finish, reasoning, text, tool_calls, usage`},
		{"s.yaml", "responses:\n  - text: 5\n", `s.yaml:2: text must be a string`},
		{"s.yaml", "responses:\n  - text: a\n    text: b\n", `s.yaml:3: a response has the key "text" twice`},
		{"s.yaml", "responses:\n  - text: a\n    delay_ms: -1\n", `s.yaml:3: delay_ms must be a whole number from 0`},
		{"s.yaml", "responses:\n  - text: a\n    delay_ms: 1.5\n", `s.yaml:3: delay_ms`},
		{"s.yaml", "responses: {}\n", `s.yaml:1: responses must be a list`},
		{"s.yaml", "responses:\n  - hello\n", `s.yaml:2: a response must be a mapping`},
		{"s.yaml", "responses:\n  - tool_calls:\n    - arguments: {}\n", `s.yaml:3: a tool call needs a name`},
		{"s.yaml", "responses:\n  - tool_calls:\n    - {name: x, arguments: [1]}\n", `s.yaml:3: arguments must be a mapping`},
		{"s.yaml", "responses:\n  - error: {message: x}\n", `s.yaml:2: an error needs a code`},
		{"s.yaml", "responses:\n  - text: \"a\n", `not readable as YAML or JSON`},
		{"s.yaml", "", `responses is missing`},
		{"s.json", "{\"responses\": [\n{\"text\": \"a\"},\n{\"txt\": 1}]}", `s.json:3: a response has no key "txt"`},
		{"s.yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n", `no key "a"`},
		{"s.yaml", "responses:\n - tool_calls:\n   - name: x\n     arguments: &a {b: *a}\n", `nested more than`},
		{"s.yaml", "responses:\n - tool_calls:\n   - name: x\n     arguments: {a: &a [xxxxxxxxxx,x,x,x], b: &b [*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c], e: &e [*d,*d,*d,*d,*d,*d,*d,*d], f: &f [*e,*e,*e,*e,*e,*e,*e,*e], g: &g [*f,*f,*f,*f,*f,*f,*f,*f], h: [*g,*g,*g,*g,*g,*g,*g,*g]}\n", `more than 100000 values`},
	} {
		_, err := Load(write(t, tt.name, tt.content))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), "\n") > 2 {
			t.Errorf("%q: got %v, want %s", tt.content, err, tt.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(example)
	f.Add(`{"responses":[{"text":"a"}]}`)
	f.Add("responses: &a [*a]")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(dir, "s.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(path)
		if (s == nil) == (err == nil) {
			t.Errorf("%v, %v", s, err)
		}
	})
}
