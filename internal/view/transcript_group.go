package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"deepseek/internal/session"
)

// Part is a piece of a turn: one item that is always shown, or a group of what
// happened between two such, which folding replaces by its summary.
type Part struct {
	Item    *Item   // nil of a group
	Group   []*Item // in the order of the log
	Summary string  // of a group; "" where there is nothing to say of it
}

// Parts cuts a turn into its parts. What a person wrote, questions, the last
// text of the model, late answers and what must not be missed stand for
// themselves.
func (t *Turn) Parts() []Part {
	final := -1
	for n, i := range t.Items {
		if i.Kind == KindAssistant && i.Text != "" {
			final = n
		}
	}
	var parts []Part
	var group []*Item
	flush := func() {
		if len(group) > 0 {
			parts = append(parts, Part{Group: group, Summary: summary(group)})
			group = nil
		}
	}
	for n, i := range t.Items {
		switch {
		case n == final:
			if i.Reasoning != "" { // thoughts fold, the text does not
				thought := *i
				thought.Text = ""
				group = append(group, &thought)
			}
			fallthrough
		case i.Kind == KindQuestion, i.Kind == KindReply, i.Kind == KindNote && i.major,
			i.Kind == KindUser && i.standsAlone():
			flush()
			parts = append(parts, Part{Item: i})
		default:
			group = append(group, i)
		}
	}
	flush()
	return parts
}

// standsAlone tells whether a message is what a person, or the goal in their
// place, asked for. Others are the program's own, and fold.
func (i *Item) standsAlone() bool {
	return i.Source.Kind == session.SourceUser || i.Source.Kind == session.SourceGoal
}

// summary is a group on one line: what was called how often, and what else is in it.
func summary(group []*Item) string {
	type tally struct{ calls, failed int }
	var names []string
	tools := map[string]*tally{}
	calls, texts := 0, 0
	var senders []string
	for _, i := range group {
		switch i.Kind {
		case KindTool:
			calls++
			n := i.Name
			if n == "" {
				n = "unknown"
			}
			if tools[n] == nil {
				tools[n] = &tally{}
				names = append(names, n)
			}
			tools[n].calls++
			if i.failed() {
				tools[n].failed++
			}
		case KindAssistant:
			if i.Text != "" {
				texts++
			}
		case KindUser:
			if who := i.from(); !slices.Contains(senders, who) {
				senders = append(senders, who)
			}
		}
	}
	var list []string
	list = append(list, senders...)
	if calls > 0 {
		var each []string
		for _, n := range names {
			text := OneLine(n)
			if t := tools[n]; t.calls > 1 {
				text += fmt.Sprintf(" ×%d", t.calls)
			}
			if f := tools[n].failed; f > 0 {
				text += fmt.Sprintf(" (%d failed)", f)
			}
			each = append(each, text)
		}
		list = append(list, count(calls, "call")+": "+strings.Join(each, ", "))
	}
	if texts > 0 {
		list = append(list, count(texts, "remark"))
	}
	return strings.Join(list, "; ")
}

// ending says how a turn ended.
func (t *Turn) ending() string {
	r := t.Reason
	if r == nil {
		return "running"
	}
	switch {
	case r.Kind == session.EndError && r.Error != nil:
		text := r.Error.Code + ": " + r.Error.Message
		if r.Error.Status != 0 {
			text += fmt.Sprintf(" (HTTP %d)", r.Error.Status)
		}
		return OneLine("error " + text)
	case r.Cause != nil && r.Cause.Hook != "":
		return OneLine(r.Kind + " by " + r.Cause.Hook)
	case r.Cause != nil:
		return OneLine(r.Kind + " by " + r.Cause.Kind)
	}
	return OneLine(r.Kind)
}

// outcome says on one line how a call ended; "" if well and at once.
func (i *Item) outcome() string {
	switch {
	case !i.ended && i.started:
		return "running"
	case !i.ended:
		return "not started yet"
	}
	var words []string
	if m := i.Meta; m != nil {
		if m.DurationMS > 0 {
			words = append(words, Took(time.Duration(m.DurationMS)*time.Millisecond))
		}
		if m.ExitCode != nil && *m.ExitCode != 0 {
			words = append(words, fmt.Sprintf("exit %d", *m.ExitCode))
		}
		if m.Signal != "" {
			words = append(words, OneLine(m.Signal))
		}
	}
	if i.Code != "" {
		words = append(words, OneLine(i.Code))
	}
	return strings.Join(words, ", ")
}

// waits tells whether a question can still be answered.
func (i *Item) waits() bool {
	return i.State == string(session.QuestionOpen) || i.State == string(session.QuestionContinued)
}

// answerable tells whether an answer is wanted: it waits, and none is queued.
func (i *Item) answerable() bool {
	return i.Kind == KindQuestion && i.waits() && !i.Queued && i.started
}

// standing says where a question stands.
func (i *Item) standing() string {
	switch session.QuestionState(i.State) {
	case session.QuestionOpen:
		if i.Queued {
			return "open, an answer is queued, not yet delivered"
		}
		if !i.started {
			return "not asked yet"
		}
		return "open"
	case session.QuestionContinued:
		if i.Queued {
			return "pending, an answer is queued, not yet delivered"
		}
		return "pending"
	case session.QuestionSettled:
		if i.Late {
			return "answered late"
		}
		return "answered"
	}
	if i.SameAs != "" {
		return "asked already as " + OneLine(i.SameAs)
	}
	if i.Code != "" {
		return "not answered: " + OneLine(i.Code)
	}
	return "not answered"
}

// answerOf finds the answer to a question of a batch.
func answerOf(id string, batch []session.Answer) (session.Answer, bool) {
	for _, a := range batch {
		if a.ID == id {
			return a, true
		}
	}
	return session.Answer{}, false
}

// from says who sent a message, "" of the person.
func (i *Item) from() string {
	if i.Source == nil {
		return ""
	}
	switch i.Source.Kind {
	case session.SourceUser, "":
		return ""
	case session.SourceGoal:
		return fmt.Sprintf("goal, round %d", i.Source.Round)
	case session.SourceSubagentSettled:
		return "report of a sub-agent"
	case session.SourceAgentInstructions:
		return "instructions of the project"
	}
	return OneLine(i.Source.Kind)
}
