package logstore

import (
	"path/filepath"
	"strings"
)

// sweep clears a folder of what the dead left: creations and removals that were
// cut short, and the owner files of owners that were killed, those of
// sub-agents above all, whose sessions nobody takes up again. A lock that is
// held says who lives. What cannot be cleared stays for the next time; it is in
// nobody's way.
func (s *Store) sweep(dir string) {
	names, err := s.fs.ReadDir(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		switch hidden := name[0] == '.'; {
		case hidden && strings.HasSuffix(name, newSuffix):
			s.unlessOwned(path, func() { _ = s.fs.Remove(path) })
		case hidden && strings.HasSuffix(name, removedSuffix):
			id := strings.TrimSuffix(name[1:], removedSuffix)
			s.unlessOwned(path, func() { _ = s.finishRemoval(filepath.Join(dir, id+extension), path) })
		case hidden && strings.HasSuffix(name, ownerSuffix+replacingSuffix):
			s.sweepOwner(filepath.Join(dir, strings.TrimSuffix(name[1:], ownerSuffix+replacingSuffix)+extension), path)
		case !hidden && strings.HasSuffix(name, ownerSuffix):
			s.sweepOwner(filepath.Join(dir, strings.TrimSuffix(name, ownerSuffix)+extension), path)
		}
	}
}

// sweepOwner removes an owner file, whole or not, of the log at path. An owner
// has its lock before it writes one, and there is no owner without a log.
func (s *Store) sweepOwner(path, name string) {
	if ok, err := s.fs.Exists(path); err == nil && !ok {
		_ = s.fs.Remove(name)
		return
	}
	s.unlessOwned(path, func() { _ = s.fs.Remove(name) })
}

// unlessOwned does something with the lock of a file, unless somebody has it or
// the file is gone.
func (s *Store) unlessOwned(path string, do func()) {
	f, err := s.fs.OpenLocked(path)
	if err != nil {
		return
	}
	do()
	_ = f.Close()
}
