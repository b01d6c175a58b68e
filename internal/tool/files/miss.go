package files

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// miss says why old was not found: where the text has something that differs
// in one respect, it names that and the line.
func miss(text, old string) string {
	text, oldLF := toLF(text), toLF(old)
	if bare, ok := withoutNumbers(oldLF); ok && strings.Contains(text, bare) {
		return fmt.Sprintf("Without the line numbers that read shows it matches at line %d.", lineAt(text, bare))
	}
	if oldLF != old && strings.Contains(text, oldLF) {
		return fmt.Sprintf("With \\n for \\r\\n it matches at line %d: the line ends differ.", lineAt(text, oldLF))
	}
	if trimmed := strings.TrimRight(oldLF, "\n"); trimmed != "" && trimmed != oldLF && strings.HasSuffix(text, trimmed) {
		return fmt.Sprintf("Without its last line end it matches at line %d: the file ends there without one.", lineAt(text, trimmed))
	}
	lines, want := strings.Split(text, "\n"), strings.Split(strings.Trim(oldLF, "\n"), "\n")
	if len(lines)*len(want) > 20_000_000 {
		return again // looking for near misses would take longer than reading again
	}
	for _, near := range []struct {
		what string
		same func(string) string
	}{
		{"white space", squeeze},
		{"upper and lower case", strings.ToLower},
		{"quotes, dashes or other look-alike characters", plain},
		{"white space, case or look-alike characters", func(s string) string { return squeeze(strings.ToLower(plain(s))) }},
	} {
		if i := window(lines, want, near.same); i >= 0 {
			return fmt.Sprintf("At line %d it matches but for %s: %s", i+1, near.what, firstDifference(lines[i:], want, i+1))
		}
	}
	if i, n := longestStart(lines, want); n > 0 {
		if i+n >= len(lines) {
			return fmt.Sprintf("Its first %d lines match at line %d, then the file ends.", n, i+1)
		}
		return fmt.Sprintf("Its first %d lines match at line %d; %s", n, i+1, compared(i+n+1, lines[i+n], want[n]))
	}
	return again
}

const again = "Read the file again and copy the text as it stands."

// withoutNumbers takes off what read puts before lines, if all lines have it.
func withoutNumbers(s string) (string, bool) {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if line == "" && i == len(lines)-1 && i > 0 {
			break
		}
		number, rest, ok := strings.Cut(line, "\t")
		if digits := strings.TrimLeft(number, " "); !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			return "", false
		}
		lines[i] = rest
	}
	bare := strings.Join(lines, "\n")
	return bare, strings.Trim(bare, "\n") != ""
}

func lineAt(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return 1 + strings.Count(before, "\n")
}

// squeeze makes all runs of white space alike and drops those at the ends.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// plain puts the plain character for those that only look like it.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '‘', '’', '‚', '′':
			return '\''
		case '“', '”', '„', '″':
			return '"'
		case '‐', '‑', '‒', '–', '—', '−':
			return '-'
		}
		if r > unicode.MaxASCII && unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, s)
}

// window finds the first place where the wanted lines stand, compared by same.
// The first and the last of them may be parts of lines.
func window(lines, want []string, same func(string) string) int {
	wanted := make([]string, len(want))
	for i, w := range want {
		wanted[i] = same(w)
	}
	if strings.Join(wanted, "") == "" {
		return -1
	}
	have := make([]string, len(lines))
	for i, l := range lines {
		have[i] = same(l)
	}
	last := len(wanted) - 1
	for i := 0; i+last < len(have); i++ {
		switch {
		case last == 0 && strings.Contains(have[i], wanted[0]):
			return i
		case last > 0 && strings.HasSuffix(have[i], wanted[0]) && strings.HasPrefix(have[i+last], wanted[last]) && equal(have[i+1:i+last], wanted[1:last]):
			return i
		}
	}
	return -1
}

func equal(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// longestStart finds where most of the wanted lines, from the first, stand as they are.
func longestStart(lines, want []string) (at, n int) {
	if len(want) < 2 || want[0] == "" {
		return 0, 0
	}
	for i := range lines {
		k := 0
		for k < len(want) && i+k < len(lines) && lines[i+k] == want[k] {
			k++
		}
		if k > n {
			at, n = i, k
		}
	}
	return at, min(n, len(want)-1)
}

func firstDifference(lines, want []string, line int) string {
	for i, w := range want {
		if i < len(lines) && !strings.Contains(lines[i], w) {
			return compared(line+i, lines[i], w)
		}
	}
	return compared(line, lines[0], want[0])
}

func compared(line int, have, want string) string {
	return fmt.Sprintf("line %d is %s, old_string has %s", line, quoted(have), quoted(want))
}

// quoted shows white space; long lines are cut.
func quoted(s string) string {
	if utf8.RuneCountInString(s) > 200 {
		s = string([]rune(s)[:200]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
