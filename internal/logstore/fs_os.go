package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// osFS is the real file system.
type osFS struct{}

func (osFS) Resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func (osFS) Mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) // the umask may have taken from it
}

func (osFS) CreateLocked(path string) (file, error) {
	return openLocked(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) OpenLocked(path string) (file, error) {
	return openLocked(path, os.O_RDWR)
}

// openLocked locks through a descriptor of its own, since the library keeps
// its descriptor to itself, and works through a second one. Both, and the path
// afterwards, must be the same file: between open and lock somebody may have
// removed or replaced it.
func openLocked(path string, flag int) (file, error) {
	lock := flock.New(path, flock.SetFlag(flag), flock.SetPermissions(0o600))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errLocked
	}
	f, err := openSame(lock, path, flag&os.O_CREATE != 0)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return osFile{File: f, lock: lock}, nil
}

func openSame(lock *flock.Flock, path string, created bool) (*os.File, error) {
	if created {
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	locked, lockErr := lock.Stat()
	opened, openErr := f.Stat()
	if err := errors.Join(lockErr, openErr); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !os.SameFile(locked, opened) {
		// What is there now is another file, whose lock we do not hold. The
		// caller starts over.
		return nil, errors.Join(errLocked, f.Close())
	}
	if !opened.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", path), f.Close())
	}
	return f, nil
}

// OpenRead takes regular files only: opening a pipe would wait for a writer.
func (osFS) OpenRead(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{File: f}, nil
}

func (osFS) OpenCreate(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{File: f}, nil
}

// Replace writes under one name always, which the caller alone uses, so that
// those who die at it leave one file and the next one takes it over. Nothing is
// synced: what the machine's death makes of the file counts for nobody.
func (osFS) Replace(path string, data []byte) error {
	temp := replacingPath(path)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o600), f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

func (osFS) Link(path, name string) error { return os.Link(path, name) }
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(path string) error     { return os.Remove(path) }
func (osFS) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

type osFile struct {
	*os.File
	lock *flock.Flock // nil where the file holds none
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) SameAs(other file) bool {
	o, ok := other.(osFile)
	if !ok {
		return false
	}
	a, errA := f.Stat()
	b, errB := o.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func (f osFile) Close() error {
	err := f.File.Close()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

func notDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
