package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"deepseek/internal/permission"
)

// errStale says that what is at a place is no longer what was decided on.
var errStale = errors.New("changed meanwhile")

// put replaces the content at the place that acc leads to, or creates it where
// old is nil. A crash at any point leaves the old content or the new one, whole;
// when put has returned nil, the new one is on disk. It looks again, through the handle
// that it writes through, at what it replaces: anything else than old is
// errStale and stays as it is.
//
// A new file replaces the old one by a rename within the folder. A file with
// several names, or one whose owner or folder does not allow a replacement, is
// written in place: that alone is not atomic, and is undone when it fails.
func put(ctx context.Context, acc permission.Access, old *version, content []byte) error {
	if old == nil {
		return create(ctx, acc, content)
	}
	fi, err := acc.Root.Lstat(acc.Rel)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return errStale // removed, or swapped for a link
	}
	if err != nil {
		return err
	}
	if fi.Mode().Perm()&0o222 == 0 {
		return coded{CodeReadOnly, "the file is write-protected (mode " + fmt.Sprintf("%04o", fi.Mode().Perm()) + "); change its mode first if it is to be changed"}
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return overwrite(ctx, acc, old, content)
	}
	err = publish(ctx, acc, old, content, modeOf(fi))
	if errors.Is(err, errInPlace) {
		return overwrite(ctx, acc, old, content)
	}
	return err
}

// modeOf is what chmod sets, the bits for another user or group included.
func modeOf(fi fs.FileInfo) fs.FileMode {
	return fi.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

// create makes a file and the folders on the way to it; where it fails, neither is left.
func create(ctx context.Context, acc permission.Access, content []byte) (err error) {
	dir := filepath.Dir(acc.Rel)
	kept, err := existing(acc.Root, dir)
	if err != nil {
		return err
	}
	top := acc.Root
	defer func() {
		for made := dir; err != nil && made != kept; made = filepath.Dir(made) {
			_ = top.Remove(made) // not there, or used by somebody else already
		}
	}()
	if err := acc.Root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if dir != "." {
		// From here on by the folder itself: it may be moved, and what is put
		// beside the file's place has to be found again.
		folder, err := acc.Root.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer folder.Close() //nolint:errcheck // a folder handle
		acc.Root, acc.Rel = folder, filepath.Base(acc.Rel)
	}
	if _, err := acc.Root.Lstat(acc.Rel); err == nil {
		return errStale
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return publish(ctx, acc, nil, content, 0o644)
}

// existing is the part of a path below root that exists, "." if nothing does.
// The guard's handle makes it the usual case that there is none.
func existing(root *os.Root, dir string) (string, error) {
	for i := range len(dir) + 1 {
		if i < len(dir) && dir[i] != filepath.Separator {
			continue
		}
		if _, err := root.Lstat(dir[:i]); errors.Is(err, fs.ErrNotExist) {
			if i = strings.LastIndexByte(dir[:i], filepath.Separator); i < 0 {
				return ".", nil
			}
			return dir[:i], nil
		} else if err != nil {
			return "", err
		}
	}
	return dir, nil
}

// version is content that was read.
type version struct {
	content []byte
}

// errInPlace says that a replacement would lose something that writing in place keeps.
var errInPlace = errors.New("cannot be replaced")

// publish writes content beside its target, syncs it, and moves it there.
func publish(ctx context.Context, acc permission.Access, old *version, content []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(acc.Rel)
	tmp := filepath.Join(dir, ".deepseek-"+rand.Text()+".tmp")
	create := mode
	if old != nil {
		create = 0o600 // never wider than the file it replaces
	}
	f, err := acc.Root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, create)
	if old != nil && errors.Is(err, fs.ErrPermission) {
		return errInPlace
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeLeft(acc.Root, tmp))
		}
	}()
	_, err = f.Write(content)
	if err == nil && old != nil {
		err = takeOver(acc, f, mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if old == nil {
		err = moveNew(acc, tmp)
	} else if err = unchanged(ctx, acc, old); err == nil {
		err = acc.Root.Rename(tmp, acc.Rel)
	}
	if err != nil {
		return err
	}
	if err = syncDir(acc.Root, dir); err != nil {
		return fmt.Errorf("written, but its folder could not be synced: %w", err)
	}
	return nil
}

// removeLeft removes a temporary file. That it is gone already is fine.
func removeLeft(root *os.Root, tmp string) error {
	if err := root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// moveNew gives the temporary file its name, which must be free: a link fails
// where a rename would overwrite. File systems without links get the rename.
func moveNew(acc permission.Access, tmp string) error {
	err := acc.Root.Link(tmp, acc.Rel)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errStale
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EMLINK), errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.EACCES):
		return acc.Root.Rename(tmp, acc.Rel)
	case err != nil:
		return err
	}
	return removeLeft(acc.Root, tmp)
}

// takeOver gives the new file the mode, the owner and the attributes of the one it
// replaces.
func takeOver(acc permission.Access, f *os.File, mode fs.FileMode) error {
	was, err := acc.Root.Lstat(acc.Rel)
	if err != nil {
		return err
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	a, aok := was.Sys().(*syscall.Stat_t)
	b, bok := is.Sys().(*syscall.Stat_t)
	if aok && bok && (a.Uid != b.Uid || a.Gid != b.Gid) {
		if err := f.Chown(int(a.Uid), int(a.Gid)); err != nil {
			return errInPlace
		}
	}
	if err := takeAttributes(acc, f); err != nil {
		return err
	}
	return f.Chmod(mode)
}

// unchanged reads the target again through the handle.
func unchanged(ctx context.Context, acc permission.Access, old *version) error {
	f, err := acc.Root.OpenFile(acc.Rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return errStale
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	return sameContent(ctx, f, old)
}

func sameContent(ctx context.Context, f *os.File, old *version) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Size() != int64(len(old.content)) {
		return errStale
	}
	at, same := 0, true
	err = chunks(ctx, f, func(part []byte) bool {
		same = at+len(part) <= len(old.content) && bytes.Equal(part, old.content[at:at+len(part)])
		at += len(part)
		return same
	})
	if err == nil && (!same || at != len(old.content)) {
		return errStale
	}
	return err
}

// overwrite writes in place, longest extent first, and puts the old content
// back if that fails.
func overwrite(ctx context.Context, acc permission.Access, old *version, content []byte) (err error) {
	f, err := acc.Root.OpenFile(acc.Rel, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if err := acc.Check(fi); err != nil {
		return err
	}
	if err := sameContent(ctx, f, old); err != nil {
		return err
	}
	defer func() {
		// Writing takes the bits for another user or group away; giving them
		// back is the owner's right alone.
		if is, serr := f.Stat(); serr == nil && modeOf(is) != modeOf(fi) {
			if cerr := f.Chmod(modeOf(fi)); err == nil && !errors.Is(cerr, fs.ErrPermission) {
				err = cerr
			}
		}
	}()
	if err := fill(f, content); err != nil {
		if back := fill(f, old.content); back != nil {
			return fmt.Errorf("%w; the file is damaged, putting the old content back failed too: %w", err, back)
		}
		return err
	}
	return nil
}

func fill(f *os.File, content []byte) error {
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes a rename last. File systems that cannot sync folders need not.
func syncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
