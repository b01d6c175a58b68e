package code

import (
	_ "embed" // the prelude
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"modernc.org/quickjs"
)

//go:embed prelude.js
var prelude string

// load makes the engine.
func (r *runner) load() error {
	vm, err := quickjs.NewVM()
	if err != nil {
		return faultf(CodeMemory, "the JavaScript engine could not be started: %v", err)
	}
	vm.SetMemoryLimit(uintptr(r.limits.memory))
	r.vm = vm
	r.engine.Store(vm)
	r.lost, r.untrack = track(vm)
	for name, f := range map[string]quickjs.HostFunc{
		"$hostCall": func(args []any) (any, error) { return r.hostCall(str(args, 0), str(args, 1)) },
		"$hostTake": func([]any) (any, error) { return []any{r.current.Code, r.current.Content}, nil },
		"$hostPrint": func(args []any) (any, error) {
			r.hostPrint(str(args, 0))
			return quickjs.Undefined{}, nil
		},
		"$hostDone": func(args []any) (any, error) {
			r.hostDone(str(args, 0), str(args, 1))
			return quickjs.Undefined{}, nil
		},
	} {
		if err == nil {
			err = vm.RegisterHostFunc(name, f)
		}
	}
	if err == nil {
		r.enter, err = vm.EvalValue(prelude, quickjs.EvalGlobal)
	}
	if err != nil {
		r.untrack()
		r.engine.Store(nil)
		if r.ctx.Err() != nil {
			return errors.Join(errStopped, vm.Close())
		}
		return errors.Join(fmt.Errorf("the JavaScript engine could not be prepared: %w", err), vm.Close())
	}
	return nil
}

func str(args []any, i int) string {
	if i >= len(args) {
		return ""
	}
	s, _ := args[i].(string)
	return s
}

// The code is the body of an async function. What stands before it is on its
// first line, so that lines count as the model wrote them.
const before, after = "(async () => {", "\n})"

// begin parses the code and begins its function.
func (r *runner) begin() error {
	var f quickjs.Value
	err := r.js(func() (err error) {
		f, err = r.vm.EvalValue(before+r.code+after, quickjs.EvalGlobal)
		return err
	})
	if err != nil {
		return err
	}
	defer f.Free()
	return r.into(f)
}

// translate says in the model's terms why the engine stopped.
func (r *runner) translate(err error) error {
	var f *fault
	var e *quickjs.Error
	switch {
	case errors.As(err, &f) || errors.Is(err, errStopped):
		return err
	case errors.As(err, &e):
		return r.thrown(e.Error() + "\n" + e.Stack)
	}
	return faultf(CodeError, "%v", err)
}

// thrown is the fault of an error that the code threw: its text, then its stack.
func (r *runner) thrown(text string) *fault {
	text = strings.TrimRight(places(r.placed(text)), "\n ")
	if first, _, _ := strings.Cut(text, "\n"); first == "InternalError: out of memory" {
		return faultf(CodeMemory, "the code needs more memory than it may have; keep less at a time")
	}
	return faultf(CodeError, "%s", text)
}

// forgotten is the fault of promises that were rejected and that nobody awaited.
func (r *runner) forgotten(texts []string) *fault {
	const most = 10
	shown := make([]string, min(len(texts), most))
	for i := range shown {
		shown[i] = strings.TrimRight(places(r.placed(texts[i])), "\n")
	}
	text := strings.Join(shown, "\n")
	if more := len(texts) - most; more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return faultf(CodeError, "the code ended, but failures were lost since nothing awaited their promises:\n%s", text)
}

// frame begins a line of a stack.
const frame = "    at "

// noModule is what the engine says of an import; there is nothing to import.
var noModule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ReferenceError: could not load module '(.*)'\n?$`) })

// imports finds where the code imports.
var imports = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bimport\s*\([^)]*\)?`) })

// placed is the text of an error with its place where the engine knows none: it
// loads modules when no code of the caller runs any more.
func (r *runner) placed(text string) string {
	m := noModule().FindStringSubmatch(text)
	if m == nil {
		return text
	}
	text = strings.TrimSuffix(text, "\n") + "; the code has no modules"
	var at []int // the first import that names it, or the only one
	all := imports().FindAllStringIndex(r.code, -1)
	for _, x := range all {
		if at == nil && (len(all) == 1 || strings.Contains(r.code[x[0]:x[1]], m[1])) {
			at = x
		}
	}
	if at == nil {
		return text
	}
	line := strings.Count(r.code[:at[0]], "\n") + 1
	column := utf8.RuneCountInString(r.code[strings.LastIndexByte(r.code[:at[0]], '\n')+1:at[0]]) + 1
	return fmt.Sprintf("%s\n%simport (line %d, column %d)", text, frame, line, column)
}

var place = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<eval>:(\d+)(?::(\d+))?`) })

// places makes the engine's places those of the given code. Of a stack it
// leaves out the frames of the prelude and of built-ins, and all below the tenth.
func places(text string) string {
	var b strings.Builder
	frames := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, frame) {
			if strings.HasPrefix(line, frame+"$host") || strings.Contains(line, "(native)") {
				continue
			}
			if frames++; frames > maxFrames {
				continue
			}
		}
		b.WriteString(place().ReplaceAllStringFunc(line, func(s string) string {
			m := place().FindStringSubmatch(s)
			column, err := strconv.Atoi(m[2])
			if err != nil {
				return "line " + m[1]
			}
			if m[1] == "1" {
				column = max(column-len(before), 1)
			}
			return fmt.Sprintf("line %s, column %d", m[1], column)
		}))
	}
	return b.String()
}

const maxFrames = 10
