package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"deepseek/internal/config"
	"deepseek/internal/prompt"
	"deepseek/internal/redact"
)

// Streams are the three of a process. What is an *os.File may be a terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	// guard makes the command that starts this program as a guard of the terminal;
	// nil where the program is another, such as a test.
	guard func(env []string) func(orders, tty *os.File) *exec.Cmd
}

// Std are those of this process, which is the program.
func Std() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, guard: selfAsGuard} }

// selfAsGuard starts this program as a guard, in a process group of its own: what
// the terminal ends or stops is the one that it guards. It has that one's
// environment but for the key, and with it the mark of the session whose tool this
// process is.
func selfAsGuard(env []string) func(orders, tty *os.File) *exec.Cmd {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, config.KeyVariable+"=") })
	return func(orders, tty *os.File) *exec.Cmd {
		path := "/proc/self/exe" // the very one, should another be there by now
		if runtime.GOOS != "linux" {
			var err error
			if path, err = os.Executable(); err != nil {
				path = ""
			}
		}
		return &exec.Cmd{
			Path: path, Args: []string{"deepseek", prompt.GuardCommand}, Env: env, Dir: "/",
			Stdin: orders, ExtraFiles: []*os.File{tty}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		}
	}
}

// output is stdout or stderr. A reader that has gone away (`| head -1`) is no
// failure: from then on writing does nothing, and the work goes on. Any other
// failure is kept for Main, so that commands need not look at each write.
// It is safe for concurrent use.
//
// The key is taken out of each piece that is written; what is cut into pieces
// anywhere has to be without the key before.
type output struct {
	mu    sync.Mutex
	to    io.Writer
	key   redact.Key     // the one in use, as far as it is known
	guard *workflowGuard // nil where nobody takes lines for commands
	gone  bool           // the reader left, or writing failed
	err   error          // the failure, if it was one
}

func (o *output) Write(p []byte) (int, error) {
	return o.write(len(p), func() (int, error) { return o.to.Write(o.key.Bytes(o.guard.disarm(p))) })
}

// WriteString writes a text of any size without a copy of it.
func (o *output) WriteString(s string) (int, error) {
	if o.guard != nil {
		return o.Write([]byte(s))
	}
	return o.write(len(s), func() (int, error) { return io.WriteString(o.to, o.key.String(s)) })
}

func (o *output) hide(key redact.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.key = key
}

// hidden is the key that hide was told last.
func (o *output) hidden() redact.Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.key
}

func (o *output) write(size int, write func() (int, error)) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return size, nil
	}
	if n, err := write(); err != nil {
		o.gone = true
		if !errors.Is(err, syscall.EPIPE) {
			o.err = err
			return n, err
		}
	}
	return size, nil
}

// Command lets one line through that is a command to the workflow, and our own.
func (o *output) Command(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.guard != nil {
		o.guard.ours[line]++
	}
}

// Gone says that nobody reads any more, so that long output may be cut short.
func (o *output) Gone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// failed returns what went wrong, nil where the reader only left.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Printf writes a part of the result to stdout.
func (a *App) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Out, format, args...) // a failure is kept in Out
}

// Warnf writes to stderr. That nobody reads it stops nothing.
func (a *App) Warnf(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Err, format, args...)
}

// InTerminal, OutTerminal and ErrTerminal say whether a stream is a terminal.
func (a *App) InTerminal() bool { return a.terminals.in }

// OutTerminal is InTerminal for stdout.
func (a *App) OutTerminal() bool { return a.terminals.out }

// ErrTerminal is InTerminal for stderr.
func (a *App) ErrTerminal() bool { return a.terminals.err }

// background tells whether the terminal that a stream is has been given to another
// job. One that does not control this process is nobody's job.
func background(stream any) func() bool {
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	return func() bool {
		group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
		return err == nil && group != unix.Getpgrp()
	}
}

// OneTerminal says that stdout and stderr are the same terminal, so that what
// was shown on one need not be printed on the other.
func (a *App) OneTerminal() bool {
	if !a.OutTerminal() || !a.ErrTerminal() {
		return false
	}
	out, err := a.streams.Out.(*os.File).Stat()
	if err != nil {
		return false
	}
	errs, err := a.streams.Err.(*os.File).Stat()
	return err == nil && os.SameFile(out, errs)
}

// Width is the number of columns of the terminal on stderr, asked anew at each
// call; where there is none, COLUMNS, else 80.
func (a *App) Width() int {
	if f, ok := a.streams.Err.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if w, err := strconv.Atoi(a.Getenv("COLUMNS")); err == nil && w > 0 && w < 1<<14 {
		return w
	}
	return 80
}

// Cursor says whether the terminal on stderr understands moving the cursor.
func (a *App) Cursor() bool {
	t := a.Getenv("TERM")
	return a.ErrTerminal() && t != "" && t != "dumb"
}

// Colour decides whether stderr gets colours: `always` and `never` are obeyed,
// `auto` means a terminal that nothing speaks against. A project's `always` does
// not stand against the person's own NO_COLOR.
func (a *App) Colour(c *config.Config) bool {
	return colour(c.Color, c.Source("color").Origin == config.FromProject, a.ErrTerminal(), a.Getenv)
}

func colour(setting string, project, terminal bool, getenv func(string) string) bool {
	if setting == "never" || setting == "always" && !project {
		return setting == "always"
	}
	if getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	if force := getenv("CLICOLOR_FORCE"); setting == "always" || force != "" && force != "0" {
		return true
	}
	return terminal && getenv("CLICOLOR") != "0"
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}
