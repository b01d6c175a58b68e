package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"deepseek/internal/session"
)

// Event shows what a logged event says. Deltas, the session's id, questions and
// the summary are no events and are shown by their own methods. An event that
// cannot be read is left out here: whoever reads the log for its meaning tells.
func (s *Screen) Event(e session.Event) {
	switch e.Type {
	case session.TypeStepStart, session.TypeLLMRetryStarted:
		s.Thinking(eventTime(e))
	case session.TypeTurnEnd:
		s.discard()
		s.Idle()
	case session.TypeAssistantMessage:
		if m, ok := decode[session.AssistantMessage](e); ok {
			s.Message(session.TextOf(m.Message.Content), !hasCalls(m.Message.Content))
		}
	case session.TypeToolCall:
		if c, ok := decode[session.ToolCall](e); ok {
			s.ToolStarted(c.CallID, c.Name, c.Arguments, eventTime(e))
		}
	case session.TypeToolResult:
		if r, ok := decode[session.ToolResult](e); ok {
			s.result(e, r)
		}
	case session.TypePTCDispatchStart:
		c, ok := decode[session.PTCStart](e)
		switch {
		case ok && s.o.Verbose:
			s.ToolStarted(c.SubCallID, c.Name, c.Arguments, eventTime(e))
		case ok:
			s.locked(func() {
				s.subs[c.SubCallID] = true
				s.begun(c.SubCallID)
			})
		}
	case session.TypePTCDispatch:
		c, ok := decode[session.PTC](e)
		s.locked(func() { delete(s.subs, c.SubCallID) })
		if ok && s.o.Verbose {
			s.ToolDone(c.SubCallID, c.Name, c.Arguments, outcome(e, c.Error, nil, c.Content))
		}
	case session.TypeLLMRetry:
		if r, ok := decode[session.Retry](e); ok {
			s.Retry(r.Attempt, time.Duration(r.DelayMS)*time.Millisecond, r.Error.Code, r.Error.Message)
		}
	case session.TypeGoalChange:
		if c, ok := decode[session.GoalChange](e); ok {
			s.Note(goalWords(c.Goal))
		}
	case session.TypePlanMode:
		if p, ok := decode[session.PlanMode](e); ok {
			s.Note(planWords(p))
		}
	case session.TypeUserMessage:
		if m, ok := decode[session.UserMessage](e); ok {
			s.entered(m)
		}
	case session.TypeCompactionStart:
		s.discard()
		s.Note("the conversation is long: older parts are being summed up")
	}
}

// entered tells of messages that a run took in by itself.
func (s *Screen) entered(m session.UserMessage) {
	switch m.Source.Kind {
	case session.SourceGoal:
		s.Note(fmt.Sprintf("goal, round %d", m.Source.Round))
	case session.SourceQuestionReply:
		callID := m.Source.CallID
		text := "late answer to " + OneLine(callID)
		if of, questions, answers, ok := session.ParseReply(session.TextOf(m.Content)); ok && of == callID {
			text += ": " + brief(questions, answers)
		}
		s.Note(text)
	}
}

// brief is a batch of answers on one line.
func brief(questions []session.Question, answers []session.Answer) string {
	var list []string
	for _, q := range questions {
		a, _ := answerOf(q.ID, answers)
		given := a.Selected
		if a.Custom != "" {
			given = append(slices.Clip(given), a.Custom)
		}
		text := strings.Join(given, ", ")
		if text == "" {
			text = "(skipped)"
		}
		if len(questions) > 1 {
			text = q.ID + " = " + text
		}
		list = append(list, OneLine(Excerpt(text, 4, 400)))
	}
	return strings.Join(list, "; ")
}

func decode[T any](e session.Event) (T, bool) {
	var v T
	err := session.Decode(e, &v)
	return v, err == nil
}

func hasCalls(blocks []session.Block) bool {
	for _, b := range blocks {
		if b.Type == session.BlockToolCall {
			return true
		}
	}
	return false
}

func (s *Screen) result(e session.Event, r session.ToolResult) {
	name := "" // known from the call, but for one that never started
	if r.Error != nil {
		name = r.Error.Name
	}
	s.ToolDone(r.Message.ToolCallID, name, "", outcome(e, r.Error, r.Meta, r.Message.Content))
}

// eventTime is when an event was logged.
func eventTime(e session.Event) time.Time { return time.UnixMilli(e.Time) }

func outcome(e session.Event, failed *session.ToolError, meta *session.ToolMeta, content string) Outcome {
	o := Outcome{Result: content, At: eventTime(e)}
	if failed != nil {
		o.Code = failed.Code
	}
	if meta != nil {
		o.Took = time.Duration(meta.DurationMS) * time.Millisecond
		switch {
		case meta.Signal != "":
			o.Words = meta.Signal
		case meta.ExitCode != nil && *meta.ExitCode != 0:
			o.Words = fmt.Sprintf("exit %d", *meta.ExitCode)
		}
	}
	return o
}
