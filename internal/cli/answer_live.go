package cli

import (
	"context"
	"errors"
	"fmt"

	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// live answers through the owner of a live session.
func (x *answering) live(ctx context.Context, c *remote.Client) error {
	list, err := c.Questions(ctx)
	if err != nil {
		return err
	}
	open, settled := fromList(list)
	q, err := pick(open, settled, x.o.callID, x.t.ref)
	if err != nil {
		return err
	}
	batch, err := x.batch(q)
	if err != nil {
		return err
	}
	if batch == nil {
		l := newLine(c, func(ctx context.Context) (*remote.Client, error) { return x.app.connect(ctx, x.cfg, x.t) })
		return errors.Join(x.ask(ctx, q, &remoteDesk{line: l, callID: q.callID}), l.close())
	}
	via, err := x.deliver(ctx, c, q, batch)
	if err != nil {
		return x.refusal(q, err)
	}
	return x.accepted(q.callID, via)
}

// deliver sends a batch: through the foreground wait while the question is
// open, else late. One that loses to expiry is sent once more, late.
func (x *answering) deliver(ctx context.Context, c *remote.Client, q answerable, batch []session.Answer) (via string, err error) {
	if q.state == string(session.QuestionOpen) {
		won, err := x.foreground(ctx, c.Desk(q.callID), batch)
		if err != nil || won {
			return "foreground", err
		}
		if !q.tracked {
			return "", notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("question %s has ended before the answer arrived", q.callID))
		}
	}
	ok, err := c.Answer(ctx, q.callID, batch)
	if err == nil && !ok {
		return "", x.lostTo(ctx, c, q.callID)
	}
	return "late", err
}

// foreground answers through a claim. False says that another settlement won.
func (x *answering) foreground(ctx context.Context, d *remote.Desk, batch []session.Answer) (won bool, err error) {
	if _, _, err := d.Attach(ctx); err != nil {
		if errors.Is(err, remote.ErrGone) {
			return false, nil
		}
		return false, err
	}
	won, err = d.Respond(ctx, batch)
	var refused *remote.Error
	if errors.As(err, &refused) && refused.Code == remote.CodeNoClaim {
		return false, nil // the wait ended in between
	}
	return won, err
}

// lostTo says what became of a question that takes no answer any more.
func (x *answering) lostTo(ctx context.Context, c *remote.Client, callID string) error {
	state, err := c.State(ctx, callID)
	if err != nil {
		return err
	}
	if state == remote.StateSettled {
		return notAnswerable("NOT_ANSWERABLE", state, fmt.Sprintf("question %s was answered by somebody else first", callID))
	}
	return notAnswerable("NOT_ANSWERABLE", state, fmt.Sprintf("question %s cannot be answered: it is %s", callID, state))
}

// refusal gives a refusal of the owner the exit code of answers, whether it came
// to flags or to a card.
func (x *answering) refusal(q answerable, err error) error {
	var code, message string
	var refused *remote.Error
	var card *prompt.Refused
	switch {
	case errors.As(err, &refused):
		code, message = refused.Code, refused.Message
	case errors.As(err, &card):
		code, message = card.Code, card.Message
	}
	switch code {
	case question.CodeReplyQueued, question.CodeBadAnswer, remote.CodeReadOnlyWait:
		return notAnswerable(code, q.state, message)
	}
	return err
}
