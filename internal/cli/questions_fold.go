package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// askFold folds a log into its questions and decodes only the lines that can
// have a part in them, so that a big log is read about as fast as it is copied.
//
// What has no part is told by the bytes of the line. The log's own encoding
// writes the words it looks for (the name of the tool, the kind of a source, a
// call id, which is letters, digits and _.:- alone) as themselves, so a line
// without the word cannot matter; one that has it by chance is decoded and then
// passed over by the fold itself. It is one goroutine's.
type askFold struct {
	key       redact.Key // taken out of what is decoded
	questions session.Questions
	waiting   []waitingCall   // of the questions that are open
	replied   map[string]bool // calls for which a reply was ever queued
}

// waitingCall is an open question: the results that end it name one of the two.
type waitingCall struct {
	id, parent string // parent: of a question asked from code, else ""
}

// apply consumes the next line.
func (f *askFold) apply(l logstore.Line) error {
	switch l.Type {
	case session.TypeTurnStart, session.TypeTurnEnd, session.TypeSettings: // that they stand here is all that counts
		return f.questions.Apply(session.Event{Seq: l.Seq, Type: l.Type})
	}
	if !f.matters(l) {
		return nil
	}
	if data, ok := l.Payload(); ok && l.Type == session.TypeRequestHeader && f.questions.QuickHeader(data) {
		return nil
	}
	e, err := l.Event()
	if err != nil {
		return err
	}
	e.Data = f.key.Bytes(e.Data)
	if err := f.questions.Apply(e); err != nil {
		return err
	}
	switch e.Type {
	case session.TypeEndSeed:
		f.waiting = nil
	case session.TypeToolCall, session.TypePTCDispatchStart:
		return f.began(e)
	case session.TypeToolResult, session.TypePTCDispatch:
		f.ended()
	case session.TypeInboxSpliced:
		return f.spliced(e)
	}
	return nil
}

func (f *askFold) matters(l logstore.Line) bool {
	switch l.Type {
	case session.TypeRequestHeader, session.TypeEndSeed:
		return true
	case session.TypeToolCall, session.TypePTCDispatchStart:
		return f.questions.Timed() && bytes.Contains(l.Raw, []byte(session.AskTool))
	case session.TypeToolResult, session.TypePTCDispatch:
		for _, w := range f.waiting {
			if bytes.Contains(l.Raw, []byte(w.id)) || w.parent != "" && bytes.Contains(l.Raw, []byte(w.parent)) {
				return true
			}
		}
	case session.TypeUserMessage, session.TypeInboxSpliced:
		return bytes.Contains(l.Raw, []byte(session.SourceQuestionReply))
	}
	return false
}

// began notes the question that a call has opened, if it did.
func (f *askFold) began(e session.Event) error {
	var v struct {
		CallID     string `json:"callId"`
		SubCallID  string `json:"subCallId"`
		RootCallID string `json:"rootCallId"`
	}
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return fmt.Errorf("%w: %s: %w", session.ErrDamaged, e.Type, session.PlainJSON(err))
	}
	w := waitingCall{id: v.CallID}
	if e.Type == session.TypePTCDispatchStart {
		w = waitingCall{id: v.SubCallID, parent: v.RootCallID}
	}
	if f.isOpen(w.id) {
		f.waiting = append(f.waiting, w)
	}
	return nil
}

func (f *askFold) ended() {
	still := f.waiting[:0]
	for _, w := range f.waiting {
		if f.isOpen(w.id) {
			still = append(still, w)
		}
	}
	f.waiting = still
}

func (f *askFold) isOpen(id string) bool {
	q, ok := f.questions.Lookup(id)
	return ok && q.State == session.QuestionOpen
}

func (f *askFold) spliced(e session.Event) error {
	var s session.InboxSpliced
	if err := json.Unmarshal(e.Data, &s); err != nil {
		return fmt.Errorf("%w: %s: %w", session.ErrDamaged, e.Type, session.PlainJSON(err))
	}
	for _, m := range s.Inserted {
		if m.Source.Kind == session.SourceQuestionReply {
			if f.replied == nil {
				f.replied = map[string]bool{}
			}
			f.replied[m.Source.CallID] = true
		}
	}
	return nil
}

// list is the questions as they stand after the lines so far, of the log that
// end was read of. Only where an active question has had a reply queued, the
// inbox is looked at, by reading those events of the log once more.
func (f *askFold) list(ctx context.Context, path string, end logstore.End) (remote.QuestionList, error) {
	var st session.State
	st.Questions = f.questions
	for _, q := range st.Questions.Active() {
		if !f.replied[q.CallID] {
			continue
		}
		in, err := readInbox(ctx, path, end.Next)
		if err != nil {
			return remote.QuestionList{}, err
		}
		st.Inbox = *in
		break
	}
	return listQuestions(&st), nil
}

// waitingFor counts the questions of list that wait for an answer; one whose
// answer is queued does not.
func (f *askFold) waitingFor(ctx context.Context, path string, end logstore.End) (n int, err error) {
	list, err := f.list(ctx, path, end)
	for _, q := range list.Active {
		if !q.Queued {
			n++
		}
	}
	return n, err
}

// originSubagent marks the header of a sub-agent's session.
const originSubagent = session.OriginSubagent

// readInbox folds the inbox up to the event before next.
func readInbox(ctx context.Context, path string, next int64) (*session.Inbox, error) {
	in := &session.Inbox{}
	enough := errors.New("read as far as before")
	_, err := logstore.Read(ctx, path, func(l logstore.Line) error {
		if l.Seq >= next {
			return enough
		}
		switch l.Type {
		case session.TypeInboxSpliced, session.TypeUserMessage, session.TypeTurnEnd:
			e, err := l.Event()
			if err != nil {
				return err
			}
			return l.Damaged(in.Apply(e))
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return nil, err
	}
	return in, nil
}

// readQuestions reads the questions of a log, as one sees them who takes its
// owner for alive or not: without one, what is open has been left open by a
// crash, and the next owner will find it continued. They are without the key, as
// the log would be. end is where reading ended.
func readQuestions(ctx context.Context, key redact.Key, path string, live bool) (remote.QuestionList, logstore.End, error) {
	f := askFold{key: key}
	end, err := logstore.Scan(ctx, path, func(h session.Header) error {
		f.questions.Of(h)
		return nil
	}, func(l logstore.Line) error { return l.Damaged(f.apply(l)) })
	if err != nil {
		return remote.QuestionList{}, end, err
	}
	list, err := f.list(ctx, path, end)
	for i := range list.Active {
		if !live {
			list.Active[i].State = string(session.QuestionContinued)
		}
	}
	return list, end, err
}
