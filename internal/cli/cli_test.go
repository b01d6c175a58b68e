package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deepseek/internal/config"
	"deepseek/internal/model"
	"deepseek/internal/session"
)

// call is one invocation of Main in a home of its own.
type call struct {
	code     int
	out, err string
}

type box struct {
	home, cwd string
	env       []string
}

func newBox(t *testing.T) box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := box{home: filepath.Join(dir, "home", ".deepseek"), cwd: filepath.Join(dir, "ws")}
	if err := os.MkdirAll(b.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	b.env = []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}
	return b
}

func (b box) call(args ...string) call {
	var out, errs bytes.Buffer
	argv := append([]string{"deepseek", "--cwd", b.cwd}, args...)
	code := Main(argv, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, b.env)
	return call{code, out.String(), errs.String()}
}

func (b box) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUsageErrors(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"verzion"}, "did you mean `deepseek version`?"},
		{[]string{"modles"}, "did you mean `deepseek models`?"},
		{[]string{"zzzzzz"}, "see deepseek --help"},
		{[]string{"fix the tests"}, "deepseek run TASK"},
		{[]string{"version", "x"}, `does not take "x"`},
		{[]string{"models", "--jsn"}, "did you mean --json?"},
		{[]string{"config", "-mode"}, "did you mean --mode?"},
		{[]string{"config", "-x"}, "unknown flag -x"},
		{[]string{"models", "--hom", "x"}, "did you mean --home?"},
		{[]string{"models", "--model"}, "--model needs a value"},
		{[]string{"config", "--mode", "tmied"}, "did you mean timed?"},
		{[]string{"config", "--timeout", "5"}, "--timeout: has no place in legacy mode"},
		{[]string{"config", "--mode", "timed", "--timeout", "1.5"}, "--timeout:"},
		{[]string{"config", "--mode", "timed", "--timeout", "99999999999"}, "--timeout:"},
		{[]string{"config", "gte", "model"}, "did you mean `deepseek config get`?"},
		{[]string{"config", "get", "mdoel"}, "did you mean model?"},
		{[]string{"config", "set", "mode"}, "needs VALUE"},
		{[]string{"config", "set", "max_steps", "none"}, "is no whole number"},
		{[]string{"completion"}, "one of bash"},
		{[]string{"completion", "fihs"}, "did you mean fish?"},
		{[]string{"help", "modles"}, "did you mean `deepseek models`?"},
		{[]string{"help", "config", "gte"}, "did you mean `deepseek config get`?"},
		{[]string{"--config", "/dev/null/none.yaml", "config"}, "/dev/null/none.yaml: the configuration cannot be read: not a directory"},
		{[]string{"--cwd", "/dev/null/none", "config"}, "/dev/null/none"},
		{[]string{"models", "--online", "--base-url", "nowhere"}, "--base-url: is no address"},
	} {
		got := b.call(c.args...)
		if got.code != ExitUsage || got.out != "" || !strings.Contains(got.err, c.want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q; want %q", c.args, got.code, got.out, got.err, c.want)
		}
		if !strings.HasPrefix(got.err, "deepseek: ") || strings.Count(got.err, "\n") > 3 || !strings.HasSuffix(got.err, "\n") {
			t.Errorf("%v: %q", c.args, got.err)
		}
	}
	if _, err := os.Stat(b.home); err == nil {
		t.Error("a usage error wrote into the home")
	}
}

func TestMissingHomeIsNamed(t *testing.T) {
	b := newBox(t)
	b.env = nil
	if got := b.call("config"); got.code != ExitUsage || !strings.Contains(got.err, "--home DIR") {
		t.Errorf("%+v", got)
	}
	if got := b.call("--home", t.TempDir(), "config"); got.code != ExitOK {
		t.Errorf("%+v", got)
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		err  error
		exit int
		code string
		text string
	}{
		{nil, ExitOK, "", ""},
		{usagef("what\nhint"), ExitUsage, "", "what"},
		{fmt.Errorf("wrapped: %w", &Coded{Exit: ExitPending, Code: "PENDING", Message: "m"}), ExitPending, "PENDING", "m"},
		{&config.Error{Key: "mode", Reason: "bad"}, ExitUsage, "", "mode: bad"},
		{config.ErrNoKey, ExitUsage, "", "DEEPSEEK_API_KEY"},
		{fmt.Errorf("x: %w", session.ErrTooNew), ExitDamaged, CodeSessionTooNew, "newer"},
		{fmt.Errorf("x: %w", session.ErrDamaged), ExitDamaged, CodeSessionDamaged, "damaged"},
		{Signal{syscall.SIGINT}, 130, CodeAborted, "SIGINT"},
		{Signal{syscall.SIGTERM}, 143, CodeAborted, "SIGTERM"},
		{Signal{syscall.SIGHUP}, 129, CodeAborted, "SIGHUP"},
		{&model.Error{Code: "AUTH", Message: "no", Status: 401}, ExitFailed, "AUTH", "no (HTTP 401)"},
		{context.Canceled, ExitFailed, CodeAborted, "cancelled"},
		{errors.New("disk on fire"), ExitFailed, CodeFailed, "disk on fire"},
	} {
		got := failure(c.err)
		if got.Exit != c.exit || got.Code != c.code || !strings.Contains(got.Message+"\n"+got.Hint, c.text) {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}

func TestReportAsJSON(t *testing.T) {
	for _, c := range []struct {
		name string
		json bool
		fail Coded
		out  string
		err  string
	}{
		{"text", false, Coded{Exit: 1, Code: "X", Message: "m", Hint: "h"}, "", "deepseek: X: m\nh\n"},
		{"json", true, Coded{Exit: 1, Code: "X", Message: "m <&>", Hint: "h"}, `{"error":{"code":"X","message":"m <&>"}}` + "\n", "deepseek: X: m <&>\nh\n"},
		{"state", true, Coded{Exit: 5, Code: "X", Message: "m", Hint: "h", State: "settled"}, `{"error":{"code":"X","message":"m"},"state":"settled"}` + "\n", "deepseek: X: m\nh\n"},
		{"usage leaves stdout empty", true, Coded{Exit: 2, Message: "m", Hint: "h"}, "", "deepseek: m\nh\n"},
		{"object is out already", true, Coded{Exit: 1, Code: "X", Message: "m", Hint: "h", Printed: true}, "", "deepseek: X: m\nh\n"},
		{"without a hint", false, Coded{Exit: 1, Code: "X", Message: "m"}, "", "deepseek: X: m\n" + advice[CodeFailed] + "\n"},
		{"words are out already", true, Coded{Exit: 3}, "", ""},
		{"three lines at most", false, Coded{Exit: 1, Code: "X", Message: "a\nb", Hint: "c\nd"}, "", "deepseek: X: a\nb\nc\n"},
	} {
		var out, errs bytes.Buffer
		a := newApp(Streams{Out: &out, Err: &errs}, nil)
		a.json = c.json
		if got := a.finish(&c.fail); got != c.fail.Exit || out.String() != c.out || errs.String() != c.err {
			t.Errorf("%s: exit %d\n%q\n%q", c.name, got, out.String(), errs.String())
		}
	}
}

// failing fails each write.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestStdoutThatFails(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		says string
	}{
		{"a reader that left is no failure", syscall.EPIPE, ExitOK, ""},
		{"a full disk is one", syscall.ENOSPC, ExitFailed, "deepseek: OUTPUT_WRITE: cannot write the output: no space left on device\n" + advice[CodeOutputWrite] + "\n"},
	} {
		var errs bytes.Buffer
		code := Main([]string{"deepseek", "version"}, Streams{Out: failing{c.err}, Err: &errs}, nil)
		if code != c.code || errs.String() != c.says {
			t.Errorf("%s: exit %d, %q", c.name, code, errs.String())
		}
	}
	if code := Main([]string{"deepseek", "version"}, Streams{Out: &bytes.Buffer{}, Err: failing{syscall.EPIPE}}, nil); code != ExitOK {
		t.Errorf("a closed stderr: exit %d", code)
	}
}

func TestPanicBecomesWords(t *testing.T) {
	var errs bytes.Buffer
	code := Main([]string{"deepseek", "version"}, Streams{Out: panicking{}, Err: &errs}, nil)
	if code != ExitFailed || !strings.HasPrefix(errs.String(), "deepseek: INTERNAL: unexpected failure: boom (") || strings.Count(errs.String(), "\n") != 2 {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("boom") }

func TestConfigCommand(t *testing.T) {
	b := newBox(t)
	user := filepath.Join(b.home, "config.yaml")
	b.write(t, user, "mode: timed\n# mine\nmax_steps: 5\nkey_command: echo SECRET\n")
	b.write(t, filepath.Join(b.cwd, ".deepseek/config.yaml"), "effort: low\npermission: full-access\n\"\\e[31m\": x\n")
	b.env = append(b.env, "DEEPSEEK_MAX_TIMEOUT=300", "DEEPSEEK_API_KEY=SECRET")
	got := b.call("config", "--timeout", "60")
	for _, want := range []string{
		"mode = timed  (" + user + ":1)\n", "max_steps = 5  (" + user + ":3)\n", "max_timeout = 300  (env DEEPSEEK_MAX_TIMEOUT)\n",
		"timeout = 60  (flag)\n", "approve = ask  (default)\n", "effort = low  (" + b.cwd + "/.deepseek/config.yaml:1)\n", "key_command = (hidden)  (",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in\n%s", want, got.out)
		}
	}
	if got.code != ExitOK || strings.Contains(got.out+got.err, "SECRET") {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.err, "deepseek: warning: "+b.cwd+"/.deepseek/config.yaml:2: permission: is ignored") || strings.Contains(got.err, "\x1b") {
		t.Errorf("stderr %q", got.err)
	}
	var all map[string]struct {
		Value  any
		Source string
	}
	got = b.call("config", "--json")
	if err := json.Unmarshal([]byte(got.out), &all); err != nil || all["max_steps"].Value != 5.0 || all["effort"].Source != b.cwd+"/.deepseek/config.yaml:1" || all["temperature"].Value != nil || len(all) != len(config.Settings()) {
		t.Errorf("%v\n%s", err, got.out)
	}
	for _, step := range []struct{ args, out string }{
		{"config get max_steps", "5\n"},
		{"config path", user + "\n"},
		{"config set max_steps 7", ""},
		{"config get max_steps", "7\n"},
		{"config unset max_steps", ""},
		{"config get max_steps", "200\n"},
	} {
		if got := b.call(strings.Fields(step.args)...); got.code != ExitOK || got.out != step.out {
			t.Errorf("%s: %+v", step.args, got)
		}
	}
	b.env = append(b.env, "DEEPSEEK_TOOL=1")
	if got := b.call("config", "set", "permission", "full-access"); got.code != ExitUsage || !strings.Contains(got.err, "CALLER_IS_TOOL") {
		t.Errorf("a tool may change the configuration: %+v", got)
	}
}

func TestModels(t *testing.T) {
	b := newBox(t)
	got := b.call("models", "--model", "own/model")
	if got.code != ExitOK || !strings.Contains(got.out, "*  own/model") || !strings.Contains(got.out, model.PricesOf) || strings.Contains(got.out, "\x1b") {
		t.Errorf("%+v", got)
	}
	for l := range strings.Lines(got.out) {
		if strings.HasSuffix(l, " \n") {
			t.Errorf("trailing space in %q", l)
		}
	}
	var rows []modelRow
	got = b.call("models", "--json")
	if err := json.Unmarshal([]byte(got.out), &rows); err != nil || !rows[0].InUse || rows[0].Name != model.Default || rows[0].Window == 0 || rows[0].Price == nil {
		t.Errorf("%v\n%s", err, got.out)
	}
}

func TestModelsOnline(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   int
		want   string
	}{
		{"list", 200, `{"data":[{"id":"deepseek-v4-pro"},{"id":"brand-new"},{"id":"brand-new"}]}`, ExitOK, "brand-new"},
		{"refused", 401, `{}`, ExitFailed, "deepseek: AUTH: cannot list the models of 127.0.0.1"},
		{"down", 500, ``, ExitFailed, "deepseek: SERVER: "},
		{"no list", 200, `<html>`, ExitFailed, "deepseek: MALFORMED_RESPONSE: "},
		{"redirect is not followed", 302, ``, ExitFailed, "HTTP 302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var auth, path string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				auth, path = r.Header.Get("Authorization"), r.URL.Path
				w.Header().Set("Location", "http://elsewhere.invalid/")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer srv.Close()
			b := newBox(t)
			b.env = append(b.env, "DEEPSEEK_API_KEY=sk-SECRET", "DEEPSEEK_BASE_URL="+srv.URL+"/v1/")
			got := b.call("models", "--online")
			if got.code != c.code || !strings.Contains(got.out+got.err, c.want) || strings.Contains(got.out+got.err, "SECRET") {
				t.Errorf("%+v", got)
			}
			if auth != "Bearer sk-SECRET" || path != "/v1/models" {
				t.Errorf("asked %s with %s", path, auth)
			}
			if c.code == ExitOK && strings.Count(got.out, "brand-new") != 1 {
				t.Errorf("%s", got.out)
			}
		})
	}
	b := newBox(t)
	if got := b.call("models", "--online"); got.code != ExitUsage || !strings.Contains(got.err, "DEEPSEEK_API_KEY") || !strings.Contains(got.err, "--model demo") {
		t.Errorf("without a key: %+v", got)
	}
	b.env = append(b.env, "DEEPSEEK_API_KEY=k", "DEEPSEEK_BASE_URL=http://127.0.0.1:1")
	if got := b.call("models", "--online"); got.code != ExitFailed || !strings.Contains(got.err, "TRANSPORT: cannot list the models of 127.0.0.1:1: connection refused") {
		t.Errorf("nobody there: %+v", got)
	}
}

func TestFlagReaders(t *testing.T) {
	a := newApp(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, nil)
	var seen modelsOptions
	cmd := newModels(a, func(_ context.Context, _ *App, o modelsOptions) error { seen = o; return nil })
	cmd.SetArgs([]string{"--json", "--model", "x"})
	if err := cmd.Execute(); err != nil || !seen.json || seen.online || seen.settings["model"] != "x" || len(seen.settings) != 1 {
		t.Errorf("%v %+v", err, seen)
	}
	var conf configOptions
	cmd = newConfigList(a, func(_ context.Context, _ *App, o configOptions) error { conf = o; return nil })
	cmd.SetArgs([]string{"-q", "--max-steps=3", "--no-such-thing"})
	if err := cmd.Execute(); err == nil {
		t.Error("an unknown flag passes")
	}
	cmd.SetArgs([]string{"-q", "--max-steps=3"})
	if err := cmd.Execute(); err != nil || conf.settings["quiet"] != "true" || conf.settings["max_steps"] != "3" {
		t.Errorf("%v %+v", err, conf)
	}
	var set configOptions
	cmd = newConfigSet(a, func(_ context.Context, _ *App, o configOptions) error { set = o; return nil })
	cmd.SetArgs([]string{"mode", "timed"})
	if err := cmd.Execute(); err != nil || set.key != "mode" || set.value != "timed" {
		t.Errorf("%v %+v", err, set)
	}
}

// each calls fn for every command that people see.
func each(t *testing.T, fn func(cmd *cobra.Command)) {
	t.Helper()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		fn(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(newApp(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, nil), commands()))
}

// An invocation builds only the command it names, and finds it by this name.
func TestCommandsAreRegisteredUnderTheirOwnNames(t *testing.T) {
	a := newApp(Streams{}, nil)
	for _, c := range commands() {
		if got := c.build(a).Name(); got != c.name {
			t.Errorf("%q is registered as %q", got, c.name)
		}
		if got := needed([]string{c.name, "--help"}); len(got) != 1 || got[0].name != c.name {
			t.Errorf("%s needs %d commands", c.name, len(got))
		}
	}
	for _, args := range [][]string{nil, {"help", "run"}, {"--cwd", "run", "version"}, {"rnu"}, {"__complete", "run", ""}} {
		if len(needed(args)) != len(commands()) {
			t.Errorf("%q: not every command is at hand", args)
		}
	}
}

func TestEveryCommandHasTwoExamplesAndHelp(t *testing.T) {
	b := newBox(t)
	each(t, func(cmd *cobra.Command) {
		n := 0
		for l := range strings.Lines(cmd.Example) {
			if strings.Contains(l, "deepseek ") {
				n++
			}
		}
		if n < 2 || cmd.Short == "" {
			t.Errorf("%s: %d examples, short %q", cmd.CommandPath(), n, cmd.Short)
		}
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if got := b.call(args...); got.code != ExitOK || !strings.Contains(got.out, "Examples:") || got.err != "" {
			t.Errorf("%v: %+v", args, got)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", cmd.CommandPath(), f.Name)
			}
		})
	})
}

func TestCompletion(t *testing.T) {
	b := newBox(t)
	for _, shell := range shells() {
		if got := b.call("completion", shell); got.code != ExitOK || len(got.out) < 1000 {
			t.Errorf("%s: %d bytes, %s", shell, len(got.out), got.err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"__complete", "mod"}, "models"},
		{[]string{"__complete", "config", "--mode", ""}, "timed"},
		{[]string{"__complete", "config", "get", ""}, "max_steps"},
		{[]string{"__complete", "config", "set", "effort", ""}, "high"},
	} {
		if got := b.call(c.args...); got.code != ExitOK || !strings.Contains(got.out, c.want) {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := newBox(t).call("version"); got.code != ExitOK || !strings.HasPrefix(got.out, "deepseek ") || got.err != "" {
		t.Errorf("%+v", got)
	}
	if one, two := newBox(t).call("version"), newBox(t).call("--version"); one.out != two.out {
		t.Errorf("%q and %q", one.out, two.out)
	}
}

func TestHelpGoesToStdout(t *testing.T) {
	if got := newBox(t).call(); got.code != ExitOK || !strings.Contains(got.out, "Usage:") || got.err != "" {
		t.Errorf("%+v", got)
	}
}

func TestManualPagesLieWhereManLooks(t *testing.T) {
	b := newBox(t)
	for dir, want := range map[string]string{"pages": "pages/man1", "man1": "man1", "a/man1/": "a/man1"} {
		got := b.call("help", "--man", filepath.Join(b.cwd, dir)+strings.Repeat("/", strings.Count(dir, "1/")))
		if got.code != ExitOK {
			t.Errorf("%+v", got)
		}
		if text := readFile(t, filepath.Join(b.cwd, want, "deepseek-run.1")); !strings.HasPrefix(text, ".TH ") {
			t.Errorf("%s: %q", dir, text)
		}
	}
}
