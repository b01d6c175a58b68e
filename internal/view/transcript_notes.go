package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"deepseek/internal/session"
)

// note keeps what is worth telling of the events that are no messages and no
// calls. What is major is shown folded as well.
func (b *Builder) note(e session.Event) error {
	switch e.Type {
	case session.TypeRequestHeader:
		return with(e, b.header)
	case session.TypeLLMRetry:
		return with(e, func(e session.Event, v session.Retry) {
			b.remark(e, false, "attempt %d failed: %s: %s; tried again after %s", v.Attempt, v.Error.Code, v.Error.Message, Took(time.Duration(v.DelayMS)*time.Millisecond))
		})
	case session.TypeCompactionEnd:
		return with(e, func(e session.Event, v session.CompactionEnd) {
			switch {
			case v.OK:
			case v.Error != nil:
				b.remark(e, true, "the conversation could not be summed up: %s: %s", OneLine(v.Error.Code), OneLine(v.Error.Message))
			default:
				b.remark(e, true, "the conversation could not be summed up")
			}
		})
	case session.TypeCompactionPrune:
		return with(e, func(e session.Event, v session.CompactionPrune) {
			b.remark(e, false, "%s left out for the model from here on", count(len(v.Seqs), "older result"))
		})
	case session.TypeSettings:
		return with(e, func(e session.Event, v session.Settings) {
			text := "mode " + v.Mode
			if v.Mode == "timed" {
				text += fmt.Sprintf(", timeout %d s", v.Timeout)
			}
			b.remark(e, false, "%s, permission %s, approve %s", text, v.Permission, v.Approve)
		})
	case session.TypeApprovalAsked:
		return with(e, func(e session.Event, v session.ApprovalAsked) {
			b.approvals[v.CallID] = strings.Clone(Fit(permitted(v), 400, "…"))
			text := "approval asked: " + OneLine(v.Title)
			if i := b.calls[v.CallID]; i == nil || i.given == "" || !strings.Contains(i.given, v.Detail) {
				text += "\n" + b.keep(v.Detail) // a diff, which nothing else may show
			}
			b.about(v.CallID, b.remark(e, false, "%s", strings.TrimRight(text, "\n")))
		})
	case session.TypeApprovalDecided:
		return with(e, b.decided)
	case session.TypeTodoWrite:
		return with(e, func(e session.Event, v session.TodoWrite) {
			marks := map[string]string{"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
			done, text := 0, ""
			for _, t := range v.Todos {
				if t.Status == "completed" {
					done++
				}
				text += "\n" + marks[t.Status] + " " + OneLine(t.Content)
			}
			b.remark(e, false, "todo list: %d of %d done%s", done, len(v.Todos), text)
		})
	case session.TypeSubagent:
		return with(e, func(e session.Event, v map[string]json.RawMessage) {
			id, text := "", fields(v)
			for _, key := range []string{"childSessionId", "sessionId", "session", "id"} {
				if id = words(v[key]); id != "" {
					text = id
					break
				}
			}
			what := "sub-agent "
			if parent := words(v["parentSessionId"]); parent != "" { // it stands in the sub-agent's own log
				what, id, text = "delegated by session ", parent, parent
			}
			if d := words(v["description"]); d != "" && id != "" {
				text += ": " + d
			}
			b.remark(e, true, "%s%s", what, text).Session = id
		})
	case session.TypeEndSeed:
		b.remark(e, true, "up to here inherited from the parent session")
	case session.TypeGoalChange:
		return with(e, func(e session.Event, v session.GoalChange) { b.remark(e, true, "%s", goalWords(v.Goal)) })
	case session.TypePlanMode:
		return with(e, func(e session.Event, v session.PlanMode) { b.remark(e, true, "%s", planWords(v)) })
	case session.TypePermissionPreset, session.TypeTitle:
		return with(e, func(e session.Event, v map[string]json.RawMessage) {
			b.remark(e, e.Type != session.TypeTitle, "%s %s", strings.NewReplacer("session/", "", "/", " ").Replace(e.Type), fields(v))
		})
	}
	return nil // told by other events
}

func (b *Builder) remark(e session.Event, major bool, format string, args ...any) *Item {
	return b.add(e, Item{Kind: KindNote, Event: e.Type, major: major, Text: strings.TrimRight(fmt.Sprintf(format, args...), " ")})
}

// header tells which model works from here on.
func (b *Builder) header(e session.Event, v struct {
	Header struct {
		Config session.RequestConfig `json:"config"`
	} `json:"header"`
},
) {
	c := v.Header.Config
	if c.Model == b.model.Model && c.Provider == b.model.Provider && c.ReasoningEffort == b.model.ReasoningEffort {
		return
	}
	b.model = c
	text := "model " + c.Model
	if c.ReasoningEffort != "" {
		text += ", effort " + c.ReasoningEffort
	}
	b.remark(e, false, "%s", text)
}

// permitted says on one line what an approval is about: of a command its beginning too.
func permitted(v session.ApprovalAsked) string {
	what := OneLine(v.Title)
	if strings.HasPrefix(v.Detail, "---") { // a diff; the title names its file
		return what
	}
	if detail := OneLine(v.Detail[:min(len(v.Detail), 1<<10)]); detail != "" && !strings.Contains(what, detail) {
		what += ": " + detail
	}
	return what
}

func (b *Builder) decided(e session.Event, v session.ApprovalDecided) {
	what := OneLine(b.approvals[v.CallID])
	delete(b.approvals, v.CallID)
	var text string
	denied := v.Decision == session.DecisionDenied
	switch {
	case v.Canceled:
		text = "approval not decided, the run was cancelled: " + what
	case denied:
		text = "approval denied: " + what
		if v.Message != "" {
			text += "\n" + v.Message
		}
	case v.Decision == session.DecisionSession && v.Prefix != "":
		text = fmt.Sprintf("approved for this session (%s): %s", OneLine(v.Prefix), what)
	default:
		text = fmt.Sprintf("approved (%s): %s", OneLine(v.Decision), what)
	}
	b.about(v.CallID, b.remark(e, denied, "%s", text))
}

// about puts a note behind the call that it is about.
func (b *Builder) about(callID string, i *Item) {
	i.Parent = callID
	b.nest(i)
}

// fields lists the plain values of an object: key value, key value.
func fields(v map[string]json.RawMessage) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if text := words(v[key]); text != "" {
			list = append(list, key+" "+text)
		}
	}
	return strings.Join(list, ", ")
}

// words is a plain JSON value on one line, a string as it is; "" of any other.
func words(raw json.RawMessage) string {
	const enough = 400 // bytes
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return OneLine(Excerpt(s, 4, enough))
	}
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null" {
		return ""
	}
	return string(raw)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
