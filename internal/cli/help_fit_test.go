package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsTheTerminal: but for examples and usage, which are to be copied.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, columns := range []int{60, 80, 120} {
		root := newRoot(newApp(Streams{}, nil), commands())
		for _, cmd := range append(root.Commands(), root) {
			var out bytes.Buffer
			cmd.SetOut(&out)
			fitCommand(cmd, columns)
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(out.String(), "Examples:")
			_, lists, _ := strings.Cut(rest, "\n\n")
			for line := range strings.SplitSeq(cmd.Long, "\n") {
				if !strings.HasPrefix(line, " ") {
					lists += "\n" + line
				}
			}
			for line := range strings.SplitSeq(lists, "\n") {
				if n := utf8.RuneCountInString(line); n > columns && !strings.HasPrefix(line, `Use "deepseek`) {
					t.Errorf("%s at %d: %d columns: %s", cmd.Name(), columns, n, line)
				}
			}
		}
	}
}
