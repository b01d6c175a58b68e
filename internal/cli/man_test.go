package cli

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestManPagesFit: descriptions are filled, flags are tags with their texts, and but for
// commands, which are to be copied, no line is wider than the page.
func TestManPagesFit(t *testing.T) {
	if got, want := manText("One.\nTwo.\n\nThree:\n  four\n\n  .five\nSix."), "One.\n.br\nTwo.\n.PP\nThree:\n.nf\n  four\n\n  .five\n.fi\nSix.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := manFlags("  -h, --help       help for it\n      --man dir    write\n                   it\n"), ".TP\n\\fB\\-h, \\-\\-help\\fR\nhelp for it\n.TP\n\\fB\\-\\-man dir\\fR\nwrite\nit\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	nroff, err := exec.LookPath("nroff")
	if err != nil {
		t.Skip("no formatter of manual pages is installed")
	}
	root := newRoot(newApp(Streams{}, nil), commands())
	if err := eachCommand(root, func(cmd *cobra.Command) error {
		format := exec.CommandContext(t.Context(), nroff, "-man", "-Tutf8", "-rLL=80n", "-c")
		format.Stdin = strings.NewReader(manPage(cmd))
		out, err := format.Output()
		text, _, _ := strings.Cut(regexp.MustCompile(".\x08|\x1b\\[[0-9;]*m").ReplaceAllString(string(out), ""), "\nEXAMPLES")
		for line := range strings.SplitSeq(text, "\n") {
			if n := utf8.RuneCountInString(line); n > 80 && !strings.Contains(line, " deepseek ") {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
