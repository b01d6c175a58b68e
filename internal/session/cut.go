package session

import "slices"

// Cut says what a compaction takes out of a history.
type Cut struct {
	From, To int64   // seqs of the events whose messages are replaced
	Messages int     // how many those are: the first ones of History.Messages
	New      int64   // estimated tokens of them that no summary covers yet
	Prune    []int64 // seqs of long tool results among them
	// Instructions says that the instructions in force stand, if anywhere, in
	// what is replaced.
	Instructions bool
}

// LongResult is the length in bytes from which on a tool result is worth leaving out.
const LongResult = 2000

// Cut finds the cut that keeps a tail of at most the given estimated tokens.
// The input that waits for an answer is kept whatever its size. A call is never
// split from its results, and the replaced events are one range that holds no
// event of the tail. False means that there is nothing before the tail, or that
// a call is open.
func (h *History) Cut(tail int64) (Cut, bool) {
	if len(h.slots) > 0 {
		return Cut{}, false
	}
	input := len(h.entries)
	for input > 0 && h.entries[input-1].msg.Role == RoleUser {
		input--
	}
	at := input
	room := tail - h.weight(input, len(h.entries))
	for at > 0 {
		start := h.group(at)
		if room -= h.weight(start, at); room < 0 {
			break
		}
		at = start
	}
	// An earlier summary stands before messages that are older than it. Where it
	// is replaced they are too: seqs could not tell them apart.
	at = max(at, h.beyond(at))
	if at == 0 || at > input {
		return Cut{}, false
	}
	return h.cut(at), true
}

// group is the first entry of the group whose last is before end: a message of
// the model with the answers to its calls, or a user message alone.
func (h *History) group(end int) int {
	start := end - 1
	for start > 0 && h.entries[start].msg.Role == RoleTool {
		start--
	}
	return start
}

// beyond is how many entries must go, if the first at ones do, so that all that
// stay are younger.
func (h *History) beyond(at int) int {
	youngest := int64(-1)
	for _, e := range h.entries[:at] {
		youngest = max(youngest, e.seq)
	}
	for i := len(h.entries); i > at; i-- {
		if h.entries[i-1].seq < youngest {
			return i
		}
	}
	return at
}

func (h *History) cut(at int) Cut {
	c := Cut{From: h.entries[0].seq, To: h.entries[0].seq, Messages: at}
	asked := map[string]bool{} // calls whose results are a person's words
	for i := range h.entries[:at] {
		e := &h.entries[i]
		c.From, c.To = min(c.From, e.seq), max(c.To, e.seq)
		if !e.sum {
			c.New += e.weight()
		}
		for _, call := range e.msg.Calls {
			asked[call.ID] = call.Name == AskTool
		}
		if e.msg.Role == RoleTool && len(e.msg.Text) >= LongResult && !asked[e.msg.CallID] {
			c.Prune = append(c.Prune, e.seq)
		}
	}
	c.Instructions = !slices.ContainsFunc(h.entries[at:], func(e entry) bool { return e.kind == SourceAgentInstructions })
	return c
}
