package logstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// maxSpare bounds the buffer that is kept for the next batch, in bytes.
const maxSpare = 1 << 20

// job is what the writer does in one go.
type job struct {
	data   []byte
	next   int64 // the seq after data
	repair bool
	sync   bool
	last   bool // the log is closing and this is all there is
}

// write is the goroutine that owns the file. Whatever waits when it gets there
// is written at once, and one fsync serves all who asked for one until then.
func (l *Log) write() {
	defer close(l.done)
	var spare []byte
	for {
		j, ok := l.take(spare)
		if !ok {
			<-l.wake
			continue
		}
		if err := l.do(j); err != nil {
			l.fail(err)
			return
		}
		if j.last {
			return
		}
		spare = nil
		if cap(j.data) <= maxSpare {
			spare = j.data[:0]
		}
	}
}

// take is what is to be done now; false if there is nothing.
func (l *Log) take(spare []byte) (job, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := job{
		data: l.pending,
		next: l.next,
		sync: l.syncTo > l.durable || l.closing && l.next > l.durable,
		last: l.closing,
	}
	j.repair = l.tear > 0 && (l.repair || len(j.data) > 0)
	if len(j.data) == 0 && !j.sync && !j.repair && !j.last {
		return j, false
	}
	l.pending = spare
	return j, true
}

func (l *Log) do(j job) error {
	if j.repair {
		if err := l.setAside(); err != nil {
			return err
		}
	}
	if len(j.data) > 0 {
		if _, err := l.file.WriteAt(j.data, l.written); err != nil {
			return err
		}
		l.written += int64(len(j.data))
	}
	if !j.sync {
		return nil
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable, l.durableEnd = j.next, l.written
	l.broadcast()
	return nil
}

// setAside moves the torn tail out of the log. The copy is on disk before the
// log is cut, and a crash in between only makes the next owner do it again: it
// finds the copy and does not make a second.
func (l *Log) setAside() error {
	l.mu.Lock()
	tear := l.tear
	l.mu.Unlock()
	if err := l.copyTear(tear); err != nil {
		return fmt.Errorf("set the torn tail aside: %w", err)
	}
	if err := l.file.Truncate(l.written); err != nil {
		return fmt.Errorf("cut the torn tail off: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("cut the torn tail off: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tear = 0
	l.broadcast()
	return nil
}

func (l *Log) copyTear(tear int64) (err error) {
	out, err := l.fs.OpenCreate(TornPath(l.path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	size, err := out.Size()
	if err != nil {
		return err
	}
	tail := io.NewSectionReader(l.file, l.written, tear)
	if size >= tear {
		same, err := equal(io.NewSectionReader(out, size-tear, tear), tail)
		if err != nil {
			return err
		}
		if same {
			size -= tear // written once more in its place, and so surely synced
		}
	}
	if _, err := tail.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(io.NewOffsetWriter(out, size), tail); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return l.fs.SyncDir(filepath.Dir(l.path))
}

// equal compares what two readers of the same length give.
func equal(a, b io.Reader) (bool, error) {
	var x, y [32 << 10]byte
	for {
		n, errA := io.ReadFull(a, x[:])
		m, errB := io.ReadFull(b, y[:])
		if string(x[:n]) != string(y[:m]) {
			return false, nil
		}
		switch {
		case errA == nil && errB == nil:
		case isEnd(errA) && isEnd(errB):
			return true, nil
		default:
			return false, errors.Join(errA, errB)
		}
	}
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// fail ends the log. What was never acknowledged is cut off, as far as the disk
// still obeys; where it does not, opening will find a tail to set aside. A tail
// of somebody else's that is not set aside yet is not cut.
func (l *Log) fail(err error) {
	l.mu.Lock()
	tear, good := l.tear, l.durableEnd
	l.mu.Unlock()
	var named *fs.PathError
	if errors.As(err, &named) { // by the name under which the file was made
		err = &fs.PathError{Op: named.Op, Path: l.path, Err: named.Err}
	}
	if tear == 0 {
		if cutErr := errors.Join(l.file.Truncate(good), l.file.Sync()); cutErr != nil {
			err = fmt.Errorf("%w (and the file could not be cut back to %d bytes: %w)", err, good, cutErr)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = &WriteError{Path: l.path, Err: err}
	l.pending = nil
	l.broadcast()
}
