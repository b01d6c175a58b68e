package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"deepseek/internal/permission"
)

// ciModel works with commands and a question.
const ciModel = `responses:
  - tool_calls: [{name: bash, arguments: {command: 'echo changed >>CHANGELOG.md'}}]
  - tool_calls: [{id: call_q, name: ask_user_question, arguments: {questions: [{id: port, question: "Which port?\n::error::no", options: [{label: '8080'}, {label: '9090'}]}]}}]
  - text: the rest is done
  - tool_calls: [{name: bash, arguments: {command: 'echo answered >>CHANGELOG.md'}}]
  - text: all is done
`

// ciStep is a step of a job of GitHub Actions.
type ciStep struct {
	Name, Uses, Run string
	Env, With       map[string]string
}

// ciBlocks are the blocks of YAML of docs/ci.md, in their order, and ciShell those of a shell.
func ciBlocks(t *testing.T, language string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(raw), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// ciWorld is a world with a checkout and with what installs deepseek, which is
// there already.
func ciWorld(t *testing.T) *world {
	w := newWorld(t)
	w.file(t, "llm.yaml", ciModel, 0o600)
	for _, name := range []string{"git", "go"} {
		w.file(t, "bin/"+name, "#!/bin/sh\necho \"$0 $*\" >>"+w.dir+"/installed\nif test \"$1\" = clone; then mkdir -p \"$5\"; fi\n", 0o700)
	}
	return w
}

// bash runs the lines of a step as a runner does.
func (w *world) bash(t *testing.T, lines string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", strings.ReplaceAll(lines, "--timeout 120", "--timeout 1"))
	cmd.Dir = w.ws
	cmd.Env = append([]string{
		"HOME=" + w.home, "PATH=" + filepath.Join(w.dir, "bin") + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(),
		"DEEPSEEK_MODEL=script:" + filepath.Join(w.dir, "llm.yaml"), "AGENT_SOURCE=https://example.com/deepseek.git",
	}, env...)
	if ok, _ := permission.Supported(); !ok {
		cmd.Env = append(cmd.Env, "DEEPSEEK_PERMISSION=full-access")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	return string(out)
}

// result is the RunResult that a job has left.
func (w *world) result(t *testing.T) (r struct {
	FinalResponse string
	Denied        int
	Questions     []any
},
) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.ws, "result.json"))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return r
}

// TestTheJobsOfGitHubActions performs the steps of docs/ci.md as they stand, each
// job on a machine of its own where the checkout has the same path.
func TestTheJobsOfGitHubActions(t *testing.T) {
	t.Parallel()
	w := ciWorld(t)
	blocks := ciBlocks(t, "yaml")
	var workflow struct {
		Jobs map[string]struct{ Steps []ciStep }
	}
	if err := yaml.Unmarshal([]byte(blocks[0]+blocks[1]), &workflow); err != nil {
		t.Fatal(err)
	}
	artifacts := filepath.Join(w.dir, "artifacts")
	for _, job := range []string{"agent", "follow-up"} {
		temp := filepath.Join(w.dir, "temp-"+job)
		expressions := strings.NewReplacer(
			"${{ runner.temp }}", temp, "${{ secrets.DEEPSEEK_API_KEY }}", "sk-0123456789abcdef",
			"${{ inputs.choice }}", "port=9090", "${{ inputs.run }}", "1", "${{ github.token }}", "t", "${{ vars.AGENT_SOURCE }}", "https://example.com/deepseek.git",
		)
		if err := os.MkdirAll(temp, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, s := range workflow.Jobs[job].Steps {
			env := []string{"GITHUB_ACTIONS=true", "RUNNER_TEMP=" + temp}
			for name, value := range s.Env {
				env = append(env, name+"="+expressions.Replace(value))
			}
			if all := strings.Join(env, ""); strings.Contains(all, "${{") {
				t.Fatalf("%s: %s is not known here", s.Name, all)
			}
			action, _, _ := strings.Cut(s.Uses, "@")
			var err error
			switch action {
			case "":
				out := w.bash(t, s.Run, env...)
				if strings.Contains(out, "\n::error") || job == "agent" && s.Name == "run" && strings.Count(out, "::notice ") != 1 {
					t.Errorf("%s", out)
				}
			case "actions/checkout", "actions/setup-go":
			case "actions/upload-artifact":
				err = os.CopyFS(filepath.Join(artifacts, s.With["name"]), os.DirFS(expressions.Replace(s.With["path"])))
			case "actions/download-artifact":
				err = os.CopyFS(expressions.Replace(s.With["path"]), os.DirFS(filepath.Join(artifacts, s.With["name"])))
			default:
				t.Fatalf("%s is not known here", action)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		want, waiting := "the rest is done", 1
		if job == "follow-up" {
			want, waiting = "all is done", 0
		}
		if r := w.result(t); r.FinalResponse != want || r.Denied != 0 || len(r.Questions) != waiting {
			t.Errorf("%s: %+v", job, r)
		}
	}
	w.changed(t, "changed\nanswered\n")
	if raw, err := os.ReadFile(filepath.Join(w.dir, "installed")); err != nil || strings.Count(string(raw), "go install ./cmd/deepseek\n") != 2 {
		t.Errorf("%v %s", err, raw)
	}
}

func (w *world) changed(t *testing.T, want string) {
	t.Helper()
	if raw, err := os.ReadFile(filepath.Join(w.ws, "CHANGELOG.md")); err != nil || string(raw) != want {
		t.Errorf("%v %q, want %q", err, raw, want)
	}
}

// TestTheJobOfGitLab performs the script of docs/ci.md, in which no command may be denied.
func TestTheJobOfGitLab(t *testing.T) {
	t.Parallel()
	w := ciWorld(t)
	var pipeline struct {
		Agent struct {
			Script      []string
			AfterScript []string `yaml:"after_script"`
			Variables   map[string]string
			Artifacts   struct{ Paths []string }
		}
	}
	if err := yaml.Unmarshal([]byte(ciBlocks(t, "yaml")[2]), &pipeline); err != nil {
		t.Fatal(err)
	}
	env := []string{"CI_PROJECT_DIR=" + w.ws}
	for name, value := range pipeline.Agent.Variables {
		env = append(env, name+"="+strings.ReplaceAll(value, "$CI_PROJECT_DIR", w.ws))
	}
	for _, lines := range [][]string{pipeline.Agent.Script, pipeline.Agent.AfterScript} {
		w.bash(t, strings.ReplaceAll(strings.Join(lines, "\n"), "/tmp/", w.dir+"/"), env...)
	}
	if r := w.result(t); r.FinalResponse != "the rest is done" || r.Denied != 0 {
		t.Errorf("%+v", r)
	}
	w.changed(t, "changed\n")
	for _, path := range pipeline.Agent.Artifacts.Paths {
		if _, err := os.Stat(filepath.Join(w.ws, path)); err != nil {
			t.Error(err)
		}
	}
	if logs, _ := filepath.Glob(filepath.Join(w.ws, "deepseek-sessions", "*", "*.jsonl")); len(logs) != 1 {
		t.Errorf("the sessions that are kept: %q", logs)
	}
}

// TestStoppedCommandsAreTurnedOnAgain runs the lines that print a model's text on a runner.
func TestStoppedCommandsAreTurnedOnAgain(t *testing.T) {
	t.Parallel()
	w := ciWorld(t)
	w.file(t, "llm.yaml", "responses: [{text: \"::error::from a model\"}]\n", 0o600)
	for _, lines := range ciBlocks(t, "sh") {
		if !strings.Contains(lines, "stop-commands") {
			continue
		}
		out := w.bash(t, lines+"\n", "GITHUB_ACTIONS=true")
		m := regexp.MustCompile(`(?s)^::stop-commands::([0-9a-f]{32})\n(.*)\n::([0-9a-f]{32})::\n$`).FindStringSubmatch(out)
		if m == nil || m[1] != m[3] || !strings.Contains(m[2], "\n::error::from a model") {
			t.Errorf("%q", out)
		}
		return
	}
	t.Error("there are no such lines")
}
