package view

import "strings"

// passage is a part of a model's text on a page: prose, or the code of a fence.
type passage struct {
	Code bool
	Text string
}

// passages parts a text at its code fences, so that code keeps its columns. The
// fences' own lines go; a fence that nothing closes, as in a text that was cut
// off, reaches to the end. All else is shown as it was written.
func passages(text string) []passage {
	var list []passage
	var part strings.Builder
	fence := "" // that is open
	end := func(code bool) {
		if t := strings.Trim(part.String(), "\n"); t != "" {
			list = append(list, passage{code, t})
		}
		part.Reset()
	}
	for line := range strings.Lines(text) {
		mark := fenceOf(line)
		switch {
		case fence == "" && mark != "":
			end(false)
			fence = mark
		case fence != "" && strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark:
			end(true)
			fence = ""
		default:
			part.WriteString(line)
		}
	}
	end(fence != "")
	return list
}

// fenceOf returns the marks of a line that opens or closes code, else "". A line
// that has the marks again behind them is code within prose.
func fenceOf(line string) string {
	line = strings.TrimSpace(line)
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, c) {
			return line[:n]
		}
	}
	return ""
}

// diffLine is a line of a diff with the class of its colour.
type diffLine struct{ Class, Text string }

func diffLines(diff string) []diffLine {
	var list []diffLine
	for line := range strings.Lines(diff) {
		class := ""
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
			class = "dim"
		case strings.HasPrefix(line, "+"):
			class = "good"
		case strings.HasPrefix(line, "-"):
			class = "bad"
		}
		list = append(list, diffLine{class, line})
	}
	return list
}
