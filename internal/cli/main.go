package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"deepseek/internal/config"
	"deepseek/internal/permission"
	"deepseek/internal/prompt"
)

// App is one invocation: what Main was handed, and the global flags. Commands
// read it; only Main and the flag parser write it, before a command runs.
type App struct {
	Out, Err *output // stdout and stderr; see output for what may fail
	Env      []string
	Exit     func(code int) // ends the process on the spot; for a second signal

	streams   Streams
	terminals struct{ in, out, err bool } // which streams are: a table asks for each of its cells
	global    globalOptions
	json      bool          // failures are told on stdout too, as JSON
	running   bool          // a command's own function was reached
	guard     *prompt.Guard // of the terminal's modes; nil where there is none
	signaled  *signalNote
}

type globalOptions struct{ home, cwd, config string }

// Main runs the command that argv names (argv[0] is the program) and returns the
// exit code. It reads nothing of the process but what it is handed, save the
// working directory and signals, and leaves nothing running.
func Main(argv []string, streams Streams, env []string) (code int) {
	if len(argv) == 2 && argv[1] == prompt.GuardCommand && prompt.StandGuard() {
		return ExitOK
	}
	a := newApp(streams, env)
	defer a.signaled.end()
	defer a.guard.Close()
	// Asking for SIGPIPE makes writing to a closed stdout an error instead of
	// the end; ignoring it would be inherited by every child.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	defer func() {
		if p := recover(); p != nil {
			code = a.finish(&Coded{Exit: ExitFailed, Code: CodeInternal, Message: fmt.Sprintf("unexpected failure: %v%s", p, panicPlace())})
		}
	}()
	return a.finish(a.run(argv[min(1, len(argv)):]))
}

func newApp(streams Streams, env []string) *App {
	a := &App{Out: &output{to: streams.Out}, Err: &output{to: streams.Err}, Env: env, Exit: os.Exit, streams: streams, signaled: newSignalNote()}
	a.hide(strings.TrimSpace(a.Getenv(config.KeyVariable)))
	if a.Getenv("GITHUB_ACTIONS") == "true" {
		a.Err.guard = newWorkflowGuard()
	}
	if streams.guard != nil {
		a.guard = prompt.NewGuard(streams.guard(env))
	}
	a.terminals.in, a.terminals.out, a.terminals.err = isTerminal(streams.In), isTerminal(streams.Out), isTerminal(streams.Err)
	return a
}

func (a *App) run(args []string) error {
	root := newRoot(a, needed(args))
	root.SetArgs(append([]string{}, args...)) // never nil: cobra would take the process's own
	cmd, err := root.ExecuteContextC(context.WithValue(context.Background(), signalNoteKey{}, a.signaled))
	var coded *Coded
	if sig := a.signaled.sig.Load(); sig != nil && errors.Is(err, context.Canceled) && !errors.As(err, &coded) {
		return *sig
	}
	if cause := a.Out.failed(); cause != nil && errors.Is(err, cause) {
		return nil // finish says so, as for everything that cannot be printed
	}
	if err != nil && !a.running && !errors.As(err, &coded) {
		return usagef("%s\nsee %s --help", err, cmd.CommandPath()) // of the parser: arguments, groups of flags
	}
	return err
}

// finish says how it ended. A result that could not be written is a failure too.
func (a *App) finish(err error) int {
	c := failure(err)
	if c.Exit == ExitUsage {
		a.lookForKey() // the words may repeat an argument, and come before anything was read
	}
	a.report(c)
	if err := a.Out.failed(); err != nil && c.Exit == ExitOK {
		c = failure(&Coded{Exit: ExitFailed, Code: CodeOutputWrite, Message: fmt.Sprintf("cannot write the output: %v", err), Printed: true})
		a.report(c)
	}
	return c.Exit
}

func panicPlace() string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(4, pc)])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "deepseek/") && !strings.Contains(f.Function, "panicPlace") {
			return fmt.Sprintf(" (%s:%d)", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// Getenv looks a variable up in the environment that Main was handed.
func (a *App) Getenv(name string) string {
	for _, kv := range a.Env {
		if key, value, ok := strings.Cut(kv, "="); ok && key == name {
			return value
		}
	}
	return ""
}

// Home is the product's folder, absolute: --home, DEEPSEEK_HOME or ~/.deepseek.
// It need not exist.
func (a *App) Home() (string, error) {
	dir := a.global.home
	if dir == "" {
		dir = a.Getenv("DEEPSEEK_HOME")
	}
	if dir == "" {
		home := a.Getenv("HOME")
		if home == "" {
			return "", usagef("neither HOME nor DEEPSEEK_HOME is set\nsay where sessions are kept with --home DIR")
		}
		dir = filepath.Join(home, ".deepseek")
	}
	return filepath.Abs(dir)
}

// Cwd is the directory the command works in, absolute, with links resolved.
func (a *App) Cwd() (string, error) {
	dir, err := filepath.Abs(a.global.cwd)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return "", usagef("cannot work in the directory %q: %s\nname one that is there with --cwd DIR", a.global.cwd, reason(err))
	}
	if !info.IsDir() {
		return "", usagef("cannot work in %s: it is no directory\nname one with --cwd DIR", dir)
	}
	return dir, nil
}

// reason is the system's own words of an error about a path that is named already.
func reason(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// options says where the settings are.
func (a *App) options(flags map[string]string) (config.Options, error) {
	o := config.Options{Environ: a.Env, Flags: flags}
	var err error
	if o.Home, err = a.Home(); err != nil {
		return o, err
	}
	if a.global.config != "" {
		if o.ConfigFile, err = filepath.Abs(a.global.config); err != nil {
			return o, err
		}
	}
	cwd, err := a.Cwd()
	if err != nil {
		return o, err
	}
	o.ProjectRoot, err = permission.Workspace(cwd, a.Getenv("HOME"))
	return o, err
}

// NotFromTool refuses what a command run by the agent must not do, lest it
// answer its own questions.
func (a *App) NotFromTool(what string) error {
	if a.Getenv("DEEPSEEK_TOOL") == "" {
		return nil
	}
	return &Coded{Exit: ExitUsage, Code: CodeCallerIsTool, Message: what + " is refused inside a tool of a session"}
}
