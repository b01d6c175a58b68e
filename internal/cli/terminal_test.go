package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/creack/pty"
)

func TestColour(t *testing.T) {
	for _, c := range []struct {
		name, setting     string
		project, terminal bool
		env               map[string]string
		want              bool
	}{
		{"terminal", "auto", false, true, nil, true},
		{"pipe", "auto", false, false, nil, false},
		{"always in a pipe", "always", false, false, nil, true},
		{"never", "never", false, true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
		{"NO_COLOR", "auto", false, true, map[string]string{"NO_COLOR": "1"}, false},
		{"empty NO_COLOR is none", "auto", false, true, map[string]string{"NO_COLOR": ""}, true},
		{"always over NO_COLOR", "always", false, true, map[string]string{"NO_COLOR": "1"}, true},
		{"a project's always is not over NO_COLOR", "always", true, true, map[string]string{"NO_COLOR": "1"}, false},
		{"a project's always", "always", true, false, nil, true},
		{"dumb", "auto", false, true, map[string]string{"TERM": "dumb"}, false},
		{"CLICOLOR=0", "auto", false, true, map[string]string{"CLICOLOR": "0"}, false},
		{"CLICOLOR=1 in a pipe", "auto", false, false, map[string]string{"CLICOLOR": "1"}, false},
		{"CLICOLOR_FORCE", "auto", false, false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"CLICOLOR_FORCE=0", "auto", false, false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{"NO_COLOR over CLICOLOR_FORCE", "auto", false, false, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
	} {
		if got := colour(c.setting, c.project, c.terminal, func(n string) string { return c.env[n] }); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestTerminalFacts(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	defer master.Close() //nolint:errcheck // a test's
	defer slave.Close()  //nolint:errcheck // a test's
	if err := pty.Setsize(master, &pty.Winsize{Rows: 10, Cols: 33}); err != nil {
		t.Fatal(err)
	}
	again, err := os.OpenFile(slave.Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close() //nolint:errcheck // a test's
	a := newApp(Streams{In: slave, Out: again, Err: slave}, []string{"TERM=xterm", "COLUMNS=5"})
	if !a.InTerminal() || !a.OutTerminal() || !a.ErrTerminal() || !a.OneTerminal() || a.Width() != 33 || !a.Cursor() {
		t.Error("the terminal is not recognised")
	}
	if got := a.visible("\x1b[1m"); got != "^[[1m" {
		t.Errorf("untrusted text on a terminal: %q", got)
	}
	b := newApp(Streams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Err: slave}, []string{"TERM=dumb", "COLUMNS=5"})
	if b.InTerminal() || b.OneTerminal() || b.Cursor() || b.visible("\x1b") != "\x1b" {
		t.Error("a buffer is taken for a terminal")
	}
	for columns, want := range map[string]int{"": 80, "5": 5, "x": 80, "-1": 80, "999999999": 80} {
		p := newApp(Streams{Err: &bytes.Buffer{}}, []string{"COLUMNS=" + columns})
		if got := p.Width(); got != want {
			t.Errorf("COLUMNS=%s: %d", columns, got)
		}
	}
}
