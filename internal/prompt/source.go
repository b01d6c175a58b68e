package prompt

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errInterrupted is the error of a Read that Interrupt ended.
var errInterrupted = errors.New("read interrupted")

// writeWait bounds a write to a terminal that is stuck, such as a dead connection's.
const writeWait = 10 * time.Second

// source is a terminal whose blocked Read can be ended. One goroutine reads;
// Interrupt may come from another, Rearm and Available only while none reads.
type source interface {
	io.ReadWriteCloser
	// Interrupt ends a Read that blocks, and all later ones until Rearm.
	Interrupt()
	Rearm()
	// Available reads what lies there now; 0 when nothing does.
	Available([]byte) int
}

// openSource opens a terminal through the runtime's poller, whose read deadlines
// interrupt. Where the poller does not take terminals (macOS), select with a wake
// pipe does the same.
func openSource(path string) (source, int, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	var fd int // (*os.File).Fd would make the file blocking again
	if err := rc.Control(func(p uintptr) { fd = int(p) }); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if err := f.SetReadDeadline(time.Time{}); err == nil {
		return &pollSource{f, rc}, fd, nil
	}
	s, err := newSelectSource(f, fd)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return s, fd, nil
}

type pollSource struct {
	*os.File
	conn syscall.RawConn
}

func (s *pollSource) Read(b []byte) (int, error) {
	n, err := s.File.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errInterrupted
	}
	return n, err
}

// The errors of setting a deadline mean a closed file, which the next Read reports.
func (s *pollSource) Interrupt() { _ = s.SetReadDeadline(time.Unix(1, 0)) }
func (s *pollSource) Rearm()     { _ = s.SetReadDeadline(time.Time{}) }

// Write gives a terminal that takes nothing any more up after writeWait.
func (s *pollSource) Write(b []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return 0, err
	}
	return s.File.Write(b)
}

func (s *pollSource) Available(b []byte) (n int) {
	_ = s.conn.Read(func(fd uintptr) bool { // its error is the next Read's too
		n = readNow(int(fd), b)
		return true
	})
	return n
}

// readNow reads from a non-blocking file; an error counts as nothing there.
func readNow(fd int, b []byte) int {
	n, err := unix.Read(fd, b)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// selectSource waits with select(2), which takes terminals everywhere, for the
// terminal or a byte in a pipe. The mutex guards the state of the pipe.
type selectSource struct {
	f        *os.File
	fd       int
	wake     [2]int
	mu       sync.Mutex
	signaled bool
}

func newSelectSource(f *os.File, fd int) (*selectSource, error) {
	s := &selectSource{f: f, fd: fd}
	if err := unix.Pipe(s.wake[:]); err != nil {
		return nil, err
	}
	unix.CloseOnExec(s.wake[0])
	unix.CloseOnExec(s.wake[1])
	if max(fd, s.wake[0]) >= unix.FD_SETSIZE {
		return nil, errors.Join(errors.New("too many open files to watch the terminal"), s.closePipe())
	}
	return s, unix.SetNonblock(fd, true)
}

func (s *selectSource) Read(b []byte) (int, error) {
	for {
		var set unix.FdSet
		set.Set(s.fd)
		set.Set(s.wake[0])
		_, err := unix.Select(max(s.fd, s.wake[0])+1, &set, nil, nil, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("select", err)
		}
		if set.IsSet(s.wake[0]) {
			return 0, errInterrupted
		}
		n, err := unix.Read(s.fd, b)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (s *selectSource) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.signaled {
		s.signaled = true
		_, _ = unix.Write(s.wake[1], []byte{0}) // an empty pipe always takes a byte
	}
}

func (s *selectSource) Rearm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signaled {
		s.signaled = false
		_, _ = unix.Read(s.wake[0], make([]byte, 1)) // the byte of Interrupt
	}
}

func (s *selectSource) Available(b []byte) int { return readNow(s.fd, b) }

// Write writes all of b. A full terminal is waited for, for writeWait.
func (s *selectSource) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(s.fd, b[done:])
		if n > 0 {
			done += n
		}
		switch {
		case errors.Is(err, unix.EAGAIN):
			var set unix.FdSet
			set.Set(s.fd)
			timeout := unix.NsecToTimeval(writeWait.Nanoseconds())
			n, err := unix.Select(s.fd+1, nil, &set, nil, &timeout)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return done, os.NewSyscallError("select", err)
			}
			if err == nil && n == 0 {
				return done, os.ErrDeadlineExceeded
			}
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return done, os.NewSyscallError("write", err)
		}
	}
	return done, nil
}

func (s *selectSource) Close() error { return errors.Join(s.f.Close(), s.closePipe()) }

func (s *selectSource) closePipe() error {
	return errors.Join(unix.Close(s.wake[0]), unix.Close(s.wake[1]))
}
