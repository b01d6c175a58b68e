package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigEdit(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		code int
		want string // on stderr
		text string // at the end of the file
	}{
		"begins the file":        {[]string{"EDITOR=true"}, ExitOK, "", "deepseek config\n"},
		"VISUAL before EDITOR":   {[]string{"EDITOR=false", "VISUAL=printf 'mode: timed\\n' >>"}, ExitOK, "", "mode: timed\n"},
		"a mistake has its line": {[]string{"EDITOR=printf 'mdoe: timed\\n' >>"}, ExitUsage, "config.yaml:4: mdoe: unknown key (did you mean mode?)\nmend it with: deepseek config edit", "mdoe: timed\n"},
		"no such editor":         {[]string{"EDITOR=/nosuch/editor"}, ExitUsage, "set VISUAL or EDITOR", "deepseek config\n"},
		"the editor fails":       {[]string{"EDITOR=false"}, ExitFailed, "failed", "deepseek config\n"},
		"nothing to edit in":     {nil, ExitUsage, "there is no terminal", "deepseek config\n"},
		"not from a tool":        {[]string{"EDITOR=true", "DEEPSEEK_TOOL=1"}, ExitUsage, "is refused inside a tool", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.env = append(b.env, c.env...)
			got := b.call("config", "edit")
			if got.code != c.code || !strings.Contains(got.err, c.want) || c.want == "" && got.err != "" {
				t.Errorf("%+v", got)
			}
			raw, err := os.ReadFile(filepath.Join(b.home, "config.yaml"))
			if c.text != "" && (err != nil || !strings.HasSuffix(string(raw), c.text)) {
				t.Errorf("%v %q", err, raw)
			}
			if c.text == "" && err == nil {
				t.Errorf("it was begun: %q", raw)
			}
		})
	}
}
