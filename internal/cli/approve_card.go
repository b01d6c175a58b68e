package cli

import (
	"strings"

	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/tool/plan"
	"deepseek/internal/view"
)

// announcePermit tells of an approval or a plan review. Where the card is drawn
// here, it says all that there is to say; else somebody has to come from
// another shell, and is told how.
func (as *asking) announcePermit(c question.Card) {
	if as.prompter != nil {
		return
	}
	var lines []string
	for _, q := range c.Questions {
		title, reason, _ := strings.Cut(q.Question, "\n")
		lines = append(lines, string(c.Kind)+" "+c.CallID+": "+view.OneLine(title))
		if reason != "" {
			lines = append(lines, "  "+view.OneLine(reason))
		}
		whole := as.o.app.command(as.o.cfg.Home, "questions", as.o.ref, "--json")
		lines = append(lines, detailLines(q.Detail, "  ", whole)...)
	}
	as.screen.Announce(append(lines, "  "+as.o.answerCommand(c.CallID))...)
}

// How much of what is to be permitted is shown beside the command that answers.
const (
	detailMost  = 24 // lines
	detailBytes = 4 << 10
)

// detailLines is what a card would permit: the exact command, diff or plan. Where
// that is long, its middle is left out, and the command that shows it whole is
// named. It goes to who decides by it, so it hides nothing in a pipe either, and no
// line of it looks like one of ours: those are indented less.
func detailLines(detail, indent, whole string) []string {
	if detail = strings.Trim(detail, "\n"); detail == "" {
		return nil
	}
	short := view.Excerpt(detail, detailMost, detailBytes)
	var lines []string
	for l := range strings.SplitSeq(view.Visible(short), "\n") {
		lines = append(lines, indent+"  "+l)
	}
	if short != detail {
		lines = append(lines, indent+"whole: "+whole)
	}
	return lines
}

// offers tells whether the terminal asks for a card. One that permits something
// and could not be asked here has nobody left to answer it: other shells may not.
func (as *asking) offers(c question.Card) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return !as.lost[c.CallID]
}

// giveUp ends the wait of a card that permits something and is over without an
// answer. It does nothing to one that has ended.
func (as *asking) giveUp(callID string) {
	as.mu.Lock()
	if as.lost == nil {
		as.lost = map[string]bool{}
	}
	as.lost[callID] = true
	as.mu.Unlock()
	// The service looks again at who offers to ask when a claim goes.
	if c, ok := as.o.questions.Attach(callID); ok {
		c.Detach()
	}
}

// permitting makes a card of the kind that a wait is.
func permitting(card prompt.Card, kind question.Kind) prompt.Card {
	switch kind {
	case question.KindApproval:
		card.Kind, card.EscAnswer, card.WordsFor = prompt.KindApproval, question.LabelNo, question.LabelBecause
	case question.KindPlanReview:
		card.Kind, card.EscAnswer, card.WordsFor = prompt.KindPlan, plan.LabelDecline, plan.LabelBecause
	}
	return card
}
