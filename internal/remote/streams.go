package remote

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fileStream makes one stream of two files, such as stdin and stdout, whose
// reads and writes can be given up: it waits for them with poll and never
// blocks in a read or a write itself. It changes no flag of the files, which
// others may share, and does not close them.
type fileStream struct{ in, out *half }

// newFileStream owes release.
func newFileStream(in, out *os.File) (*fileStream, error) {
	r, err := newHalf(in, unix.POLLIN)
	if err != nil {
		return nil, err
	}
	w, err := newHalf(out, unix.POLLOUT)
	if err != nil {
		return nil, errors.Join(err, r.release())
	}
	return &fileStream{in: r, out: w}, nil
}

func (s *fileStream) Read(p []byte) (int, error) {
	if err := s.in.wait(); err != nil {
		return 0, err
	}
	return s.in.file.Read(p)
}

// Write writes in pieces that fit where poll says that there is room: a pipe
// has room for as many bytes as it writes in one go.
func (s *fileStream) Write(p []byte) (int, error) {
	const atomic = 4096
	written := 0
	for written < len(p) {
		if err := s.out.wait(); err != nil {
			return written, err
		}
		n, err := s.out.file.Write(p[written:min(len(p), written+atomic)])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (s *fileStream) SetReadDeadline(t time.Time) error  { return s.in.setDeadline(t) }
func (s *fileStream) SetWriteDeadline(t time.Time) error { return s.out.setDeadline(t) }

// Close gives up whatever waits. The files stay open.
func (s *fileStream) Close() error {
	past := time.Unix(1, 0)
	return errors.Join(s.in.setDeadline(past), s.out.setDeadline(past))
}

// release frees what the stream needed. Nothing reads or writes any more.
func (s *fileStream) release() error { return errors.Join(s.in.release(), s.out.release()) }

// half is one direction. mu guards the deadline; wait is one goroutine's.
type half struct {
	file         *os.File
	events       int16
	raw          syscall.RawConn
	wakeR, wakeW *os.File // a byte in it makes wait look at the deadline again
	wakeRaw      syscall.RawConn

	mu       sync.Mutex
	deadline time.Time
}

func newHalf(f *os.File, events int16) (*half, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	wake, err := r.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	return &half{file: f, events: events, raw: raw, wakeR: r, wakeW: w, wakeRaw: wake}, nil
}

func (h *half) release() error { return errors.Join(h.wakeR.Close(), h.wakeW.Close()) }

func (h *half) setDeadline(t time.Time) error {
	h.mu.Lock()
	h.deadline = t
	h.mu.Unlock()
	_, err := h.wakeW.Write([]byte{0})
	return err
}

// wait returns when the file is ready, at its end or broken, which the call
// that follows finds out, or with os.ErrDeadlineExceeded.
func (h *half) wait() error {
	for {
		h.mu.Lock()
		deadline := h.deadline
		h.mu.Unlock()
		timeout := -1
		if !deadline.IsZero() {
			left := time.Until(deadline)
			if left <= 0 {
				return os.ErrDeadlineExceeded
			}
			timeout = int(min(left, time.Hour)/time.Millisecond) + 1
		}
		ready, err := h.poll(timeout)
		if err != nil {
			return err
		}
		if ready {
			return nil
		}
	}
}

// poll looks once, for at most so many milliseconds.
func (h *half) poll(timeout int) (ready bool, err error) {
	fds := []unix.PollFd{{Events: h.events}, {Events: unix.POLLIN}}
	// The descriptors stay open, and keep their mode, while Control runs.
	var polled, inner error
	outer := h.raw.Control(func(fd uintptr) {
		inner = h.wakeRaw.Control(func(wake uintptr) {
			fds[0].Fd, fds[1].Fd = int32(fd), int32(wake)
			_, polled = unix.Poll(fds, timeout)
		})
	})
	if errors.Is(polled, unix.EINTR) {
		return false, nil
	}
	if err := errors.Join(outer, inner, polled); err != nil {
		return false, fmt.Errorf("wait for %s: %w", h.file.Name(), err)
	}
	if fds[1].Revents != 0 {
		var drop [64]byte
		_, err := h.wakeR.Read(drop[:])
		return false, err
	}
	return fds[0].Revents != 0, nil
}
