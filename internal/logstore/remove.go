package logstore

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
)

// Remove deletes a session and everything beside it. It takes the lock first:
// *BusyError if somebody owns it.
//
// The log is renamed before anything is deleted, to a name under which nobody
// finds it, and deleted last. So a crash leaves either the whole session or
// none, and the name that says what is still to be deleted.
func (s *Store) Remove(ctx context.Context, path string) error {
	path, err := s.resolve(path)
	if err != nil {
		return err
	}
	f, err := s.acquire(ctx, path)
	if err != nil {
		return err
	}
	dir, marker := filepath.Dir(path), removedPath(path)
	err = s.fs.Rename(path, marker)
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	if err == nil {
		err = s.finishRemoval(path, marker)
	}
	err = errors.Join(err, f.Close())
	s.sweep(dir)
	return err
}

// finishRemoval deletes what belonged to the log at path, then the marker. Its
// lock is held.
func (s *Store) finishRemoval(path, marker string) error {
	dir := filepath.Dir(path)
	reborn, err := s.fs.Exists(path)
	if err != nil {
		return err
	}
	if !reborn {
		if err := s.removeBeside(path); err != nil {
			return err
		}
		if err := s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := s.fs.Remove(marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.fs.SyncDir(dir)
}

func (s *Store) removeBeside(path string) error {
	all := []string{SpillDir(path), DraftsDir(path), TornPath(path), OwnerPath(path), replacingPath(OwnerPath(path))}
	for _, p := range all {
		if err := s.fs.RemoveAll(p); err != nil {
			return err
		}
	}
	return nil
}
