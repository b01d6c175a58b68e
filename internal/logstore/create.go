package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"deepseek/internal/session"
)

const createTries = 10

// Create publishes a new session in one step: the header and the first batch,
// both on disk when it returns. The log it returns is owned and needs no
// replay. h.Type and h.Version are set here; Seq of first is assigned.
//
// ErrExists if the id is taken; nothing of the other session is touched. After
// a *WriteError no session is left, as far as the disk still obeys.
func (s *Store) Create(h session.Header, first []session.Event) (*Log, error) {
	h, line, err := s.headerLine(h)
	if err != nil {
		return nil, err
	}
	data, offsets, err := encode(append(line, '\n'), 0, first, s.redact)
	if err != nil {
		return nil, err
	}
	dir := s.Dir(h.Cwd)
	if err := mkdirAll(s.fs, dir); err != nil {
		return nil, &WriteError{Path: dir, Err: err}
	}
	if dir, err = s.resolve(dir); err != nil {
		return nil, err
	}
	s.sweep(dir)
	path := filepath.Join(dir, h.ID+extension)
	f, err := s.publish(path, data)
	if err != nil {
		return nil, err
	}
	l := newLog(s, path, f)
	l.header, l.headerLine, l.verified = h, data[:len(line):len(line)], true
	for i, at := range offsets {
		first[i].Seq = int64(i)
		l.note(int64(i), int64(at))
	}
	l.next, l.end = int64(len(first)), int64(len(data))
	l.durable, l.durableEnd, l.written, l.openEnd = l.next, l.end, l.end, l.end
	go l.write()
	return l, nil
}

// headerLine is the header as it will stand in the file, and as it reads then.
func (s *Store) headerLine(h session.Header) (session.Header, []byte, error) {
	h.Type, h.Version = "session", session.Version
	if !validID(h.ID) {
		return h, nil, fmt.Errorf("cannot create a session: %q is no session id", h.ID)
	}
	if !filepath.IsAbs(h.Cwd) {
		return h, nil, fmt.Errorf("cannot create a session: the working directory %q is not an absolute path", h.Cwd)
	}
	line, err := session.Marshal(h)
	if err != nil {
		return h, nil, err
	}
	if s.redact == nil {
		return h, line, nil
	}
	logged, err := session.ParseHeader(s.redact(line))
	if err != nil {
		return h, nil, fmt.Errorf("cannot create a session: its header cannot be redacted: %w", err)
	}
	if logged.ID != h.ID {
		return h, nil, fmt.Errorf("cannot create a session: its id %s holds the key", h.ID)
	}
	line, err = session.Marshal(logged)
	return logged, line, err
}

// publish writes data to a file that has no session's name yet, and then gives
// it one. The lock is held from before the name exists. The order of the steps
// is what docs/session-log.md argues about.
func (s *Store) publish(path string, data []byte) (f file, err error) {
	f, temp, err := s.createTemp(path)
	if err != nil {
		return nil, &WriteError{Path: path, Err: err}
	}
	undo := func(names ...string) {
		// What cannot be removed now is a name that no reader looks at, which a
		// later Create sweeps; the first error is the one to report.
		for _, n := range names {
			_ = s.fs.Remove(n)
		}
		_ = f.Close()
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		undo(temp)
		return nil, &WriteError{Path: path, Err: err}
	}
	if err := f.Sync(); err != nil {
		undo(temp)
		return nil, &WriteError{Path: path, Err: err}
	}
	if err := s.fs.Link(temp, path); err != nil {
		undo(temp)
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%w: %s", ErrExists, path)
		}
		return nil, &WriteError{Path: path, Err: err}
	}
	_ = s.fs.Remove(temp) // only a second name by now; swept later if it stays
	if err := s.fs.SyncDir(filepath.Dir(path)); err != nil {
		undo(path)
		return nil, &WriteError{Path: path, Err: err}
	}
	return f, nil
}

func (s *Store) createTemp(path string) (f file, temp string, err error) {
	for range createTries {
		temp = newPath(path, s.randomPart())
		f, err = s.fs.CreateLocked(temp)
		// Taken, or swept by another process before it was locked: once more.
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return f, temp, err
}
