package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"deepseek/internal/permission"
)

// process is one command. The goroutine that watches it owns its outcome,
// which others read once done is closed.
type process struct {
	family  *Family
	cmd     *exec.Cmd
	pid     int
	mark    string // value of markName
	pipe    *os.File
	out     *output
	launch  permission.Launch
	started time.Time
	timeout time.Duration // 0 = none
	exited  chan struct{} // bash has exited and been reaped
	done    chan struct{} // and its output is complete; the outcome stands

	draining atomic.Bool // bash has exited: an open pipe is waited for no longer than a while
	drainEnd time.Time   // set before draining

	// The outcome.
	took     time.Duration
	status   syscall.WaitStatus
	waitErr  error
	timedOut bool
	canceled bool
	running  bool  // it could not be ended; the status is not known
	held     bool  // something that it left running holds the pipe
	endErr   error // processes that could not be ended
	readErr  error
}

// errClosed is the error of a start after Close.
var errClosed = errors.New("the run has ended")

// start runs a command until it exits, ctx ends or timeout (0 = none) is over.
func (f *Family) start(ctx context.Context, launch permission.Launch, command, dir string, timeout time.Duration, out *output) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	widen(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.Join(errClosed, r.Close(), w.Close())
	}
	f.calls++
	mark := fmt.Sprintf("%s.%d", f.id, f.calls)
	cmd := &exec.Cmd{
		Path: f.shell, Args: []string{f.shell, "-c", "--", command}, Dir: dir, Stdout: w, Stderr: w,
		Env:         slices.Concat(f.environ, launch.Env, []string{"PWD=" + dir, "TMPDIR=" + f.tmp, markName + "=" + mark}),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = table.start(launch.Sandbox, cmd)
	if cerr := w.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil && cmd.Process == nil {
		return nil, errors.Join(err, r.Close())
	}
	p := &process{
		family: f, cmd: cmd, pid: cmd.Process.Pid, mark: mark, pipe: r, out: out, launch: launch,
		started: time.Now(), timeout: timeout, exited: make(chan struct{}), done: make(chan struct{}),
	}
	f.sessions[p.pid] = true
	read := make(chan error, 1)
	f.work.Go(func() { p.read(read) })
	f.work.Go(func() { p.watch(ctx, read) })
	go p.wait() // ends with the process, which Close ends; not waited for where it could not
	return p, nil
}

// wait reaps bash.
func (p *process) wait() {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.waitErr = err
	}
	if p.cmd.ProcessState != nil {
		p.status, _ = p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	table.forget(p.pid)
	close(p.exited)
}

// watch ends the command when it must and gathers the outcome.
func (p *process) watch(ctx context.Context, read <-chan error) {
	f := p.family
	var over <-chan time.Time
	if p.timeout > 0 {
		t := time.NewTimer(p.timeout)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-p.exited:
	case <-f.ctx.Done():
		p.canceled = true
		<-f.swept // Close ends it
		p.endErr = f.sweepErr
	case <-ctx.Done():
		p.canceled = true
		p.endErr = f.end(f.hurry, p.victims)
	case <-over:
		if ended(p.pid) {
			break // it was this process that stood still
		}
		p.timedOut = true
		p.endErr = f.end(f.hurry, p.victims)
	}
	if p.endErr == nil {
		<-p.exited
	} else {
		// Another user's process, or one stuck in the kernel: the call is over all the same.
		select {
		case <-p.exited:
		default:
			p.running = true
		}
	}
	p.took = time.Since(p.started)
	now := time.Now()
	p.drainEnd = now.Add(f.drain)
	p.draining.Store(true)
	// The reader may set a deadline of its own meanwhile: both are near. One that
	// has ended needs none, and has said so before it closed the pipe.
	if err := p.pipe.SetReadDeadline(now.Add(f.idle)); err != nil && len(read) == 0 {
		p.readErr = errors.Join(err, p.pipe.Close()) // only this ends the reader then
	}
	err := <-read
	if p.held = errors.Is(err, os.ErrDeadlineExceeded); !p.held && p.readErr == nil {
		p.readErr = err
	}
	p.out.finish()
	f.forgetSessions(table.reap())
	close(p.done)
}

// read takes the output and says through ended how that ended: nil at the end
// of the pipe, or os.ErrDeadlineExceeded where bash has exited and the pipe has
// been empty for a while, or open for too long. What is printed after that is
// thrown away, so that what was left running is not ended by its pipe.
func (p *process) read(ended chan<- error) {
	w := p.family.env.Redact.Writer(p.out)
	err := p.copy(w)
	_ = w.Flush() // an output takes everything
	stays := errors.Is(err, os.ErrDeadlineExceeded) && p.family.stay(p)
	ended <- err
	if stays {
		if p.pipe.SetReadDeadline(time.Time{}) == nil {
			_, _ = io.Copy(io.Discard, p.pipe) // ends with the last writer, or when Close closes the pipe
		}
		p.family.gone(p)
	}
	_ = p.pipe.Close() // of reading; Close of the family may have been first
}

// Most commands print little, and some very much: the buffer grows as it is filled.
const firstRead, longestRead = 4 << 10, 256 << 10

// pipeSize is the most that the pipe holds.
const pipeSize = 1 << 20

// copy goes by the clock only while the pipe is empty. What is in it may well
// have been printed before bash exited: then it was this process that was slow,
// or stood still.
func (p *process) copy(w io.Writer) error {
	buf := make([]byte, firstRead)
	for late := 0; late < pipeSize; {
		n, err := p.pipe.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = readNow(p.pipe, buf)
		}
		_, _ = w.Write(buf[:n]) // an output takes everything
		if n == len(buf) && n < longestRead {
			buf = make([]byte, 4*n)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && p.draining.Load() {
			now := time.Now()
			if now.After(p.drainEnd) {
				late += n
			}
			next := now.Add(p.family.idle)
			if next.After(p.drainEnd) {
				next = p.drainEnd
			}
			err = p.pipe.SetReadDeadline(next)
		}
		if err != nil {
			return err
		}
	}
	return os.ErrDeadlineExceeded // somebody prints on and on
}

// readNow reads what the pipe holds, whatever its deadline is. The error is
// os.ErrDeadlineExceeded where that is nothing.
func readNow(pipe *os.File, buf []byte) (n int, err error) {
	c, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := c.Control(func(fd uintptr) {
		for {
			if n, err = syscall.Read(int(fd), buf); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	switch {
	case closed != nil:
		return 0, closed
	case errors.Is(err, syscall.EAGAIN):
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
