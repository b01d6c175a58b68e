package acp

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/session"
)

// kinds say what icon a tool gets.
var kinds = map[string]sdk.ToolKind{
	"read": sdk.ToolKindRead, "write": sdk.ToolKindEdit, "edit": sdk.ToolKindEdit,
	"glob": sdk.ToolKindSearch, "grep": sdk.ToolKindSearch,
	"bash": sdk.ToolKindExecute, "run_code": sdk.ToolKindExecute,
	"job_output": sdk.ToolKindRead, "job_list": sdk.ToolKindRead, "job_kill": sdk.ToolKindExecute,
	"todo_write": sdk.ToolKindThink, "get_goal": sdk.ToolKindThink, "create_goal": sdk.ToolKindThink, "update_goal": sdk.ToolKindThink,
	"delegate": sdk.ToolKindThink, "exit_plan_mode": sdk.ToolKindSwitchMode,
}

func kind(name string) sdk.ToolKind {
	if k, ok := kinds[name]; ok {
		return k
	}
	return sdk.ToolKindOther
}

// arguments are those that say what a call is about. What does not fit is left out.
type arguments struct {
	FilePath    string             `json:"file_path"`
	Path        string             `json:"path"`
	Pattern     string             `json:"pattern"`
	Command     string             `json:"command"`
	Description string             `json:"description"`
	Objective   string             `json:"objective"`
	Offset      int                `json:"offset"`
	Questions   []session.Question `json:"questions"`
}

// longestTitle is in characters.
const longestTitle = 120

func title(name string, a arguments) string {
	subject := ""
	switch {
	case name == "bash" && a.Command != "":
		return oneLine(a.Command)
	case name == session.AskTool && len(a.Questions) > 0:
		return oneLine(a.Questions[0].Question)
	case a.FilePath != "":
		subject = a.FilePath
	case a.Pattern != "":
		subject = a.Pattern
		if a.Path != "" {
			subject += " in " + a.Path
		}
	case a.Description != "":
		subject = a.Description
	case a.Objective != "":
		subject = a.Objective
	}
	return oneLine(strings.TrimSpace(name + " " + subject))
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longestTitle {
		return string(r[:longestTitle-1]) + "…"
	}
	return s
}

// call is the announcement of a call.
func (t *teller) call(id, name, raw string, status sdk.ToolCallStatus) *sdk.SessionUpdateToolCall {
	var a arguments
	_ = json.Unmarshal([]byte(raw), &a) // what a model wrote may be anything
	c := &sdk.SessionUpdateToolCall{ToolCallId: sdk.ToolCallId(id), Title: title(name, a), Kind: kind(name), Status: status}
	if json.Valid([]byte(raw)) {
		c.RawInput = json.RawMessage(raw)
	}
	if a.FilePath != "" {
		l := sdk.ToolCallLocation{Path: t.absolute(a.FilePath)}
		if a.Offset > 0 {
			l.Line = sdk.Ptr(a.Offset)
		}
		c.Locations = []sdk.ToolCallLocation{l}
	} else if a.Path != "" {
		c.Locations = []sdk.ToolCallLocation{{Path: t.absolute(a.Path)}}
	}
	return c
}

func (t *teller) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(t.dir, path)
}

// started tells that a call runs.
func (t *teller) started(id, name, raw string) error {
	if t.calls[id] {
		return t.tell(sdk.UpdateToolCall(sdk.ToolCallId(id), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	}
	t.calls[id] = true
	return t.tell(sdk.SessionUpdate{ToolCall: t.call(id, name, raw, sdk.ToolCallStatusInProgress)})
}

// ended tells the result of a call: the change where it changed a file, else
// what the model reads of it.
func (t *teller) ended(id, content string, failed bool, meta *session.ToolMeta) error {
	delete(t.calls, id)
	status := sdk.ToolCallStatusCompleted
	if failed {
		status = sdk.ToolCallStatusFailed
	}
	options := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(status)}
	var shown []sdk.ToolCallContent
	if meta != nil && meta.Path != "" && !failed {
		var where []sdk.ToolCallLocation
		shown, where = diffs(meta.Path, meta.Diff)
		options = append(options, sdk.WithUpdateLocations(where))
	}
	if len(shown) == 0 && content != "" {
		shown = []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(words(content)))}
	}
	return t.tell(sdk.UpdateToolCall(sdk.ToolCallId(id), append(options, sdk.WithUpdateContent(shown))...))
}

// interrupted tells that calls without a result have ended with the process that
// made them. Their results come into the log with the next thing that is written.
func (t *teller) interrupted() error {
	for _, id := range slices.Sorted(maps.Keys(t.calls)) {
		if err := t.tell(sdk.UpdateToolCall(sdk.ToolCallId(id), sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))); err != nil {
			return err
		}
	}
	clear(t.calls)
	return nil
}

// words is a result as an editor shows it, which takes it for Markdown.
func words(content string) string {
	if callID, ok := session.ParsePending(content); ok {
		return "No answer yet. The question " + callID + " stays answerable."
	}
	if batch, ok := session.ParseBatch(content); ok {
		var lines []string
		for _, a := range batch {
			said := strings.Join(a.Selected, ", ")
			if a.Custom != "" {
				said = a.Custom
			}
			if said == "" {
				said = "(skipped)"
			}
			lines = append(lines, a.ID+": "+said)
		}
		return strings.Join(lines, "\n")
	}
	return fenced(content)
}

// fenced is text that is shown as it is.
func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(s, "\n") + "\n" + fence
}
