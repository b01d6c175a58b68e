package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/creachadair/jrpc2"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

type rawEvent = json.RawMessage

// subscription tells one connection what happens in a session. Its goroutine
// owns next, status and agents; others may read them once done is closed.
type subscription struct {
	seat    *seat
	cancel  context.CancelFunc
	unwatch func()
	ready   chan struct{} // closed when following has begun, or failed
	done    chan struct{}

	next   int64  // seq of the next event to tell
	status string // the last that was told, or is taken for granted
	begun  bool   // ready is closed
	agents subagents
}

// subscribe begins to tell what happens from a seq on, until unsubscribe. When it
// returns following has begun: a status that changes from here on is told behind
// the events that led to it. It outlives ctx, which is that of the request which
// asked for it.
func (s *seat) subscribe(ctx context.Context, from int64) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sub := &subscription{seat: s, cancel: cancel, ready: make(chan struct{}), done: make(chan struct{}), next: from, status: s.presumed, agents: s.agents}
	s.agents = subagents{}
	// A wait that opens from here on is told; one that is open already is for
	// questions/list, so a client that lists after it has read misses none.
	sub.unwatch = s.host.Watch(sub.question)
	s.sub = sub
	go sub.follow(ctx, from)
	<-sub.ready
}

// unsubscribe ends the subscription, if there is one, and returns when it has ended.
func (s *seat) unsubscribe() {
	if s.sub == nil {
		return
	}
	s.sub.unwatch()
	s.sub.cancel()
	<-s.sub.done
	maps.Copy(s.agents, s.sub.agents)
	s.sub = nil
}

func (sub *subscription) follow(ctx context.Context, from int64) {
	defer close(sub.done)
	defer sub.begin()
	err := sub.seat.host.Follow(ctx, from, func(n Notice) error {
		sub.begin() // the present status comes first
		return sub.tell(ctx, n)
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, errOver) {
		// A subscriber may rely on there being no gap: end it rather than fall silent.
		var own *Error
		if !errors.As(err, &own) {
			own = refuse(CodeFollowFailed, "the events of session %s cannot be followed any more: %v", sub.seat.id, err)
		}
		sub.seat.out.endFor(own)
	}
}

func (sub *subscription) begin() {
	if !sub.begun {
		sub.begun = true
		close(sub.ready)
	}
}

// tell queues one notice.
func (sub *subscription) tell(ctx context.Context, n Notice) error {
	out, id := sub.seat.out, sub.seat.id
	switch {
	case n.Event != nil:
		if n.Seq < sub.next {
			return nil
		}
		line, err := eventLine(id, n.Event)
		if err != nil {
			return err
		}
		if err := out.pushWait(ctx, line); err != nil {
			return err
		}
		sub.next = n.Seq + 1
		if err := sub.subagent(ctx, n.Event); err != nil {
			return err
		}
		return sub.reply(ctx, n.Event)
	case n.Status != "" && n.Status == sub.status: // as it was before
	case n.Status != "":
		line, err := notification(NoteStatus, StatusNote{id, n.Status})
		if err != nil {
			return err
		}
		sub.status = n.Status
		return out.pushWait(ctx, line)
	case n.Delta != nil:
		line, err := notification(NoteDelta, DeltaNote{id, *n.Delta})
		if err != nil {
			return err
		}
		return out.pushOptional(line)
	}
	return nil
}

// question is told of waits. It does not block.
func (sub *subscription) question(e question.Event) {
	// Failures are the connection's, which then ends.
	switch s := sub.seat; {
	case e.Type == question.Opened:
		_ = s.note(NoteRequest, RequestNote{s.id, e.Card.CallID, e.Card.Kind, e.Card.Questions, e.Card.Timed})
	case e.Outcome == question.Answered:
		_ = s.note(NoteSettled, SettledNote{s.id, e.Card.CallID, orEmpty(e.Answers)})
	}
}

// subagent tells that a sub-agent has started or finished.
func (sub *subscription) subagent(ctx context.Context, raw rawEvent) error {
	method, n := sub.agents.note(sub.seat.id, raw)
	if method == "" {
		return nil
	}
	line, err := notification(method, n)
	if err != nil {
		return err
	}
	return sub.seat.out.pushWait(ctx, line)
}

// reply tells that a question is settled when a late answer has been admitted.
func (sub *subscription) reply(ctx context.Context, raw rawEvent) error {
	callID, answers, ok := admittedReply(raw)
	if !ok {
		return nil
	}
	line, err := notification(NoteSettled, SettledNote{sub.seat.id, callID, answers})
	if err != nil {
		return err
	}
	return sub.seat.out.pushWait(ctx, line)
}

// admittedReply reads an event that admits a late answer; any other is not ok.
// A text that cannot be read settles its question with an empty batch.
func admittedReply(raw rawEvent) (callID string, answers []session.Answer, ok bool) {
	if !bytes.Contains(raw, []byte(session.SourceQuestionReply)) {
		return "", nil, false
	}
	var e struct {
		Type string              `json:"type"`
		Data session.UserMessage `json:"data"`
	}
	// A splice, or somebody's text that holds the word, is no reply.
	if json.Unmarshal(raw, &e) != nil || e.Type != session.TypeUserMessage || e.Data.Source.Kind != session.SourceQuestionReply {
		return "", nil, false
	}
	_, _, answers, _ = session.ParseReply(session.TextOf(e.Data.Content))
	return e.Data.Source.CallID, orEmpty(answers), true
}

// catchUp tells what is on disk and was not told, and the status that goes with
// it. The subscription has ended.
func (sub *subscription) catchUp(ctx context.Context) error {
	host := sub.seat.host
	for {
		page, err := host.Read(ctx, sub.next, sub.seat.lim.page)
		if err != nil {
			return err
		}
		for i, e := range page.Events {
			seq := page.NextSeq - int64(len(page.Events)-i)
			if err := sub.tell(ctx, Notice{Seq: seq, Event: e}); err != nil {
				return err
			}
		}
		if !page.More {
			break
		}
	}
	if st := host.Status(); st != sub.status {
		return sub.tell(ctx, Notice{Status: st})
	}
	return nil
}

// eventLine is session.event with the event byte for byte.
func eventLine(id string, event rawEvent) ([]byte, error) {
	name, err := session.Marshal(id)
	if err != nil {
		return nil, err
	}
	line := make([]byte, 0, len(event)+len(name)+100)
	line = append(line, `{"jsonrpc":"`+jrpc2.Version+`","method":"`+NoteEvent+`","params":{"sessionId":`...)
	line = append(line, name...)
	line = append(line, `,"event":`...)
	line = append(line, event...)
	return append(line, "}}"...), nil
}

func orEmpty(a []session.Answer) []session.Answer {
	if a == nil {
		return []session.Answer{}
	}
	return a
}
