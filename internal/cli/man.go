package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"deepseek/internal/version"
)

// writeManPages writes a page for section 1 of the manual for the command and
// each command below it, such as deepseek-run.1, where `man -M DIR` looks: into
// the folder man1 of dir, which may be that folder itself. It makes what is not there.
func writeManPages(dir string, cmd *cobra.Command) error {
	if filepath.Base(dir) != "man1" {
		dir = filepath.Join(dir, "man1")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a manual is for everybody
		return usagef("cannot make the folder %s: %v\nname one that can be written to", dir, reason(err))
	}
	return eachCommand(cmd, func(cmd *cobra.Command) error {
		path := filepath.Join(dir, manName(cmd)+".1")
		if err := os.WriteFile(path, []byte(manPage(cmd)), 0o644); err != nil { //nolint:gosec // as above
			return &Coded{Exit: ExitFailed, Code: CodeOutputWrite, Message: fmt.Sprintf("cannot write %s: %v", path, reason(err))}
		}
		return nil
	})
}

// eachCommand calls do for a command and those below it, in help's order.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command) error) error {
	if cmd.Hidden {
		return nil
	}
	if err := do(cmd); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := eachCommand(sub, do); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of one command.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := manName(cmd)
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"\" \"%s\" \"deepseek\"\n.ad l\n.nh\n", roff(strings.ToUpper(name)), roff("deepseek "+version.Current().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	if cmd.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", manText(cmd.Long))
	}
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, ".SH %s\n%s", title, text)
		}
	}
	section("OPTIONS", manFlags(cmd.LocalFlags().FlagUsages()))
	section("GLOBAL OPTIONS", manFlags(cmd.InheritedFlags().FlagUsages()))
	section("EXAMPLES", manText(cmd.Example))
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent())+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			also = append(also, manName(sub)+"(1)")
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(also, ", ")))
	}
	return b.String()
}

// manText is a text whose lines the formatter fills, each on its own. Those that
// begin with a space are shown as they are.
func manText(text string) string {
	var b strings.Builder
	exact, before := false, false // within such lines; a line of the paragraph stands before
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		indented := strings.HasPrefix(line, " ")
		switch {
		case line == "" && !exact:
			b.WriteString(".PP\n")
			before = false
			continue
		case indented && !exact:
			b.WriteString(".nf\n")
		case !indented && line != "" && exact:
			b.WriteString(".fi\n")
		case !indented && before:
			b.WriteString(".br\n")
		}
		exact = indented || line == ""
		before = !exact
		b.WriteString(roff(line) + "\n")
	}
	if exact {
		b.WriteString(".fi\n")
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return b.String()
}

// manFlags is the help's list of flags, one a line, as tags with their texts.
func manFlags(usages string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(usages, "\n"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if tag, text, ok := strings.Cut(line, "  "); ok && strings.HasPrefix(line, "-") {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(tag), roff(strings.TrimSpace(text)))
			continue
		}
		b.WriteString(roff(line) + "\n") // the text goes on
	}
	return b.String()
}

// roff is text that a formatter shows as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
