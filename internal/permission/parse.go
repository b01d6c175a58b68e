package permission

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commandLine is what the syntax of a command tells.
type commandLine struct {
	text  string
	words []string // of a simple command of literal words; else nil
	git   gitUse   // the most that a call of git in it does
}

// parse never fails: what bash will not read either is no simple command.
func parse(command string) commandLine {
	line := commandLine{text: strings.Trim(command, " \t\n")} // what bash takes for blanks, and nothing more
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return line
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			line.git = max(line.git, useOfGit(call.Args))
		}
		return true
	})
	// To bash a carriage return is part of a word; the parser leaves it out.
	if len(file.Stmts) != 1 || strings.Contains(command, "\r") {
		return line
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 || len(call.Assigns) > 0 {
		return line
	}
	words := make([]string, 0, len(call.Args))
	for _, arg := range call.Args {
		w, ok := literal(arg)
		if !ok {
			return line
		}
		words = append(words, w)
	}
	line.words = words
	return line
}

// literal is a word in which the shell runs and expands nothing but file names.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString("'" + part.Value + "'")
		case *syntax.DblQuoted:
			b.WriteByte('"')
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(lit.Value)
			}
			b.WriteByte('"')
		default:
			return "", false
		}
	}
	return b.String(), true
}
