package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deepseek/internal/permission"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 600 * time.Second
	// maxCommand is what Linux takes as one argument, less its end.
	maxCommand = 128<<10 - 1
	// maxResult leaves room for the lines about the output.
	maxResult = tailSize + 4<<10
)

type bashArgs struct {
	Command    string `json:"command"`
	TimeoutMS  *int64 `json:"timeout_ms"`
	Workdir    string `json:"workdir"`
	Background bool   `json:"run_in_background"`
}

func (f *Family) bash(ctx context.Context, call tool.Call, in bashArgs) tool.Result {
	begun := time.Now()
	timeout, dir, bad := f.check(in)
	if bad != nil {
		return *bad
	}
	if ctx.Err() != nil {
		return tool.Errorf(tool.CodeAborted, "cancelled before the command started")
	}
	tmp, err := f.tempDir()
	if err != nil {
		return notStarted(err)
	}
	launch, err := f.env.Policy.Command(ctx, permission.CommandRequest{CallID: call.ID, Command: in.Command, Dir: dir, TempDir: tmp})
	var denied *permission.Denied
	switch {
	case errors.As(err, &denied):
		r := tool.Errorf(tool.CodeDenied, "%s", denied.Message)
		if denied.Asked {
			r.Meta = &session.ToolMeta{Denied: true}
		}
		return r
	case ctx.Err() != nil:
		return tool.Errorf(tool.CodeAborted, "cancelled before the command started")
	case err != nil:
		return tool.Errorf(tool.CodeInternal, "%v", err)
	}
	out := &output{spill: f.env.Spill, hint: call.ID, max: f.max}
	if in.Background {
		return f.startJob(ctx, launch, in.Command, dir, timeout, out)
	}
	out.progress = call.Progress
	p, err := f.start(ctx, launch, in.Command, dir, timeout, out)
	if err != nil {
		return notStarted(err)
	}
	<-p.done
	return p.result(begun)
}

// check looks at what the schema cannot say. timeout is 0 for a background job without one.
func (f *Family) check(in bashArgs) (timeout time.Duration, dir string, bad *tool.Result) {
	refuse := func(format string, args ...any) (time.Duration, string, *tool.Result) {
		r := tool.Errorf(tool.CodeInvalidArguments, format, args...)
		return 0, "", &r
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return refuse("command is empty")
	case strings.IndexByte(in.Command, 0) >= 0:
		return refuse("command has a NUL byte at %d", strings.IndexByte(in.Command, 0))
	case len(in.Command) > maxCommand:
		return refuse("command has %d bytes, the limit is %d: write a script to a file and run that", len(in.Command), maxCommand)
	}
	if !in.Background {
		timeout = defaultTimeout
	}
	if in.TimeoutMS != nil {
		if *in.TimeoutMS < 1 {
			return refuse("timeout_ms is %d, the least is 1", *in.TimeoutMS)
		}
		timeout = maxTimeout
		if *in.TimeoutMS < maxTimeout.Milliseconds() {
			timeout = time.Duration(*in.TimeoutMS) * time.Millisecond
		}
	}
	dir = f.env.Cwd
	if in.Workdir != "" {
		dir = in.Workdir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(f.env.Cwd, dir)
		}
	}
	if fi, err := os.Stat(dir); err != nil {
		if strings.HasPrefix(in.Workdir, "~") {
			return refuse("workdir %q: %s", tool.Brief(in.Workdir), tool.Tilde(in.Workdir))
		}
		return refuse("workdir %s: %v", dir, errors.Unwrap(err))
	} else if !fi.IsDir() {
		return refuse("workdir %s is not a folder", dir)
	}
	return timeout, dir, nil
}

func notStarted(err error) tool.Result {
	if errors.Is(err, errClosed) {
		return tool.Errorf(tool.CodeAborted, "%v", err)
	}
	if errors.Is(err, syscall.E2BIG) {
		return tool.Errorf(tool.CodeInternal, "the command and the environment together are too long for this system: write a script to a file and run that")
	}
	return tool.Errorf(tool.CodeInternal, "the command could not be started: %v", err)
}

// result is what the model is told of a foreground command.
func (p *process) result(begun time.Time) tool.Result {
	text, _ := p.out.since(0)
	r := tool.Result{Meta: p.meta(), Limit: maxResult}
	r.Meta.DurationMS = time.Since(begun).Milliseconds()
	end := p.ending()
	if p.canceled {
		r.Code = tool.CodeAborted
		text = fmt.Sprintf("%s: cancelled after %d ms\n%s", r.Code, p.took.Milliseconds(), text)
		end = ""
	}
	r.Content = join(text, append([]string{end}, p.notes(text)...)...)
	return r
}

// meta is what is kept of a command that has ended.
func (p *process) meta() *session.ToolMeta {
	m := &session.ToolMeta{Spill: p.out.spillName(), DurationMS: p.took.Milliseconds()}
	switch {
	case p.running, p.waitErr != nil:
	case p.status.Signaled():
		m.Signal = signalName(p.status.Signal())
	case p.status.Exited():
		code := p.status.ExitStatus()
		m.ExitCode = &code
	}
	return m
}

// ending is the line about how the command ended, "" where it succeeded.
func (p *process) ending() string {
	switch {
	case p.timedOut:
		return fmt.Sprintf("timed out after %d ms", p.timeout.Milliseconds())
	case p.running:
		return "still running"
	case p.waitErr != nil:
		return "how it ended is unknown: " + p.waitErr.Error()
	case p.status.Signaled():
		return "signal " + signalName(p.status.Signal())
	case p.status.ExitStatus() != 0:
		return fmt.Sprintf("exit code %d", p.status.ExitStatus())
	}
	return ""
}

// notes are lines that help to go on.
func (p *process) notes(text string) []string {
	var out []string
	if p.ending() != "" && !p.timedOut && !p.canceled {
		out = append(out, p.launch.Note(text))
	}
	if p.held {
		out = append(out, "note: something that the command left running goes on; what it prints is no longer kept. Use run_in_background to follow a program.")
	}
	if p.readErr != nil {
		out = append(out, "note: the output is not complete: "+p.readErr.Error())
	}
	if p.endErr != nil {
		out = append(out, "note: "+p.endErr.Error())
	}
	return out
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprint(int(s))
}

// join puts each line that is not empty on a line of its own below text.
func join(text string, lines ...string) string {
	for _, line := range lines {
		if line == "" {
			continue
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += line
	}
	return text
}
