package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// Fit cuts text to a number of columns and marks the cut. Wide characters count
// as two.
func Fit(s string, columns int, mark string) string {
	if columns <= 0 {
		return ""
	}
	if runewidth.StringWidth(s) <= columns {
		return s
	}
	if runewidth.StringWidth(mark) > columns {
		mark = ""
	}
	return runewidth.Truncate(s, columns, mark)
}

// fitWords is Fit that cuts between words where that leaves most of the text.
func fitWords(s string, columns int, mark string) string {
	cut := Fit(s, columns, mark)
	kept, marked := strings.CutSuffix(cut, mark)
	if cut == s || !marked || strings.HasPrefix(s[len(kept):], " ") {
		return cut
	}
	if at := strings.LastIndexByte(kept, ' '); at > 0 && width(kept[:at]) >= columns*2/3 {
		return kept[:at] + " " + mark
	}
	return cut
}

// Took is a duration for people: 12 ms, 3.4 s, 2 m 05 s.
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
}

// Count is a number of tokens for people: 950, 12.3k, 4.5M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

// Dollars keeps small sums readable.
func Dollars(usd float64) string {
	switch {
	case usd > 0 && usd < 0.0001:
		return "<$0.0001"
	case usd != 0 && usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// CallTitle says on one line what a tool call does, from its raw arguments: the
// one that matters most, else all of them. It is not yet fitted to a width.
func CallTitle(arguments string) string {
	const enough = 4 << 10 // of a file that is written, only the beginning could be shown
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return OneLine(arguments[:min(len(arguments), enough)])
	}
	if s, ok := firstText(fields, "command", "file_path", "pattern", "description", "objective", "job_id", "code", "plan"); ok {
		return OneLine(s[:min(len(s), enough)])
	}
	var asked []struct{ Question string }
	if raw, ok := fields["questions"]; ok && json.Unmarshal(raw, &asked) == nil {
		var all []string
		for _, q := range asked {
			all = append(all, q.Question)
		}
		return OneLine(strings.Join(all, " / "))
	}
	if len(fields) == 0 {
		return ""
	}
	return OneLine(arguments[:min(len(arguments), enough)])
}

// firstText is the first of the fields that is there and a text.
func firstText(fields map[string]json.RawMessage, keys ...string) (s string, ok bool) {
	for _, key := range keys {
		if raw, there := fields[key]; there && json.Unmarshal(raw, &s) == nil {
			return s, true
		}
	}
	return "", false
}

// How much is kept of what a call was to do.
const (
	givenLines = 2000
	givenBytes = 64 << 10
)

// givenText is what a call was to do and a title has no room for: its command,
// code, plan or task, else all that it was given. What is written to a file is
// told by the diff.
func givenText(arguments string, keep Bound) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return keep(arguments)
	}
	if s, ok := firstText(fields, "command", "code", "plan", "prompt", "objective"); ok {
		return Excerpt(s, givenLines, givenBytes)
	}
	if _, ok := firstText(fields, "file_path", "pattern", "job_id"); ok || len(fields) == 0 {
		return ""
	}
	return keep(arguments)
}
