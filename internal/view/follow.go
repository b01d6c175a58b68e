package view

import (
	"encoding/json"
	"fmt"
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
		s.Thinking()
	case session.TypeTurnEnd:
		s.Idle()
	case session.TypeAssistantMessage:
		if m, ok := decode[session.AssistantMessage](e); ok {
			s.Message(session.TextOf(m.Message.Content), !hasCalls(m.Message.Content))
		}
	case session.TypeToolCall:
		if c, ok := decode[session.ToolCall](e); ok {
			s.ToolStarted(c.CallID, c.Name, c.Arguments)
		}
	case session.TypeToolResult:
		if r, ok := decode[session.ToolResult](e); ok {
			s.result(r)
		}
	case session.TypePTCDispatchStart:
		if c, ok := decode[session.PTCStart](e); ok && s.o.Verbose {
			s.ToolStarted(c.SubCallID, c.Name, c.Arguments)
		}
	case session.TypePTCDispatch:
		if c, ok := decode[session.PTC](e); ok && s.o.Verbose {
			s.ToolDone(c.SubCallID, c.Name, c.Arguments, outcome(c.Error, nil, c.Content))
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
		if m, ok := decode[session.UserMessage](e); ok && m.Source.Kind == session.SourceGoal {
			s.Note(fmt.Sprintf("goal, round %d", m.Source.Round))
		}
	case session.TypeCompactionStart:
		s.Note("the conversation is long: older parts are being summed up")
	}
}

func decode[T any](e session.Event) (T, bool) {
	var v T
	err := json.Unmarshal(e.Data, &v)
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

func (s *Screen) result(r session.ToolResult) {
	name := "" // known from the call, but for one that never started
	if r.Error != nil {
		name = r.Error.Name
	}
	s.ToolDone(r.Message.ToolCallID, name, "", outcome(r.Error, r.Meta, r.Message.Content))
}

func outcome(failed *session.ToolError, meta *session.ToolMeta, content string) Outcome {
	o := Outcome{Result: content}
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
	if strings.HasPrefix(content, `{"pending":true`) {
		o.Words = "pending"
	}
	return o
}
