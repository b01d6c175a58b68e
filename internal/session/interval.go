package session

import (
	"fmt"
)

// Interval folds one owned idle-to-idle interval into its result. It is
// deliberately wider than the message that opened it: whatever joins before
// idle belongs to it, and nothing in it is attributed to that message.
type Interval struct {
	from, to int64
	final    string
	finish   *string
	usage    Usage
	steps    int
	denied   int
	last     Reason
}

// NewInterval begins an interval with the event of the given seq.
func NewInterval(from int64) *Interval { return &Interval{from: from, to: from} }

// Apply consumes the next event; those before the interval are ignored.
func (in *Interval) Apply(e Event) error {
	if e.Seq < in.from {
		return nil
	}
	in.to = e.Seq
	switch e.Type {
	case TypeAssistantMessage:
		var m AssistantMessage
		if err := decode(e, &m); err != nil {
			return err
		}
		if t := TextOf(m.Message.Content); t != "" {
			in.final = t
		}
		if m.Usage != nil {
			in.usage.Add(*m.Usage)
		}
	case TypeCompactionSummary, TypeCompactionEnd: // a summary is paid for like an answer
		var v struct {
			Usage *Usage `json:"usage"`
		}
		if err := decode(e, &v); err != nil {
			return err
		}
		if v.Usage != nil {
			in.usage.Add(*v.Usage)
		}
	case TypeStepStart:
		in.steps++
	case TypeApprovalDecided:
		var d ApprovalDecided
		if err := decode(e, &d); err != nil {
			return err
		}
		if d.Decision == DecisionDenied && !d.Canceled { // refused, and not cut short
			in.denied++
		}
	case TypeTurnEnd:
		var end TurnEnd
		if err := decode(e, &end); err != nil {
			return err
		}
		if end.Reason.Kind == "" {
			return fmt.Errorf("%w: event %d: a turn/end without a reason", ErrDamaged, e.Seq)
		}
		in.finish, in.last = &end.Reason.Kind, end.Reason
	}
	return nil
}

// From is the seq of the interval's first event.
func (in *Interval) From() int64 { return in.from }

// End is the reason of the interval's last turn; its kind is "" if no turn ended.
func (in *Interval) End() Reason { return in.last }

// Steps counts the steps begun so far.
func (in *Interval) Steps() int { return in.steps }

// RunResult is what the owner of an interval may say of it.
type RunResult struct {
	SessionID     string         `json:"sessionId"`
	MessageID     *string        `json:"messageId"` // null where no message opened the interval
	FinalResponse string         `json:"finalResponse"`
	FinishReason  *string        `json:"finishReason"` // of the last turn, null where none ended
	Usage         Usage          `json:"usage"`
	Steps         int            `json:"steps"`
	DurationMS    int64          `json:"durationMs"`
	Denied        int            `json:"denied"`
	Events        Range          `json:"events"`
	Questions     []OpenQuestion `json:"questions"` // never null
	Error         *ErrorInfo     `json:"error,omitempty"`
}

// Range is a range of seqs, both ends included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// OpenQuestion is a question that waits at the end of an interval.
type OpenQuestion struct {
	CallID    string     `json:"callId"`
	State     string     `json:"state"`
	Queued    bool       `json:"queued"`
	Questions []Question `json:"questions"`
	Answer    string     `json:"answer"` // the command that answers it
}

// Result is the result so far.
func (in *Interval) Result() RunResult {
	return RunResult{
		FinalResponse: in.final, FinishReason: in.finish, Usage: in.usage, Steps: in.steps, Denied: in.denied,
		Events: Range{From: in.from, To: in.to}, Questions: []OpenQuestion{},
	}
}
