// Package delegate holds the tool by which an agent has another one, a
// sub-agent, do a part of its work. How a sub-agent is begun and ended is the
// Runner's; here is what the model may ask for, and what it reads of the result.
package delegate

import (
	"context"
	_ "embed" // the texts
	"fmt"
	"strings"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	//go:embed delegate.md
	text string
	//go:embed delegate.json
	schema string
)

// Name is the tool's.
const Name = "delegate"

// MaxDepth is how many agents may stand above one: a session of this depth
// delegates nothing.
const MaxDepth = 3

// CodeDepth refuses a call in a session of that depth.
const CodeDepth = "DELEGATION_DEPTH"

// codePrefix is what the codes of sub-agents that did not complete begin with.
// The kind of their end follows, as in SUBAGENT_MAX_STEPS.
const codePrefix = "SUBAGENT_"

// Task is what a sub-agent is to do.
type Task struct {
	CallID      string
	Description string // one line, for people
	Prompt      string
}

// Report is what became of a sub-agent. The caller owned it from its beginning
// to its end, so the result is the sub-agent's.
type Report struct {
	SessionID string
	Result    session.RunResult
	End       session.Reason
}

// Runner begins a sub-agent and returns when it has ended, with nothing of it
// running. When ctx ends the sub-agent is cancelled. The report is as far as it
// is known; the error says what kept the sub-agent from its work, or from
// keeping what came of it. It may be called from several goroutines at once.
type Runner func(context.Context, Task) (Report, error)

type args struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
}

// New makes the tool, for a session of the given depth.
func New(depth int, run Runner) tool.Tool {
	return tool.Define(tool.Definition{
		Name: Name, Text: text, Schema: schema, Traits: tool.Traits{Parallel: true},
	}, func(ctx context.Context, call tool.Call, in args) tool.Result {
		t := Task{CallID: call.ID, Description: oneLine(in.Description), Prompt: in.Prompt}
		switch {
		case t.Description == "":
			return tool.Errorf(tool.CodeInvalidArguments, "description: is blank")
		case strings.TrimSpace(t.Prompt) == "":
			return tool.Errorf(tool.CodeInvalidArguments, "prompt: is blank")
		case depth >= MaxDepth:
			return tool.Errorf(CodeDepth, "sub-agents may be nested %d deep, and this session is at depth %d. Do the task yourself.", MaxDepth, depth)
		}
		r, err := run(ctx, t)
		return result(ctx, r, err)
	})
}

// maxDescription bounds what stands on cards and in lists.
const maxDescription = 100 // characters

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxDescription {
		return string(r[:maxDescription-1]) + "…"
	}
	return s
}

// result is what the model reads: the final response and how it ended. Of a
// sub-agent that did not complete it is an error, with what it said so far.
func result(ctx context.Context, r Report, err error) tool.Result {
	kind := r.End.Kind
	if r.SessionID == "" {
		if err == nil || ctx.Err() != nil {
			return tool.Errorf(tool.CodeAborted, "the run was cancelled before the sub-agent was begun; nothing was done")
		}
		return tool.Errorf(codePrefix+"ERROR", "no sub-agent could be begun: %v. Nothing was done.", err)
	}
	meta := &session.ToolMeta{FinishReason: kind}
	if err == nil && kind == session.EndCompleted {
		return tool.Result{Content: joined(r.Result.FinalResponse, r.line()), Meta: meta}
	}
	code := codePrefix + strings.ToUpper(strings.ReplaceAll(kind, "-", "_"))
	switch {
	case ctx.Err() != nil:
		code = tool.CodeAborted
	case err != nil || kind == "":
		code = codePrefix + "ERROR"
	}
	res := tool.Errorf(code, "%s. What it did stands.", why(ctx, r, err))
	res.Meta = meta
	if said := strings.TrimSpace(r.Result.FinalResponse); said != "" {
		res.Content += "\nWhat it said last:\n" + said
	}
	res.Content = joined(res.Content, r.line())
	return res
}

// why says why a sub-agent did not complete.
func why(ctx context.Context, r Report, err error) string {
	switch {
	case ctx.Err() != nil:
		return "the run was cancelled, and the sub-agent with it"
	case err != nil:
		return fmt.Sprintf("the sub-agent failed: %v", err)
	case r.End.Error != nil:
		return fmt.Sprintf("the sub-agent failed: %s: %s", r.End.Error.Code, strings.TrimRight(r.End.Error.Message, "."))
	}
	switch r.End.Kind {
	case session.EndMaxSteps:
		return fmt.Sprintf("the sub-agent reached its limit of %d steps", r.Result.Steps)
	case session.EndMaxTokens:
		return "the sub-agent's answer was cut at its token limit"
	case session.EndAborted:
		return "the sub-agent was cancelled"
	}
	return "the sub-agent did not complete"
}

// line names the sub-agent and how it ended, for the model and for people.
func (r Report) line() string {
	end := r.End.Kind
	if end == "" {
		end = "no turn ended"
	}
	steps := "steps"
	if r.Result.Steps == 1 {
		steps = "step"
	}
	return fmt.Sprintf("[sub-agent %s: %s, %d %s]", r.SessionID, end, r.Result.Steps, steps)
}

func joined(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}
