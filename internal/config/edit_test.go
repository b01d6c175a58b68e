package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deepseek/internal/model"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ name, before, key, value, want string }{
		{"new file", "", "model", "deepseek-chat", "model: deepseek-chat\n"},
		{"comments stay", "# top\nmodel: a # why\n\n# about mode\nmode: timed\n", "model", "b", "# top\nmodel: b # why\n\n# about mode\nmode: timed\n"},
		{"appended", "model: a\n", "max_steps", "5", "model: a\nmax_steps: 5\n"},
		{"only comments", "# mine\n# more\n", "quiet", "true", "# mine\n# more\nquiet: true\n"},
		{"blank lines and blanks stay", "\n\nmodel:   a   # why\n\n\nmode: timed\n\n", "model", "b", "\n\nmodel:   b   # why\n\n\nmode: timed\n\n"},
		{"indented lists stay", "sandbox_writable:\n- /a\n-   /b\nmode: timed\n", "mode", "legacy", "sandbox_writable:\n- /a\n-   /b\nmode: legacy\n"},
		{"ends of lines and the mark stay", "\ufeffmodel: a\r\n\r\n# x\r\nmode: timed\r\n", "mode", "legacy", "\ufeffmodel: a\r\n\r\n# x\r\nmode: legacy\r\n"},
		{"the first line behind a mark", "\ufeffmodel: a\r\n", "model", "b", "\ufeffmodel: b\r\n"},
		{"appended behind a mark", "\ufeffmodel: a\r\n", "mode", "timed", "\ufeffmodel: a\r\nmode: timed\r\n"},
		{"no end of the last line", "model: a", "quiet", "true", "model: a\nquiet: true\n"},
		{"a value of several lines", "on_question: |\n  a\n  # b\n\n# about\nmode: timed\n", "on_question", "c", "on_question: c\n\n# about\nmode: timed\n"},
		{"a value becomes several lines", "mode: timed\nprices: {} # dollars\nmodel: a\n", "prices", "m:\n  {input: 1, cached: 1, output: 1}", "mode: timed\nprices: # dollars\n  m: {input: 1, cached: 1, output: 1}\nmodel: a\n"},
		{"quoted key", "\"model\": a\n", "model", "b", "\"model\": b\n"},
		{"all indented", "  model: a\n  mode: timed\n", "quiet", "true", "  model: a\n  mode: timed\n  quiet: true\n"},
		{"all in one line", "{model: a, mode: timed} # x\n", "mode", "legacy", "{model: a, mode: legacy} # x\n"},
		{"the end of the document", "model: a\n...\n", "mode", "timed", "model: a\nmode: timed\n"},
		{"shared by name", "model: &m a\nkey_file: *m\n", "key_file", "b", "model: &m a\nkey_file: b\n"},
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
			if err != nil || string(got) != c.want {
				t.Errorf("got %v\n%q\nwant\n%q", err, got, c.want)
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
		{"model: a\n\n\n\n\ntimeout: soon\n", "model", "b", "config.yaml:6: timeout: wants"},
		{"mcp_servers:\n\n  g: {command: x}\n\nmax_steps: no\n", "mcp_servers", "{a: {command: y}}", "config.yaml:5: max_steps"},
		{"mode: timed\nmode: legacy\n", "mode", "timed", "config.yaml:2: mode: stands already on line 1"},
		{"\n\nmodel: a\n", "mcp_servers", "{g: {comand: x}}", "mcp_servers.g.comand: unknown key (did you mean command?)"},
		{"\xff\xfe", "model", "b", "config.yaml:1: is no UTF-8 text"},
		{"model: a\n# \xe4\n", "model", "b", "config.yaml:2: is no UTF-8 text"},
	} {
		p := newPlace(t, c.before, "")
		err := Set(p.user, c.key, c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "config.yaml:") != strings.Contains(c.want, "config.yaml:") && c.want != "config.yaml" {
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

func TestUnsetLeavesTheOtherLines(t *testing.T) {
	for _, c := range []struct{ name, before, key, want string }{
		{"unknown key", "mode: timed\ntimeuot: 5 # soon\n\nmodel: a\n", "timeuot", "mode: timed\n\nmodel: a\n"},
		{"what else is wrong stays", "timeuot: 5\nmax_setps: 1\nmax_steps: no\n", "timeuot", "max_setps: 1\nmax_steps: no\n"},
		{"each time it stands there", "mode: timed\nmodel: a\nmode: legacy\n", "mode", "model: a\n"},
		{"comments", "# top\n\n# about\nmode: timed\n  # within\n# below\nmodel: a\r\n", "mode", "# top\r\n\r\n# about\r\n# below\r\nmodel: a\r\n"},
		{"a map", "mcp_servers:\n  a:\n    command: x\n\n  b: {command: y}\n\nmode: timed\n", "mcp_servers", "\nmode: timed\n"},
		{"the last one", "# top\nmode: timed", "mode", "# top\n"},
		{"all in one line", "{model: a, mode: timed}\n", "mode", "{model: a}\n"},
		{"not there", "timeuot: 5\n", "mode", "timeuot: 5\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.before, "")
			if err := Unset(p.user, c.key); err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(p.user); string(got) != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
	p := newPlace(t, "model: a\n\nmode: [\n", "")
	for key, want := range map[string]string{"timeuot": "config.yaml:", "model": "config.yaml:"} {
		if err := Unset(p.user, key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	p = newPlace(t, "model: a\n", "")
	if err := Unset(p.user, "timeuot"); err == nil || !strings.Contains(err.Error(), "did you mean timeout?") {
		t.Error(err)
	}
}

// FuzzSetChangesOneValue: whatever the file, either it is refused and stays, or
// its other values are what they were.
func FuzzSetChangesOneValue(f *testing.F) {
	for _, s := range []string{"model: a\nmode: timed # x\n", "{mode: timed}", "mode: |\n  timed\n", "? mode\n: timed\n", "\ufeffmode:\r\n timed\r\n", "--- # x\nmode: timed\n...\n", "a: &x\n  b\nmode: *x\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, before string) {
		p := newPlace(t, before, "")
		old, oldErr := p.load(nil)
		if err := Set(p.user, "max_steps", "7"); err != nil {
			if got, _ := os.ReadFile(p.user); string(got) != before {
				t.Errorf("refused with %v, and changed to %q", err, got)
			}
			return
		}
		now, err := p.load(nil)
		if err != nil || now.MaxSteps != 7 {
			t.Fatalf("%v after %v", err, oldErr)
		}
		if oldErr == nil && (now.Effort != old.Effort || now.Model != old.Model || now.OnQuestion != old.OnQuestion) {
			t.Errorf("%q changed more", before)
		}
	})
}

// Nor does a link give way to a file because what it leads to is not there yet.
func TestSetMakesWhatALinkLeadsTo(t *testing.T) {
	for name, begin := range map[string]bool{"set": false, "begun first": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, "", "")
			dots := t.TempDir()
			if err := errors.Join(os.MkdirAll(p.home, 0o700), os.Symlink(filepath.Join(dots, "link"), p.user), os.Symlink("new/file.yaml", filepath.Join(dots, "link"))); err != nil {
				t.Fatal(err)
			}
			if begin {
				if err := Begin(p.user); err != nil {
					t.Fatal(err)
				}
			}
			if err := Set(p.user, "mode", "timed"); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dots, "new/file.yaml")); err != nil || !strings.HasSuffix(string(got), "mode: timed\n") {
				t.Errorf("%v: %s", err, got)
			}
			for _, link := range []string{p.user, filepath.Join(dots, "link")} {
				if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
					t.Errorf("%s is no link any more: %v", link, err)
				}
			}
		})
	}
}

func TestSetSaysThatLinksGoRound(t *testing.T) {
	p := newPlace(t, "", "")
	if err := errors.Join(os.MkdirAll(p.home, 0o700), os.Symlink(p.user, p.user)); err != nil {
		t.Fatal(err)
	}
	if err := Begin(p.user); !errors.Is(err, syscall.ELOOP) {
		t.Error(err)
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
