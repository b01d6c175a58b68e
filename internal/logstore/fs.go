package logstore

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
)

// fileSystem is every call by which sessions reach the disk, so that a test
// can let each of them fail, or let the machine die in it. Errors wrap
// fs.ErrExist and fs.ErrNotExist where they apply. Safe for concurrent use.
type fileSystem interface {
	// Resolve makes a path absolute and free of symbolic links, so that what
	// lies beside a file is found from every path that leads to it.
	Resolve(path string) (string, error)
	// Mkdir makes one folder, 0700 whatever the umask.
	Mkdir(dir string) error
	// CreateLocked makes a new file, 0600 whatever the umask, and locks it.
	CreateLocked(path string) (file, error)
	// OpenLocked opens a file for reading and writing and holds its lock: the
	// file is the one that the path names once the lock is held. errLocked if
	// somebody else holds it.
	OpenLocked(path string) (file, error)
	// OpenRead opens a file for reading alone.
	OpenRead(path string) (file, error)
	// OpenCreate opens a file for writing, making it (0600) where it is
	// missing; a symbolic link is not followed.
	OpenCreate(path string) (file, error)
	// Replace puts a file (0600) in the place of another, in one step. One
	// caller at a time; replacingPath is its own until then.
	Replace(path string, data []byte) error
	// Link gives a file a second name and never replaces one.
	Link(path, name string) error
	Rename(from, to string) error
	Remove(path string) error
	RemoveAll(path string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// ReadDir is the names in a folder, sorted.
	ReadDir(dir string) ([]string, error)
	Exists(path string) (bool, error)
}

// file is an open file. ReadAt is safe for concurrent use with everything but Close.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Size() (int64, error)
	// SameAs tells whether other is open on the same file.
	SameAs(other file) bool
	// Close gives the lock up, if the file holds one.
	Close() error
}

var errLocked = errors.New("locked by somebody else")

// mkdirAll makes dir and the missing folders above it, and makes each durable
// before anything is put into it.
func mkdirAll(fsys fileSystem, dir string) error {
	switch ok, err := fsys.Exists(dir); {
	case err != nil:
		return err
	case ok:
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := mkdirAll(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(dir); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil // somebody else was quicker, and syncs it
		}
		return err
	}
	return fsys.SyncDir(parent)
}
