package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/model"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ name, before, key, value, want string }{
		{"new file", "", "model", "deepseek-chat", "model: deepseek-chat\n"},
		{"comments stay", "# top\nmodel: a # why\n\n# about mode\nmode: timed\n", "model", "b", "# top\nmodel: b # why\n# about mode\nmode: timed\n"},
		{"appended", "model: a\n", "max_steps", "5", "model: a\nmax_steps: 5\n"},
		{"only comments", "# mine\n# more\n", "quiet", "true", "# mine\n# more\n\nquiet: true\n"},
		{"text that looks like a number is quoted", "", "model", "4", "model: \"4\"\n"},
		{"off stays a word", "", "effort", "off", "effort: off\n"},
		{"list", "", "sandbox_writable", "[~/x, /y]", "sandbox_writable: [~/x, /y]\n"},
		{"map", "", "mcp_servers", "{Git: {command: x}}", "mcp_servers: {Git: {command: x}}\n"},
		{"mends a wrong value", "timeout: soon\n", "timeout", "5", "timeout: 5\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.before, "")
			if err := Set(p.user, c.key, c.value); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(p.user)
			if err != nil || strings.ReplaceAll(string(got), "\n\n", "\n") != strings.ReplaceAll(c.want, "\n\n", "\n") {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.want)
			}
			if _, err := p.load(nil); err != nil {
				t.Errorf("does not load: %v", err)
			}
			if info, err := os.Stat(p.user); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestRefusedSetChangesNothing(t *testing.T) {
	for _, c := range []struct{ before, key, value, want string }{
		{"model: a\n", "max_steps", "0", "max_steps: 0 is below 1"},
		{"model: a\n", "mdoe", "timed", "mdoe: unknown key (did you mean mode?)"},
		{"model: a\n", "sandbox_writable", "[x]", "neither absolute"},
		{"model: a\n", "mcp_servers", "{", "as YAML"},
		{"mdoe: a\n", "model", "b", "config.yaml:1: mdoe: unknown key"},
		{"a: b: c\n", "model", "b", "config.yaml"},
	} {
		p := newPlace(t, c.before, "")
		err := Set(p.user, c.key, c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: got %v, want %s", c.key, c.value, err, c.want)
		}
		if got, _ := os.ReadFile(p.user); string(got) != c.before {
			t.Errorf("changed to %s", got)
		}
	}
}

func TestUnset(t *testing.T) {
	p := newPlace(t, "# top\nmodel: a\nmode: timed\n", "")
	for _, key := range []string{"model", "model", "mode"} {
		if err := Unset(p.user, key); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := p.load(nil); err != nil || c.Model != model.Default {
		t.Errorf("%v", err)
	}
}

func TestSetKeepsALink(t *testing.T) {
	p := newPlace(t, "", "")
	target := filepath.Join(t.TempDir(), "dotfile.yaml")
	write(t, target, "model: a\n")
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, p.user); err != nil {
		t.Fatal(err)
	}
	if err := Set(p.user, "model", "b"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(target); string(got) != "model: b\n" {
		t.Errorf("target holds %s", got)
	}
	if info, err := os.Lstat(p.user); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"run", "answer", "questions", "sessions", "send", "show", "models"}
	for word, want := range map[string]string{"rnu": "run", "RUN": "run", "anwser": "answer", "session": "sessions", "quest": "questions", "model": "models", "zzz": "", "": "", "-": "", "fix the bug": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
