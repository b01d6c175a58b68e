package code

import (
	"context"
	_ "embed" // the texts
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"deepseek/internal/tool"
)

// Name is the tool's name.
const Name = "run_code"

// Codes of code that did not come to its end. The output so far is kept.
const (
	CodeError   = "CODE_ERROR"   // it threw, does not parse, or waits for what never comes
	CodeTimeout = "CODE_TIMEOUT" // too much computing, or too much time in all
	CodeMemory  = "CODE_MEMORY"
	CodeOutput  = "CODE_OUTPUT"
)

var (
	//go:embed run_code.md
	text string
	//go:embed run_code.json
	schema string
)

// limits of one call.
type limits struct {
	compute   time.Duration // in the engine; waiting for sub-calls does not count
	wall      time.Duration // in all; rests while a person is waited for
	grace     time.Duration // until an engine that cannot be stopped is left behind
	memory    int           // bytes of the engine
	output    int           // bytes of console and returned value together
	arguments int           // bytes of one sub-call's arguments
	traffic   int           // bytes of all sub-calls' arguments and results together
	calls     int           // sub-calls
}

var usual = limits{
	compute: 60 * time.Second, wall: 10 * time.Minute, grace: 2 * time.Second,
	memory: 256 << 20, output: 64 << 20, arguments: 8 << 20, traffic: 256 << 20, calls: 5000,
}

type arguments struct {
	Code        string `json:"code"`
	Description string `json:"description"`
}

// New is the tool run_code.
func New() tool.Tool { return newTool(usual) }

func newTool(l limits) tool.Tool {
	stuck := &atomic.Int32{} // engines left behind
	return tool.Define(tool.Definition{
		Name: Name, Text: text, Schema: schema, Traits: tool.Traits{TopLevel: true},
	}, func(ctx context.Context, call tool.Call, in arguments) tool.Result {
		switch {
		case strings.TrimSpace(in.Code) == "":
			return tool.Errorf(tool.CodeInvalidArguments, "code is blank")
		case call.Dispatch == nil:
			return tool.Errorf(tool.CodeInternal, "%s can call no tools here", Name)
		case stuck.Load() > 0:
			return tool.Errorf(CodeError, "earlier code is still inside an operation that cannot be stopped, so no other code is run. Call the tools yourself.")
		}
		r := newRunner(ctx, call, in.Code, l)
		return r.result(r.run(stuck))
	})
}

// result is what the model reads: of code that failed, why, and the output so far.
func (r *runner) result(end ending) tool.Result {
	out := r.output.String()
	if end.returned != "" {
		out = joined(out, "return: "+end.returned)
	}
	if end.fault == nil {
		return tool.Result{Content: out}
	}
	var f *fault
	if !errors.As(end.fault, &f) {
		f = &fault{tool.CodeInternal, end.fault.Error()}
	}
	res := tool.Errorf(f.code, "%s", f.message)
	if n := r.made.Load(); n > 0 {
		res.Content += fmt.Sprintf("\nSub-calls made: %d. What they did stands.", n)
	}
	if out != "" {
		res.Content += "\nOutput so far:\n" + out
	}
	return res
}

// joined puts a line below a text.
func joined(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// fault is why code did not come to its end.
type fault struct{ code, message string }

func (f *fault) Error() string { return f.code + ": " + f.message }

func faultf(code, format string, args ...any) *fault {
	return &fault{code, fmt.Sprintf(format, args...)}
}
