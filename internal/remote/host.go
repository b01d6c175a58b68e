package remote

import (
	"context"
	"encoding/json"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// Host is a session as its owner offers it to others. All methods may be called
// at once from any number of connections.
//
// A refusal is an *Error or an error with a Code method (see Coder); anything
// else reaches the client as an internal error. Calls return soon after their
// context ends.
type Host interface {
	Header() session.Header
	// Prompt queues a message for a turn of its own, Steer one for the next
	// step. They return the message's id once the receipt is on disk.
	Prompt(ctx context.Context, content []session.Block) (messageID string, err error)
	Steer(ctx context.Context, content []session.Block) (messageID string, err error)
	Cancel(ctx context.Context, keepInbox bool) error

	// Read returns durable events from a seq on, as they stand in the file: as
	// many as fit into maxBytes, one at least where there is one.
	Read(ctx context.Context, fromSeq int64, maxBytes int) (Page, error)
	// Follow hands out, in order, every event from a seq on once it is on disk,
	// and between them the status, the present one first, and text as it
	// streams. sink may block for as long as a client is slow; the session must
	// not wait for it. An error of sink ends Follow, which returns it. Follow
	// ends with nil when no more will come, and returns soon after ctx ends.
	Follow(ctx context.Context, fromSeq int64, sink func(Notice) error) error
	// Status is the status as Follow would tell it.
	Status() string

	// Questions lists the questions of the session and the cards of its waits.
	Questions(ctx context.Context) (QuestionList, error)
	// Attach claims a wait; false if it is unknown or over. What the claim
	// promises is Claim's.
	Attach(callID string) (Claim, bool)
	// Answer is the late answer, Withdraw takes one back that is still queued.
	Answer(ctx context.Context, callID string, answers []session.Answer) (accepted bool, err error)
	Withdraw(ctx context.Context, callID string) (withdrawn bool, err error)
	// Watch calls f, in order and one at a time, for every wait that opens or
	// ends. f does not block. A call of f in hand may outlast stop.
	Watch(f func(question.Event)) (stop func())
	// RemoteApprovals tells whether approvals and plan reviews may be answered by
	// others than the owner's own terminal or stdio client.
	RemoteApprovals() bool
}

// Claim is a client's hold on a foreground wait; *question.Claim is one. While
// one is held the host's timer does not run.
type Claim interface {
	Card() question.Card
	// Remaining is what was left of the wait at the attach; negative if it has
	// no end of its own.
	Remaining() time.Duration
	// Respond and Reject settle the wait. They return true once the settlement
	// is on disk, false if another settlement won.
	Respond(ctx context.Context, answers []session.Answer) (accepted bool, err error)
	Reject(ctx context.Context, code string) (accepted bool, err error)
	// Detach lets the claim go. It may be called more than once and after the end.
	Detach()
	// Ended yields once how the wait ended, and nothing after Detach.
	Ended() <-chan question.Ended
}

// Page is a part of a log.
type Page struct {
	Events  []json.RawMessage
	NextSeq int64 // where the next page begins; never behind the first event that is still to come
	More    bool  // there was more than fitted
}

// QuestionList is the questions of a session as one sees them now.
type QuestionList struct {
	Active  []ActiveQuestion  `json:"active"`
	Settled []SettledQuestion `json:"settled"`
	Waits   []Wait            `json:"waits"` // legacy questions, approvals, plan reviews
}

// Wait is the card of a foreground wait that is not tracked as a question.
type Wait struct {
	CallID    string             `json:"callId"`
	Kind      question.Kind      `json:"kind"`
	Questions []session.Question `json:"questions"`
}

// ActiveQuestion is a question that can still be answered.
type ActiveQuestion struct {
	CallID    string             `json:"callId"`
	State     string             `json:"state"`  // open or continued
	Queued    bool               `json:"queued"` // a reply lies in the inbox
	Questions []session.Question `json:"questions"`
	AskedAt   int64              `json:"askedAt"`          // ms since the epoch
	Answer    string             `json:"answer,omitempty"` // the command that answers it, from the owner
}

// SettledQuestion is a question that has its answer.
type SettledQuestion struct {
	CallID  string           `json:"callId"`
	Answers []session.Answer `json:"answers"`
}

// Notice is one thing that a subscriber is told. Just one of Event, Status,
// Delta, Request and Settled is set; a Host's Follow uses the first three.
type Notice struct {
	Seq     int64           // of Event
	Event   json.RawMessage // as it stands in the file; not changed after the call
	Status  string
	Delta   *Delta
	Request *RequestNote
	Settled *SettledNote
}

// Delta is streamed text that is not committed yet.
type Delta struct {
	Turn int    `json:"turn"`
	Step int    `json:"step"`
	Kind string `json:"kind"` // text or reasoning
	Text string `json:"text"`
}
