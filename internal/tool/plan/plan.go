// Package plan holds what plan mode offers: the reading tools, and the tool by
// which the model asks a person to approve its plan. Only a person's word ends
// plan mode; time, silence and a run without anybody to ask do not.
package plan

import (
	"context"
	_ "embed" // the texts
	"slices"
	"strings"

	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	//go:embed exit_plan_mode.md
	text string
	//go:embed exit_plan_mode.json
	schema string
)

// Name is the tool's.
const Name = session.PlanTool

// Labels of a plan review in their order. The first is highlighted: a plan is
// read before its card is answered, and it changes nothing by itself.
const (
	LabelApprove = "approve"
	LabelDecline = "decline"
	LabelBecause = "decline, because…" // takes words
)

const questionID = "plan"

// reading is what plan mode offers beside the tool itself. It is a list of names,
// so that a tool that is added later is not offered by an oversight.
var reading = []string{"read", "glob", "grep", "todo_write", "get_goal", session.AskTool}

// Env is what the tool works with.
type Env struct {
	Ask    func(context.Context, question.Request) question.Outcome // without a bound
	Active func() bool                                              // whether the session is in plan mode now
	// Leave ends plan mode and returns once that is on disk.
	Leave  func(context.Context) error
	Caller func() question.Caller // who asks; nil: the live agent
	Redact func(string) string    // takes secrets out of what is shown; may be nil
}

// Offer is the tools of plan mode, out of all those of the session.
func Offer(all *tool.Registry, env Env) (*tool.Registry, error) {
	var offered []tool.Tool
	for _, name := range all.Names() {
		if t, ok := all.Lookup(name); ok && slices.Contains(reading, name) {
			offered = append(offered, t)
		}
	}
	return tool.NewRegistry(append(offered, New(env))...)
}

// New makes exit_plan_mode. Two reviews of one message come one after the other.
func New(env Env) tool.Tool {
	return tool.Define(tool.Definition{
		Name: Name, Text: text, Schema: schema, Traits: tool.Traits{TopLevel: true},
	}, env.run)
}

type args struct {
	Plan string `json:"plan"`
}

func (env Env) run(ctx context.Context, call tool.Call, in args) tool.Result {
	if !env.Active() {
		return tool.Errorf(tool.CodeDenied, "the session is not in plan mode any more: the plan was approved. Carry it out.")
	}
	if strings.TrimSpace(in.Plan) == "" {
		return tool.Errorf(tool.CodeInvalidArguments, "plan: is blank")
	}
	r := question.Request{
		CallID: call.ID, Kind: question.KindPlanReview, Caller: question.Caller{Live: true},
		Questions: []session.Question{{
			ID: questionID, Question: "Carry out this plan?", Detail: in.Plan,
			Options: []session.Option{{Label: LabelApprove}, {Label: LabelDecline}, {Label: LabelBecause}},
		}},
		Intent: &question.Intent{Kind: string(question.KindPlanReview), Approve: LabelApprove},
		Commit: func(o question.Outcome) error { return env.commit(call, o) },
	}
	if env.Caller != nil {
		r.Caller = env.Caller()
	}
	if env.Redact != nil {
		r.Questions[0].Detail = env.Redact(in.Plan)
	}
	return result(env.Ask(ctx, r))
}

// commit writes how the review ended, before anybody is told. That plan mode is
// over goes first: a crash between the two must not leave a model that reads of
// an approval and has no tools for it. The person has said yes in either case.
func (env Env) commit(call tool.Call, o question.Outcome) error {
	if approved(o) {
		if err := env.Leave(context.Background()); err != nil { // somebody waits for the word, cancelled or not
			return err
		}
	}
	if call.Commit == nil {
		return nil
	}
	return call.Commit(result(o))
}

// approved: the bare label and nothing else. A yes with words beside it has a
// condition that nobody would check.
func approved(o question.Outcome) bool {
	label, words := answer(o)
	return label == LabelApprove && words == ""
}

// answer is what the person chose and wrote; empty where there is no answer.
func answer(o question.Outcome) (label, words string) {
	if o.Err != nil || o.Pending || len(o.Answers) != 1 || o.Answers[0].ID != questionID || len(o.Answers[0].Selected) != 1 {
		return "", ""
	}
	return o.Answers[0].Selected[0], strings.TrimSpace(o.Answers[0].Custom)
}

// result is what the model reads. Of one review it is always the same.
func result(o question.Outcome) tool.Result {
	if o.Err != nil {
		advice := "The plan is not approved and plan mode goes on."
		if o.Err.Code == question.CodeNoProvider {
			advice += " Put the plan into your final response, so that the user can read it."
		}
		return tool.Errorf(o.Err.Code, "%s %s", o.Err.Message, advice)
	}
	label, words := answer(o)
	switch {
	case approved(o):
		return tool.Result{Content: "The user approved the plan. Plan mode is over and all tools are there from now on: carry the plan out."}
	case words != "" && label == LabelApprove:
		return tool.Result{Content: "The user did not simply approve the plan, but said: " + words + "\nRevise the plan and call " + Name + " again. Plan mode goes on."}
	case words != "":
		return tool.Result{Content: "The user declined the plan, because: " + words + "\nRevise the plan and call " + Name + " again. Plan mode goes on."}
	}
	return tool.Result{Content: "The user declined the plan. Plan mode goes on: ask what should be different, or end with what you found out."}
}
