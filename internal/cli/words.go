package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
)

// list is words as a person lists them: a, b or c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// oneOf is the usage error for a word that is none of the known ones.
func oneOf(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	hint := "it is one of " + list(known)
	if near := config.Nearest(word, known); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return usagef("unknown %s %q\n%s", what, cut(word), hint)
}

// arguments is the Args of a command that takes just these.
func arguments(want ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(want) {
			return nil
		}
		if len(args) < len(want) {
			return usagef("%s needs %s\nsee %[1]s --help", cmd.CommandPath(), strings.Join(want[len(args):], " and "))
		}
		return usagef("%s does not take %q\nsee %[1]s --help", cmd.CommandPath(), cut(args[len(want)]))
	}
}
