package logstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"deepseek/internal/session"
)

// Entry is one session of a list.
type Entry struct {
	ID        string // as the file is named
	Path      string
	Header    session.Header
	UpdatedAt int64 // ms since the epoch: time of the latest whole event, else of the creation
	Err       error // the file is damaged, too new or cannot be read; other fields hold what is known
}

// Newest orders entries: the latest event first, of two at once the later id.
func Newest(a, b Entry) int {
	// Ids begin with the time.
	return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(b.ID, a.ID))
}

// List is every session of the store, in the order of Newest. A session that
// cannot be read is an entry with Err.
func (s *Store) List(ctx context.Context) ([]Entry, error) {
	paths, err := s.Paths()
	if err != nil {
		return nil, err
	}
	return s.entries(ctx, paths)
}

// Paths is every log of the store, of all folders, in no order.
func (s *Store) Paths() ([]string, error) { return s.files(extension) }

func (s *Store) files(suffix string) ([]string, error) {
	folders, err := s.fs.ReadDir(s.root())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, folder := range folders {
		paths, err := s.filesIn(filepath.Join(s.root(), folder), suffix)
		if err != nil {
			return nil, err
		}
		all = append(all, paths...)
	}
	return all, nil
}

// pathsIn is every log of a folder; none where there is no folder.
func (s *Store) pathsIn(dir string) ([]string, error) { return s.filesIn(dir, extension) }

// Owned is every log of the store beside which an owner has left its file. Whether
// it is alive, LiveOwner tells.
func (s *Store) Owned() (map[string]bool, error) {
	files, err := s.files(ownerSuffix)
	owned := make(map[string]bool, len(files))
	for _, f := range files {
		owned[strings.TrimSuffix(f, ownerSuffix)+extension] = true
	}
	return owned, err
}

// filesIn is every file of a folder whose name ends so and is not hidden.
func (s *Store) filesIn(dir, suffix string) ([]string, error) {
	names, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || notDir(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, n := range names {
		if n[0] != '.' && strings.HasSuffix(n, suffix) {
			paths = append(paths, filepath.Join(dir, n))
		}
	}
	return paths, nil
}

func (s *Store) entries(ctx context.Context, paths []string) ([]Entry, error) {
	all := make([]Entry, len(paths))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(paths), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(paths) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				all[i] = s.Entry(paths[i])
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var list []Entry
	for _, e := range all {
		if !errors.Is(e.Err, ErrNotFound) { // removed since
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, Newest)
	return list, nil
}

// Entry is what the two ends of a log tell. ErrNotFound in Err if there is none.
func (s *Store) Entry(path string) Entry {
	e := Entry{ID: IDOf(path), Path: path}
	f, err := openForReading(s.fs, path)
	if err != nil {
		e.Err = err
		return e
	}
	sc := newScanner(f, path, headerSize)
	e.Header, _, err = sc.header()
	if err == nil {
		e.UpdatedAt = e.Header.CreatedAt
		var at int64
		if at, err = lastTime(f, path, sc.offset()); err == nil {
			e.UpdatedAt = max(e.UpdatedAt, at)
		}
	}
	e.Err = errors.Join(err, f.Close())
	return e
}

const tailSize = 4 << 10 // of the first look at a file's end, in bytes

// lastTime is the time of the last whole event, 0 if there is none. It reads
// back from the end until it has one; start is where events begin.
func lastTime(f file, path string, start int64) (int64, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	for window := int64(tailSize); ; window *= 4 {
		from := max(start, size-window)
		tail := make([]byte, max(size-from, 0))
		n, err := f.ReadAt(tail, from)
		if n < len(tail) { // cut by its owner since
			return 0, err
		}
		whole, bad := tail[:bytes.LastIndexByte(tail, '\n')+1], false
		for len(whole) > 0 {
			begin := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
			if begin == 0 && from > start {
				break // the line begins before the window
			}
			if t, ok := eventTime(whole[begin : len(whole)-1]); ok {
				return t, nil
			}
			if bad { // only the last may be torn
				return 0, &DamageError{Path: path, Offset: from + int64(begin), Reason: "no event"}
			}
			bad, whole = true, whole[:begin]
		}
		if from == start {
			return 0, nil
		}
	}
}

func eventTime(line []byte) (int64, bool) {
	if !valid(line) {
		return 0, false
	}
	if p, ok := parsePrefix(line); ok {
		return p.time, true
	}
	e, err := session.ParseEvent(line)
	return e.Time, err == nil
}
