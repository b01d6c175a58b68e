package session

import (
	"fmt"
	"slices"
)

// Inbox folds the splices of the log into the two lists of messages that no
// turn has admitted yet.
//
// A message is queued (in a list), then claimed (removed by a splice without
// an outcome), then admitted (user/message with its id). One that was claimed
// by a turn which ended without admitting it is put back at the head of its
// list by the fold; no event says so.
type Inbox struct {
	nextTurn []UserMessage
	nextStep []UserMessage
	claimed  []claim
}

type claim struct {
	target string
	msg    UserMessage
}

// Apply consumes the next event.
func (in *Inbox) Apply(e Event) error {
	switch e.Type {
	case TypeInboxSpliced:
		var s InboxSpliced
		if err := decode(e, &s); err != nil {
			return err
		}
		return in.splice(e, s)
	case TypeUserMessage:
		if len(in.claimed) == 0 {
			return nil
		}
		var m UserMessage
		if err := decode(e, &m); err != nil {
			return err
		}
		in.claimed = slices.DeleteFunc(in.claimed, func(c claim) bool { return c.msg.ID == m.ID })
	case TypeTurnEnd:
		in.putBack()
	}
	return nil
}

func (in *Inbox) splice(e Event, s InboxSpliced) error {
	list := in.list(s.Target)
	if list == nil {
		return fmt.Errorf("%w: event %d: no inbox list %q", ErrDamaged, e.Seq, s.Target)
	}
	if s.Start < 0 || s.RemovedCount < 0 || s.Start > len(*list) || s.RemovedCount > len(*list)-s.Start {
		return fmt.Errorf("%w: event %d: splice at %d of %d does not fit %d messages", ErrDamaged, e.Seq, s.Start, s.RemovedCount, len(*list))
	}
	if s.Outcome == "" {
		for _, m := range (*list)[s.Start : s.Start+s.RemovedCount] {
			in.claimed = append(in.claimed, claim{s.Target, m})
		}
	}
	*list = slices.Replace(*list, s.Start, s.Start+s.RemovedCount, s.Inserted...)
	return nil
}

func (in *Inbox) putBack() {
	for _, c := range slices.Backward(in.claimed) {
		list := in.list(c.target)
		*list = slices.Insert(*list, 0, c.msg)
	}
	in.claimed = nil
}

func (in *Inbox) list(target string) *[]UserMessage {
	switch target {
	case NextTurn:
		return &in.nextTurn
	case NextStep:
		return &in.nextStep
	}
	return nil
}

// Queued is a copy of one list, oldest first.
func (in *Inbox) Queued(target string) []UserMessage {
	if l := in.list(target); l != nil {
		return slices.Clone(*l)
	}
	return nil
}

// Len counts the messages of one list.
func (in *Inbox) Len(target string) int {
	if l := in.list(target); l != nil {
		return len(*l)
	}
	return 0
}

// Reply finds the reply to a question that is queued, or claimed and not yet
// admitted: as long as there is one, the question takes no other answer.
func (in *Inbox) Reply(callID string) (m UserMessage, queued, found bool) {
	is := func(m UserMessage) bool {
		return m.Source.Kind == SourceQuestionReply && m.Source.CallID == callID
	}
	for _, l := range [][]UserMessage{in.nextStep, in.nextTurn} {
		if i := slices.IndexFunc(l, is); i >= 0 {
			return l[i], true, true
		}
	}
	for _, c := range in.claimed {
		if is(c.msg) {
			return c.msg, false, true
		}
	}
	return UserMessage{}, false, false
}

// last is the latest message of a kind of source that is queued, or claimed and
// not yet admitted.
func (in *Inbox) last(kind string) (m UserMessage, found bool) {
	for _, l := range [][]UserMessage{in.nextStep, in.nextTurn} {
		for _, q := range slices.Backward(l) {
			if q.Source.Kind == kind {
				return q, true
			}
		}
	}
	for _, c := range slices.Backward(in.claimed) {
		if c.msg.Source.Kind == kind {
			return c.msg, true
		}
	}
	return UserMessage{}, false
}

// Discard is the splice that takes one queued message out, if it is there.
func (in *Inbox) Discard(id string) (InboxSpliced, bool) {
	for _, target := range []string{NextStep, NextTurn} {
		l := *in.list(target)
		if i := slices.IndexFunc(l, func(m UserMessage) bool { return m.ID == id }); i >= 0 {
			return InboxSpliced{Target: target, Start: i, RemovedCount: 1, Inserted: []UserMessage{}, Outcome: OutcomeCanceled}, true
		}
	}
	return InboxSpliced{}, false
}

// Insert is the splice that queues a message at the end of a list.
func (in *Inbox) Insert(target string, m UserMessage) InboxSpliced {
	return InboxSpliced{Target: target, Start: in.Len(target), Inserted: []UserMessage{m}}
}

// Ahead is the splice that queues a message before all of a list but those of
// its own kind of source.
func (in *Inbox) Ahead(target string, m UserMessage) InboxSpliced {
	start := 0
	if l := in.list(target); l != nil {
		for i, q := range *l {
			if q.Source.Kind == m.Source.Kind {
				start = i + 1
			}
		}
	}
	return InboxSpliced{Target: target, Start: start, Inserted: []UserMessage{m}}
}

// Claim is the splices by which a step takes its input, and the messages in
// the order of their admission: all of next-step, and for the first step of a
// turn then the oldest of next-turn. A round of the goal lets all others pass.
func (in *Inbox) Claim(firstStep bool) (splices []InboxSpliced, msgs []UserMessage) {
	if n := len(in.nextStep); n > 0 {
		splices = append(splices, InboxSpliced{Target: NextStep, RemovedCount: n, Inserted: []UserMessage{}})
		msgs = append(msgs, in.nextStep...)
	}
	if firstStep && len(in.nextTurn) > 0 {
		i := max(0, slices.IndexFunc(in.nextTurn, func(m UserMessage) bool { return m.Source.Kind != SourceGoal }))
		splices = append(splices, InboxSpliced{Target: NextTurn, Start: i, RemovedCount: 1, Inserted: []UserMessage{}})
		msgs = append(msgs, in.nextTurn[i])
	}
	return splices, msgs
}
