package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var errDead = errors.New("the machine is down")

// memFS is a disk in memory that knows, for every file and folder, what is on
// the platter and what only the running system sees. A call of it can be told
// to fail, or to be the moment at which the machine dies.
type memFS struct {
	mu      sync.Mutex
	dirs    map[string]*memDir
	calls   int      // so far
	trace   []string // of the calls
	syncs   int      // fsyncs of files
	dieAt   int      // the call that never comes, 0 = none
	failAt  int      // the call that fails, 0 = none
	failing bool     // and all changes after it
	err     error    // what a failing call returns
	dead    bool
	onSync  func() // runs at every fsync of a file, without the mutex
}

type memDir struct {
	live    map[string]*inode
	disk    map[string]*inode
	pending []memOp // between disk and live
}

// memOp is one change of a folder; a nil file is a removal.
type memOp struct {
	name string
	file *inode
}

type inode struct {
	live   []byte
	disk   []byte
	locked bool
}

func newMemFS() *memFS {
	return &memFS{dirs: map[string]*memDir{"/": newMemDir()}, err: errors.New("no space left on device")}
}

func newMemDir() *memDir { return &memDir{live: map[string]*inode{}, disk: map[string]*inode{}} }

// step counts a call. ok is false if it is not to happen.
func (m *memFS) step(call, path string) error {
	if m.dead {
		return errDead
	}
	m.calls++
	m.trace = append(m.trace, call+" "+filepath.Base(path))
	switch {
	case m.calls == m.dieAt:
		m.dead = true
		return errDead
	case m.calls == m.failAt || m.failAt > 0 && m.failing && m.calls > m.failAt:
		return m.err
	}
	return nil
}

func (m *memFS) hit() bool { return m.dead || m.failAt > 0 && m.calls >= m.failAt }

func (d *memDir) apply(op memOp) {
	d.pending = append(d.pending, op)
	set(d.live, op)
}

func set(names map[string]*inode, op memOp) {
	if op.file == nil {
		delete(names, op.name)
	} else {
		names[op.name] = op.file
	}
}

func (m *memFS) find(path string) (*memDir, *inode) {
	d := m.dirs[filepath.Dir(path)]
	if d == nil {
		return nil, nil
	}
	return d, d.live[filepath.Base(path)]
}

func missing(path string) error { return fmt.Errorf("%s: %w", path, fs.ErrNotExist) }

func (m *memFS) Resolve(path string) (string, error) { return path, nil }

func (m *memFS) Mkdir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("mkdir", dir); err != nil {
		return err
	}
	if m.dirs[dir] != nil {
		return fs.ErrExist
	}
	m.dirs[dir] = newMemDir() // folders are taken as durable at once
	return nil
}

func (m *memFS) CreateLocked(path string) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("create", path); err != nil {
		return nil, err
	}
	d, n := m.find(path)
	if n != nil {
		return nil, fs.ErrExist
	}
	n = &inode{locked: true}
	d.apply(memOp{filepath.Base(path), n})
	return &memFile{m: m, n: n, path: path, lock: true}, nil
}

func (m *memFS) OpenLocked(path string) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, errDead
	}
	_, n := m.find(path)
	switch {
	case n == nil:
		return nil, missing(path)
	case n.locked:
		return nil, errLocked
	}
	n.locked = true
	return &memFile{m: m, n: n, path: path, lock: true}, nil
}

func (m *memFS) OpenRead(path string) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, n := m.find(path)
	if n == nil {
		return nil, missing(path)
	}
	return &memFile{m: m, n: n, path: path}, nil
}

func (m *memFS) OpenCreate(path string) (file, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("opencreate", path); err != nil {
		return nil, err
	}
	d, n := m.find(path)
	if n == nil {
		n = &inode{}
		d.apply(memOp{filepath.Base(path), n})
	}
	return &memFile{m: m, n: n, path: path}, nil
}

func (m *memFS) Replace(path string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("replace", path); err != nil {
		return err
	}
	d, _ := m.find(path)
	d.apply(memOp{filepath.Base(path), &inode{live: bytes.Clone(data), disk: bytes.Clone(data)}})
	return nil
}

func (m *memFS) Link(path, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("link", name); err != nil {
		return err
	}
	d, n := m.find(path)
	if n == nil {
		return missing(path)
	}
	if d.live[filepath.Base(name)] != nil {
		return fs.ErrExist
	}
	d.apply(memOp{filepath.Base(name), n})
	return nil
}

func (m *memFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("rename", from); err != nil {
		return err
	}
	d, n := m.find(from)
	if n == nil {
		return missing(from)
	}
	// One change on disk, like a journal has it.
	d.pending = append(d.pending, memOp{filepath.Base(from) + "\x00" + filepath.Base(to), n})
	delete(d.live, filepath.Base(from))
	d.live[filepath.Base(to)] = n
	return nil
}

func (m *memFS) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("remove", path); err != nil {
		return err
	}
	d, n := m.find(path)
	if n == nil {
		return missing(path)
	}
	d.apply(memOp{filepath.Base(path), nil})
	return nil
}

func (m *memFS) RemoveAll(path string) error {
	err := m.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *memFS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("syncdir", dir); err != nil {
		return err
	}
	d := m.dirs[dir]
	d.disk, d.pending = maps.Clone(d.live), nil
	return nil
}

func (m *memFS) ReadDir(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[dir]
	if d == nil {
		return nil, missing(dir)
	}
	names := slices.Collect(maps.Keys(d.live))
	for path := range m.dirs {
		if path != "/" && filepath.Dir(path) == dir {
			names = append(names, filepath.Base(path))
		}
	}
	return slices.Sorted(slices.Values(names)), nil
}

func (m *memFS) Exists(path string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, n := m.find(path)
	return n != nil || m.dirs[path] != nil, nil
}

// content is what the running system sees of a file; nil if there is none.
func (m *memFS) content(path string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, n := m.find(path); n != nil {
		return bytes.Clone(n.live)
	}
	return nil
}

// put lays a file down as if it had always been there.
func (m *memFS) put(path string, data []byte) {
	for dir := filepath.Dir(path); m.dirs[dir] == nil; dir = filepath.Dir(dir) {
		m.dirs[dir] = newMemDir()
	}
	n := &inode{live: bytes.Clone(data), disk: bytes.Clone(data)}
	d := m.dirs[filepath.Dir(path)]
	d.live[filepath.Base(path)], d.disk[filepath.Base(path)] = n, n
}

type memFile struct {
	m      *memFS
	n      *inode
	path   string
	lock   bool
	closed bool
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return 0, fs.ErrClosed
	case off >= int64(len(f.n.live)):
		return 0, io.EOF
	}
	n := copy(p, f.n.live[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	was := f.m.dead
	err := f.m.step("write", f.path)
	if was {
		return 0, err
	}
	if err != nil {
		p = p[:len(p)/2] // a part got there
	}
	if grow := int(off) + len(p) - len(f.n.live); grow > 0 {
		f.n.live = append(f.n.live, make([]byte, grow)...)
	}
	return copy(f.n.live[off:], p), err
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step("truncate", f.path); err != nil {
		return err
	}
	f.n.live = bytes.Clone(f.n.live[:size])
	return nil
}

func (f *memFile) Sync() error {
	if f.m.onSync != nil {
		f.m.onSync()
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step("sync", f.path); err != nil {
		return err
	}
	f.m.syncs++
	f.n.disk = bytes.Clone(f.n.live)
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return int64(len(f.n.live)), nil
}

func (f *memFile) SameAs(other file) bool {
	o, ok := other.(*memFile)
	return ok && o.n == f.n
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.lock && !f.closed {
		f.n.locked = false
	}
	f.closed = true
	return nil
}

// aftermath is what a crash may leave of everything that was not synced.
type aftermath struct {
	names uint          // bit i: the i-th unsynced change of a folder is kept
	bytes func(int) int // of n unsynced bytes at a file's end, how many are kept
	holes bool          // the others are there, but as zeros
	older bool          // an unsynced cut is undone
}

// reboot is the disk after a crash.
func (m *memFS) reboot(a aftermath) *memFS {
	after := newMemFS()
	inodes := map[*inode]*inode{}
	keep := func(n *inode) *inode {
		if inodes[n] == nil {
			data := a.settle(n)
			inodes[n] = &inode{live: data, disk: bytes.Clone(data)}
		}
		return inodes[n]
	}
	for path, d := range m.dirs {
		names := maps.Clone(d.disk)
		for i, op := range d.pending {
			if a.names&(1<<i) == 0 {
				continue
			}
			if from, to, ok := strings.Cut(op.name, "\x00"); ok {
				delete(names, from)
				names[to] = op.file
			} else {
				set(names, op)
			}
		}
		e := newMemDir()
		for name, n := range names {
			e.live[name] = keep(n)
		}
		e.disk = maps.Clone(e.live)
		after.dirs[path] = e
	}
	return after
}

func (a aftermath) settle(n *inode) []byte {
	if len(n.live) < len(n.disk) {
		if a.older {
			return bytes.Clone(n.disk)
		}
		return bytes.Clone(n.live)
	}
	more := n.live[len(n.disk):]
	kept := a.bytes(len(more))
	data := append(bytes.Clone(n.disk), more[:kept]...)
	if a.holes {
		data = append(data, make([]byte, len(more)-kept)...)
	}
	return data
}
