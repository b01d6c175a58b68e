package cli

import (
	"context"
	"errors"

	"deepseek/internal/engine"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// dead answers a session that nobody runs. A person is asked before the session
// is taken: nobody is kept from it while they think.
func (x *answering) dead(ctx context.Context, own *owner) error {
	open, settled := fromList(listQuestions(&own.state))
	q, err := pick(open, settled, x.o.callID, x.t.ref)
	var batch []session.Answer
	if err == nil {
		batch, err = x.batch(q)
	}
	if err != nil {
		return errors.Join(err, own.close())
	}
	if batch == nil {
		if err := own.close(); err != nil {
			return err
		}
		return x.ask(ctx, q, nobody{})
	}
	if err := x.take(ctx, own, q, batch); err != nil {
		return err
	}
	return x.goOn(ctx)
}

// take accepts a late answer as the session's owner: it is decided on the file
// as repair would leave it, and repair and reply are written only when it is
// accepted and nothing that the run needs is missing. The reply is on disk when
// it returns without an error; after an error the session has been let go.
func (x *answering) take(ctx context.Context, own *owner, q answerable, batch []session.Answer) error {
	text, err := question.DecideAnswer(&own.state, q.callID, batch)
	if err != nil {
		return errors.Join(undecided(q, err), own.close())
	}
	reply := &engine.Input{
		Target: session.NextStep, Content: []session.Block{{Type: session.BlockText, Text: text}}, Source: question.ReplySource(q.callID),
	}
	if x.o.queue {
		own.bare()
		x.queued, err = own.agent.Queue(ctx, reply.Target, reply.Content, reply.Source)
		return errors.Join(err, own.close())
	}
	if err := own.equip(ctx); err != nil {
		return errors.Join(err, own.close())
	}
	p := newPerformance(own, x.signals, nil)
	if err := p.accept(ctx, task{reply: reply}); err != nil {
		p.show.close()
		return errors.Join(err, own.close())
	}
	x.taken = p
	return nil
}

// undecided gives a refusal by the rules its exit code.
func undecided(q answerable, err error) error {
	var bad *question.Error
	var not *question.NotContinued
	switch {
	case errors.As(err, &bad):
		return notAnswerable(bad.Code, q.state, bad.Message)
	case errors.As(err, &not):
		return notAnswerable("NOT_ANSWERABLE", string(not.State), not.Error())
	}
	return err
}

// goOn is what follows a late answer that this process took.
func (x *answering) goOn(ctx context.Context) error {
	if p := x.taken; p != nil {
		return p.run(ctx, []task{{}})
	}
	x.app.Printf("%s\n", x.queued)
	return nil
}

// late sends a late answer to whoever owns the session by now, or takes it.
func (x *answering) late(ctx context.Context, q answerable, batch []session.Answer) error {
	return x.app.reach(ctx, x.cfg, x.t,
		func(ctx context.Context, c *remote.Client) error {
			ok, err := c.Answer(ctx, q.callID, batch)
			if err == nil && !ok {
				return x.lostTo(ctx, c, q.callID)
			}
			return x.refusal(q, err)
		},
		func(ctx context.Context, own *owner) error { return x.take(ctx, own, q, batch) })
}
