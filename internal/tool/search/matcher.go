package search

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// matcher finds the lines that match. Most patterns hold some literal text that
// every match must have: that is looked for first, which is many times faster
// than running the expression over everything. It is safe for concurrent use;
// each goroutine has its own scratch.
type matcher struct {
	re       *regexp.Regexp
	prog     *syntax.Prog
	literals [][]byte // a match has one of these in its line; nil = not known
	fold     bool     // the literals are in lower case and case is ignored
	exotic   bool     // they have letters that characters outside ASCII fold to
	pure     bool     // a literal is a match
}

// newMatcher compiles a pattern. The error says what is wrong with it; at is
// where, in characters from 1.
func newMatcher(pattern string) (m *matcher, at int, err error) {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		// Once more as it was given: an error about it must not show the flag.
		_, err2 := syntax.Parse(pattern, syntax.Perl)
		if err2 == nil {
			err2 = err
		}
		at, err = placeOf(pattern, err2)
		return nil, at, err
	}
	tree, err := syntax.Parse("(?m)"+pattern, syntax.Perl)
	if err != nil {
		return nil, 1, err
	}
	tree = tree.Simplify()
	m = &matcher{re: re}
	if m.prog, err = syntax.Compile(tree); err != nil {
		return nil, 1, err
	}
	m.pure = tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 && !strings.ContainsAny(string(tree.Rune), "\r\n")
	if m.literals = required(tree); m.literals != nil {
		m.fold = folds(tree)
		for i, lit := range m.literals {
			if m.fold {
				m.literals[i] = bytes.ToLower(lit)
				m.exotic = m.exotic || bytes.ContainsAny(m.literals[i], "ks") || !ascii(m.literals[i])
			}
			if len(lit) < 2 && !m.pure {
				m.literals = nil
				break
			}
		}
	}
	return m, 0, nil
}

func folds(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase != 0 {
		return true
	}
	for _, sub := range re.Sub {
		if folds(sub) {
			return true
		}
	}
	return false
}

// required finds literals of which every match holds at least one.
func required(re *syntax.Regexp) [][]byte {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if strings.Contains(text, "\n") || strings.ContainsRune(text, utf8.RuneError) {
			return nil
		}
		return [][]byte{[]byte(text)}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best [][]byte
		for _, sub := range re.Sub {
			if lits := required(sub); lits != nil && shortest(lits) > shortest(best) {
				best = lits
			}
		}
		return best
	case syntax.OpAlternate:
		const most = 8
		var all [][]byte
		for _, sub := range re.Sub {
			lits := required(sub)
			if lits == nil || len(all)+len(lits) > most {
				return nil
			}
			all = append(all, lits...)
		}
		return all
	}
	return nil
}

func shortest(lits [][]byte) int {
	n := 0
	for i, l := range lits {
		if i == 0 || len(l) < n {
			n = len(l)
		}
	}
	return n
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// scratch is what one goroutine needs for one search.
type scratch struct {
	buf   []byte
	lower []byte
	next  []int
	dfa   *dfa
}

// lines calls hit with the bounds of each line of block that matches, in order,
// without its line end.
func (m *matcher) lines(s *scratch, block []byte, hit func(from, to int)) {
	if s.dfa == nil {
		s.dfa = newDFA(m.re, m.prog)
	}
	match := m.re.Match
	if s.dfa != nil {
		match = s.dfa.match
	}
	if m.literals != nil && (!m.fold || !m.exotic || ascii(block)) {
		m.byLiteral(s, block, match, hit)
		return
	}
	for at := 0; at < len(block); {
		from, to, next := lineAround(block, at)
		if match(block[from:to]) {
			hit(from, to)
		}
		at = next
	}
}

// byLiteral runs the expression on lines that hold a literal.
func (m *matcher) byLiteral(s *scratch, block []byte, match func([]byte) bool, hit func(from, to int)) {
	hay := block
	if m.fold {
		s.lower = append(s.lower[:0], block...)
		for i, c := range s.lower {
			if c >= 'A' && c <= 'Z' {
				s.lower[i] = c | 0x20
			}
		}
		hay = s.lower
	}
	s.next = s.next[:0]
	for range m.literals {
		s.next = append(s.next, -1)
	}
	for at := 0; at < len(block); {
		first := len(block)
		for i, lit := range m.literals {
			if s.next[i] < at {
				s.next[i] = len(block)
				if j := bytes.Index(hay[at:], lit); j >= 0 {
					s.next[i] = at + j
				}
			}
			first = min(first, s.next[i])
		}
		if first >= len(block) {
			return
		}
		from, to, next := lineAround(block, first)
		if m.pure || match(block[from:to]) {
			hit(from, to)
		}
		at = next
	}
}

// lineAround is the line that holds at, without its line end, and where the next begins.
func lineAround(block []byte, at int) (from, to, next int) {
	from = bytes.LastIndexByte(block[:at], '\n') + 1
	to, next = len(block), len(block)
	if i := bytes.IndexByte(block[at:], '\n'); i >= 0 {
		to, next = at+i, at+i+1
	}
	if to > from && block[to-1] == '\r' {
		to--
	}
	return from, to, next
}

// placeOf words an error of the parser and finds its place in the pattern.
func placeOf(pattern string, err error) (int, error) {
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return 1, err
	}
	i := strings.Index(pattern, bad.Expr)
	switch bad.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		i = oddParen(pattern)
	case syntax.ErrTrailingBackslash:
		i = len(pattern) - 1
	}
	text := bad.Code.String()
	if bad.Expr != "" && bad.Expr != pattern {
		text += " `" + bad.Expr + "`"
	}
	if bad.Code == syntax.ErrInvalidPerlOp || bad.Code == syntax.ErrInvalidEscape {
		text += " (this is RE2: no look-around, no back references)"
	}
	return utf8.RuneCountInString(pattern[:max(i, 0)]) + 1, errors.New(text)
}

// oddParen finds the parenthesis that has no other half.
func oddParen(pattern string) int {
	var open []int
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			if end := classEnd(pattern, i); end >= 0 {
				i = end
			}
		case '(':
			open = append(open, i)
		case ')':
			if len(open) == 0 {
				return i
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return 0
	}
	return open[len(open)-1]
}
