// Package todo holds the tool by which the model keeps a list of what it means to do.
package todo

import (
	"context"
	_ "embed" // the texts
	"fmt"
	"strings"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	//go:embed todo_write.md
	text string
	//go:embed todo_write.json
	schema string
)

// Sink logs a list. It may be called again while an earlier call runs only if
// the tool is, which its traits do not ask for.
type Sink func(session.TodoWrite) error

// New makes the tool todo_write. It keeps nothing: the list is what was logged last.
func New(sink Sink) tool.Tool {
	return tool.Define(tool.Definition{
		Name: "todo_write", Text: text, Schema: schema, Traits: tool.Traits{ReadOnly: true},
	}, func(_ context.Context, _ tool.Call, in session.TodoWrite) tool.Result {
		for i := range in.Todos {
			in.Todos[i].Content = strings.TrimSpace(in.Todos[i].Content)
			if in.Todos[i].Content == "" {
				return tool.Errorf(tool.CodeInvalidArguments, "todos[%d].content is blank", i)
			}
		}
		if in.Todos == nil {
			in.Todos = []session.Todo{}
		}
		if err := sink(in); err != nil {
			return tool.Errorf(tool.CodeInternal, "the list could not be logged: %v", err)
		}
		return tool.Result{Content: render(in.Todos)}
	})
}

// States of an item.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
)

func render(todos []session.Todo) string {
	if len(todos) == 0 {
		return "The list is empty."
	}
	marks := map[string]string{pending: "[ ]", inProgress: "[~]", completed: "[x]"}
	counts := map[string]int{}
	var b strings.Builder
	for _, t := range todos {
		counts[t.Status]++
		fmt.Fprintf(&b, "\n%s %s", marks[t.Status], strings.ReplaceAll(t.Content, "\n", " "))
	}
	return fmt.Sprintf("%d of %d completed, %d in progress", counts[completed], len(todos), counts[inProgress]) + b.String()
}
