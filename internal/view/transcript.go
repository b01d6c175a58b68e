package view

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"deepseek/internal/session"
)

// Transcript is a session as people and scripts read it back.
type Transcript struct {
	SessionID string         `json:"sessionId"`
	Header    session.Header `json:"header"`
	Turns     []*Turn        `json:"turns"`
	Questions QuestionList   `json:"questions"`
	Queued    []*Item        `json:"queued,omitempty"` // messages that no turn has taken yet, in the order in which turns will
	Live      bool           `json:"-"`                // an owner is at work
}

// Turn is one turn with everything in it, in the order of the log.
type Turn struct {
	Turn   int             `json:"turn"`
	Time   int64           `json:"-"`      // of its start, ms since the epoch
	Reason *session.Reason `json:"reason"` // null while it runs
	Steps  int             `json:"steps"`  // begun
	Items  []*Item         `json:"items"`
}

// Kinds of items.
const (
	KindUser      = "user"
	KindAssistant = "assistant"
	KindTool      = "tool"
	KindQuestion  = "question" // a call that asks, with what became of it
	KindReply     = "reply"    // a late answer, where it was admitted
	KindNote      = "note"     // what the program did or noticed
)

// StateRemoved is the state of a question that cannot be answered any more and
// has no answer: its call was refused or failed.
const StateRemoved = "removed"

// Item is one entry of a turn. Which fields count is the kind's.
type Item struct {
	Kind   string          `json:"kind"`
	Seq    int64           `json:"seq"` // of the event that it begins with
	Time   int64           `json:"time"`
	Step   int             `json:"step,omitempty"`
	Source *session.Source `json:"source,omitempty"` // user and reply
	Text   string          `json:"text,omitempty"`   // user, assistant, note; of a reply only if it cannot be read

	Reasoning   string         `json:"reasoning,omitempty"` // assistant
	Interrupted bool           `json:"interrupted,omitempty"`
	Usage       *session.Usage `json:"usage,omitempty"`

	CallID    string            `json:"callId,omitempty"` // tool, question and reply
	Parent    string            `json:"parentCallId,omitempty"`
	Name      string            `json:"name,omitempty"` // tool
	Arguments string            `json:"arguments,omitempty"`
	Result    string            `json:"result,omitempty"` // of a question only if its call failed
	Code      string            `json:"code,omitempty"`   // of a failed call
	Meta      *session.ToolMeta `json:"meta,omitempty"`

	State     string             `json:"state,omitempty"` // question
	Questions []session.Question `json:"questions,omitempty"`
	Answers   []session.Answer   `json:"answers,omitzero"` // not null once there are any, be it an empty batch
	SameAs    string             `json:"sameAs,omitempty"` // the call that had asked the same before
	Queued    bool               `json:"-"`                // the answers are not delivered yet
	Late      bool               `json:"-"`                // the answers came, or will come, by a message

	Event   string `json:"event,omitempty"`   // note: the type of its event
	Session string `json:"session,omitempty"` // note: the sub-agent's, or in its own transcript its parent's

	title   string // of a tool call, on one line
	given   string // of a tool call, whole, where text shows it
	started bool   // a call that has begun
	ended   bool   // a call that has its result
	tracked bool   // a question of timed mode
	major   bool   // a note that folding does not hide
}

// MarshalJSON adds to a question what is told of it even if it is false.
func (i *Item) MarshalJSON() ([]byte, error) {
	type plain Item // without this method
	if i.Kind != KindQuestion {
		return session.Marshal((*plain)(i))
	}
	return session.Marshal(struct {
		*plain
		Queued bool `json:"queued"`
		Late   bool `json:"late"`
	}{(*plain)(i), i.Queued, i.Late})
}

// failed tells whether a call did not do what it was to do.
func (i *Item) failed() bool {
	return i.Code != "" || i.Meta != nil && (i.Meta.Signal != "" || i.Meta.ExitCode != nil && *i.Meta.ExitCode != 0)
}

// RunningCall is a call that has begun and not ended.
type RunningCall struct {
	session.Call
	Began time.Time
}

// Running are the calls of a live session that have begun and not ended.
func (t *Transcript) Running() []RunningCall {
	if !t.Live || len(t.Turns) == 0 {
		return nil
	}
	var calls []RunningCall
	for _, i := range t.Turns[len(t.Turns)-1].Items {
		if i.started && !i.ended && i.Parent == "" {
			calls = append(calls, RunningCall{session.Call{ID: i.CallID, Name: i.Name, Arguments: i.Arguments}, time.UnixMilli(i.Time)})
		}
	}
	return calls
}

// QuestionList is every question of timed mode that has a state.
type QuestionList struct {
	Active  []ActiveQuestion  `json:"active"`
	Settled []SettledQuestion `json:"settled"`
}

// ActiveQuestion is a question that can still be answered.
type ActiveQuestion struct {
	CallID    string             `json:"callId"`
	State     string             `json:"state"`  // open or continued
	Queued    bool               `json:"queued"` // a reply lies in the inbox
	Questions []session.Question `json:"questions"`
	AskedAt   int64              `json:"askedAt"` // ms since the epoch
}

// SettledQuestion is a question that has its answers.
type SettledQuestion struct {
	CallID  string           `json:"callId"`
	Answers []session.Answer `json:"answers"`
}

// WriteJSON writes the transcript as one line. It encodes a turn at a time, so
// that a long session needs no second copy of itself.
func WriteJSON(w io.Writer, t *Transcript) error {
	whole := *t
	whole.Turns = []*Turn{}
	frame, err := session.Marshal(&whole)
	if err != nil {
		return err
	}
	const empty = `"turns":[`
	at := bytes.Index(frame, []byte(empty+"]")) + len(empty)
	if _, err := w.Write(frame[:at]); err != nil {
		return err
	}
	for i, turn := range t.Turns {
		raw, err := session.Marshal(turn)
		if err != nil {
			return err
		}
		if i > 0 {
			raw = append([]byte{','}, raw...)
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	_, err = w.Write(append(frame[at:], '\n'))
	return err
}

var _ json.Marshaler = (*Item)(nil)
