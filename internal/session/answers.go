package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseQuestions reads the arguments of an ask_user_question call. timeout is
// in seconds, nil where the call has none. It fails where the types do not fit;
// whether the questions can be asked is CheckQuestions'.
func ParseQuestions(arguments string) (questions []Question, timeout *float64, err error) {
	var v struct {
		Questions []Question `json:"questions"`
		Timeout   *float64   `json:"timeout"`
	}
	if err := json.Unmarshal([]byte(arguments), &v); err != nil {
		return nil, nil, fmt.Errorf("the questions cannot be read: %w", PlainJSON(err))
	}
	for i := range v.Questions {
		q := &v.Questions[i]
		q.Detail = "" // a model has no say in it
		if len(q.Options) == 0 {
			q.Options = nil
		}
	}
	return v.Questions, v.Timeout, nil
}

// CheckQuestions tells why a batch cannot be asked: nothing could be answered,
// or an answer would not say to what.
func CheckQuestions(questions []Question) error {
	if len(questions) == 0 {
		return errors.New("questions: there is none; ask at least 1")
	}
	ids := make(map[string]bool, len(questions))
	for i, q := range questions {
		switch {
		case strings.TrimSpace(q.ID) == "":
			return fmt.Errorf("questions[%d].id is blank; give each question an id of its own", i)
		case ids[q.ID]:
			return fmt.Errorf("questions[%d].id: %q is used twice; give each question an id of its own", i, q.ID)
		case strings.TrimSpace(q.Question) == "":
			return fmt.Errorf("questions[%d].question is blank (id %q)", i, q.ID)
		}
		ids[q.ID] = true
		labels := make(map[string]bool, len(q.Options))
		for k, o := range q.Options {
			switch {
			case strings.TrimSpace(o.Label) == "":
				return fmt.Errorf("questions[%d].options[%d].label is blank (id %q)", i, k, q.ID)
			case labels[o.Label]:
				return fmt.Errorf("questions[%d].options[%d].label: %q is used twice in question %q; labels must differ", i, k, o.Label, q.ID)
			}
			labels[o.Label] = true
		}
	}
	return nil
}

func equalQuestions(a, b []Question) bool {
	return slices.EqualFunc(a, b, func(x, y Question) bool {
		return x.ID == y.ID && x.Question == y.Question && x.Header == y.Header && x.Detail == y.Detail &&
			x.MultiSelect == y.MultiSelect && slices.Equal(x.Options, y.Options)
	})
}

// CheckBatch tells why a batch does not answer the questions: each is named
// once, with labels that it has, and a single-select has one label, or words,
// or neither. The error names the question and its labels.
func CheckBatch(questions []Question, batch []Answer) error {
	return checkBatch(questions, batch, false)
}

// CheckBatchWithWords is CheckBatch for cards that take words beside the one
// selected label, as "no, because…" does.
func CheckBatchWithWords(questions []Question, batch []Answer) error {
	return checkBatch(questions, batch, true)
}

func checkBatch(questions []Question, batch []Answer, words bool) error {
	answered := make(map[string]bool, len(batch))
	for _, a := range batch {
		i := slices.IndexFunc(questions, func(q Question) bool { return q.ID == a.ID })
		if i < 0 {
			return fmt.Errorf("there is no question %q; the questions are %s", a.ID, quoted(questions, func(q Question) string { return q.ID }))
		}
		q := questions[i]
		if answered[a.ID] {
			return fmt.Errorf("question %q is answered twice; %s", a.ID, options(q))
		}
		answered[a.ID] = true
		for k, label := range a.Selected {
			if !slices.ContainsFunc(q.Options, func(o Option) bool { return o.Label == label }) {
				return fmt.Errorf("question %q has no option %q; %s", q.ID, label, options(q))
			}
			if slices.Contains(a.Selected[:k], label) {
				return fmt.Errorf("question %q: %q is selected twice; %s", q.ID, label, options(q))
			}
		}
		if q.MultiSelect {
			continue
		}
		if n := len(a.Selected); n > 1 {
			return fmt.Errorf("question %q takes one option, not %d; %s", q.ID, n, options(q))
		}
		if !words && len(a.Selected) == 1 && a.Custom != "" {
			return fmt.Errorf("question %q takes one option or a text of its own, not both; %s", q.ID, options(q))
		}
	}
	for _, q := range questions {
		if !answered[q.ID] {
			return fmt.Errorf("question %q is not answered (to skip it, select nothing); %s", q.ID, options(q))
		}
	}
	return nil
}

func options(q Question) string {
	if len(q.Options) == 0 {
		return "it has no options and takes a text"
	}
	return "its options are " + quoted(q.Options, func(o Option) string { return o.Label })
}

func quoted[T any](list []T, word func(T) string) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = strconv.Quote(word(v))
	}
	return strings.Join(words, ", ")
}

// batchText and replyText are the JSON of results and replies.
type batchText struct {
	Answers []Answer `json:"answers"`
}

type pendingText struct {
	Pending bool   `json:"pending"`
	CallID  string `json:"callId"`
	Message string `json:"message"`
}

type replyText struct {
	Kind      string     `json:"kind"`
	Tool      string     `json:"tool"`
	CallID    string     `json:"callId"`
	Questions []Question `json:"questions"`
	Answers   []Answer   `json:"answers"`
}

const replyKind = "answer_to_pending_question"

// BatchText is the result of a call that was answered.
func BatchText(batch []Answer) (string, error) {
	raw, err := Marshal(batchText{whole(batch)})
	return string(raw), err
}

// ParseBatch reads the result of a call that was answered; false if it is anything else.
func ParseBatch(content string) ([]Answer, bool) {
	var v batchText
	if json.Unmarshal([]byte(content), &v) != nil || v.Answers == nil {
		return nil, false
	}
	return whole(v.Answers), true
}

// PendingText is the result of a call that went on without an answer: the
// question stays answerable under callID.
func PendingText(callID, message string) (string, error) {
	raw, err := Marshal(pendingText{Pending: true, CallID: callID, Message: message})
	return string(raw), err
}

// ParsePending reads the call id of a pending result; false if it is anything else.
func ParsePending(content string) (callID string, ok bool) {
	var v pendingText
	if json.Unmarshal([]byte(content), &v) != nil || !v.Pending {
		return "", false
	}
	return v.CallID, true
}

// ReplyText is the text of the message that brings a late answer. What makes
// the message a reply is its source, never this text.
func ReplyText(callID string, questions []Question, batch []Answer) (string, error) {
	raw, err := Marshal(replyText{replyKind, AskTool, callID, questions, whole(batch)})
	return string(raw), err
}

// ParseReply reads such a text; ok is false where it cannot be read.
func ParseReply(text string) (callID string, questions []Question, batch []Answer, ok bool) {
	var v replyText
	if json.Unmarshal([]byte(text), &v) != nil || v.Kind != replyKind || v.CallID == "" || v.Answers == nil {
		return "", nil, nil, false
	}
	return v.CallID, v.Questions, whole(v.Answers), true
}

// whole is the batch without nulls.
func whole(batch []Answer) []Answer {
	out := make([]Answer, len(batch))
	for i, a := range batch {
		if a.Selected == nil {
			a.Selected = []string{}
		}
		out[i] = a
	}
	return out
}
