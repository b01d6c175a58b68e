package session

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// subCall is a sub-call of code that has no result yet, kept for the text that
// repair writes should the program end before there is one.
type subCall struct {
	id, name  string
	arguments string // cut
	ended     bool
	code      string // of one that failed
	answer    string // of a question: its result, in full
	fate      fate
}

// Limits of that text. Questions and their answers are never left out.
const (
	keptSubCalls  = 100
	keptArguments = 80 // bytes
)

// subCalls folds the sub-calls of one open call. It keeps those that have no
// end, the questions, and the first of the others.
type subCalls struct {
	kept []subCall
	more int // ended, and not kept
}

func (s *subCalls) start(v PTCStart) {
	s.kept = append(s.kept, subCall{id: v.SubCallID, name: v.Name, arguments: cutText(v.Arguments, keptArguments)})
}

func (s *subCalls) end(v PTC) {
	i := slices.IndexFunc(s.kept, func(c subCall) bool { return c.id == v.SubCallID })
	if i < 0 {
		return
	}
	c := &s.kept[i]
	c.ended = true
	if v.IsError {
		c.code, _ = codeOf(v.Content, v.IsError, v.Error)
	}
	if c.name == AskTool {
		c.answer = v.Content
	} else if i >= keptSubCalls {
		s.kept = slices.Delete(s.kept, i, i+1)
		s.more++
	}
}

// open is the sub-call with the id if it has no end yet, else nil.
func (s *subCalls) open(id string) *subCall {
	i := slices.IndexFunc(s.kept, func(c subCall) bool { return c.id == id && !c.ended })
	if i < 0 {
		return nil
	}
	return &s.kept[i]
}

func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// text goes on from the text of an interrupted call: what the code had done and
// learnt. It is empty where there were no sub-calls.
func (s *subCalls) text(asked *Questions) string {
	var ended, open, untouched strings.Builder
	for _, c := range s.kept {
		switch {
		case c.name == AskTool:
		case c.ended && c.code != "":
			fmt.Fprintf(&ended, "\n- %s: %s %s failed: %s", c.id, c.name, c.arguments, c.code)
		case c.ended:
			fmt.Fprintf(&ended, "\n- %s: %s %s", c.id, c.name, c.arguments)
		case c.fate.untouched() != "":
			fmt.Fprintf(&untouched, "\n- %s: %s %s: %s", c.id, c.name, c.arguments, c.fate.untouched())
		case c.fate.child != nil:
			fmt.Fprintf(&open, "\n- %s: %s %s: %s", c.id, c.name, c.arguments, c.fate.subagent())
		default:
			fmt.Fprintf(&open, "\n- %s: %s %s", c.id, c.name, c.arguments)
		}
	}
	if s.more > 0 {
		fmt.Fprintf(&ended, "\n- and %d more", s.more)
	}
	return part("Calls that the code made and that had ended:", ended.String()) +
		part("Calls that were running, and of which it is not known what they did:", open.String()) +
		part("Calls of it that did nothing, since they had no approval:", untouched.String()) +
		s.questions(asked)
}

// questions is how the questions stand that the code asked: answers in full, and
// of the others whether one can still come. It is empty where none was asked.
func (s *subCalls) questions(asked *Questions) string {
	var list strings.Builder
	for _, c := range s.kept {
		if c.name != AskTool {
			continue
		}
		fmt.Fprintf(&list, "\n- %s, asked with %s: ", c.id, c.arguments)
		switch {
		case c.ended && c.code == "": // its answers, or that it is pending
			list.WriteString(c.answer)
		case asked.answerable(c.id):
			list.WriteString("no answer yet. This is neither a skip nor a permission. It stays answerable: an answer that comes later names this callId.")
		case c.ended:
			fmt.Fprintf(&list, "not answered (%s)", c.code)
		default:
			list.WriteString("no answer. " + goneWithCall)
		}
	}
	return part("Questions that the code asked, with their results:", list.String())
}

func part(head, list string) string {
	if list == "" {
		return ""
	}
	return "\n" + head + list
}
