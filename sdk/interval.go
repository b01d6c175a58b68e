package deepseek

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	statusIdle   = "idle"
	eventSpliced = "agent/inbox/spliced"
)

// interval collects from the receipt of a message to the next idle. It belongs
// to the connection's reading goroutine until it is done.
type interval struct {
	sessionID string
	messageID string // "" until the prompt is answered
	begun     time.Time
	ended     time.Time
	early     []told
	events    []Event
}

// told is an event or, where that is nil, a status.
type told struct {
	event  *Event
	status string
}

// receipt takes the answer to the prompt. True: the interval has ended with
// what came before the answer.
func (in *interval) receipt(sessionID, messageID string) (done bool, err error) {
	in.sessionID, in.messageID = sessionID, messageID
	for _, t := range in.early {
		if done, err = in.feed(t); done || err != nil {
			break
		}
	}
	in.early = nil
	return done, err
}

// feed takes what happens in the session, in order. True: the interval has ended with it.
func (in *interval) feed(t told) (done bool, err error) {
	switch {
	case !in.ended.IsZero():
		return false, nil
	case in.messageID == "":
		in.early = append(in.early, t)
		return false, nil
	case t.event == nil:
		if t.status != statusIdle || len(in.events) == 0 {
			return false, nil
		}
		in.ended = time.Now()
		return true, nil
	}
	begins := len(in.events) > 0
	if !begins {
		if begins, err = in.isReceipt(t.event); err != nil {
			return false, err
		}
	}
	if begins {
		in.events = append(in.events, *t.event)
	}
	return false, nil
}

func (in *interval) isReceipt(e *Event) (bool, error) {
	if e.Type != eventSpliced {
		return false, nil
	}
	var v struct {
		Inserted []struct {
			ID string `json:"id"`
		} `json:"inserted"`
	}
	if err := decode(e, &v); err != nil {
		return false, err
	}
	for _, m := range v.Inserted {
		if m.ID == in.messageID {
			return true, nil
		}
	}
	return false, nil
}

// result is that of an interval that is done.
func (in *interval) result() (*RunResult, error) {
	r := &RunResult{
		SessionID: in.sessionID, MessageID: in.messageID, DurationMS: in.ended.Sub(in.begun).Milliseconds(),
		Questions: []OpenQuestion{}, Events: in.events,
	}
	for i := range in.events {
		if want := in.events[0].Seq + int64(i); in.events[i].Seq != want {
			return nil, fmt.Errorf("%w: event %d comes where event %d is due", ErrMalformedEvent, in.events[i].Seq, want)
		}
		if err := r.apply(&in.events[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *RunResult) apply(e *Event) error {
	switch e.Type {
	case "assistant/message":
		var v struct {
			Message struct {
				Content []struct{ Type, Text string }
			}
			Usage *Usage
		}
		if err := decode(e, &v); err != nil {
			return err
		}
		text := ""
		for _, b := range v.Message.Content {
			if b.Type == "text" {
				text += b.Text
			}
		}
		if text != "" {
			r.FinalResponse = text
		}
		if v.Usage != nil {
			r.Usage.add(v.Usage)
		}
	case "compaction/summary", "compaction/end": // a summary is paid for like an answer
		var v struct{ Usage *Usage }
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Usage != nil {
			r.Usage.add(v.Usage)
		}
	case "step/start":
		r.Steps++
	case "approval/decided":
		var v struct{ Decision string }
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Decision == "denied" {
			r.Denied++
		}
	case "turn/end":
		var v struct {
			Reason struct {
				Kind  string
				Error *TurnError
			}
		}
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Reason.Kind == "" {
			return fmt.Errorf("%w: event %d: a turn/end without a reason", ErrMalformedEvent, e.Seq)
		}
		r.FinishReason, r.Error = &v.Reason.Kind, v.Reason.Error
	}
	return nil
}

func (u *Usage) add(v *Usage) {
	u.InputTokens += v.InputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.OutputTokens += v.OutputTokens
	u.ReasoningTokens += v.ReasoningTokens
	if v.CostUSD != nil {
		sum := *v.CostUSD
		if u.CostUSD != nil {
			sum += *u.CostUSD
		}
		u.CostUSD = &sum
	}
}

func decode(e *Event, into any) error {
	err := check(fmt.Sprintf("event %d (%s)", e.Seq, e.Type), e.Data, events[e.Type])
	if err == nil {
		err = json.Unmarshal(e.Data, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformedEvent, err)
	}
	return nil
}
