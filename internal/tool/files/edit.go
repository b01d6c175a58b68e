package files

import (
	"bytes"
	"context"
	_ "embed" // the texts
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"deepseek/internal/tool"
)

var (
	//go:embed edit.md
	editText string
	//go:embed edit.json
	editSchema string
)

type editArgs struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

func (e Env) editTool() tool.Tool {
	return tool.Define(tool.Definition{Name: "edit", Text: editText, Schema: editSchema}, e.edit)
}

func (e Env) edit(ctx context.Context, call tool.Call, in editArgs) tool.Result {
	switch in.OldString {
	case "":
		return tool.Errorf(tool.CodeInvalidArguments, "old_string is empty; to make a file or replace all of it use write")
	case in.NewString:
		return tool.Errorf(tool.CodeInvalidArguments, "old_string and new_string are the same; nothing would change")
	}
	p, err := e.resolve(in.FilePath)
	if err == nil && p.real == "" {
		err = p.missing()
	}
	if err != nil {
		return result(err)
	}
	old, err := e.current(ctx, p)
	if err != nil {
		return result(err)
	}
	content, lines, err := replaced(old.content, in)
	var refused coded
	if errors.As(err, &refused) {
		return tool.Errorf(refused.code, "%s: %s", p.shown, refused.text)
	}
	if err != nil {
		return result(err)
	}
	done := fmt.Sprintf("Edited %s at line %s.", p.shown, numbers(lines))
	if len(lines) > 1 {
		done = fmt.Sprintf("Edited %s: %d replacements at lines %s.", p.shown, len(lines), numbers(lines))
	}
	return e.apply(ctx, change{
		tool: "edit", callID: call.ID, title: "edit " + p.shown, at: p, old: old, content: content, done: done,
	})
}

// replaced makes the edit on a file's bytes and tells the lines of the old text
// that it touched. Its errors are coded.
func replaced(content []byte, in editArgs) ([]byte, []int, error) {
	if kind := binary(content); kind != "" {
		return nil, nil, coded{CodeNotText, "this is " + kind + "; edit changes UTF-8 text"}
	}
	if at := invalidAt(content); at >= 0 {
		return nil, nil, coded{CodeNotText, fmt.Sprintf("not UTF-8 (byte 0x%02X at offset %d, line %d); change it with a command",
			content[at], at, 1+bytes.Count(content[:at], []byte{'\n'}))}
	}
	text, mark := string(content), ""
	if strings.HasPrefix(text, string(bom)) {
		text, mark = text[len(bom):], string(bom)
	}
	m := find(text, in.OldString, in.NewString)
	switch {
	case len(m.spans) == 0:
		return nil, nil, coded{CodeNoMatch, "old_string does not occur. " + miss(text, in.OldString)}
	case len(m.spans) > maxSpans:
		return nil, nil, coded{CodeAmbiguous, fmt.Sprintf("old_string occurs more than %d times; give a longer one", maxSpans)}
	case len(m.spans) > 1 && !in.ReplaceAll:
		return nil, nil, coded{CodeAmbiguous, fmt.Sprintf("old_string occurs %d times, at lines %s; add surrounding lines to make it unique, or set replace_all",
			len(m.spans), numbers(linesOf(text, m.spans)))}
	}
	spans := apart(m.spans)
	out := m.apply(spans)
	if out == text {
		return nil, nil, coded{tool.CodeInvalidArguments, "old_string and new_string differ in line ends only, which edit keeps; nothing would change"}
	}
	return []byte(mark + out), linesOf(text, spans), nil
}

func invalidAt(content []byte) int {
	if utf8.Valid(content) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// linesOf is the line on which each span begins, from 1. The spans are in order.
func linesOf(text string, spans []span) []int {
	lines := make([]int, len(spans))
	line, at := 1, 0
	for i, s := range spans {
		line += strings.Count(text[at:s.start], "\n")
		at = s.start
		lines[i] = line
	}
	return lines
}

// numbers lists line numbers, as many as a line bears.
func numbers(lines []int) string {
	const most = 20
	parts := make([]string, 0, most)
	for _, n := range lines[:min(most, len(lines))] {
		parts = append(parts, strconv.Itoa(n))
	}
	text := strings.Join(parts, ", ")
	if len(lines) > most {
		text += fmt.Sprintf(" and %d more", len(lines)-most)
	}
	return text
}
