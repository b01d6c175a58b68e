// Package shell is the family of tools that run commands: bash and its
// background jobs.
//
// Every command is the leader of a session and process group of its own, with
// no terminal and no input. The call ends when bash exits, not when its pipe
// does: what a command left running goes on until the run ends, and is then
// ended with the family, wherever it went. For that the process becomes a child
// subreaper (on Linux): orphans of its commands become its own children, and
// are told from other children by their session. A process of its own, the
// sweeper, does the same where this one is killed.
package shell

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"deepseek/internal/permission"
	"deepseek/internal/redact"
	"deepseek/internal/tool"
)

// Policy decides on commands.
type Policy interface {
	Command(ctx context.Context, r permission.CommandRequest) (permission.Launch, error)
}

// Env is what the tools work with.
type Env struct {
	Cwd     string   // the run's directory, absolute
	Environ []string // the program's own; the key is taken out here
	Policy  Policy
	Spill   tool.Spill // may be nil: then the whole of long output is not kept
	Redact  redact.Key // taken out of all output
}

// Family owns the commands of one agent and everything that they leave behind.
// mu owns the fields below it. It is safe for concurrent use.
type Family struct {
	env     Env
	id      string // of the mark; no other family of this process has it
	shell   string
	environ []string
	grace   time.Duration // between asking a process to end and ending it
	idle    time.Duration // of silence after which an open pipe is not waited for
	drain   time.Duration // the longest wait for it
	max     int64         // of a spill file

	ctx   context.Context // ends when Close begins
	stop  context.CancelFunc
	hurry chan struct{}  // closed when Close may wait no longer: then nothing is asked any more
	work  sync.WaitGroup // every goroutine of the family

	swept    chan struct{} // closed when Close has ended all processes
	sweepErr error         // set before that: those it could not end

	mu       sync.Mutex
	closed   bool
	calls    int          // so far
	sessions map[int]bool // of commands, that may still have processes
	left     map[*process]bool
	jobs     []*job
	tmp      string // the private folder for temporary files, "" = not made yet
}

// New makes a family. Nothing is started or written before the first command.
func New(env Env) *Family {
	ctx, stop := context.WithCancel(context.Background())
	return &Family{
		env:      env,
		id:       table.join(),
		shell:    findShell(env.Environ),
		environ:  baseEnviron(env.Environ, env.Redact),
		grace:    2 * time.Second,
		idle:     100 * time.Millisecond,
		drain:    time.Second,
		max:      spillMax,
		ctx:      ctx,
		stop:     stop,
		hurry:    make(chan struct{}),
		swept:    make(chan struct{}),
		sessions: map[int]bool{},
		left:     map[*process]bool{},
	}
}

//go:embed bash.md
var bashText string

//go:embed bash.json
var bashSchema string

//go:embed job_output.md
var jobOutputText string

//go:embed job_output.json
var jobOutputSchema string

//go:embed job_list.md
var jobListText string

//go:embed job_kill.md
var jobKillText string

//go:embed job_kill.json
var jobKillSchema string

// Tools are bash and the tools of background jobs.
func (f *Family) Tools() []tool.Tool {
	none := `{"type":"object","properties":{},"additionalProperties":false}`
	reads := tool.Traits{Parallel: true, ReadOnly: true}
	return []tool.Tool{
		tool.Define(tool.Definition{Name: "bash", Text: bashText, Schema: bashSchema}, f.bash),
		tool.Define(tool.Definition{Name: "job_output", Text: jobOutputText, Schema: jobOutputSchema, Traits: reads}, f.jobOutput),
		tool.Define(tool.Definition{Name: "job_list", Text: jobListText, Schema: none, Traits: reads}, f.jobList),
		tool.Define(tool.Definition{Name: "job_kill", Text: jobKillText, Schema: jobKillSchema}, f.jobKill),
	}
}

// Close ends every command, job and process that they left, first asking, then
// after a grace of two seconds, or as soon as ctx ends, by force. It returns
// when all are gone and the temporary folder is removed; the error names what
// could not be. Later calls of tools fail; a second Close does nothing.
func (f *Family) Close(ctx context.Context) (err error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		f.work.Wait()
		return nil
	}
	f.closed = true
	started := f.calls > 0
	f.mu.Unlock()
	defer func() { err = errors.Join(err, table.leave(f.id)) }()

	f.stop()
	defer context.AfterFunc(ctx, func() { close(f.hurry) })()
	if started || table.reap() { // an orphan of another program's is ended too
		f.sweepErr = f.end(f.hurry, f.victims)
	}
	close(f.swept)
	errs := []error{f.sweepErr}
	f.mu.Lock()
	for p := range f.left {
		// Nobody is to print any more; this ends the reader of the pipe.
		errs = append(errs, p.pipe.Close())
	}
	f.left = nil
	tmp := f.tmp
	f.mu.Unlock()
	f.work.Wait()
	table.reap()
	if tmp != "" {
		errs = append(errs, removeAll(tmp))
	}
	return errors.Join(errs...)
}

// stay lets the reader of an open pipe go on for what was left running. It is
// false once Close has swept: then nothing is running.
func (f *Family) stay(p *process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == nil {
		return false
	}
	f.left[p] = true
	return true
}

func (f *Family) gone(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.left, p)
}

// tempPrefix begins the names of private folders; the family's id follows.
const tempPrefix = "deepseek-"

// tempDir is the private folder of the run; it is made, or made again where a
// command removed it.
func (f *Family) tempDir() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return "", errClosed
	}
	if f.tmp != "" {
		if fi, err := os.Lstat(f.tmp); err == nil && fi.IsDir() {
			return f.tmp, nil
		}
	}
	base := lookup(f.env.Environ, "TMPDIR")
	if base == "" {
		base = "/tmp"
	}
	if abs, err := filepath.Abs(base); err == nil {
		base = abs
	}
	table.watch(base)
	name := tempPrefix + f.id + "-"
	dir, err := os.MkdirTemp(base, name)
	if err != nil {
		var other error
		if dir, other = os.MkdirTemp("/tmp", name); other != nil {
			return "", fmt.Errorf("no folder for temporary files: %w", err)
		}
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	f.tmp = dir
	return dir, nil
}

// removeAll removes a folder, folders that commands closed to writing too.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil // what cannot be opened is named by the removal below
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// Kill ends by force, and without waiting, the commands that it finds: for a
// process that is about to end on the spot.
func (f *Family) Kill() {
	for range 2 { // one that forks and exits during a look is seen by the next
		for _, v := range f.victims() {
			v.signal(syscall.SIGKILL)
		}
	}
}
