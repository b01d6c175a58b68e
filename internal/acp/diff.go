package acp

import (
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// diffs makes of a unified diff of one file the pieces that an editor shows, one
// for each hunk, and where the first change of each is.
func diffs(path, unified string) (shown []sdk.ToolCallContent, where []sdk.ToolCallLocation) {
	isNew := strings.HasPrefix(unified, "--- /dev/null\n")
	var before, after strings.Builder
	var next, change int // lines of the new file: the next, and the first that changed (0: none yet)
	open := false
	flush := func() {
		if !open {
			return
		}
		if next > 1 && change >= next {
			change = next - 1 // what changed was taken out behind it
		}
		where = append(where, sdk.ToolCallLocation{Path: path, Line: sdk.Ptr(max(change, 1))})
		old := []string{before.String()}
		if isNew {
			old = nil
		}
		shown = append(shown, sdk.ToolDiffContent(path, after.String(), old...))
		before.Reset()
		after.Reset()
	}
	var last byte
	for line := range strings.Lines(unified) {
		switch {
		case strings.HasPrefix(line, "@@ "):
			flush()
			open, last, next, change = true, 0, hunkStart(line), 0
		case !open:
		case line[0] == '\\': // the line before has no end
			if last != '+' {
				cutEnd(&before)
			}
			if last != '-' {
				cutEnd(&after)
			}
		default:
			last = line[0]
			if change == 0 && (last == '+' || last == '-') {
				change = max(next, 1)
			}
			if last != '+' {
				before.WriteString(line[1:])
			}
			if last != '-' {
				after.WriteString(line[1:])
				next++
			}
		}
	}
	flush()
	if len(where) == 0 {
		where = []sdk.ToolCallLocation{{Path: path}}
	}
	return shown, where
}

// hunkStart is the line of the new file at which a hunk begins.
func hunkStart(header string) int {
	_, rest, _ := strings.Cut(header, " +")
	number, _, _ := strings.Cut(rest, " ")
	number, _, _ = strings.Cut(number, ",")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 1
	}
	return n
}

func cutEnd(b *strings.Builder) {
	s := strings.TrimSuffix(b.String(), "\n")
	b.Reset()
	b.WriteString(s)
}
