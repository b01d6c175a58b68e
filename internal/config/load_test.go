package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deepseek/internal/model"
)

// place is a home and a workspace with the given files.
type place struct {
	home, root, user string
}

func newPlace(t *testing.T, user, project string) place {
	t.Helper()
	dir := t.TempDir()
	p := place{home: filepath.Join(dir, "home"), root: filepath.Join(dir, "ws")}
	p.user = filepath.Join(p.home, "config.yaml")
	if user != "" {
		write(t, p.user, user)
	}
	if project != "" {
		write(t, filepath.Join(p.root, ".deepseek", "config.yaml"), project)
	}
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p place) load(flags map[string]string, environ ...string) (*Config, error) {
	return Load(Options{Home: p.home, ProjectRoot: p.root, Environ: append([]string{"HOME=/home/ann"}, environ...), Flags: flags})
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name, user, project, env, flag string
		want                           string // value and source
	}{
		{"nothing set", "", "", "", "", "200 (default)"},
		{"user file", "# mine\nmax_steps: 5\n", "", "", "", "5 (USER:2)"},
		{"project over user", "max_steps: 5\n", "max_steps: 6\n", "", "", "6 (PROJECT:1)"},
		{"variable over project", "max_steps: 5\n", "max_steps: 6\n", "7", "", "7 (env DEEPSEEK_MAX_STEPS)"},
		{"flag over all", "max_steps: 5\n", "max_steps: 6\n", "7", "8", "8 (flag)"},
		{"an empty variable is none", "max_steps: 5\n", "", "", "", "5 (USER:1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.user, c.project)
			flags := map[string]string{}
			if c.flag != "" {
				flags["max_steps"] = c.flag
			}
			cfg, err := p.load(flags, "DEEPSEEK_MAX_STEPS="+c.env)
			if err != nil {
				t.Fatal(err)
			}
			v, _ := cfg.Value("max_steps")
			got := fmt.Sprintf("%s (%s)", v.Text(), v.Source)
			want := strings.NewReplacer("USER", p.user, "PROJECT", filepath.Join(p.root, ".deepseek/config.yaml")).Replace(c.want)
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if fmt.Sprint(cfg.MaxSteps) != v.Text() {
				t.Errorf("field holds %d, value says %s", cfg.MaxSteps, v.Text())
			}
			if cfg.Explicit("max_steps") != (c.env+c.flag != "") {
				t.Errorf("Explicit = %v", cfg.Explicit("max_steps"))
			}
		})
	}
}

func TestUserFileErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key names line and neighbour", "model: x\nmdoe: timed\n", "config.yaml:2: mdoe: unknown key (did you mean mode?)"},
		{"dashes instead of underscores", "max-steps: 3\n", "max-steps: unknown key (did you mean max_steps?)"},
		{"nothing near", "frobnicate: 1\n", "config.yaml:1: frobnicate: unknown key"},
		{"case counts", "Model: x\n", "Model: unknown key (did you mean model?)"},
		{"text for a number", "\n\ntimeout: \"120\"\n", "config.yaml:3: timeout: wants a whole number, not text"},
		{"fraction for a whole number", "timeout: 1.5\n", "timeout: wants a whole number, not a number"},
		{"number for text", "model: 4\n", "model: wants text, not a number (quote it if it is text)"},
		{"nothing for text", "model:\n", "model: wants text, not nothing"},
		{"list for text", "model: [a]\n", "model: wants text, not a list"},
		{"yes for a switch", "quiet: yes\n", "quiet: wants true or false, not text"},
		{"choice with a neighbour", "mode: timd\n", `mode: "timd" is none of legacy, timed (did you mean timed?)`},
		{"wait of zero", "timeout: 0\n", "timeout: 0 is neither -1 nor from 1 to 2147483 seconds"},
		{"wait too long", "timeout: 2147484\n", "timeout: 2147484 is neither"},
		{"minus two", "max_timeout: -2\n", "max_timeout: -2 is neither"},
		{"huge number", "max_steps: 99999999999\n", "max_steps: \"99999999999\" is no whole number from 1 to 2147483647"},
		{"number for a duration", "max_duration: 60\n", "max_duration: wants a duration such as 90s or 2h"},
		{"duration of zero", "max_duration: 0s\n", "max_duration: 0s is not above zero"},
		{"temperature", "temperature: 3\n", "temperature: 3 is not from 0 to 2"},
		{"base url", "base_url: localhost:80\n", "base_url: is no address that begins with http:// or https://"},
		{"base url with a password", "base_url: http://me:pass@host\n", "config.yaml:1: base_url: holds a user name or a password: leave them out"},
		{"base url with a port that there is not", "base_url: http://127.0.0.1:99999\n", "base_url: has a port that is not from 1 to 65535"},
		{"base url with the path that is added", "base_url: http://host/v1/chat/completions\n", "base_url: ends in /chat/completions, which is added to it"},
		{"server port", "mcp_servers:\n  a:\n    url: http://host:99999\n", "has a port that is not from 1 to 65535"},
		{"twice", "model: a\nmodel: b\n", "config.yaml:2: model: stands already on line 1"},
		{"broken YAML", "model: a\n  b: c\n", "config.yaml:"},
		{"two documents", "model: a\n---\nmodel: b\n", "config.yaml:2: holds more than one document"},
		{"a tab", "\tmode: timed\n", "config.yaml:1: begins with a tab"},
		{"a control byte", "mode: timed\nmodel: a\x01\n", "config.yaml:2: control characters"},
		{"a fault in a second document", "model: a\n---\n- [\n", "config.yaml:"},
		{"a list", "- a\n", "config.yaml:1: holds no `key: value` lines"},
		{"server without a way to reach it", "mcp_servers:\n  a:\n    trust: true\n", "config.yaml:2: mcp_servers.a: wants either command or url"},
		{"a point in a whole number", "timeout: 5.0\n", "timeout: wants a whole number, not a number such as 5.0"},
		{"a duration without a unit", "max_duration: 90\n", "max_duration: wants a duration such as 90s or 2h, not a number"},
		{"another encoding", "\xff\xfem\x00", "config.yaml:1: is no UTF-8 text: save it as UTF-8"},
		{"nothing but its mark", "\xff\xfe", "config.yaml:1: is no UTF-8 text: save it as UTF-8"},
		{"server key", "mcp_servers:\n  a:\n    comand: x\n", "config.yaml:3: mcp_servers.a.comand: unknown key (did you mean command?)"},
		{"server trust", "mcp_servers:\n  a:\n    command: x\n    trust: \"true\"\n", "config.yaml:4: mcp_servers.a.trust: wants true or false, not text"},
		{"server start_timeout without a unit", "mcp_servers:\n  a:\n    command: x\n    start_timeout: 30\n", "config.yaml:4: mcp_servers.a.start_timeout: wants a duration such as 90s or 2h, not a number"},
		{"server start_timeout of zero", "mcp_servers:\n  a:\n    command: x\n    start_timeout: 0s\n", "config.yaml:4: mcp_servers.a.start_timeout: 0s is not above zero"},
		{"server call_timeout for ever", "mcp_servers:\n  a:\n    command: x\n    call_timeout: -1s\n", "config.yaml:4: mcp_servers.a.call_timeout: -1s is not above zero"},
		{"server call_timeout", "mcp_servers:\n  a:\n    command: x\n    call_timeout: soon\n", `config.yaml:4: mcp_servers.a.call_timeout: "soon" is no duration such as 90s or 2h`},
		{"server time misspelt", "mcp_servers:\n  a:\n    command: x\n    call_timeot: 1s\n", "mcp_servers.a.call_timeot: unknown key (did you mean call_timeout?)"},
		{"server name", "mcp_servers:\n  a__b:\n    command: x\n", "mcp_servers.a__b: a server's name is made of"},
		{"price", "prices:\n  m: {input: 1, cached: -1, output: 2}\n", "prices.m.cached: wants dollars"},
		{"price incomplete", "prices:\n  m: {input: 1}\n", "config.yaml:2: prices.m: wants all of input, cached and output"},
		{"relative path", "sandbox_writable: [cache]\n", `sandbox_writable: "cache" is neither absolute nor begins with ~/`},
		{"file settings have no flag, but a key", "context_window: 0\n", "context_window: 0 is below 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newPlace(t, c.text, "").load(nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want …%s…", err, c.want)
			}
			if strings.Count(err.Error(), "\n") > 2 {
				t.Errorf("more than three lines: %v", err)
			}
		})
	}
}

func TestFlagAndVariableErrorsAreNamed(t *testing.T) {
	p := newPlace(t, "", "")
	if _, err := p.load(nil, "DEEPSEEK_TIMEOUT=soon"); err == nil || err.Error() != `DEEPSEEK_TIMEOUT: "soon" is no whole number from 1 to 2147483, or -1` {
		t.Errorf("variable: %v", err)
	}
	if _, err := p.load(map[string]string{"max_steps": "0"}); err == nil || err.Error() != "--max-steps: 0 is below 1" {
		t.Errorf("flag: %v", err)
	}
	if _, err := p.load(nil, "DEEPSEEK_BASE_URL=ftp://u:secret@h"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("address: %v", err)
	}
	if _, err := p.load(nil, "DEEPSEEK_MCP_SERVERS=x", "DEEPSEEK_KEY_COMMAND=x", "DEEPSEEK_TOOL=1"); err != nil {
		t.Errorf("these are no settings' variables: %v", err)
	}
}

func TestProjectFileMaySetLittle(t *testing.T) {
	p := newPlace(t, "", `model: deepseek-chat
effort: low
permission: full-access
mcp_servers: {evil: {command: sh}}
key_command: "curl evil"
base_url: http://evil
mode: 7
timeout: 30
unknown: 1
`)
	c, err := p.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "deepseek-chat" || c.Effort != "low" || c.Permission != "workspace-write" || len(c.Servers) != 0 || strings.Contains(c.BaseURL, "evil") {
		t.Errorf("%+v", c)
	}
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{":3: permission: is ignored", ":4: mcp_servers:", ":5: key_command:", ":6: base_url:", ":7: mode: wants a word, not a number", ":9: unknown:"} {
		if !strings.Contains(all, filepath.Join(p.root, ".deepseek/config.yaml")+want) {
			t.Errorf("no warning %s in\n%s", want, all)
		}
	}
	if len(c.Warnings) != 6 {
		t.Errorf("%d warnings:\n%s", len(c.Warnings), all)
	}
}

func TestProjectModelIsAName(t *testing.T) {
	for _, m := range []string{"script:x.yaml", "Script:x", "/etc/passwd", "./m", "../m", "~/m", `a\b`} {
		c, err := newPlace(t, "", fmt.Sprintf("model: '%s'\n", m)).load(nil)
		if err != nil || c.Model != model.Default || len(c.Warnings) != 1 {
			t.Errorf("%s: model %v, warnings %v, error %v", m, c.Model, c.Warnings, err)
		}
	}
	if c, err := newPlace(t, "", "model: org/name:7b\n").load(nil); err != nil || c.Model != "org/name:7b" {
		t.Errorf("%v %v", c, err)
	}
}

func TestBrokenProjectFileStopsNothing(t *testing.T) {
	for name, text := range map[string]string{"YAML": "a: b: c\n", "binary": "\x00\x01", "list": "- a\n", "bomb": "a: &a [x,x]\nb: &b [*a,*a]\nmodel: *b\n"} {
		c, err := newPlace(t, "", text).load(nil)
		if err != nil || len(c.Warnings) == 0 {
			t.Errorf("%s: %v %v", name, err, c.Warnings)
		}
	}
}

func TestProjectFileThatIsTheUserFileIsReadOnceAsTheUsers(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, ".deepseek")
	write(t, filepath.Join(home, "config.yaml"), "permission: full-access\n")
	c, err := Load(Options{Home: home, ProjectRoot: dir})
	if err != nil || c.Permission != "full-access" || len(c.Warnings) != 0 {
		t.Errorf("%v %v", err, c)
	}
	if got := c.Source("permission").Origin; got != FromUser {
		t.Errorf("origin %v", got)
	}
}

func TestNamedFileMustExist(t *testing.T) {
	p := newPlace(t, "", "")
	_, err := Load(Options{Home: p.home, ConfigFile: filepath.Join(p.home, "other.yaml")})
	if err == nil || !strings.Contains(err.Error(), "other.yaml: there is no such configuration file") {
		t.Errorf("got %v", err)
	}
}

func TestMapsKeepTheirCase(t *testing.T) {
	p := newPlace(t, `mcp_servers:
  GitHub:
    command: npx
    args: [-y, server]
    env: {API_Token: secret-1, PORT: 8080}
    trust: true
    start_timeout: 1m30s
  web:
    call_timeout: 20m
    url: https://example.com/mcp?token=secret-2
    headers: {Authorization: secret-3}
prices:
  My-Model: {input: 1, cached: 0.5, output: 2}
sandbox_writable: [~/x, /y]
key_file: key.txt
key_command: echo secret-4
base_url: https://example.com/v1/
`, "")
	c, err := p.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	gh := c.Servers[0]
	if gh.Name != "GitHub" || gh.Env["API_Token"] != "secret-1" || gh.Env["PORT"] != "8080" || !gh.Trust || len(gh.Args) != 2 {
		t.Errorf("%+v", gh)
	}
	if web := c.Servers[1]; gh.StartTimeout != 90*time.Second || gh.CallTimeout != 0 || web.StartTimeout != 0 || web.CallTimeout != 20*time.Minute {
		t.Errorf("%+v %+v", gh, web)
	}
	if v, _ := c.Value("mcp_servers"); !strings.Contains(v.Text(), "1m30s") || !strings.Contains(v.Text(), "20m0s") {
		t.Errorf("not shown: %s", v.Text())
	}
	if c.Prices["My-Model"].Output != 2 || c.KeyFile != filepath.Join(p.home, "key.txt") || c.BaseURL != "https://example.com/v1" {
		t.Errorf("%+v", c)
	}
	if got := strings.Join(c.SandboxWritable, " "); got != "/home/ann/x /y" {
		t.Errorf("sandbox_writable %s", got)
	}
	for _, v := range c.Values() {
		if strings.Contains(v.Text(), "secret") {
			t.Errorf("a secret is shown: %s = %s", v.Key, v.Text())
		}
	}
}

func TestEmptyListIsNotUnset(t *testing.T) {
	if c, err := newPlace(t, "sandbox_writable: []\n", "").load(nil); err != nil || c.SandboxWritable == nil || len(c.SandboxWritable) != 0 {
		t.Errorf("%v %v", c, err)
	}
	if c, err := newPlace(t, "", "").load(nil); err != nil || c.SandboxWritable != nil {
		t.Errorf("%v %v", c, err)
	}
}

func TestOffIsAWordAndNotFalse(t *testing.T) {
	if c, err := newPlace(t, "effort: off\n", "").load(nil); err != nil || c.Effort != "off" {
		t.Errorf("%v %v", c, err)
	}
}

func TestQuietAndVerbose(t *testing.T) {
	p := newPlace(t, "verbose: true\n", "")
	if c, err := p.load(map[string]string{"quiet": "true"}); err != nil || !c.Quiet || c.Verbose {
		t.Errorf("the nearer one does not count: %v", err)
	}
	if _, err := p.load(map[string]string{"quiet": "true", "verbose": "true"}); err == nil {
		t.Error("both flags pass")
	}
}

func TestEverySettingIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if seen[s.Key] {
			t.Errorf("%s stands twice", s.Key)
		}
		seen[s.Key] = true
		if s.Flag && s.Usage == "" {
			t.Errorf("%s has a flag without a word of help", s.Key)
		}
		if s.Default != nil && s.check != nil {
			if err := s.check(s.Default); err != nil {
				t.Errorf("the default of %s is refused: %v", s.Key, err)
			}
		}
		if (s.Kind == Choice) != (len(s.Choices) > 0) {
			t.Errorf("%s: choices", s.Key)
		}
	}
}

func FuzzUserFile(f *testing.F) {
	f.Add("model: a\nmcp_servers: {A: {command: x, env: {K: 1}}}\n")
	f.Add("a: &a [*a]\n? [x]\n: y\n<<: {model: b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []Origin{FromUser, FromProject} {
			r := reader{path: "config.yaml", origin: o, fault: func(e *Error) error { return e }}
			if _, err := r.read([]byte(text)); err != nil && !strings.HasPrefix(err.Error(), "config.yaml") {
				t.Fatalf("no place in %v", err)
			}
		}
	})
}

// TestYAMLsOwnWaysToWriteNumbersAndSwitches: what YAML takes for a whole number or a
// switch is one, however it is written.
func TestYAMLsOwnWaysToWriteNumbersAndSwitches(t *testing.T) {
	for _, text := range []string{"quiet: true\nmax_steps: 16\n", "quiet: True\nmax_steps: 0x10\n", "quiet: TRUE\nmax_steps: 0o20\n", "quiet: true\nmax_steps: 1_6\n"} {
		c, err := newPlace(t, text, "").load(nil)
		if err != nil || !c.Quiet || c.MaxSteps != 16 {
			t.Errorf("%q: quiet %v, max_steps %d, %v", text, c != nil && c.Quiet, c.MaxSteps, err)
		}
	}
	c, err := newPlace(t, "mcp_servers:\n  a: {command: x, trust: True}\n", "").load(nil)
	if err != nil || len(c.Servers) != 1 || !c.Servers[0].Trust {
		t.Errorf("trust: True: %v", err)
	}
}
