package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// batchFlags are the answers that a command line gives.
type batchFlags struct {
	selects []string // id=LABEL
	customs []string // id=TEXT
	skips   []string // id
	file    string   // JSON {"answers":[…]}, "-" for stdin
}

// given tells whether there are any.
func (f batchFlags) given() bool {
	return len(f.selects)+len(f.customs)+len(f.skips) > 0 || f.file != ""
}

const maxBatch = 1 << 20 // bytes of JSON

// read reads what can be read before the questions are known: the JSON. It takes
// the key out of all answers, as it is taken out of the questions: a label in
// which it stands is the one that was offered.
func (f *batchFlags) read(ctx context.Context, a *App) ([]session.Answer, error) {
	key := a.key()
	for _, words := range [][]string{f.selects, f.customs, f.skips} {
		for i := range words {
			words[i] = key.String(words[i])
		}
	}
	if f.file == "" {
		return nil, nil
	}
	if len(f.selects)+len(f.customs)+len(f.skips) > 0 {
		return nil, usagef("--json and --select, --custom or --skip give the answers twice\ngive one of them")
	}
	var text string
	var err error
	if f.file == "-" {
		text, err = a.readStdin(ctx)
	} else {
		var data []byte
		if data, err = os.ReadFile(f.file); err != nil {
			return nil, usagef("cannot read the answers from %s: %v\nname a JSON file that can be read, or - for stdin", f.file, reason(err))
		}
		text = string(data)
	}
	if err != nil {
		return nil, err
	}
	if len(text) > maxBatch {
		return nil, usagef("the answers in %s are longer than %d MB\ngive just the answers: {\"answers\":[{\"id\":…,\"selected\":[…]}]}", f.file, maxBatch>>20)
	}
	batch, err := parseBatch(key.String(text))
	if err != nil {
		return nil, usagef("the answers in %s are not understood: %v\nwant {\"answers\":[{\"id\":…,\"selected\":[…],\"custom\":…}]}", f.file, err)
	}
	return batch, nil
}

// parseBatch reads {"answers":[…]}. Nothing is taken for a skip that does not
// say so: selected or custom must be there, and custom must say something.
func parseBatch(text string) ([]session.Answer, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("this is not UTF-8 text")
	}
	var top map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &top) != nil || len(top) != 1 || top["answers"] == nil {
		return nil, errors.New("this is not one JSON object with answers in it, and nothing else")
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(top["answers"], &list) != nil || len(list) == 0 {
		return nil, errors.New("answers is not a list of objects, or is empty")
	}
	batch := make([]session.Answer, len(list))
	for i, fields := range list {
		a := &batch[i]
		for key, raw := range fields {
			var err error
			switch {
			case key == "id":
				err = json.Unmarshal(raw, &a.ID)
			case key == "selected":
				err = json.Unmarshal(raw, &a.Selected)
			case key == "custom":
				if err = json.Unmarshal(raw, &a.Custom); err == nil && strings.TrimSpace(a.Custom) == "" {
					return nil, fmt.Errorf("answers[%d].custom says nothing; leave it out", i)
				}
			default:
				return nil, fmt.Errorf("answers[%d] has an unknown key %q", i, key)
			}
			if err != nil {
				return nil, fmt.Errorf("answers[%d].%s has the wrong type", i, key)
			}
		}
		if a.ID == "" {
			return nil, fmt.Errorf("answers[%d] has no id", i)
		}
		switch {
		case a.Selected == nil && (fields["selected"] != nil || a.Custom == ""):
			return nil, fmt.Errorf("answers[%d] has no list selected; an empty one skips the question", i)
		case a.Selected == nil: // words alone
			a.Selected = []string{}
		}
	}
	return batch, nil
}

// batch puts the flags together for the questions, in their order; answers of
// questions that are not asked come last, for the one who checks. A question
// that is left out is a usage error.
func (f batchFlags) batch(questions []session.Question, fromFile []session.Answer) ([]session.Answer, error) {
	batch := fromFile
	if batch == nil {
		var err error
		if batch, err = f.fromFlags(questions); err != nil {
			return nil, err
		}
	}
	var missing []string
	for _, q := range questions {
		if !slices.ContainsFunc(batch, func(a session.Answer) bool { return a.ID == q.ID }) {
			missing = append(missing, q.ID)
		}
	}
	if len(missing) > 0 {
		return nil, usagef("no answer for %s\nanswer every question with --select ID=LABEL, --custom ID=TEXT or --skip ID", strings.Join(missing, ", "))
	}
	return batch, nil
}

func (f batchFlags) fromFlags(questions []session.Question) ([]session.Answer, error) {
	var batch []session.Answer
	answer := func(id string) *session.Answer {
		for i := range batch {
			if batch[i].ID == id {
				return &batch[i]
			}
		}
		batch = append(batch, session.Answer{ID: id, Selected: []string{}})
		return &batch[len(batch)-1]
	}
	for _, s := range f.selects {
		id, label, err := pair("--select", "LABEL", s, questions)
		if err != nil {
			return nil, err
		}
		a := answer(id)
		a.Selected = append(a.Selected, label)
	}
	for _, s := range f.customs {
		id, text, err := pair("--custom", "TEXT", s, questions)
		if err != nil {
			return nil, err
		}
		a := answer(id)
		if a.Custom != "" {
			return nil, usagef("--custom answers %s twice\ngive it once", id)
		}
		if strings.TrimSpace(text) == "" {
			return nil, usagef("--custom %s is empty\nsay something, or use --skip %[1]s", id)
		}
		a.Custom = text
	}
	for _, id := range f.skips {
		if a := answer(id); len(a.Selected) > 0 || a.Custom != "" {
			return nil, usagef("question %s is both answered and skipped\ngive one of them", id)
		}
	}
	return batch, nil
}

// pair splits ID=VALUE. An id may hold a "=": the ids of the questions decide.
func pair(flag, what, s string, questions []session.Question) (id, value string, err error) {
	for _, q := range questions {
		if rest, ok := strings.CutPrefix(s, q.ID+"="); ok && len(q.ID) > len(id) {
			id, value = q.ID, rest
		}
	}
	if id != "" {
		return id, value, nil
	}
	id, value, ok := strings.Cut(s, "=")
	if !ok || id == "" {
		return "", "", usagef("%s %q is not ID=%s\nthe ids are %s", flag, cut(s), what, strings.Join(questionIDs(questions), ", "))
	}
	return id, value, nil
}

func questionIDs(questions []session.Question) []string {
	ids := make([]string, len(questions))
	for i, q := range questions {
		ids[i] = q.ID
	}
	return ids
}

// answerable is a question that a client may answer, as `answer` sees it.
type answerable struct {
	callID    string
	kind      question.Kind // "" is a question
	state     string        // open or continued
	queued    bool          // a reply waits already
	tracked   bool          // of timed mode: it stays answerable
	questions []session.Question
}

// pick finds the question that CALLID names: the whole id, a unique part at its
// beginning, or nothing where there is just one.
func pick(list []answerable, settled []string, callID, ref string) (answerable, error) {
	if callID == "" {
		var open []answerable
		for _, q := range list {
			if !q.queued {
				open = append(open, q)
			}
		}
		switch {
		case len(open) == 1:
			return open[0], nil
		case len(open) > 1:
			return answerable{}, usagef("several questions of session %s can be answered: %s\nname one of them", ref, strings.Join(callIDs(open), ", "))
		case len(list) > 0:
			return answerable{}, replyQueued(list[0])
		}
		return answerable{}, notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("nothing in session %s can be answered", ref))
	}
	var found []answerable
	for _, q := range list {
		if q.callID == callID {
			return q, nil
		}
		if strings.HasPrefix(q.callID, callID) {
			found = append(found, q)
		}
	}
	var over []string
	for _, id := range settled {
		if id == callID {
			return answerable{}, notAnswerable("NOT_ANSWERABLE", "settled", fmt.Sprintf("question %s is settled: it has its answer", id))
		}
		if strings.HasPrefix(id, callID) {
			over = append(over, id)
		}
	}
	switch {
	case len(found) == 1 && len(over) == 0:
		return found[0], nil
	case len(found)+len(over) > 1:
		return answerable{}, usagef("%q begins the ids of several questions: %s\ngive more of it", cut(callID), strings.Join(append(callIDs(found), over...), ", "))
	case len(over) == 1:
		return answerable{}, notAnswerable("NOT_ANSWERABLE", "settled", fmt.Sprintf("question %s is settled: it has its answer", over[0]))
	}
	return answerable{}, notAnswerable("NOT_ANSWERABLE", "", fmt.Sprintf("no question of session %s that can be answered begins with %q", ref, cut(callID)))
}

func callIDs(list []answerable) []string {
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.callID
	}
	return ids
}

// replyQueued refuses an answer where one waits already.
func replyQueued(q answerable) error {
	return notAnswerable(question.CodeReplyQueued, q.state, fmt.Sprintf("question %s has a reply already that the agent has not read yet", q.callID))
}

// notAnswerable is the refusal of an answer. It changes no byte of the session.
func notAnswerable(code, state, message string) *Coded {
	return &Coded{Exit: ExitNotAnswerable, Code: code, State: state, Message: message, Hint: "see `deepseek questions` for what waits"}
}
