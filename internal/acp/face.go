package acp

import (
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// words is the questions in the chat.
func (c *card) words() string {
	var b strings.Builder
	for _, q := range c.Questions {
		b.WriteString("**Question:** " + headed(q) + "\n")
		for _, o := range q.Options {
			b.WriteString("- " + o.Label)
			if o.Description != "" {
				b.WriteString(": " + o.Description)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func headed(q session.Question) string {
	if q.Header == "" {
		return q.Question
	}
	return q.Header + ": " + q.Question
}

func (c *card) command(lead string) string {
	return lead + "\n\n```sh\n" + c.place.session.AnswerCommand(c.CallID) + "\n```"
}

// call is the tool call that asks.
func (c *card) call() sdk.ToolCallId {
	id, _, _ := strings.Cut(c.CallID, ":approval")
	return sdk.ToolCallId(id)
}

// left says how long there is for an answer; "" = for ever.
func (c *card) left() string {
	left := c.claim.Remaining()
	if left < 0 {
		return ""
	}
	return fmt.Sprintf("Left pending in %s unless it is answered.", left.Round(time.Second))
}

// toolCall is what the client shows of a question, on the call that asks.
func (c *card) toolCall(i int, q session.Question) sdk.ToolCallUpdate {
	name, reason, _ := strings.Cut(headed(q), "\n")
	if n := len(c.Questions); n > 1 {
		name = fmt.Sprintf("(%d/%d) %s", i+1, n, name)
	}
	u := sdk.ToolCallUpdate{ToolCallId: c.call(), Title: sdk.Ptr(name)}
	var parts []string
	if reason != "" {
		parts = append(parts, reason)
	}
	switch {
	case q.Detail == "":
	case c.Kind == question.KindPlanReview:
		parts = append(parts, q.Detail)
	default:
		parts = append(parts, fenced(q.Detail))
	}
	for _, o := range q.Options {
		if o.Description != "" {
			parts = append(parts, "- "+o.Label+": "+o.Description)
		}
	}
	if left := c.left(); left != "" {
		parts = append(parts, left)
	}
	if len(parts) > 0 {
		u.Content = []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(strings.Join(parts, "\n\n")))}
	}
	return u
}

// choice is one button and what it means.
type choice struct {
	option   sdk.PermissionOption
	selected []string
}

// choicesOf are the buttons of a question. Options that take words, which a
// button cannot, are left out.
func choicesOf(c question.Card, q session.Question) []choice {
	var out []choice
	used := map[string]bool{}
	for _, o := range q.Options {
		if c.Kind.Permits() && strings.HasSuffix(o.Label, "…") {
			continue
		}
		kind, id := buttonOf(c, o.Label)
		used[id] = true
		out = append(out, choice{sdk.PermissionOption{Kind: kind, Name: o.Label, OptionId: sdk.PermissionOptionId(id)}, []string{o.Label}})
	}
	if c.Kind.Permits() {
		return out
	}
	skip := "skip"
	for used[skip] {
		skip += "-"
	}
	return append(out, choice{sdk.PermissionOption{Kind: sdk.PermissionOptionKindRejectOnce, Name: "Skip this question", OptionId: sdk.PermissionOptionId(skip)}, []string{}})
}

func buttonOf(c question.Card, label string) (sdk.PermissionOptionKind, string) {
	switch {
	case c.Kind == question.KindApproval && label == question.LabelOnce:
		return sdk.PermissionOptionKindAllowOnce, "allow"
	case c.Kind == question.KindApproval && strings.HasPrefix(label, question.LabelSession):
		return sdk.PermissionOptionKindAllowAlways, "allow-session"
	case c.Kind == question.KindApproval:
		return sdk.PermissionOptionKindRejectOnce, "reject"
	case c.Kind == question.KindPlanReview && (c.Intent == nil || label != c.Intent.Approve):
		return sdk.PermissionOptionKindRejectOnce, label
	}
	return sdk.PermissionOptionKindAllowOnce, label
}
