package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepseek/internal/prompt"
	"deepseek/internal/session"
)

// ask asks in this terminal. Nil says that the answer is on disk, or that the
// question was closed.
func (x *answering) ask(ctx context.Context, q answerable, desk prompt.Desk) error {
	tty, p, err := x.app.prompter(x.cfg, x.t.path, nil)
	if err != nil {
		return err
	}
	forget := x.signals.Last(func() { _ = tty.Restore() }) // the process ends then
	defer forget()
	res, err := p.Run(ctx, permitting(prompt.Card{
		SessionID: x.sessionID(), CallID: q.callID, Kind: prompt.KindQuestion, Timed: q.tracked, Blocking: !q.tracked,
		Continued: q.state == string(session.QuestionContinued), Questions: q.questions,
		AnswerCommand: x.app.answerCommand(x.cfg.Home, x.t.ref, q.callID),
	}, q.kind), &answerDesk{Desk: desk, x: x, q: q})
	if closing := tty.Close(); err == nil {
		err = closing
	}
	switch {
	case errors.Is(err, prompt.ErrGone):
		return notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("question %s has ended meanwhile", q.callID))
	case errors.Is(err, prompt.ErrTerminal):
		return x.unanswered(q, res.State, hungUp(ctx, err))
	case err != nil && errors.As(context.Cause(ctx), new(Signal)):
		return x.unanswered(q, res.State, context.Cause(ctx))
	case err != nil:
		return x.refusal(q, err)
	}
	switch res.Outcome {
	case prompt.Answered:
		return x.accepted(q.callID, "foreground")
	case prompt.LateAnswered:
		if x.taken != nil || x.queued != "" {
			return x.goOn(ctx)
		}
		return x.accepted(q.callID, "late")
	case prompt.Interrupted:
		return x.unanswered(q, res.State, Signal{Signal: interrupt})
	case prompt.Closed:
		return nil // that is on disk
	case prompt.Expired, prompt.HandedOver:
		return notAnswerable("NOT_ANSWERED", "", fmt.Sprintf("question %s was left without an answer", q.callID))
	case prompt.Unknown:
		return &Coded{
			Exit: ExitBusy, Code: "OUTCOME_UNKNOWN", Message: "the owner of the session went away before it answered; whether the answer arrived is not known",
			Hint: "look with: " + x.app.command(x.cfg.Home, "questions", x.t.ref),
		}
	}
	if x.removed() {
		return notAnswerable("NOT_ANSWERABLE", res.State, fmt.Sprintf("question %s is gone: session %s was removed", q.callID, x.t.ref))
	}
	return notAnswerable("NOT_ANSWERABLE", res.State, fmt.Sprintf("question %s was settled elsewhere", q.callID))
}

// unanswered is the error of a card that a signal ended: it recorded nothing. With
// a state the question takes no answer any more, which the card has said.
func (x *answering) unanswered(q answerable, state string, err error) error {
	var sig Signal
	if !errors.As(err, &sig) {
		return err
	}
	ended := &Coded{Exit: sig.Exit(), Code: CodeAborted, Message: sig.Error(), State: state}
	if state == "" {
		ended.Hint = "no answer was recorded; answer it with: " + x.app.answerCommand(x.cfg.Home, x.t.ref, q.callID)
	}
	return ended
}

// hangupTime is how long the signal may lag behind the loss of the terminal.
const hangupTime = 300 * time.Millisecond

// hungUp is the failure of a terminal: where it was closed, the signal that
// says so is the reason.
func hungUp(ctx context.Context, err error) error {
	late := time.NewTimer(hangupTime)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		return err
	}
}
