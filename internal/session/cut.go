package session

import "slices"

// Cut says what a compaction takes out of a history.
type Cut struct {
	From, To int64   // seqs of the events whose messages are replaced
	Messages int     // how many those are: the first ones of History.Messages; 0 = none are
	New      int64   // estimated tokens of them that no summary covers yet
	Prune    []int64 // seqs of long tool results among them
	Unseen   []int64 // seqs of long tool results behind them that there is no room for
	// Instructions says that the instructions in force stand, if anywhere, in
	// what is replaced.
	Instructions bool
}

// LongResult is the length in bytes from which on a tool result is worth leaving out.
const LongResult = 2000

// Cut finds the cut that keeps a tail of at most the given estimated tokens, and
// whatever its size what no model has seen yet: the results of the last calls and
// the input that waits for an answer. Only what is more than unseen tokens of that
// is left out too, the last results first: were they all, the model would ask for
// them again, for ever.
//
// A call is never split from its results, and the replaced events are one range
// that holds no event of the tail. False means that nothing can be taken out, or
// that a call is open.
func (h *History) Cut(tail, unseen int64) (Cut, bool) {
	if len(h.slots) > 0 {
		return Cut{}, false
	}
	fresh := h.unseen()
	at := fresh
	room := tail - h.weight(fresh, len(h.entries))
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
	var c Cut
	if at > 0 && at <= fresh {
		c = h.cut(at)
	}
	c.Unseen = h.over(fresh, unseen)
	return c, c.Messages > 0 || len(c.Unseen) > 0
}

// unseen is the first entry that no model has been sent: behind it are only the
// answers to the last calls, which it begins with, and the user's messages.
func (h *History) unseen() int {
	at := len(h.entries)
	for at > 0 && h.entries[at-1].msg.Role == RoleUser {
		at--
	}
	if at > 0 && h.entries[at-1].msg.Role == RoleTool {
		at = h.group(at)
	}
	return at
}

// over are the long results from an entry on without which it and all behind it
// take no more than room. A person's words are never among them.
func (h *History) over(from int, room int64) (seqs []int64) {
	least := int64(messageTokens + Tokens(Pruned))
	asked := h.asked(from, len(h.entries))
	room -= h.weight(from, len(h.entries))
	for i := len(h.entries) - 1; i >= from && room < 0; i-- {
		if e := &h.entries[i]; e.long() && !asked[e.msg.CallID] {
			seqs = append(seqs, e.seq)
			room += e.weight() - least
		}
	}
	return seqs
}

func (e *entry) long() bool { return e.msg.Role == RoleTool && len(e.msg.Text) >= LongResult }

// asked are the calls in a part of the history whose results are a person's words.
func (h *History) asked(from, to int) map[string]bool {
	asked := map[string]bool{}
	for _, e := range h.entries[from:to] {
		for _, call := range e.msg.Calls {
			asked[call.ID] = call.Name == AskTool
		}
	}
	return asked
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
	asked := h.asked(0, at)
	for i := range h.entries[:at] {
		e := &h.entries[i]
		c.From, c.To = min(c.From, e.seq), max(c.To, e.seq)
		if !e.sum {
			c.New += e.weight()
		}
		if e.long() && !asked[e.msg.CallID] {
			c.Prune = append(c.Prune, e.seq)
		}
	}
	c.Instructions = !slices.ContainsFunc(h.entries[at:], func(e entry) bool { return e.kind == SourceAgentInstructions })
	return c
}
