package session

// messageTokens is what a message costs besides its text: role and separators.
const messageTokens = 8

// Size is how many tokens the history takes: what the provider counted at its
// last answer, and an estimate of what came since. Once compaction or another
// header has made that count void, all is estimated; then counted is false, and
// what stands before the messages (system text and tools) is not in the size.
func (h *History) Size() (tokens int64, counted bool) {
	return h.counted + h.weight(h.upTo, len(h.entries)), h.counted > 0
}

// Weight estimates the tokens of all messages, whatever a provider counted: a
// measure by which two states of a history compare.
func (h *History) Weight() int64 { return h.weight(0, len(h.entries)) }

// WeightOf is the Weight of the first n messages.
func (h *History) WeightOf(n int) int64 { return h.weight(0, n) }

func (h *History) weight(from, to int) int64 {
	sum := int64(0)
	for i := from; i < to; i++ {
		sum += h.entries[i].weight()
	}
	return sum
}

// weight estimates once; an entry that is still open changes, and costs little.
func (e *entry) weight() int64 {
	if e.tokens > 0 {
		return e.tokens
	}
	n := messageTokens + Tokens(e.msg.Text) + Tokens(e.msg.Reasoning)
	for _, c := range e.msg.Calls {
		n += messageTokens + Tokens(c.ID) + Tokens(c.Name) + Tokens(c.Arguments)
	}
	if !e.open {
		e.tokens = int64(n)
	}
	return int64(n)
}

// count takes over what the provider counted for the message of the given seq
// and all before it. A server that counts nothing is not believed.
func (h *History) count(u *Usage, seq int64) {
	if u == nil || u.InputTokens+u.CacheReadTokens <= 0 {
		return
	}
	h.counted = u.InputTokens + u.CacheReadTokens + u.OutputTokens
	h.upTo = len(h.entries)
	for h.upTo > 0 && h.entries[h.upTo-1].open && h.entries[h.upTo-1].seq == seq {
		h.upTo-- // the places of the answers
	}
}

// recount voids the provider's count.
func (h *History) recount() { h.counted, h.upTo = 0, 0 }
