package files

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"deepseek/internal/permission"
)

// takeAttributes gives the new file the extended attributes of the one it replaces,
// access lists included. Where one of the user's, or an access list, cannot be
// taken along, the file is written in place; the system's own labels are tried
// only. Capabilities are not for new content: the kernel takes them from a file
// that is written, too.
func takeAttributes(acc permission.Access, f *os.File) error {
	was, err := acc.Root.OpenFile(acc.Rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer was.Close() //nolint:errcheck // opened for reading
	from, to := int(was.Fd()), int(f.Fd())
	names, err := attribute(func(buf []byte) (int, error) { return unix.Flistxattr(from, buf) })
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || len(names) == 0 && err == nil {
		return nil
	}
	if err != nil {
		return errInPlace
	}
	for raw := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		name := string(raw)
		if name == "security.capability" {
			continue
		}
		needed := !strings.HasPrefix(name, "security.") && !strings.HasPrefix(name, "trusted.")
		value, err := attribute(func(buf []byte) (int, error) { return unix.Fgetxattr(from, name, buf) })
		if err == nil {
			err = unix.Fsetxattr(to, name, value, 0)
		}
		if err != nil && needed {
			return errInPlace
		}
	}
	return nil
}

// attribute reads what has a size that is asked for first, and may grow meanwhile.
func attribute(read func(buf []byte) (int, error)) ([]byte, error) {
	for {
		n, err := read(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		buf := make([]byte, n)
		n, err = read(buf)
		if errors.Is(err, unix.ERANGE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}
