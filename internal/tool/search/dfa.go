package search

import (
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// dfa decides whether a line matches by one table look-up a byte, where package
// regexp needs a hundred times as long. Its states are made when they are first
// reached. It knows ASCII only: a line with another byte goes to the regexp.
// It belongs to one goroutine.
type dfa struct {
	re     *regexp.Regexp
	prog   *syntax.Prog
	ids    map[string]int32
	states []state
	next   []int32 // by state and byte; 0 = not known yet
	resets int
}

// state is what the expression may be in the middle of, and what stood before.
type state struct {
	insts []uint32 // sorted; empty-width conditions not yet judged
	prev  rune     // -1 at the start of a line, else a word character or a blank
}

// Ids of states that end a line's run; the others begin at firstState.
const (
	unknown int32 = iota
	matched
	failedLine
	firstState
)

const (
	endOfLine = utf8.RuneSelf // the column of the table after the bytes
	columns   = utf8.RuneSelf + 1
	maxStates = 2_000
	maxResets = 8
	maxInsts  = 2_000
)

// newDFA returns nil for an expression that is too large.
func newDFA(re *regexp.Regexp, prog *syntax.Prog) *dfa {
	if len(prog.Inst) > maxInsts {
		return nil
	}
	d := &dfa{re: re, prog: prog}
	d.reset()
	return d
}

func (d *dfa) reset() {
	d.ids = make(map[string]int32)
	d.states = make([]state, firstState, firstState+16)
	d.next = make([]int32, int(firstState)*columns, (int(firstState)+16)*columns)
	d.add([]uint32{uint32(d.prog.Start)}, -1) // is firstState
}

// match decides on one line without its line end.
func (d *dfa) match(line []byte) bool {
	if d.resets > maxResets {
		return d.re.Match(line) // an expression that needs too many states
	}
	at := firstState
	for _, c := range line {
		if c >= utf8.RuneSelf {
			return d.re.Match(line)
		}
		to := d.next[int(at)*columns+int(c)]
		if to == unknown {
			to = d.step(at, int(c))
		}
		if to <= matched {
			return to == matched || d.re.Match(line)
		}
		at = to
	}
	to := d.next[int(at)*columns+endOfLine]
	if to == unknown {
		to = d.step(at, endOfLine)
	}
	return to == matched
}

// step makes one entry of the table. It returns unknown when there was no room
// and all has been thrown away.
func (d *dfa) step(from int32, c int) int32 {
	s := d.states[from]
	follows := rune(c)
	if c == endOfLine {
		follows = -1
	}
	reached, isMatch := d.closure(s.insts, syntax.EmptyOpContext(s.prev, follows))
	to := failedLine
	switch {
	case isMatch:
		to = matched
	case c != endOfLine:
		set := []uint32{uint32(d.prog.Start)} // a match may begin anywhere
		for _, pc := range reached {
			if inst := &d.prog.Inst[pc]; inst.MatchRune(follows) {
				set = append(set, inst.Out)
			}
		}
		slices.Sort(set)
		prev := ' '
		if syntax.IsWordChar(follows) {
			prev = 'w'
		}
		if to = d.add(slices.Compact(set), prev); to == unknown {
			d.resets++
			d.reset()
			return unknown
		}
	}
	d.next[int(from)*columns+c] = to
	return to
}

// add finds or makes a state; unknown if there is no room for it.
func (d *dfa) add(insts []uint32, prev rune) int32 {
	key := binary.AppendVarint(nil, int64(prev))
	for _, pc := range insts {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	if id, ok := d.ids[string(key)]; ok {
		return id
	}
	if len(d.states) >= maxStates {
		return unknown
	}
	id := int32(len(d.states))
	d.ids[string(key)] = id
	d.states = append(d.states, state{insts, prev})
	d.next = append(d.next, make([]int32, columns)...)
	return id
}

// closure follows everything that takes no character, under the conditions
// that hold here. It returns the instructions that take one.
func (d *dfa) closure(from []uint32, holds syntax.EmptyOp) (reached []uint32, isMatch bool) {
	seen := make([]bool, len(d.prog.Inst))
	stack := slices.Clone(from)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &d.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			reached = append(reached, pc)
		case syntax.InstFail:
		}
	}
	return reached, false
}
