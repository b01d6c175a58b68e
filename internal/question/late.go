package question

import (
	"context"
	"errors"
	"fmt"

	"deepseek/internal/session"
)

// NotContinued refuses a late answer to a question that does not wait for one.
type NotContinued struct {
	CallID string
	State  session.QuestionState // "" where the call is unknown
}

func (e *NotContinued) Error() string {
	switch e.State {
	case session.QuestionOpen:
		return fmt.Sprintf("question %s is still open: its call waits for the answer", e.CallID)
	case session.QuestionSettled:
		return fmt.Sprintf("question %s is settled: it has its answer", e.CallID)
	}
	return fmt.Sprintf("no question of this session that can be answered has the call id %s", e.CallID)
}

// NotQueued refuses to withdraw a reply that is not there to be withdrawn.
type NotQueued struct {
	CallID string
	Taken  bool // a turn has claimed it
}

func (e *NotQueued) Error() string {
	if e.Taken {
		return fmt.Sprintf("the reply to question %s is on its way to the model and cannot be withdrawn", e.CallID)
	}
	return fmt.Sprintf("question %s has no queued reply", e.CallID)
}

// ReplySource is the source of the message that brings a late answer.
func ReplySource(callID string) session.Source {
	return session.Source{Kind: session.SourceQuestionReply, CallID: callID, Outcome: Answered}
}

// DecideAnswer decides a late answer on the state as it stands, and returns the
// text of the reply to queue for the next step. Its errors, in this order:
// *NotContinued; REPLY_QUEUED while a reply is queued, or claimed and not yet
// admitted; BAD_ANSWER.
func DecideAnswer(st *session.State, callID string, batch []session.Answer) (text string, err error) {
	q, err := continued(st, callID)
	if err != nil {
		return "", err
	}
	if _, _, found := st.Inbox.Reply(callID); found {
		return "", errorf(CodeReplyQueued, "question %s has a reply already that the agent has not read yet; withdraw it to send another", callID)
	}
	if bad := CheckBatch(q.Questions, batch); bad != nil {
		return "", bad
	}
	return session.ReplyText(callID, q.Questions, inOrder(q.Questions, batch))
}

// DecideWithdraw decides the withdrawal of a queued reply and returns the id of
// its message. Its errors are *NotContinued and *NotQueued.
func DecideWithdraw(st *session.State, callID string) (messageID string, err error) {
	if _, err := continued(st, callID); err != nil {
		return "", err
	}
	m, queued, _ := st.Inbox.Reply(callID)
	if !queued {
		return "", &NotQueued{CallID: callID, Taken: m.ID != ""}
	}
	return m.ID, nil
}

func continued(st *session.State, callID string) (session.Tracked, error) {
	q, _ := st.Questions.Lookup(callID)
	if q.State != session.QuestionContinued {
		return q, &NotContinued{CallID: callID, State: q.State}
	}
	return q, nil
}

// Answer sends a late answer to the live agent. True means that it is on disk;
// false that the question does not wait for one, State says why. The log is the
// only memory of it: its message is the reservation, from the queue to the
// admission, and a discard lets another answer in.
func (s *Service) Answer(ctx context.Context, callID string, batch []session.Answer) (bool, error) {
	root := s.bound()
	if root == nil {
		return false, errorf(CodeCallerNotLive, "no agent is live on this session")
	}
	_, err := root.SteerIf(ctx, ReplySource(callID), func(st *session.State) (string, error) {
		return DecideAnswer(st, callID, batch)
	})
	var not *NotContinued
	if errors.As(err, &not) {
		return false, nil
	}
	return err == nil, err
}

// Withdraw takes a queued reply back; the question is continued again. False
// means that there is none that could be withdrawn.
func (s *Service) Withdraw(ctx context.Context, callID string) (bool, error) {
	root := s.bound()
	if root == nil {
		return false, errorf(CodeCallerNotLive, "no agent is live on this session")
	}
	ok, err := root.DiscardIf(ctx, func(st *session.State) (string, error) { return DecideWithdraw(st, callID) })
	var not *NotContinued
	var gone *NotQueued
	if errors.As(err, &not) || errors.As(err, &gone) {
		return false, nil
	}
	return ok, err
}

// State is the question as the log has it, and whether a reply to it lies in
// the inbox; false if the call is unknown.
func (s *Service) State(callID string) (q session.Tracked, queued, found bool) {
	root := s.bound()
	if root == nil {
		return q, false, false
	}
	root.View(func(st *session.State) {
		q, found = st.Questions.Lookup(callID)
		_, _, queued = st.Inbox.Reply(callID)
	})
	return q, queued, found
}
