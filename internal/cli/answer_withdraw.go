package cli

import (
	"context"
	"errors"
	"fmt"

	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// withdrawLive takes a queued answer back through the owner.
func (x *answering) withdrawLive(ctx context.Context, c *remote.Client) error {
	list, err := c.Questions(ctx)
	if err != nil {
		return err
	}
	id, err := x.queuedCall(list)
	if err != nil {
		return err
	}
	ok, err := c.Withdraw(ctx, id)
	if err == nil && !ok {
		err = notAnswerable("NOT_QUEUED", "", fmt.Sprintf("question %s has no queued reply that could be taken back", id))
	}
	return err
}

func (x *answering) withdrawDead(ctx context.Context, own *owner) (err error) {
	defer func() { err = errors.Join(err, own.close()) }()
	id, err := x.queuedCall(listQuestions(&own.state))
	if err != nil {
		return err
	}
	own.bare()
	_, err = own.agent.DiscardIf(ctx, func(st *session.State) (string, error) { return question.DecideWithdraw(st, id) })
	var not *question.NotContinued
	var gone *question.NotQueued
	if errors.As(err, &not) || errors.As(err, &gone) {
		return notAnswerable("NOT_QUEUED", "", err.Error())
	}
	return err
}

// queuedCall is the question whose queued reply --withdraw means.
func (x *answering) queuedCall(list remote.QuestionList) (string, error) {
	open, settled := fromList(list)
	var queued []answerable
	for _, q := range open {
		if q.queued {
			q.queued = false // pick leaves out those that have a reply
			queued = append(queued, q)
		}
	}
	if x.o.callID == "" && len(queued) == 0 {
		return "", notAnswerable("NOT_QUEUED", "", fmt.Sprintf("no reply is queued in session %s", x.t.ref))
	}
	if x.o.callID == "" {
		open = queued
	}
	q, err := pick(open, settled, x.o.callID, x.t.ref)
	return q.callID, err
}
