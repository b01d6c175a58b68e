package question

import (
	"context"
	_ "embed" // the texts
	"encoding/json"
	"math"
	"slices"
	"time"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	//go:embed ask.md
	askText string
	//go:embed ask.json
	askSchema string
	//go:embed ask_timed.md
	askTimedText string
	//go:embed ask_timed.json
	askTimedSchema string
)

// ToolOptions say how the tool asks.
type ToolOptions struct {
	Timed   bool          // the calls have a timeout, and their questions stay answerable
	Default int           // seconds that a call without a timeout waits; -1: without end
	Max     int           // seconds that a call may wait at most, 0: no cap
	Caller  func() Caller // who asks; nil: the live agent
}

// asker runs the tool. It is immutable.
type asker struct {
	service *Service
	ToolOptions
}

// NewTool is ask_user_question.
func NewTool(s *Service, o ToolOptions) tool.Tool {
	if o.Caller == nil {
		o.Caller = func() Caller { return Caller{Live: true} }
	}
	d := tool.Definition{
		Name: session.AskTool, Text: askText, Schema: askSchema,
		Traits: tool.Traits{Person: true},
	}
	if o.Timed {
		d.Text, d.Schema = askTimedText, askTimedSchema
	}
	// The arguments are read as the fold of the log reads them.
	return tool.Define(d, func(ctx context.Context, call tool.Call, raw json.RawMessage) tool.Result {
		return asker{s, o}.run(ctx, call, raw)
	})
}

func (a asker) run(ctx context.Context, call tool.Call, raw json.RawMessage) tool.Result {
	questions, timeout, err := session.ParseQuestions(string(raw))
	if err != nil {
		return tool.Errorf(tool.CodeInvalidArguments, "%s: %v", session.AskTool, err)
	}
	r := Request{CallID: call.ID, Kind: KindLegacy, Questions: questions, Caller: a.Caller(), Opened: call.Waiting}
	if a.Timed {
		r.Kind = KindQuestion
	}
	if call.Commit != nil {
		r.Commit = func(o Outcome) error { return call.Commit(result(call.ID, o)) }
	}
	return result(call.ID, a.ask(ctx, r, timeout))
}

func (a asker) ask(ctx context.Context, r Request, timeout *float64) Outcome {
	if !a.Timed {
		return a.service.Ask(ctx, r)
	}
	// The timeout's place among the checks is behind these.
	if e := begin(ctx, r); e != nil {
		return Outcome{Err: e}
	}
	seconds, e := a.seconds(timeout)
	switch {
	case e != nil:
		return Outcome{Err: e}
	case seconds < 0:
		return a.service.Ask(ctx, r)
	}
	return a.service.AskTimed(ctx, r, time.Duration(seconds)*time.Second)
}

// seconds is how long the call waits, -1 without end.
func (a asker) seconds(timeout *float64) (int, *Error) {
	s := a.Default
	if timeout != nil {
		v := *timeout
		if v != -1 && (v < 1 || v > MaxWait || v != math.Trunc(v)) {
			return 0, errorf(CodeBadTimeout, "timeout: %.15g is out of range; it is a whole number from 1 to %d seconds, or -1", v, MaxWait)
		}
		s = int(v)
	}
	if a.Max > 0 && (s < 0 || s > a.Max) {
		s = a.Max
	}
	return s, nil
}

// result is what the model reads. Of one wait it is always the same.
func result(callID string, o Outcome) tool.Result {
	var text, unanswered string
	var err error
	switch {
	case o.Err != nil:
		r := tool.Errorf(o.Err.Code, "%s", o.Err.Message)
		// A call that was refused asked nobody; these did, or would have.
		if slices.Contains([]string{CodeAborted, CodeCancelled, CodeNoProvider, CodeLogWrite}, o.Err.Code) {
			r.Unanswered = callID
		}
		return r
	case o.DuplicateOf != "":
		unanswered = o.DuplicateOf
		text, err = session.PendingText(unanswered, "The same was asked before and has no answer yet. "+pendingMessage(unanswered))
	case o.Pending:
		unanswered = callID
		text, err = session.PendingText(unanswered, "No answer yet. "+pendingMessage(unanswered))
	default:
		text, err = session.BatchText(o.Answers)
	}
	if err != nil { // strings, booleans and lists of them: JSON holds them all
		return tool.Errorf(tool.CodeInternal, "%s: %v", session.AskTool, err)
	}
	return tool.Result{Content: text, Unanswered: unanswered}
}

func pendingMessage(callID string) string {
	return "This is no skip and no approval: nothing has been decided or permitted. Go on with work that does not depend on the answer. " +
		"The answer will arrive later as a user message that names callId " + callID + "."
}
