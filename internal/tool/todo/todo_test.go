package todo

import (
	"errors"
	"strings"
	"testing"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

func TestTodoWrite(t *testing.T) {
	var logged []session.TodoWrite
	full := errors.New("no space left on device")
	var fail error
	tl := New(func(w session.TodoWrite) error {
		logged = append(logged, w)
		return fail
	})
	r, err := tool.NewRegistry(tl)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, code, want string
		fail             error
	}{
		{
			`{"todos":[{"content":"a","status":"completed"},{"content":" b\nc ","status":"in_progress"},{"content":"d","status":"pending"}]}`, "",
			"1 of 3 completed, 1 in progress\n[x] a\n[~] b c\n[ ] d", nil,
		},
		{`{"todos":[]}`, "", "The list is empty.", nil},
		{`{"todos":[{"content":" ","status":"pending"}]}`, tool.CodeInvalidArguments, "todos[0].content is blank", nil},
		{`{"todos":[{"content":"a","status":"done"}]}`, tool.CodeInvalidArguments, `todos[0].status: must be one of "pending", "in_progress", "completed"; the value is "done"`, nil},
		{`{"todos":"a"}`, tool.CodeInvalidArguments, "todos: got string, want array", nil},
		{`{}`, tool.CodeInvalidArguments, "todos is missing", nil},
		{`{"todos":[{"content":"a","status":"pending"}]}`, tool.CodeInternal, "no space left on device", full},
	} {
		logged, fail = nil, c.fail
		_, args, bad := r.Check("todo_write", c.args)
		var got tool.Result
		if bad != nil {
			got = *bad
		} else {
			got = tl.Run(t.Context(), tool.Call{Arguments: args})
		}
		if got.Code != c.code || !strings.Contains(got.Content, c.want) {
			t.Errorf("%s: %+v", c.args, got)
		}
		if c.code == "" && (len(logged) != 1 || logged[0].Todos == nil) {
			t.Errorf("%s: logged %+v", c.args, logged)
		}
	}
}
