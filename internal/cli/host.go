package cli

import (
	"bytes"
	"context"
	"errors"
	"io"

	"deepseek/internal/engine"
	"deepseek/internal/logstore"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// host offers an owned session to the clients of its control socket. It holds
// no state of its own.
type host struct{ o *owner }

var _ remote.Host = (*host)(nil)

func (h *host) Header() session.Header { return h.o.header }

func (h *host) Prompt(ctx context.Context, content []session.Block) (string, error) {
	id, err := h.o.agent.Followup(ctx, content, session.Source{Kind: session.SourceUser})
	return id, hosted(err)
}

func (h *host) Steer(ctx context.Context, content []session.Block) (string, error) {
	id, err := h.o.agent.Steer(ctx, content, session.Source{Kind: session.SourceUser})
	return id, hosted(err)
}

func (h *host) Cancel(ctx context.Context, keepInbox bool) error {
	return hosted(h.o.agent.Cancel(ctx, session.Cause{Kind: session.CauseUser}, keepInbox))
}

// hosted gives an error of the engine the code that clients know it by.
func hosted(err error) error {
	var write *logstore.WriteError
	switch {
	case errors.Is(err, engine.ErrLeaving), errors.Is(err, logstore.ErrClosed):
		return &remote.Error{Code: remote.CodeOwnerLeaving, Message: "the owner of this session is leaving"}
	case errors.As(err, &write):
		return &remote.Error{Code: CodeLogWrite, Message: err.Error()}
	}
	return err
}

func (h *host) Read(_ context.Context, fromSeq int64, maxBytes int) (page remote.Page, err error) {
	log := h.o.log.file()
	if log == nil {
		return remote.Page{}, logstore.ErrNotFound
	}
	c, err := log.Cursor(fromSeq)
	if err != nil {
		return remote.Page{}, hosted(err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	lines, err := c.Read(maxBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return remote.Page{}, err
	}
	end := log.Durable()
	page.NextSeq = min(fromSeq, end)
	for _, l := range lines {
		page.Events = append(page.Events, bytes.Clone(h.o.key.Bytes(l.Raw)))
		page.NextSeq = l.Seq + 1
	}
	page.More = page.NextSeq < end
	return page, nil
}

func (h *host) Follow(ctx context.Context, fromSeq int64, sink func(remote.Notice) error) (err error) {
	f, err := h.o.agent.Subscribe(fromSeq, true)
	if err != nil {
		return hosted(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	texts := newDeltas(h.o.key)
	for {
		it, err := f.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return hosted(err)
		}
		for _, d := range texts.take(it) {
			if err := sink(remote.Notice{Delta: &remote.Delta{Turn: d.Turn, Step: d.Step, Kind: d.Kind, Text: d.Text}}); err != nil {
				return err
			}
		}
		for _, l := range it.Lines {
			if err := sink(remote.Notice{Seq: l.Seq, Event: bytes.Clone(h.o.key.Bytes(l.Raw))}); err != nil {
				return err
			}
		}
		if it.Status != "" {
			if err := sink(remote.Notice{Status: string(it.Status)}); err != nil {
				return err
			}
		}
	}
}

func (h *host) Status() string { return string(h.o.agent.Status()) }

func (h *host) Questions(context.Context) (remote.QuestionList, error) {
	var list remote.QuestionList
	h.o.agent.View(func(st *session.State) { list = listQuestions(st) })
	for i := range list.Active {
		list.Active[i].Answer = h.o.answerCommand(list.Active[i].CallID)
	}
	for _, c := range h.o.questions.Waits() {
		if c.Kind != question.KindQuestion {
			list.Waits = append(list.Waits, remote.Wait{CallID: c.CallID, Kind: c.Kind, Questions: c.Questions})
		}
	}
	return list, nil
}

// listQuestions is what a log says of its questions.
func listQuestions(st *session.State) remote.QuestionList {
	list := remote.QuestionList{Active: []remote.ActiveQuestion{}, Settled: []remote.SettledQuestion{}, Waits: []remote.Wait{}}
	for _, q := range st.Questions.Active() {
		_, _, queued := st.Inbox.Reply(q.CallID)
		list.Active = append(list.Active, remote.ActiveQuestion{
			CallID: q.CallID, State: string(q.State), Queued: queued, Questions: q.Questions, AskedAt: q.AskedAt,
		})
	}
	for _, q := range st.Questions.Settled() {
		list.Settled = append(list.Settled, remote.SettledQuestion{CallID: q.CallID, Answers: q.Answers})
	}
	return list
}

func (h *host) Attach(callID string) (remote.Claim, bool) {
	c, ok := h.o.questions.Attach(callID)
	if !ok {
		return nil, false
	}
	return c, true
}

func (h *host) Answer(ctx context.Context, callID string, answers []session.Answer) (bool, error) {
	ok, err := h.o.questions.Answer(ctx, callID, answers)
	return ok, hosted(err)
}

func (h *host) Withdraw(ctx context.Context, callID string) (bool, error) {
	ok, err := h.o.questions.Withdraw(ctx, callID)
	return ok, hosted(err)
}

func (h *host) Watch(f func(question.Event)) (stop func()) { return h.o.questions.Watch(f) }

func (h *host) RemoteApprovals() bool { return h.o.cfg.Answerer == "remote" }
