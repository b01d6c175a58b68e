package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/cli.md")

const docsHead = `# Commands and flags

Every command with its flags, as ` + "`deepseek help COMMAND`" + ` prints them; a test keeps this page true. ` + "`deepseek help --man DIR`" + `
writes the same as manual pages (` + "`man -M DIR deepseek-run`" + `), and ` + "`deepseek completion SHELL`" + ` prints completions that
know session and call ids.

Each flag that is a setting is a key of ` + "`config.yaml`" + ` too, with underscores, and a variable: ` + "`--max-steps`, `max_steps`,\n`DEEPSEEK_MAX_STEPS`" + `. A flag stands against the variable, that against the project's file, that against your own, that against
the default. [Exit codes](ci.md#exit-codes) · [Questions](questions.md) · [Permissions](permissions.md) · [Models](models.md)

These flags belong to every command:

`

// TestTheCommandsAreDocumented keeps docs/cli.md as the commands are.
func TestTheCommandsAreDocumented(t *testing.T) {
	root := newRoot(newApp(Streams{}, nil), commands())
	var b strings.Builder
	b.WriteString(docsHead + block(root.PersistentFlags().FlagUsagesWrapped(100)))
	for _, top := range root.Commands() {
		err := eachCommand(top, func(cmd *cobra.Command) error {
			if cmd.Name() == "help" {
				return nil
			}
			level := "##"
			if cmd != top {
				level = "###"
			}
			text := cmd.Long
			if text == "" {
				text = cmd.Short + "."
			}
			usage := strings.TrimSuffix(cmd.UseLine(), " [flags]") + "\n"
			if flags := cmd.LocalNonPersistentFlags().FlagUsagesWrapped(100); flags != "" {
				usage += "\n" + flags
			}
			fmt.Fprintf(&b, "\n%s %s\n\n%s\n%s", level, cmd.CommandPath(), block(text+"\n"), block(usage+"\n"+cmd.Example+"\n"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.FromSlash("../../docs/cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
	}
	if readFile(t, path) != b.String() {
		t.Errorf("%s is not as the commands are; run this test with -update, and look at it", path)
	}
}

func block(text string) string { return "```\n" + strings.TrimRight(text, "\n") + "\n```\n" }
