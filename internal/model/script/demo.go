package script

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// Demo is the built-in demo model. For each task it lists the files, reads one,
// asks one question and reports. It writes nothing and runs no command. What it
// does next it sees from the history alone, so it has no state and is safe for
// concurrent use.
func Demo() model.Model { return demo{} }

type demo struct{}

// Provider names the model.
func (demo) Provider() string { return model.Demo }

const (
	demoOpening  = "This is deepseek's built-in demo script, no model."
	demoQuestion = "How long should the summary be?"
	demoPrefix   = "demo_"
	replyKind    = "answer_to_pending_question"

	toolGlob = "glob"
	toolRead = "read"
	toolAsk  = "ask_user_question"
)

// Generate makes the next call of the task, or says the closing text.
func (demo) Generate(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
	if err := ctx.Err(); err != nil {
		return model.Response{}, err
	}
	if call, ok := nextCall(req); ok {
		out, err := stream(ctx, "", "", sink)
		out.Calls, out.Finish = []session.Call{call}, model.FinishToolCalls
		return out, err
	}
	out, err := stream(ctx, "", closing(req.Messages), sink)
	if err == nil {
		out.Finish = model.FinishStop
	}
	return out, err
}

// nextCall is the call that the task still needs. A reply needs none.
func nextCall(req model.Request) (session.Call, bool) {
	if len(req.Messages) == 0 {
		return session.Call{}, false
	}
	if _, isReply := parseReply(req.Messages[len(req.Messages)-1]); isReply {
		return session.Call{}, false
	}
	t := lookAt(req.Messages[taskStart(req.Messages):])
	has := func(tool string) bool {
		return slices.ContainsFunc(req.Tools, func(s session.ToolSpec) bool { return s.Name == tool })
	}
	var name string
	var args any
	file := pick(t.listing)
	switch {
	case t.closed:
		return session.Call{}, false
	case has(toolGlob) && !t.listed:
		name, args = toolGlob, map[string]string{"pattern": "*"}
	case has(toolRead) && t.file == "" && file != "":
		name, args = toolRead, map[string]string{"file_path": file}
	case has(toolAsk) && !t.asked:
		name = toolAsk
		args = map[string][]session.Question{"questions": {{
			ID: "demo", Header: "Summary", Question: demoQuestion,
			Options: []session.Option{{Label: "short"}, {Label: "long"}},
		}}}
	default:
		return session.Call{}, false
	}
	raw, err := session.Marshal(args)
	if err != nil { // strings always encode
		return session.Call{}, false
	}
	return session.Call{ID: nextID(req.Messages), Name: name, Arguments: string(raw)}, true
}

// taskStart is where the latest task begins: at the last user message that is
// no answer to a question.
func taskStart(history []session.Message) int {
	for i, m := range slices.Backward(history) {
		if _, isReply := parseReply(m); m.Role == session.RoleUser && !isReply {
			return i
		}
	}
	return 0
}

// task is what has happened since a task began.
type task struct {
	listed, asked, closed bool
	listing               string // what glob said
	file                  string // that was read
	outcome               string // of the question
}

func lookAt(history []session.Message) task {
	var t task
	tools := map[string]string{} // call id -> tool
	for _, m := range history {
		switch m.Role {
		case session.RoleAssistant:
			for _, c := range m.Calls {
				tools[c.ID] = c.Name
				switch c.Name {
				case toolGlob:
					t.listed = true
				case toolRead:
					t.file = argument(c.Arguments, "file_path")
				case toolAsk:
					t.asked = true
				}
			}
			t.closed = len(m.Calls) == 0
		case session.RoleTool:
			switch tools[m.CallID] {
			case toolGlob:
				t.listing = m.Text
			case toolAsk:
				t.outcome = outcomeOf(m.Text)
			}
		case session.RoleUser:
			if reply, ok := parseReply(m); ok {
				t.outcome = "your later answer to its question was " + spoken(reply.Answers)
			}
		}
	}
	return t
}

// closing is the text that ends a task, and that answers a late reply.
func closing(history []session.Message) string {
	t := lookAt(history[taskStart(history):])
	file := "It found no file to read"
	if t.file != "" {
		file = "It read " + t.file
	}
	outcome := t.outcome
	if outcome == "" {
		outcome = "it asked no question"
	}
	return fmt.Sprintf("%s %s, and %s. With DEEPSEEK_API_KEY set, leave out --model demo to work with a model.", demoOpening, file, outcome)
}

// pick chooses the file to read from what glob said: README.md, or the first.
func pick(listing string) string {
	first := ""
	for line := range strings.Lines(listing) {
		line = strings.TrimRight(line, "\r\n")
		if strings.EqualFold(path.Base(line), "README.md") {
			return line
		}
		if first == "" && looksLikeFile(line) {
			first = line
		}
	}
	return first
}

// looksLikeFile leaves out the lines of a listing that name no file: folders,
// what was cut, errors and the word that there is nothing.
func looksLikeFile(line string) bool {
	return line != "" && line != "(no output)" && !strings.HasSuffix(line, "/") && !strings.HasPrefix(line, "…") &&
		!strings.HasPrefix(line, "No files") && !strings.Contains(line, ": ")
}

// reply is the text of a late answer.
type reply struct {
	Kind    string           `json:"kind"`
	Answers []session.Answer `json:"answers"`
}

func parseReply(m session.Message) (reply, bool) {
	var r reply
	if m.Role != session.RoleUser || !strings.HasPrefix(m.Text, "{") || json.Unmarshal([]byte(m.Text), &r) != nil {
		return reply{}, false
	}
	return r, r.Kind == replyKind
}

// outcomeOf reads the result of the question.
func outcomeOf(result string) string {
	var r struct {
		Pending bool             `json:"pending"`
		Answers []session.Answer `json:"answers"`
	}
	switch err := json.Unmarshal([]byte(result), &r); {
	case err != nil && strings.HasPrefix(result, "NO_PROVIDER"):
		return "nobody could be asked its question"
	case err != nil:
		code, _, _ := strings.Cut(result, ":")
		return "its question was not answered (" + code + ")"
	case r.Pending:
		return "its question was left pending: answer it later and it will go on"
	}
	return "your answer to its question was " + spoken(r.Answers)
}

func spoken(answers []session.Answer) string {
	var said []string
	for _, a := range answers {
		said = append(said, a.Selected...)
		if a.Custom != "" {
			said = append(said, a.Custom)
		}
	}
	if len(said) == 0 {
		return "to skip it"
	}
	return strconv.Quote(strings.Join(said, ", "))
}

func argument(raw, name string) string {
	var args map[string]any
	if json.Unmarshal([]byte(raw), &args) != nil {
		return ""
	}
	s, _ := args[name].(string)
	return s
}

// nextID follows the highest of the demo's ids in the history.
func nextID(history []session.Message) string {
	highest := 0
	for _, m := range history {
		for _, c := range m.Calls {
			digits, ok := strings.CutPrefix(c.ID, demoPrefix)
			if n, err := strconv.Atoi(digits); ok && err == nil {
				highest = max(highest, n)
			}
		}
	}
	return demoPrefix + strconv.Itoa(highest+1)
}
